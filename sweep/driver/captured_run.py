"""Capture of a run for its timeline: the run, and which tasks were pilots."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import sim
from sim.base.arrays import I4
from sim.engine.plan import NO_LIMIT, Batch, Event, Plan, Scheduler, World
from sim.engine.plan.rows import rows_of
from sim.result import Result


@dataclass
class Captured:
    """A run, and the first finite start gate of each job: its number of pilots, (J,) int32."""

    result: Result
    pilots: I4


@dataclass(frozen=True)
class _Watched:
    """A policy whose start gates are noted; it decides as before."""

    policy: Scheduler
    gates: dict[str, I4] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.policy.name

    @property
    def events(self) -> Event:
        return self.policy.events

    def begin(self, world: World, plan: Plan) -> object:
        gates = self.gates["pilots"] = np.zeros(len(plan.jobs["key"]), np.int32)
        set_jobs = plan.set_jobs

        def noted(rows: Any = None, /, **columns: Any) -> None:
            set_jobs(rows, **columns)
            if "start_gate" in columns:
                where = slice(None) if rows is None else rows_of(rows, len(gates))
                gate = plan.jobs["start_gate"][where]
                gates[where] = np.where((gates[where] == 0) & (gate < NO_LIMIT), gate, gates[where])

        plan.set_jobs = noted  # type: ignore[method-assign]
        return self.policy.begin(world, plan)

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        self.policy.react(memory, batch, world, plan)


def capturing(captured: list[Captured]) -> Callable[..., Result]:
    """Return a stand-in for `sim.simulate` that appends each run to `captured`."""

    def simulate(workload: Any, cluster: Any, policy: Any, **options: Any) -> Result:
        watched = _Watched(policy)
        result = sim.simulate(workload, cluster, watched, **options)
        captured.append(Captured(result, watched.gates["pilots"]))
        return result

    return simulate
