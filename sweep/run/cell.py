"""One cell: what a worker is given, what it does, what it gives back."""

from __future__ import annotations

import hashlib
import json
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    import pyarrow as pa

    from sim.engine.result import Result
    from sim.workload.workload import Workload

Simulate = Callable[..., "Result"]

NO_POLICY = "none"
"""In place of a policy's name where what is measured needs none."""


class CellError(TypedDict):
    """Why a cell failed: what it was doing, the exception's type, message and traceback."""

    stage: str
    type: str
    message: str
    traceback: str


@dataclass(frozen=True)
class CellSpec:
    """What a worker needs to know besides the workload.

    Attributes
    ----------
    key : str
        SHA-256, hex; see `key_of`.
    policy : dict
        ``name`` (or `NO_POLICY`), ``module``, ``params``.
    cluster : dict
        For `sweep.grid.clusters.build`.
    measure : dict
        ``name``, ``module`` if it is the user's own, and the options of one of `sim.measures`.
    seed : int
        Of the run.
    sources : str
        Digest of the sources that the numbers shall come from; empty for any.
    """

    key: str
    policy: Mapping[str, Any]
    cluster: Mapping[str, Any]
    measure: Mapping[str, Any]
    seed: int
    sources: str = ""


@dataclass(frozen=True)
class CellResult:
    """What a cell gives back.

    Attributes
    ----------
    key : str
        Of the cell.
    metrics : dict of str to float
        Empty if it failed.
    jobs : pyarrow.Table or None
        What the metrics were computed from; of a simulation a row a job: ``submit_s``,
        ``start_s``, ``finish_s`` (NaN if never), ``failed`` (bool). None if the cell failed.
    error : CellError or None
        Why it failed.
    seconds : float
        How long it took. Never part of a result.
    """

    key: str
    metrics: dict[str, float] = field(default_factory=dict)
    jobs: pa.Table | None = None
    error: CellError | None = None
    seconds: float = 0.0


def key_of(
    policy: Mapping[str, Any],
    cluster: Mapping[str, Any],
    measure: Mapping[str, Any],
    capacity: float,
    seed: int,
    workload: str,
    sources: str,
) -> str:
    """Name a cell by everything that its numbers follow from.

    Parameters
    ----------
    policy, cluster, measure : mapping
        As configured, resolved.
    capacity, seed
        Of the cell.
    workload : str
        Content digest of the workload; where it came from does not matter.
    sources : str
        Digest of the sources that the numbers come from.

    Returns
    -------
    str
        SHA-256 of the canonical JSON, hex.
    """
    content = {
        "policy": {"name": policy["name"], "params": policy["params"]},
        "cluster": cluster,
        "measure": measure,
        "capacity": capacity,
        "seed": seed,
        "workload": workload,
        "sources": sources,
    }
    return hashlib.sha256(canonical(content).encode()).hexdigest()


def canonical(content: Any) -> str:
    """JSON with sorted keys and no spaces: the same text for the same content."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def run_cell(workload: Workload, spec: CellSpec, simulate: Simulate | None = None) -> CellResult:
    """Simulate one cell; an exception becomes part of the result.

    Parameters
    ----------
    workload : Workload
        Read only.
    spec : CellSpec
        The cell.
    simulate : callable, optional
        Stands in for `sim.simulate`.
    """
    begin = time.perf_counter()
    stage = ["cluster"]
    try:
        metrics, jobs = _run(workload, spec, simulate, stage)
    except (Exception, SystemExit) as error:
        where = "policy" if _is_policys(error, spec) else stage[0]
        seconds = time.perf_counter() - begin
        return CellResult(spec.key, error=error_of(where, error), seconds=seconds)
    return CellResult(spec.key, metrics, jobs, seconds=time.perf_counter() - begin)


def error_of(stage: str, error: BaseException) -> CellError:
    """Describe an exception by the words of a failed cell's row."""
    return {
        "stage": stage,
        "type": type(error).__name__,
        "message": str(error),
        "traceback": "".join(traceback.format_exception(error)),
    }


def in_a_line(error: BaseException) -> str:
    """Return the first line of what an exception says, its type's name if it says nothing."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _run(
    workload: Workload, spec: CellSpec, simulate: Simulate | None, stage: list[str]
) -> tuple[dict[str, float], pa.Table]:
    """Go through the stages, noting in `stage` which one it is at."""
    import policies
    import sim
    from sim.measures import measure
    from sweep.grid import clusters

    cluster = clusters.build(spec.cluster, spec.seed)
    stage[0] = "policy"
    policy = None
    if spec.policy["name"] != NO_POLICY:
        policy = policies.build(
            spec.policy["name"], module=spec.policy["module"], **spec.policy["params"]
        )
    stage[0] = "simulate"
    what = dict(spec.measure)
    name, run = what.pop("name"), simulate or sim.simulate
    return measure(name, run, workload, cluster, policy, spec.seed, **what)


def _is_policys(error: BaseException, spec: CellSpec) -> bool:
    """Tell whether the policy's own module was at work when `error` was raised."""
    import policies

    try:
        module = policies.spec(spec.policy["name"]).__module__
    except Exception:
        return False
    frames = traceback.walk_tb(error.__traceback__)
    return any(frame.f_globals.get("__name__") == module for frame, _ in frames)
