"""Running one cell; whatever it raises becomes part of its result."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING

import policies
import sim
from sim.measures import NO_POLICY, measure
from sweep.grid import clusters
from sweep.store.cell import CellError, CellResult, CellSpec

if TYPE_CHECKING:
    import pyarrow as pa

    from sim.result import Result
    from sim.workload.workload import Workload

Simulate = Callable[..., "Result"]
"""Stands in for `sim.simulate`."""


def run_cell(workload: Workload, spec: CellSpec, simulate: Simulate | None = None) -> CellResult:
    """Simulate one cell; an exception becomes part of the result."""
    begin = time.perf_counter()
    stage = ["cluster"]
    try:
        metrics, jobs = _run(workload, spec, simulate, stage)
    except (Exception, SystemExit) as error:
        where = "policy" if _is_policys(error, spec) else stage[0]
        seconds = time.perf_counter() - begin
        return CellResult(spec.key, error=error_of(where, error), seconds=seconds)
    metrics = {**metrics, **spec.cluster.get("facts", {})}
    return CellResult(spec.key, metrics, jobs, seconds=time.perf_counter() - begin)


def error_of(stage: str, error: BaseException) -> CellError:
    """Describe an exception by the words of a failed cell's row."""
    return {
        "stage": stage,
        "type": type(error).__name__,
        "message": str(error),
        "traceback": "".join(traceback.format_exception(error)),
    }


def _run(
    workload: Workload, spec: CellSpec, simulate: Simulate | None, stage: list[str]
) -> tuple[dict[str, float], pa.Table]:
    """Go through the stages, noting in `stage` which one it is at."""
    cluster = clusters.build(spec.cluster, spec.seed)
    stage[0] = "policy"
    policy = None
    if spec.policy["name"] != NO_POLICY:
        policy = policies.build(
            spec.policy["name"], module=spec.policy["module"], **spec.policy["params"]
        )
    stage[0] = "simulate"
    options = dict(spec.measure)
    name, run = options.pop("name"), simulate or sim.simulate
    return measure(name, run, workload, cluster, policy, spec.seed, **options)


def _is_policys(error: BaseException, spec: CellSpec) -> bool:
    """Tell whether the policy's own module was at work when `error` was raised."""
    try:
        module = policies.spec(spec.policy["name"]).__module__
    except Exception:
        return False
    frames = traceback.walk_tb(error.__traceback__)
    return any(frame.f_globals.get("__name__") == module for frame, _ in frames)
