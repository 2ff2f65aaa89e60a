"""Run of one cell; an exception becomes part of its result."""

from __future__ import annotations

import contextlib
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import policies
import sim
from sim.base.errors import EvaluatorError, InputError
from sim.base.text import printable
from sim.evaluators import NO_POLICY, evaluate
from sweep.grid import clusters
from sweep.grid.options import SWEPT_GROUPS
from sweep.stats.cell_columns import ABOUT, AXES, ERROR, KNOWS
from sweep.store.cell import CellError, CellResult, CellSpec

if TYPE_CHECKING:
    import pyarrow as pa

    from sim.cluster.cluster import Cluster
    from sim.result import Result
    from sim.workload.workload import Workload
    from sweep.grid.clusters import SizedCluster

Simulate = Callable[..., "Result"]
"""Stands in for `sim.simulate`."""


def run_cell(
    workload: Workload, spec: CellSpec, built: SizedCluster, simulate: Simulate | None = None
) -> CellResult:
    """Run one cell on its cluster; an exception becomes part of the result."""
    begin = time.perf_counter()
    stage = ["cluster"]
    try:
        metrics, jobs = _run_stages(workload, spec, built.cluster, simulate, stage)
    except (Exception, SystemExit) as error:
        location = _policy_line(error, spec)
        details = describe_error(stage[0] if location is None else "policy", error)
        location = location or _last_line(error, spec.evaluator.get("module"))
        if location is not None and not isinstance(error, InputError):
            details["message"] += f" ({location})"
        return CellResult(spec.key, error=details, seconds=time.perf_counter() - begin)
    metrics = {**metrics, **built.facts}
    return CellResult(spec.key, metrics, jobs, seconds=time.perf_counter() - begin)


def describe_error(stage: str, error: BaseException) -> CellError:
    """Describe an exception as the columns of a failed cell's row."""
    return {
        "stage": stage,
        "type": type(error).__name__,
        "message": printable(str(error)),
        "traceback": printable("".join(traceback.format_exception(error))),
    }


def _run_stages(
    workload: Workload,
    spec: CellSpec,
    cluster: Cluster,
    simulate: Simulate | None,
    stage: list[str],
) -> tuple[dict[str, float], pa.Table]:
    """Build cluster and policy and run the evaluator; `stage[0]` names the current stage."""
    stage[0] = "policy"
    policy = None
    if spec.policy["name"] != NO_POLICY:
        policy = policies.build(
            spec.policy["name"], module=spec.policy["module"], **spec.policy["params"]
        )
    stage[0] = "cluster"
    cluster = clusters.with_faults(cluster, spec.cluster, spec.seed, policy)
    stage[0] = "simulate"
    options = dict(spec.evaluator)
    name, simulator = options.pop("name"), simulate or sim.simulate
    metrics, jobs = evaluate(name, simulator, workload, cluster, policy, spec.seed, **options)
    _check_names(name, metrics)
    return metrics, jobs


def _check_names(evaluator: str, metrics: Iterable[str]) -> None:
    """Refuse metrics named like a column about the cell itself."""
    for name in metrics:
        if name in _COLUMNS or name.startswith(_SWEPT):
            raise EvaluatorError(
                f"evaluator {evaluator} returned a metric named {name!r}, which is a column of "
                f"cells.parquet; rename it, for example to {name.rpartition('.')[2]}_value"
            )


_COLUMNS = frozenset((*AXES, *ERROR, *ABOUT, KNOWS, "status", "reproduce", "config", "key", "row"))
_SWEPT = tuple(f"{group}." for group in (*SWEPT_GROUPS, "evaluator"))


def _policy_line(error: BaseException, spec: CellSpec) -> str | None:
    """Return the line of the policy's own module where `error` was raised; None if elsewhere."""
    modules = [spec.policy["module"]]
    with contextlib.suppress(Exception):
        modules.append(policies.spec(spec.policy["name"]).__module__)
    return _last_line(error, *modules)


def _last_line(error: BaseException, *modules: str | None) -> str | None:
    """Return the innermost file and line of the traceback that is in one of the modules."""
    last = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        if frame.f_globals.get("__name__") in modules:
            last = f"{_display_path(frame.f_code.co_filename)}:{line}"
    return last


def _display_path(file: str) -> str:
    """Return a file's path, relative to the working folder if it is below."""
    working_folder = Path.cwd()
    return (
        str(Path(file).relative_to(working_folder))
        if Path(file).is_relative_to(working_folder)
        else file
    )
