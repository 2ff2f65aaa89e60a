"""Speeds of tasks by class of machines, computed by hand."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import sim
from policies.base import Policy
from sim.base.errors import InputError
from sim.check.invariants import check
from sim.engine.plan import Choice, Machine
from tests.examples import COMPILED_WIDE

pytestmark = pytest.mark.skipif(COMPILED_WIDE, reason="in no wide variant")

SLOW, FAST = {"class": "slow", "cpu": 1}, {"class": "fast", "cpu": 1}


@dataclass(frozen=True)
class Prefers(Policy):
    """First come, first served, with a rule for the machine."""

    rule: Machine = Machine.FASTEST
    fit: str = "strict"

    name: ClassVar[str] = "prefers"

    def prepare(self, world, plan):
        plan.choice = Choice(self.rule)


def job(durations_s, speed=None, submit_s=0.0, **more):
    stage = {"durations_s": durations_s, "demand": {"cpu": 1}, **more}
    if speed:
        stage["speed"] = speed
    return {"submit_s": submit_s, "stages": [stage]}


def run(jobs, kinds, policy=None):
    workload = sim.Workload.from_jobs(jobs)
    return sim.simulate(workload, sim.Cluster.mixed(kinds), policy or Prefers(rule=Machine.FIRST))


def test_a_duration_is_divided_by_the_speed_of_the_class():
    """One task each: 6 s on the slow machine, 6 / 3 = 2 s on the fast one."""
    r = run([job([6.0, 6.0], {"fast": 3.0})], [SLOW, FAST])
    assert r.tasks["machine"].to_pylist() == [0, 1]
    assert r.tasks["finish_s"].to_pylist() == [6.0, 2.0]
    check(r, "strict")


def test_like_tasks_on_machines_of_two_classes_are_two_batches():
    """Two tasks fit each machine: [0, 0, 1, 1]; the fast ones end after 5 / 2 s."""
    kinds = [SLOW | {"cpu": 2}, FAST | {"cpu": 2}]
    r = run([job([5.0] * 4, {"fast": 2.0})], kinds)
    assert r.batches["count"].to_pylist() == [2, 2]
    assert r.batches["finish_s"].to_pylist() == [5.0, 2.5]
    assert r.job_finish.tolist() == [5.0]


def test_the_fastest_machine_goes_first_ties_to_the_first():
    """Machines slow, fast, fast; three tasks: fast, fast, slow."""
    r = run([job([6.0] * 3, {"slow": 0.5, "fast": 2.0})], [SLOW, FAST, FAST], Prefers())
    assert r.tasks["machine"].to_pylist() == [1, 2, 0]
    assert r.tasks["finish_s"].to_pylist() == [3.0, 3.0, 12.0]


@pytest.mark.parametrize("fit", ["strict", "skip", "per_class"])
def test_each_stage_has_its_own_fastest_machine(fit):
    """Job 0 is fast on the second class, job 1 on the first."""
    jobs = [job([4.0], {"fast": 4.0}), job([4.0], {"slow": 2.0})]
    r = run(jobs, [SLOW, FAST], Prefers(fit=fit))
    assert r.tasks["machine"].to_pylist() == [1, 0]
    assert r.job_finish.tolist() == [1.0, 2.0]


def test_failing_attempts_and_remote_inputs_and_slow_periods_come_after():
    """A task of 8 s fails after 4; its input is on machine 0, and it runs on machine 1.

    Speed 2, remote factor 1.5, and everything at half speed until 100 s: the failing attempt takes
    4 / 2 × 1.5 / 0.5 = 6 s, the other 8 / 2 × 1.5 / 0.5 = 12 s.
    """
    from sim.cluster.faults import Slowdowns

    columns = {"job": [0], "n_tasks": [1], "demand_cpu": [1.0], "input_home": [0]}
    columns |= {"remote_factor": [1.5], "runs_on": ["fast"], "speed_fast": [2.0]}
    workload = sim.Workload.from_tables(
        {"job_id": ["a"], "submit_s": [0.0]}, columns, {"stage": [0], "duration_s": [8.0]}
    ).with_failures({"task": [0], "after_s": [4.0]})
    slow = Slowdowns.from_columns([0.0], [100.0], [0.5])
    cluster = sim.Cluster.mixed([SLOW, FAST]).with_slowdowns(slow)
    r = sim.simulate(workload, cluster, Prefers(rule=Machine.FIRST))
    assert r.stops["stop_s"].to_pylist() == [6.0]
    assert r.job_finish.tolist() == [18.0]


def test_bounds_take_the_fastest_class_that_a_stage_may_run_on():
    """12 s of work: at speed 3 on fast machines, 2 on medium ones, where the second job must run.

    Path 12 / 3 = 4 and 12 / 2 = 6 s; work of the first over 3 cpu: 12 / 3 / 3.
    """
    speed = {"fast": 3.0, "medium": 2.0, "elsewhere": 9.0}
    workload = sim.Workload.from_jobs([job([12.0], speed), job([12.0], speed, runs_on="medium")])
    cluster = sim.Cluster.mixed([SLOW, FAST, {"class": "medium", "cpu": 1}])
    bounds = sim.lower_bound(workload, cluster)
    assert bounds["cp_len"].to_pylist() == [4.0, 6.0]
    np.testing.assert_allclose(bounds["twork"].to_pylist(), [12 / 3 / 3, 12 / 2 / 3])
    assert bounds["tight_lb"].to_pylist() == [4.0, 6.0]


def test_utilization_is_of_the_time_for_which_tasks_ran():
    """Two jobs of 8 s at 0 and 2 s on a fast machine (4): it runs from 0 to 2 and from 2 to 4 s."""
    r = run([job([8.0], {"fast": 4.0}, submit_s) for submit_s in (0.0, 2.0)], [FAST])
    assert r.job_finish.tolist() == [2.0, 4.0]
    assert r.metrics["utilization"] == 1.0
    assert r.metrics["utilization_makespan"] == 1.0
    assert r.metrics["slowdown_mean"] == 1.0


def test_without_speeds_content_and_run_are_as_before():
    plain = sim.Workload.from_jobs([job([6.0])])
    ones = sim.Workload.from_jobs([job([6.0], {"fast": 1.0})])
    assert plain.columns.speed_classes == ()
    assert "speed_fast" not in plain.stages.column_names
    assert plain.digest != ones.digest
    for workload in (plain, ones):
        r = sim.simulate(workload, sim.Cluster.mixed([FAST]), Prefers())
        assert r.job_finish.tolist() == [6.0]


def test_a_pool_of_slots_has_no_classes():
    workload = sim.Workload.from_jobs([job([6.0], {"fast": 2.0})])
    r = sim.simulate(workload, sim.Cluster.slots(1), Prefers(rule=Machine.FIRST))
    assert r.job_finish.tolist() == [6.0]


def test_speeds_are_written_and_read(tmp_path):
    workload = sim.Workload.from_jobs([job([6.0], {"fast": 2.0}), job([6.0])])
    workload.write(tmp_path)
    again = sim.Workload.read(tmp_path)
    assert again.digest == workload.digest
    assert again.columns.stage_speed.tolist() == [[2.0], [1.0]]


@pytest.mark.parametrize("speed", [0.0, -1.0, float("nan"), float("inf")])
def test_a_speed_is_a_positive_number(speed):
    with pytest.raises(InputError, match=r"speed_fast is .*; valid: 1e-06 or more, and finite"):
        sim.Workload.from_jobs([job([6.0], {"fast": speed})])


def test_a_speed_is_a_number_by_class():
    with pytest.raises(InputError, match="speed must be a dict, not 2"):
        sim.Workload.from_jobs([job([6.0], 2)])
