"""The probability tables a workload is synthesized from."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sim.base.errors import InputError
from sim.synth.alibaba2018.histograms import Conditional, Histogram
from sim.synth.alibaba2018.joint import Joint
from sim.synth.alibaba2018.links import Links


@dataclass(frozen=True)
class Tables:
    """All that Algorithm 2 and the attributes of its stages are drawn from."""

    n_stages: Histogram  # stages a job
    length: Conditional  # critical path length, in stages, given the number of stages
    level: Conditional  # level of a stage, from 1, given the critical path length
    n_tasks: Histogram  # tasks a stage
    duration_s: Histogram  # seconds a task lasts; seconds between one job's submission and the next
    interval_s: Histogram
    demand: Mapping[str, Histogram]  # what a task takes of each resource
    quantum: Mapping[str, float]  # the step each resource's demands are counted in
    # JSON-able: where the numbers come from and what was dropped or pooled on the way
    provenance: Mapping[str, Any] = field(default_factory=dict)
    links: Links | None = None  # what ``variant="improved"`` draws shapes and edges from
    joint: Joint | None = None  # what ``joint=True`` draws the attributes of stages with

    @property
    def attributes(self) -> dict[str, Histogram]:
        """The tables of what stages have: ``duration_s``, ``n_tasks``, ``demand <resource>``."""
        demand = {f"demand {name}": table for name, table in self.demand.items()}
        return {"duration_s": self.duration_s, "n_tasks": self.n_tasks, **demand}


def check_tables(tables: Tables, path: str | os.PathLike[str] | None = None) -> None:
    """Make sure that every draw has something to draw from."""
    if not tables.demand:
        raise InputError("no table 'demand <resource>'; at least one is needed", file=path)
    sizes = tables.n_stages.values.astype(np.int64)
    lengths: set[int] = set()
    for size, cell in zip(sizes, tables.length.cell_of(sizes), strict=True):
        possible = tables.length.cells[cell].up_to(size).values
        if not len(possible):
            raise InputError(
                f"table 'length' has no length of at most {size} for jobs of {size} stages",
                file=path,
                rule="nothing to draw",
            )
        lengths.update(possible.astype(int).tolist())
    known = np.array(sorted(lengths), dtype=np.int64)
    for length, cell in zip(known, tables.level.cell_of(known), strict=True):
        if not len(tables.level.cells[cell].up_to(length).values):
            raise InputError(
                f"table 'level' has no level of at most {length} for jobs of length {length}",
                file=path,
                rule="nothing to draw",
            )
