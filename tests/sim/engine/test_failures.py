"""Attempts that fail, outputs that are lost, and slow periods: small worked examples."""

from __future__ import annotations

import numpy as np
import pytest

import policies
import sim
from sim.cluster.faults import Slowdowns, draw_slowdowns
from sim.engine.plan import Event

INF = float("inf")


def workload(failures=None, kind="barrier", **more):
    stages = [
        {"name": "map", "durations_s": [4.0, 2.0]},
        {"name": "reduce", "durations_s": [6.0, 3.0], "parents": {"map": kind}},
    ]
    w = sim.Workload.from_jobs([{"submit_s": 0.0, "stages": stages, **more}])
    if failures is None:
        return w
    return w.with_failures(
        dict(zip(("task", "after_s", "lost"), zip(*failures, strict=True), strict=True))
    )


def run(w, slots=4, slow=((), (), ()), policy="fifo"):
    cluster = sim.Cluster.slots(slots).with_slowdowns(Slowdowns.from_columns(*slow))
    policy = policies.build(policy) if isinstance(policy, str) else policy
    return sim.simulate(w, cluster, policy, record="tasks")


def test_a_task_starts_again_after_each_attempt_that_fails():
    result = run(workload([(0, 1.5, -1), (0, 4.0, -1), (3, 0.0, -1)]))
    assert result.task_start.tolist() == [5.5, 0.0, 9.5, 9.5]
    assert result.job_finish.tolist() == [15.5]


def test_a_failed_task_waits_for_room_in_its_stage():
    w = sim.Workload.from_jobs([{"submit_s": 0.0, "stages": [{"durations_s": [3.0, 3.0]}]}])
    result = run(w.with_failures({"task": [0], "after_s": [1.0], "lost": [-1]}), slots=1)
    assert result.task_start.tolist() == [1.0, 4.0]


def test_a_lost_output_is_made_again_before_its_reader_goes_on():
    result = run(workload([(2, 1.0, 0), (3, 2.0, 0)]))
    # both readers find it lost, at 5 and 6; it is made again from 5 to 9
    assert result.task_start.tolist() == [5.0, 0.0, 9.0, 9.0]
    assert result.job_finish.tolist() == [15.0]


def test_each_attempt_that_was_stopped_has_a_row():
    result = run(workload([(0, 1.0, -1), (2, 1.0, 0), (3, 2.0, 0)]))
    assert result.stops.to_pylist() == [
        {"job_id": "job-0", "machine": 0, "kept_s": 0.0, **row}
        for row in (
            {"stage": 0, "task": 0, "start_s": 0.0, "stop_s": 1.0, "reason": "failed"},
            {"stage": 0, "task": 0, "start_s": 1.0, "stop_s": 5.0, "reason": "output lost"},
            {"stage": 1, "task": 0, "start_s": 5.0, "stop_s": 6.0, "reason": "input lost"},
            {"stage": 1, "task": 1, "start_s": 5.0, "stop_s": 7.0, "reason": "input lost"},
        )
    ]
    assert run(workload()).stops.num_rows == 0
    jobs_only = sim.simulate(
        workload(), sim.Cluster.slots(4), policies.build("fifo"), record="jobs"
    )
    assert jobs_only.stops is None


def test_a_lost_output_of_a_one_to_one_parent_delays_one_reader():
    result = run(workload([(2, 1.0, 0)], kind="one_to_one"))
    assert result.task_start.tolist() == [5.0, 0.0, 9.0, 2.0]
    assert result.task_finish.tolist() == [9.0, 2.0, 15.0, 5.0]


def test_progress_falls_back_and_a_stage_is_done_once():
    class Watcher:
        name, events = "watcher", Event.STAGE_DONE | Event.TIMER

        def begin(self, world, plan):
            self.seen, plan.timer_s = [], 4.5

        def react(self, memory, batch, world, plan):
            self.seen.append((batch.now, batch.rows(Event.STAGE_DONE).tolist()))
            self.seen.append(world.view["stage_left"].tolist())
            if len(batch.rows(Event.TIMER)):
                plan.timer_s = 5.5 if batch.now < 5 else INF

    watcher = Watcher()
    run(workload([(2, 1.0, 0)]), policy=watcher)
    first, second = (4.0, [0]), (15.0, [1])
    assert watcher.seen == [first, [0, 2], (4.5, []), [0, 2], (5.5, []), [1, 2], second, [0, 0]]


def test_in_a_slow_period_everything_takes_longer():
    result = run(workload(), slow=([1.0, 9.0], [3.0, INF], [0.5, 2.0]))
    assert result.task_finish.tolist() == [5.0, 3.0, 10.0, 8.0]


def test_slow_periods_one_after_the_other():
    result = run(workload(), slow=([3.0, 0.0], [5.0, 3.0], [0.5, 0.25]))
    # by 5 a task has had 0.75 + 1
    assert result.task_finish.tolist()[:2] == [7.25, 5.25]


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        (([-1.0], [2.0], [0.5]), "begins before 0"),
        (([3.0], [2.0], [0.5]), "end after it begins"),
        (([0.0], [2.0], [0.0]), "speed must be positive"),
        (([0.0, 1.0], [2.0, 3.0], [0.5, 0.5]), "from 0 to 2 .* overlaps the next"),
        (([0.0], [2.0, 3.0], [0.5]), "1, 2, 1 rows"),
    ],
)
def test_slow_periods_that_can_not_be_are_named(rows, text):
    with pytest.raises(sim.InputError, match=text):
        Slowdowns.from_columns(*rows)


def test_drawn_slow_periods_are_as_often_and_as_long_as_asked():
    periods = draw_slowdowns(5, every_s=80.0, last_s=20.0, speed=(0.4, 0.6), until_s=400_000.0)
    assert len(periods) == pytest.approx(4000, rel=0.05)
    assert np.mean(periods.end_s - periods.begin_s) == pytest.approx(20.0, rel=0.05)
    assert np.mean(periods.speed) == pytest.approx(0.5, rel=0.01)
    fewer = draw_slowdowns(5, every_s=80.0, last_s=20.0, speed=(0.4, 0.6), until_s=40_000.0)
    np.testing.assert_array_equal(fewer.speed, periods.speed[: len(fewer)])
    with pytest.raises(sim.InputError, match="every_s"):
        draw_slowdowns(5, every_s=0.0, last_s=20.0, speed=(0.4, 0.6), until_s=1.0)
    with pytest.raises(sim.InputError, match="the lower bound comes first"):
        draw_slowdowns(5, every_s=1.0, last_s=20.0, speed=(0.6, 0.4), until_s=1.0)
