"""Policies of random worlds that select classes of machines for jobs, anew at any event."""

from __future__ import annotations

import numpy as np

from policies.base import Policy
from sim.engine.plan import Event, Preemption, Right
from sim.engine.plan.columns import ANYWHERE

CLASSES = (ANYWHERE, ANYWHERE, 0, 1, 2, 3, 6, 2**40)
UNTIL_S = 30.0
"""Time from which on all jobs may run anywhere, so that a run comes to its end, s."""


def with_classes(policy: Policy, plan_seed: int) -> Policy:
    """Return the policy, which also selects classes; often what runs elsewhere then stops."""

    class WithClasses(type(policy)):  # type: ignore[misc]  # any policy of random worlds
        events = (
            policy.events
            | Event.TIMER
            | Event(int(np.random.default_rng([plan_seed, 9]).integers(0, 1024)))
        )

        def prepare(self, world, plan):
            memory = super().prepare(world, plan)
            rng = np.random.default_rng([plan_seed, 10])
            n_jobs = len(plan.jobs["key"])
            plan.set_jobs(runs_on=rng.choice(CLASSES, n_jobs))
            if plan.preemption is None and rng.random() < 0.7:
                plan.preemption = Preemption(Right.RUNS_ON)
                rare = rng.random() < 0.3
                when = rng.choice([0, 0, 1, 2], n_jobs) if rare else rng.choice([0, 2])
                plan.set_jobs(when_preempted=when)
            plan.timer_s = min(plan.timer_s, float(rng.choice([0.5, 2.0, 3.0])))
            return memory

        def react(self, memory, batch, world, plan):
            if policy.events:
                super().react(memory, batch, world, plan)
            if batch.now >= UNTIL_S:
                plan.set_jobs(runs_on=ANYWHERE)
                return
            rng = np.random.default_rng([plan_seed, 11, len(batch.kind), int(batch.now * 1000)])
            plan.timer_s = min(plan.timer_s, batch.now + float(rng.choice([0.5, 1.0, 3.0])))
            picked = rng.permutation(len(plan.jobs["key"]))[: rng.integers(0, 6)]
            if len(picked):
                plan.set_jobs(picked, runs_on=rng.choice(CLASSES, len(picked)))

    return WithClasses(**vars(policy))
