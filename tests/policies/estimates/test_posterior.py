"""Expected durations from a prior and finished tasks: the kernel against plain Python."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

import sim
from policies.base import Policy
from policies.check.unknown import recurring
from policies.estimates.posterior import LEAST_TASKS, MOST_TASKS, Posterior, log_spread
from policies.estimates.priors import Priors
from policies.knows import Knows
from sim.engine.plan import Batch, Event, Plan, World
from tests.policies.estimates import priors as plain

GUESS_S = 7.0


@dataclass(frozen=True)
class Compared(Policy):
    """Refines durations by the kernel, and by a dictionary of stages."""

    learns: bool = True
    events = Event.JOB_ARRIVED | Event.TIMER
    knows = Knows(durations="true")  # the plain one reads spreads of stages that run

    def prepare(self, world: World, plan: Plan) -> tuple:
        plan.timer_s = 5.0
        columns = world.columns
        priors = Priors(columns.features, columns) if self.learns else None
        posterior = Posterior(world, plan, priors, GUESS_S)
        return posterior, plain.Priors(columns.features, columns), {}, [math.log(2.0)], set(), []

    def react(self, memory: tuple, batch: Batch, world: World, plan: Plan) -> None:
        posterior, priors, stages, spreads, ended, surprise = memory
        columns, view = world.columns, world.view
        spread = log_spread(columns)
        for g in stages:
            if view["stage_left"][g] == 0 and g not in ended:
                ended.add(g)
                mean_s = view["stage_done_work"][g] / columns.stage_n_tasks[g]
                if self.learns:
                    priors.add(g, float(mean_s), batch.now)
                    known_s, *_, variance = stages[g]
                    if 0 < variance < math.inf:
                        error = math.log(max(mean_s, 1e-3)) - math.log(known_s)
                        old = surprise[-1] if surprise else (0.0, 0.0)
                        total = 0.99 * old[0] + min(error * error / variance, 10.0)
                        surprise.append((total, 0.99 * old[1] + 1.0))
                if not math.isnan(spread[g]):
                    spreads.append(spread[g])
        for job in batch.rows(Event.JOB_ARRIVED):
            for g in range(columns.job_stage0[job], columns.job_stage0[job + 1]):
                variance, known_s = math.inf, GUESS_S
                if self.learns:
                    mean, variance = priors.prior(g, batch.now)
                    known_s = math.exp(mean) if variance < math.inf else GUESS_S
                certain = variance
                if surprise and variance < math.inf:
                    variance *= max(1.0, surprise[-1][0] / surprise[-1][1])
                ratio = sum(spreads) / len(spreads) / variance if variance > 0 else math.inf
                weight = min(max(ratio, LEAST_TASKS), MOST_TASKS)
                stages[g] = known_s, weight, [0, batch.now, 0.0, 0.0], certain
        posterior.refresh(batch, plan)
        tick = len(batch.rows(Event.TIMER)) > 0
        arrived = columns.stage_job[list(stages)] if stages else []
        for g, job in zip(stages, arrived, strict=True):
            if g in ended or not (tick or job in batch.rows(Event.JOB_ARRIVED)):
                continue
            known_s, weight, running, _ = stages[g]
            n_done = columns.stage_n_tasks[g] - view["stage_left"][g]
            done_s, n_running = view["stage_done_work"][g], view["stage_started"][g] - n_done
            if tick:
                ran_s = (running[0] + n_running) / 2 * (batch.now - running[1])
                elapsed_s = max(running[3] + ran_s - (done_s - running[2]), 0.0) * (n_running > 0)
                running[:] = n_running, batch.now, done_s, elapsed_s
            expected_s = (known_s * weight + done_s) / (weight + n_done)
            if running[0]:
                whole_s = known_s * weight + done_s + running[3]
                expected_s = max(expected_s, whole_s / (weight + n_done + running[0]))
            assert plan.stages["expected_s"][g] == pytest.approx(expected_s, rel=1e-12)
        if tick and (view["left"] > 0).any():
            plan.timer_s = batch.now + 5.0


@pytest.mark.parametrize("learns", [True, False])
def test_equals_plain_python(learns):
    workload = recurring(3)
    result = sim.simulate(workload, sim.Cluster.machines(3, cpu=4, mem=16), Compared(learns=learns))
    assert not np.isnan(result.job_finish).any()


def test_the_spread_is_that_of_a_log_normal_of_the_same_variation():
    durations = np.exp(np.random.default_rng(0).normal(1.0, 0.5, 20_000)).tolist()
    jobs = [{"submit_s": 0.0, "stages": [{"durations_s": d}]} for d in (durations, [3.0], [0, 0])]
    spread = log_spread(sim.Workload.from_jobs(jobs).columns)
    assert spread[0] == pytest.approx(0.25, rel=0.05)
    assert np.isnan(spread[1:]).all()
