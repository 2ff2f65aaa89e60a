"""Interface to a worker: the specification of a cell and its result."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

if TYPE_CHECKING:
    import pyarrow as pa

    from sim.base.arrays import F8


class CellError(TypedDict):
    """Error of a failed cell: the stage it was in, the exception's type, message and traceback."""

    stage: str
    type: str
    message: str
    traceback: str


class CellSpec(NamedTuple):
    """Specification of a cell for a worker, its workload apart."""

    key: str  # SHA-256, hex; see `sweep.execution.keys.cell_key`
    policy: Mapping[str, Any]  # ``name`` (or `NO_POLICY`), ``module``, ``params``
    cluster: Mapping[str, Any]  # for `sweep.grid.clusters.build_for`, with the capacity
    capacity: float
    # ``name``, ``module`` if it is the user's own, and the options of one of `sim.evaluators`
    evaluator: Mapping[str, Any]
    seed: int
    sources: str = ""  # digest of the sources that the worker must have; empty for any


class CellResult(NamedTuple):
    """Result of a cell: metrics and the table they were computed from, or an error.

    Both are left out once they are stored; see `sweep.execution.result_batch`.
    """

    key: str
    metrics: Mapping[str, float] = {}
    # of a simulation a row a job: ``submit_s``, ``start_s``, ``finish_s`` (NaN if never),
    # ``failed`` (bool)
    jobs: pa.Table | None = None
    error: CellError | None = None
    seconds: float = 0.0  # run time; never part of a result
    node: str = ""  # Ray's id of the node; empty: this machine

    def jct_s(self) -> F8 | None:
        """Completion time of each job, NaN if it failed; None if an evaluator keeps no jobs."""
        jobs = self.jobs
        if jobs is None or not {"submit_s", "finish_s", "failed"} <= set(jobs.column_names):
            return None
        jct: F8 = jobs["finish_s"].to_numpy() - jobs["submit_s"].to_numpy()
        jct[jobs["failed"].to_numpy()] = math.nan
        return jct
