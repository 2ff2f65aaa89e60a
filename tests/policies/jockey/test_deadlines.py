"""Completion against the deadline and the run limit over time, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

import sim
from sim.engine.plan import Event, Plan, World
from sim.evaluators import evaluate


class Steps:
    """Gives job 0 some limits at some times."""

    name = "steps"
    events = Event.TIMER

    def __init__(self, *steps: tuple[float, int]) -> None:
        self.steps = steps

    def begin(self, world: World, plan: Plan) -> list[tuple[float, int]]:
        plan.set_jobs(0, run_limit=self.steps[0][1])
        left = list(self.steps[1:])
        plan.timer_s = left[0][0] if left else math.inf
        return left

    def react(self, memory, batch, world, plan) -> None:
        plan.set_jobs(0, run_limit=memory.pop(0)[1])
        plan.timer_s = memory[0][0] if memory else math.inf

    def raw_allocations(self, memory) -> dict[int, int]:
        return {0: 10 + len(memory)}


def jobs(**columns) -> sim.Workload:
    return sim.Workload.from_jobs(
        [
            {
                "submit_s": 0.0,
                "deadline_s": 40.0,
                "stages": [{"durations_s": [10.0] * 8}],
                **columns,
            },
            {"submit_s": 0.0, "stages": [{"durations_s": [5.0]}]},
        ]
    )


def evaluated(policy, workload=None, **options):
    workload = jobs() if workload is None else workload
    return evaluate(
        "deadlines", sim.simulate, workload, sim.Cluster.slots(20), policy, 0, **options
    )


def test_the_limit_over_time_by_hand():
    # one task 0-10, four 10-20, three 20-30; O = ceil(80 / 40) = 2
    metrics, table = evaluated(Steps((0.0, 1), (10.0, 4), (26.0, 3)), step_s=10.0)
    assert metrics["relative_finish"] == 0.75
    assert metrics["deadlines_missed"] == 0.0
    assert [metrics[f"tokens_{n}"] for n in ("first", "max", "last", "p50")] == [1, 4, 3, 4]
    assert metrics["token_hours"] == pytest.approx((10 + 64 + 12) / 3600)
    assert metrics["tokens_above_oracle"] == pytest.approx((2 * 16 + 1 * 4) / 86)
    assert metrics["tokens_above_oracle"] == pytest.approx(metrics["allocation_above_oracle"])
    assert math.isnan(metrics["tokens_changed"])
    assert table["elapsed_s"].to_pylist() == [0.0, 10.0, 20.0]
    assert table["tokens"].to_pylist() == [1.0, 4.0, 4.0]
    assert table["running"].to_pylist() == [1.0, 4.0, 3.0]
    assert table["oracle"].to_pylist() == [2.0] * 3
    raw = table["raw"].to_pylist()
    assert math.isnan(raw[0])
    assert raw[1:] == [11.0, 11.0]


def test_a_late_job_counts_in_what_is_above_and_a_change_of_deadline_is_seen():
    changing = jobs(new_deadline_s=20.0, new_deadline_at_s=15.0)
    metrics, _ = evaluated(Steps((0.0, 1), (10.0, 4), (25.0, 3)), changing)
    assert metrics["relative_finish"] == 1.5
    assert metrics["deadlines_missed"] == 1.0
    assert math.isnan(metrics["allocation_above_oracle"])
    assert metrics["tokens_above_oracle"] == 0.0  # O = 80 / 20 = 4
    # before 15 s: 4; after: 4 for 10 s and 3 for 5
    assert metrics["tokens_changed"] == pytest.approx((40 + 15) / 15 / 4 - 1)


def test_the_oracle_counts_cpu_time_and_what_is_held_beside_it():
    """Of 80 s that its tasks last 40 are CPU time: O = 1, and 2 of all that is held."""
    metrics, table = evaluated(Steps((0.0, 1), (10.0, 4), (26.0, 3)), jobs(cpu_s=40.0))
    assert table["oracle"].to_pylist()[0] == 1.0
    above = (3 * 16 + 2 * 4) / 86
    assert metrics["allocation_above_oracle"] == pytest.approx(above)
    assert metrics["tokens_above_oracle"] == pytest.approx(above)
    assert metrics["tokens_above_held"] == pytest.approx((2 * 16 + 1 * 4) / 86)
    assert metrics["tokens_over_minimum"] == pytest.approx(86 / 40 - 1)


def test_jobs_without_a_limit_have_no_tokens_to_look_at():
    class Nothing(Steps):
        events = Event.NONE

        def begin(self, world, plan):
            return []

    metrics, table = evaluated(Nothing((0.0, 1)))
    assert metrics["relative_finish"] == 0.25
    assert math.isnan(metrics["tokens_first"])
    assert table.num_rows == 0


def test_the_metrics_of_a_simulation_are_there():
    plain, _ = evaluate(
        "simulation", sim.simulate, jobs(), sim.Cluster.slots(20), Steps((0.0, 2)), 0
    )
    metrics, _ = evaluated(Steps((0.0, 2)))
    for name, value in plain.items():
        np.testing.assert_equal(metrics[name], value)
