"""Elastic jobs of random worlds, and policies that change their widths at any event."""

from __future__ import annotations

from typing import Any

import numpy as np

from policies.base import Policy
from sim.engine.plan import NO_LIMIT, Event

CURVES = ("", "1:1 12:12", "1:1 2:1.7 4:3 20:5", "1:2 3:2 20:7.5")
WIDTHS = (1, 2, 3, 4, 6, NO_LIMIT)
UNTIL_S = 300.0
"""Time from which on widths stay: a job whose width changes all the time never ends, s."""


def make_elastic(rng: np.random.Generator, job: dict[str, Any]) -> None:
    """Make a job elastic: one stage of like tasks."""
    stage = job["stages"][0]
    duration_s = float(rng.choice([0.5, 2.0, stage["durations_s"][0], 9.0]))
    n_tasks = int(rng.integers(1, 7))
    job["stages"] = [{**stage, "durations_s": [duration_s] * n_tasks, "parents": {}}]
    job["width_min"] = job["min_tasks"] = int(rng.integers(1, min(3, n_tasks) + 1))
    job["speedup"] = str(rng.choice(CURVES))
    job["reconfigure_s"] = [None, 0.0, 0.0, 0.25, 1.5][int(rng.integers(5))]


def with_widths(policy: Policy, plan_seed: int) -> Policy:
    """Return the policy, which also wants some widths, before the run and at every event."""

    class WithWidths(type(policy)):  # type: ignore[misc]  # any policy of random worlds
        events = policy.events | Event(int(np.random.default_rng(plan_seed).integers(0, 1024)))

        def prepare(self, world, plan):
            memory = super().prepare(world, plan)
            rng = np.random.default_rng([plan_seed, 7])
            plan.set_jobs(width=rng.choice(WIDTHS, len(plan.jobs["width"])))
            return memory

        def react(self, memory, batch, world, plan):
            if policy.events:
                super().react(memory, batch, world, plan)
            rng = np.random.default_rng([plan_seed, 8, len(batch.kind), int(batch.now * 1000)])
            picked = rng.permutation(len(plan.jobs["width"]))[: rng.integers(0, 6)]
            if len(picked) and batch.now < UNTIL_S:
                plan.set_jobs(picked, width=rng.choice(WIDTHS, len(picked)))

    return WithWidths(**vars(policy))
