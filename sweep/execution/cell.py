"""Running one cell; whatever it raises becomes part of its result."""

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
from sweep.stats.cell_columns import ABOUT, AXES, ERROR
from sweep.store.cell import CellError, CellResult, CellSpec

if TYPE_CHECKING:
    import pyarrow as pa

    from sim.cluster.cluster import Cluster
    from sim.result import Result
    from sim.workload.workload import Workload
    from sweep.grid.clusters import Built

Simulate = Callable[..., "Result"]
"""Stands in for `sim.simulate`."""


def run_cell(
    workload: Workload, spec: CellSpec, built: Built, simulate: Simulate | None = None
) -> CellResult:
    """Simulate one cell on its cluster; an exception becomes part of the result."""
    begin = time.perf_counter()
    stage = ["cluster"]
    try:
        metrics, jobs = _run(workload, spec, built.cluster, simulate, stage)
    except (Exception, SystemExit) as error:
        at = _line_of_policy(error, spec)
        found = describe_error(stage[0] if at is None else "policy", error)
        at = at or _last_line_in(error, spec.evaluator.get("module"))
        if at is not None and not isinstance(error, InputError):
            found["message"] += f" ({at})"
        return CellResult(spec.key, error=found, seconds=time.perf_counter() - begin)
    metrics = {**metrics, **built.facts}
    return CellResult(spec.key, metrics, jobs, seconds=time.perf_counter() - begin)


def describe_error(stage: str, error: BaseException) -> CellError:
    """Describe an exception by the words of a failed cell's row."""
    return {
        "stage": stage,
        "type": type(error).__name__,
        "message": printable(str(error)),
        "traceback": printable("".join(traceback.format_exception(error))),
    }


def _run(
    workload: Workload,
    spec: CellSpec,
    cluster: Cluster,
    simulate: Simulate | None,
    stage: list[str],
) -> tuple[dict[str, float], pa.Table]:
    """Go through the stages, noting in `stage` which one it is at."""
    cluster = clusters.with_faults(cluster, spec.cluster, spec.seed)
    stage[0] = "policy"
    policy = None
    if spec.policy["name"] != NO_POLICY:
        policy = policies.build(
            spec.policy["name"], module=spec.policy["module"], **spec.policy["params"]
        )
    stage[0] = "simulate"
    options = dict(spec.evaluator)
    name, run = options.pop("name"), simulate or sim.simulate
    metrics, jobs = evaluate(name, run, workload, cluster, policy, spec.seed, **options)
    _check_names(name, metrics)
    return metrics, jobs


def _check_names(evaluator: str, metrics: Iterable[str]) -> None:
    """Refuse metrics that would take the place of a column about the cell itself."""
    for name in metrics:
        if name in _COLUMNS or name.startswith(_SWEPT):
            raise EvaluatorError(
                f"evaluator {evaluator} returned a number called {name!r}, which is a column of "
                f"cells.parquet; call it something else: {name.rpartition('.')[2]}_value"
            )


_COLUMNS = frozenset((*AXES, *ERROR, *ABOUT, "status", "reproduce", "config", "key", "row"))
_SWEPT = tuple(f"{group}." for group in (*SWEPT_GROUPS, "evaluator"))


def _line_of_policy(error: BaseException, spec: CellSpec) -> str | None:
    """Return where the policy's own module was when `error` was raised; None if it was not."""
    modules = [spec.policy["module"]]
    with contextlib.suppress(Exception):
        modules.append(policies.spec(spec.policy["name"]).__module__)
    return _last_line_in(error, *modules)


def _last_line_in(error: BaseException, *modules: str | None) -> str | None:
    """Return the file and line of modules that were at work last."""
    last = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        if frame.f_globals.get("__name__") in modules:
            last = f"{_shown(frame.f_code.co_filename)}:{line}"
    return last


def _shown(file: str) -> str:
    """Return a file as somebody here would call it."""
    here = Path.cwd()
    return str(Path(file).relative_to(here)) if Path(file).is_relative_to(here) else file
