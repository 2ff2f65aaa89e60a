"""Fitted tables by which `policies.wserpt.everything` joins the parts of a workload."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from policies.wing.programs.profiles import job_labels
from sim.base.arrays import I4
from sim.base.dataclass_json import load, save
from sim.base.parameters import Share
from sim.workload.columns import job_n_tasks
from sim.workload.schema import DEMAND_PREFIX
from sim.workload.tables import values
from sim.workload.workload import Workload

FORMAT = "everything tables 1"
"""First entry of the file."""
WIDTHS = (2, 10, 50)
"""Lower bounds of the numbers of tasks whose requests are counted together."""
DIGITS = 2
"""Significant digits of requests."""


@dataclass(frozen=True)
class Tables:
    """Histograms of what the trace of arrivals does not have; each ends with a count."""

    # of jobs of several tasks by their number of tasks (`WIDTHS`): what a task requests of the
    # largest machine's cpu and memory
    requests: tuple[tuple[tuple[float, float, int], ...], ...]
    priorities: tuple[tuple[float, int], ...]  # of users, each by that of most of its jobs
    inputs: tuple[tuple[int, int], ...]  # of programs, by how many others they read
    readers: tuple[tuple[int, int], ...]  # of programs, by how many others read them
    own: Share  # share of the reads that are of a program of the same schedule
    provenance: Mapping[str, Any]


def fit(jobs: Workload, schedule: Sequence[str], up: I4, down: I4) -> Tables:
    """Fit the tables to the jobs of one trace, and to the programs of another.

    Parameters
    ----------
    jobs : Workload
        Jobs of the trace ``google2011``.
    schedule : (P,) sequence of str
        Schedule of each program of the trace ``bqetl``.
    up, down : (R,) int32
        Reads: program ``down`` reads the output of ``up``.
    """
    n_tasks = job_n_tasks(jobs)
    cpu, mem = (_rounded(values(jobs.stages, DEMAND_PREFIX + name)) for name in ("cpu", "mem"))
    ends = (*WIDTHS[1:], int(n_tasks.max()) + 1)
    requests = []
    for low, high in zip(WIDTHS, ends, strict=True):
        rows = (n_tasks >= low) & (n_tasks < high) & (cpu > 0)
        pairs, count = np.unique(np.stack([cpu, mem])[:, rows], axis=1, return_counts=True)
        requests.append(tuple(zip(*pairs.tolist(), count.tolist(), strict=True)))
    users: dict[str, list[float]] = {}
    several = n_tasks >= WIDTHS[0]
    for user, priority, counts in zip(
        job_labels(jobs, "user"), values(jobs.jobs, "priority").tolist(), several, strict=True
    ):
        if counts:
            users.setdefault(user, []).append(priority)
    usual = [max(sorted(set(own)), key=own.count) for own in users.values()]
    group = np.unique(np.array(schedule), return_inverse=True)[1]
    return Tables(
        requests=tuple(requests),
        priorities=_counts(usual),
        inputs=_counts(np.bincount(down, minlength=len(group))),
        readers=_counts(np.bincount(up, minlength=len(group))),
        own=round(float((group[up] == group[down]).mean()), 3),
        provenance={
            "requests, priorities": "Google clusterdata-2011-2, jobs of several tasks",
            "inputs, readers, own": "scheduled tables of Mozilla's bigquery-etl",
        },
    )


def _counts(x: Any) -> tuple[tuple[Any, int], ...]:
    values, counts = np.unique(np.asarray(x), return_counts=True)
    return tuple(zip(values.tolist(), counts.tolist(), strict=True))


def _rounded(x: Any) -> Any:
    return np.array([float(f"{value:.{DIGITS}g}") for value in x.tolist()])


def write_tables(tables: Tables, path: str | os.PathLike[str]) -> None:
    """Write `tables` to a file, atomically."""
    save(path, FORMAT, tables)


@cache
def shipped() -> Tables:
    """Return the fitted tables beside this module."""
    path = Path(__file__).with_name("tables.json")
    return load(Tables, path, FORMAT, "make it with `policies.wserpt.everything.tables.fit`")
