"""A cell as it is handed over: what a worker is given, what it gives back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

if TYPE_CHECKING:
    import pyarrow as pa

    from sim.base.arrays import F8


class CellError(TypedDict):
    """Why a cell failed: what it was doing, the exception's type, message and traceback."""

    stage: str
    type: str
    message: str
    traceback: str


class CellSpec(NamedTuple):
    """What a worker needs to know besides the workload."""

    key: str  # SHA-256, hex; see `sweep.execution.keys.cell_key`
    policy: Mapping[str, Any]  # ``name`` (or `NO_POLICY`), ``module``, ``params``
    cluster: Mapping[str, Any]  # for `sweep.grid.clusters.build_for`, with the capacity
    capacity: float
    # ``name``, ``module`` if it is the user's own, and the options of one of `sim.evaluators`
    evaluator: Mapping[str, Any]
    seed: int
    sources: str = ""  # digest of the sources that the numbers shall come from; empty for any


class CellResult(NamedTuple):
    """Result of a cell: metrics and the table they were computed from, or an error.

    Both are left out once they are kept; see `sweep.execution.result_batch`.
    """

    key: str
    metrics: Mapping[str, float] = {}
    # of a simulation a row a job: ``submit_s``, ``start_s``, ``finish_s`` (NaN if never),
    # ``failed`` (bool)
    jobs: pa.Table | None = None
    error: CellError | None = None
    seconds: float = 0.0  # how long it took; never part of a result
    node: str = ""  # Ray's id of the node where it ran; empty: on this machine

    def jct_s(self) -> F8 | None:
        """Time that each job took, NaN of the failed; None where an evaluator keeps no jobs."""
        jobs = self.jobs
        if jobs is None or not {"submit_s", "finish_s", "failed"} <= set(jobs.column_names):
            return None
        jct: F8 = jobs["finish_s"].to_numpy() - jobs["submit_s"].to_numpy()
        jct[jobs["failed"].to_numpy()] = math.nan
        return jct
