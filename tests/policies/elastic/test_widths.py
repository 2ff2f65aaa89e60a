"""Policies of elastic jobs: widths worked out by hand, and the rules of every schedule."""

from __future__ import annotations

import numpy as np
import pytest

import policies
import sim
from sim import transforms
from sim.check.schedule import check_schedule
from tests.examples import COMPILED_WIDE

pytestmark = pytest.mark.skipif(COMPILED_WIDE, reason="no wide variant has elastic jobs")

NAMES = ("afs", "common_pool", "equal_widths", "greedy_widths")
CONCAVE = "1:1 2:1.5 3:1.8 4:2 8:2.4"


def elastic(submit_s, seconds, width, low=1, speedup=""):
    stage = {"durations_s": [seconds] * width, "demand": {"cpu": 1}}
    return {"submit_s": submit_s, "width_min": low, "speedup": speedup, "stages": [stage]}


def rigid(submit_s, seconds, width):
    return {
        "submit_s": submit_s,
        "min_tasks": width,
        "stages": [{"durations_s": [seconds] * width, "demand": {"cpu": 1}}],
    }


def run(name, jobs, slots):
    workload = jobs if isinstance(jobs, sim.Workload) else sim.Workload.from_jobs(jobs)
    result = sim.simulate(workload, sim.Cluster.slots(slots), policies.build(name))
    check_schedule(result)
    return result


def widths(result, time_s):
    """Return the places of each job at a time."""
    c, stopped = result.workload.columns, result.stopped
    task = np.concatenate([np.arange(c.n_tasks), stopped.task])
    begin = np.concatenate([result.task_start, stopped.start_s])
    end = np.concatenate([result.task_finish, stopped.stop_s])
    runs = (begin <= time_s) & (time_s < end)
    return np.bincount(c.stage_job[c.stages_of(task[runs])], minlength=len(c.job_submit)).tolist()


def test_equal_widths_are_equal_but_for_what_is_left_over():
    jobs = [elastic(0.0, 40.0, 8), elastic(1.0, 40.0, 8), elastic(2.0, 40.0, 2)]
    result = run("equal_widths", jobs, 8)
    assert widths(result, 0.5) == [8, 0, 0]
    assert widths(result, 1.5) == [4, 4, 0]
    assert widths(result, 2.5) == [3, 3, 2]
    result = run("equal_widths", [elastic(0.0, 40.0, 8)] * 3, 8)
    assert widths(result, 0.5) == [3, 3, 2]


def test_a_waiting_job_starts_in_room_that_others_give_back():
    for name in NAMES:
        result = run(name, [elastic(0.0, 40.0, 8), rigid(1.0, 5.0, 6)], 8)
        assert result.job_start.tolist() == [0.0, 1.0], name
        assert widths(result, 1.5) == [2, 6], name
        assert widths(result, 6.5) == [8, 0], name


def test_the_next_place_goes_to_the_job_that_gains_most():
    # gains of the first: 0.5, 0.3, 0.2, 0.1 and on; of the second 1 each, of 1 at width 1
    jobs = [elastic(0.0, 40.0, 8, speedup=CONCAVE), elastic(0.0, 40.0, 8)]
    assert widths(run("greedy_widths", jobs, 8), 0.5) == [1, 7]
    jobs = [elastic(0.0, 40.0, 8, speedup=CONCAVE), elastic(0.0, 40.0, 8, speedup="1:1 8:3.45")]
    assert widths(run("greedy_widths", jobs, 8), 0.5) == [2, 6]  # of 0.35 each


def test_afs_gives_to_the_shorter_job_unless_the_longer_gains_more():
    # linear both: (p' - p) / p' is 1/2 each at width 1, so the shorter gets it, then 1/3 to 1/2
    jobs = [elastic(0.0, 10.0, 4), elastic(0.0, 40.0, 4)]
    assert widths(run("afs", jobs, 3), 0.5) == [2, 1]
    assert widths(run("afs", jobs, 4), 0.5) == [2, 2]
    jobs = [elastic(0.0, 10.0, 4, speedup="1:1 2:1.1 4:1.2"), elastic(0.0, 40.0, 4)]
    assert widths(run("afs", jobs, 4), 0.5) == [1, 3]


def test_the_common_pool_takes_from_the_widest_and_gives_to_the_narrowest():
    jobs = [elastic(0.0, 100.0, 6), elastic(0.0, 100.0, 3), rigid(1.0, 5.0, 2), rigid(2.0, 1.0, 1)]
    result = run("common_pool", jobs, 8)
    assert widths(result, 0.5) == [1, 1, 0, 0]  # they start with their least, and grow at events
    assert widths(result, 1.5) == [5, 1, 2, 0]  # 4 of the 4 that are left go to the first
    assert widths(result, 2.5) == [4, 1, 2, 1]  # it gives one back


@pytest.mark.parametrize("name", NAMES)
def test_all_jobs_end_and_elastic_ones_are_faster(name):
    workload = sim.synthesize("training", jobs=60, seed=3, per_worker=1, half=0.0, fast=0.0)
    workload = transforms.apply(workload, "stretch", share=0.7, seed=1, reconfigure_s=20.0)
    stretched = run(name, workload, 24)
    same = sim.simulate(workload, sim.Cluster.slots(24), policies.build("fifo"))
    assert np.isfinite(stretched.job_finish).all()
    assert stretched.metrics["jct_mean_s"] < same.metrics["jct_mean_s"]
    assert stretched.stops.num_rows > 10


def test_machines_of_several_kinds_are_shared_out():
    cluster = sim.Cluster.mixed(
        [{"count": 3, "cpu": 4}, {"class": "fast", "count": 2, "cpu": 2}], fungible=()
    )
    workload = sim.Workload.from_jobs([elastic(float(t), 9.0, 6) for t in range(8)])
    for name in NAMES:
        result = sim.simulate(workload, cluster, policies.build(name))
        check_schedule(result)
        assert max(widths(result, 0.5)) == (1 if name == "common_pool" else 6)
