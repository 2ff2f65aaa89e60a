"""A cell of a finished sweep run again, with what its policy set on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import sim
from sim.base.arrays import I4
from sim.base.errors import InputError
from sim.engine.plan import NO_LIMIT, Batch, Event, Plan, Scheduler, World, seen_by
from sim.engine.plan.rows import rows_of
from sim.result import Result
from sweep.driver.one_cell import plan_cell
from sweep.driver.request import repeat_request
from sweep.execution import notes, rerun
from sweep.stats.cell_columns import AXES, text
from sweep.store.folder import SweepFolder

BOUNDS = ("start_gate", "run_limit", "overflow_queue")
"""Columns of a plan that hold tasks of a job back."""
_UNBOUND = {"start_gate": NO_LIMIT, "run_limit": NO_LIMIT, "overflow_queue": -1}


@dataclass(frozen=True)
class BoundsSet:
    """Bounds that the policy set at a time, on the clock of the run.

    Attributes
    ----------
    time_s : float
        -inf for before the run.
    jobs : (N,) int32
        Rows of jobs.
    values : dict of str to (N,) int32
        The columns in `BOUNDS`.
    """

    time_s: float
    jobs: I4
    values: Mapping[str, I4]


@dataclass
class Captured:
    """A run, its plan as it was at the end, and the bounds that were set, in order."""

    result: Result
    plan: Plan
    bounds: list[BoundsSet]
    title: str = ""
    is_recorded: bool = False  # its metrics are those of a sweep

    @property
    def pilots(self) -> I4:
        """Number of pilots of each job, (J,): its start gate when it started, 0 without one."""
        start_s = self.result.on_own_clock.job_start
        gate = np.full(len(start_s), NO_LIMIT, np.int32)
        for change in self.bounds:
            before = ~(change.time_s > start_s[change.jobs])
            gate[change.jobs[before]] = change.values["start_gate"][before]
        return np.where(gate < NO_LIMIT, gate, 0)


@dataclass(frozen=True)
class _Watched:
    """A policy whose bounds are noted; it decides as before."""

    policy: Scheduler
    plans: list[Plan] = field(default_factory=list)
    bounds: list[BoundsSet] = field(default_factory=list)
    now: list[float] = field(default_factory=lambda: [-np.inf])

    @property
    def name(self) -> str:
        return self.policy.name

    @property
    def events(self) -> Event:
        return self.policy.events

    @property
    def demands(self) -> str:
        return getattr(self.policy, "demands", "declared")

    def restrict(self, world: World) -> World:
        return seen_by(self.policy, world)

    def begin(self, world: World, plan: Plan) -> object:
        n = len(plan.jobs["key"])
        set_jobs, note_jobs = plan.set_jobs, plan.note_jobs
        last = {name: np.full(n, value, np.int32) for name, value in _UNBOUND.items()}

        def note_bounds(rows: Any) -> None:
            jobs = rows_of(slice(None) if rows is None else rows, n)
            differs = np.zeros(len(jobs), np.bool_)
            for name, before in last.items():
                differs |= before[jobs] != plan.jobs[name][jobs]
            jobs = np.asarray(jobs)[differs].astype(np.int32)
            if len(jobs):
                values = {name: plan.jobs[name][jobs] for name in last}
                self.bounds.append(BoundsSet(self.now[0], jobs, values))
                for name, value in values.items():
                    last[name][jobs] = value

        def set_and_note(rows: Any = None, /, **columns: Any) -> None:
            set_jobs(rows, **columns)
            if not columns.keys().isdisjoint(last):
                note_bounds(rows)

        def noted(rows: Any) -> None:
            note_jobs(rows)
            note_bounds(rows)

        plan.set_jobs = set_and_note  # type: ignore[method-assign]
        plan.note_jobs = noted  # type: ignore[method-assign]
        self.plans.append(plan)
        return self.policy.begin(world, plan)

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        self.now[0] = batch.now
        self.policy.react(memory, batch, world, plan)


def capturing(captured: list[Captured]) -> Callable[..., Result]:
    """Return a stand-in for `sim.simulate` that appends each run to `captured`."""

    def simulate(workload: Any, cluster: Any, policy: Any, **options: Any) -> Result:
        watched = _Watched(policy)
        result = sim.simulate(workload, cluster, watched, **options)
        captured.append(Captured(result, watched.plans[-1], watched.bounds))
        return result

    return simulate


def capture_cell(folder: SweepFolder, row: Mapping[str, Any]) -> Captured:
    """Run a cell of a finished sweep again in this process; return its run.

    If its evaluator simulates several times, the last run is returned.

    Raises
    ------
    InputError
        If the cell fails, its evaluator simulates nothing, or its metrics are others than recorded
        though neither its code nor its input changed.
    """
    labels = {key: row[key] for key in (*AXES, *folder.config()["swept"])}
    prepared, planned = plan_cell(repeat_request(folder), labels)
    runs: list[Captured] = []
    result = rerun.rerun(prepared.inputs, planned, capturing(runs))
    if result.error is not None:
        raise InputError(f"this cell fails: {result.error['message']}", rule="failed cell")
    if not runs:
        raise InputError("its evaluator simulates nothing that could be drawn", rule="no run")
    if planned.key != row["key"]:
        notes.note("its code or trace changed since: it may differ from the sweep's")
    else:
        _check_metrics(row, result.metrics)
        runs[-1].is_recorded = True
    words = [f"{key}={text(value)}" for key, value in labels.items() if value is not None]
    title = f"{labels['policy']} on {labels['trace']}"
    rest = [word for word in words if word.partition("=")[0] not in ("policy", "trace")]
    runs[-1].title = ", ".join([title, *rest])
    return runs[-1]


def _check_metrics(row: Mapping[str, Any], now: Mapping[str, float]) -> None:
    """Refuse a run whose metrics are not, to the bit, those of the sweep."""
    for name, value in now.items():
        recorded = row.get(name)
        if isinstance(recorded, float) and repr(recorded) != repr(float(value)):
            raise InputError(
                f"run again, the cell has {name} {value!r}, and the sweep recorded {recorded!r}; "
                "`python -m sweep verify` compares all cells",
                rule="not the same run",
            )
