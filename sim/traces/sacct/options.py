"""Options of the readers of Slurm's logs; their meaning is in `sim.traces.sacct.read`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sim.base.errors import InputError

State = Literal["all", "completed"]
Tasks = Literal["cpus", "nodes"]
Arrays = Literal["auto", "job", "jobs"]
Queue = Literal["Partition", "Account"]
Release = Literal["eligible", "submit"]


@dataclass(frozen=True)
class Options:
    """Rules by which records become jobs."""

    state: State = "all"
    tasks: Tasks = "cpus"
    arrays: Arrays = "auto"
    gang: bool = True
    queue: Queue = "Partition"
    release: Release = "eligible"
    gpu_types: bool = False

    def __post_init__(self) -> None:
        if self.gpu_types and self.tasks == "cpus":
            raise InputError(
                "gpu_types=true needs tasks=nodes, as tasks of a CPU each demand no GPU",
                rule="option without effect",
            )
