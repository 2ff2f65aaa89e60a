"""Elastic jobs: widths, paces, reconfiguration, records, bounds, and what does not run."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

import sim
from policies.base import Policy
from sim.base.errors import InputError, PolicyError
from sim.bounds import bound_arrays
from sim.check.broken import BrokenRuleError
from sim.check.elastic import check_elastic
from sim.check.schedule import check_schedule
from sim.engine.plan import Event, Preemption, Replan, Right, Victims
from sim.workload.elastic import least_work_shares, paces
from tests.examples import COMPILED_WIDE, examples
from tests.sim.engine.compared import compare
from tests.sim.engine.outcome import run_kernel
from tests.sim.engine.random_worlds import build, draw_with
from tests.sim.engine.test_locality import placed

pytestmark = pytest.mark.skipif(COMPILED_WIDE, reason="no wide variant has elastic jobs")

CURVE = "1:1 2:1.6 4:2"


def job(submit_s=0.0, seconds=8.0, width=4, low=1, **more):
    """Return an elastic job that lasts some seconds at its greatest width."""
    stage = {"durations_s": [seconds] * width, "demand": {"cpu": 1}}
    return {"submit_s": submit_s, "width_min": low, "stages": [stage], **more}


@dataclass(frozen=True)
class Widths(Policy):
    """Sets widths at given times: rows of time, job, width."""

    changes: tuple = ()
    first: int | None = None
    seen: list = field(default_factory=list, compare=False)
    name = "widths"
    events = Event.TIMER | Event.RESIZE

    def prepare(self, world, plan):
        if self.first is not None:
            plan.set_jobs(width=self.first)
        plan.timer_s = self.changes[0][0] if self.changes else np.inf
        return {"left": list(self.changes)}

    def react(self, memory, batch, world, plan):
        self.seen.append((batch.now, batch.rows(Event.RESIZE).tolist()))
        while memory["left"] and memory["left"][0][0] <= batch.now:
            _, row, width = memory["left"].pop(0)
            plan.set_jobs(row, width=width)
        plan.timer_s = memory["left"][0][0] if memory["left"] else np.inf


def run(jobs, cluster=None, **policy):
    workload = sim.Workload.from_jobs(jobs)
    result = sim.simulate(workload, cluster or sim.Cluster.slots(4), Widths(**policy))
    check_schedule(result)
    return result


def test_a_pace_is_linear_between_the_points_of_the_curve():
    assert paces(CURVE, 4).tolist() == [0.0, 0.5, 0.8, 0.9, 1.0]
    assert paces("", 4).tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert paces("1:1 8:8", 2).tolist() == [0.0, 0.5, 1.0]


def test_a_job_starts_in_as_many_places_as_there_are():
    result = run([job(), job(1.0)], sim.Cluster.slots(6))
    assert result.job_finish.tolist() == [8.0, 17.0]  # at 4 of 4, and 2 linear ones: 8 / 0.5
    assert result.job_start.tolist() == [0.0, 1.0]


def test_a_job_waits_until_its_least_width_fits():
    assert run([job(), job(1.0, low=3)], sim.Cluster.slots(6)).job_start.tolist() == [0.0, 8.0]


def test_a_policy_says_with_which_width_a_job_starts():
    result = run([job(speedup=CURVE)], first=2)
    assert result.job_finish.tolist() == [10.0]  # 8 / 0.8
    assert result.task_machine.tolist() == [0, 0, 0, 0]
    assert (result.task_finish - result.task_start).tolist() == [10.0, 10.0, 0.0, 0.0]


def test_remaining_work_goes_on_at_the_pace_of_the_new_width():
    # 4 s at 1, then 0.5 s still, and the other 4 s at 0.5
    result = run([job(speedup=CURVE, reconfigure_s=0.5)], changes=((4.0, 0, 1),))
    assert result.job_finish.tolist() == [12.5]
    stops = result.stops.to_pylist()
    assert [row["reason"] for row in stops] == ["resized"] * 3
    assert [row["task"] for row in stops] == [1, 2, 3]
    assert result.policy.seen == [(4.0, []), (12.5, [0])]  # told at the next instant


def test_a_job_grows_by_the_places_that_there_are():
    # the second holds 2 of 6 until 6; so the first has 4 from 2 on, and 6 from 7 on
    jobs = [job(seconds=6.0, width=6), job(seconds=6.0, width=2, low=2)]
    changes = ((2.0, 0, 6), (7.0, 0, 6))
    result = run(jobs, sim.Cluster.slots(6), changes=changes, first=2)
    # 2 s at 1/3, 5 s at 4/6, the rest at 1
    assert result.job_finish.tolist() == [pytest.approx(7 + 6 - 2 / 3 - 10 / 3), 6.0]
    assert result.task_start.tolist() == [0, 0, 2, 2, 7, 7, 0, 0]
    assert [rows for _, rows in result.policy.seen] == [[], [0], [], [0]]


def test_all_that_shrink_do_so_before_any_grows():
    jobs = [job(seconds=6.0, width=6), job(seconds=6.0, width=6)]
    result = run(jobs, sim.Cluster.slots(6), changes=((1.0, 0, 5), (1.0, 1, 1)), first=3)
    assert (result.job_finish[0], result.job_finish[1]) == (1 + 5.5 / (5 / 6), 1 + 5.5 * 6)


def test_a_moldable_job_keeps_the_width_of_its_start():
    result = run([job(reconfigure_s=None)], changes=((1.0, 0, 1),))
    assert result.job_finish.tolist() == [8.0]
    assert result.stops.num_rows == 0


def test_a_width_outside_the_range_of_the_job_is_clipped():
    assert run([job(low=2)], first=1).job_finish.tolist() == [16.0]
    assert run([job(low=2)], changes=((4.0, 0, 1),)).job_finish.tolist() == [12.0]
    with pytest.raises(PolicyError, match="width"):
        run([job()], first=0)


def test_places_are_on_machines_and_those_taken_last_go_first():
    cluster = sim.Cluster.machines(3, cpu=2)
    result = run([job(width=6)], cluster, changes=((1.0, 0, 3), (3.0, 0, 5)))
    assert result.task_machine.tolist()[:5] == [0, 0, 1, 1, 2]
    assert result.stops["machine"].to_pylist() == [1, 2, 2]
    assert result.task_start[:3].tolist() == [0.0, 0.0, 0.0]


def test_a_lost_machine_stops_the_job_as_a_whole():
    from sim.cluster.faults import Outages

    cluster = sim.Cluster.machines(2, cpu=2).with_outages(Outages.from_columns([1], [2.0], [3.0]))
    result = run([job(seconds=4.0)], cluster)
    assert result.job_finish.tolist() == [2.0 + 8.0]  # in two places, from the beginning
    assert sorted(result.stops["reason"].to_pylist()) == ["gang stopped"] * 4


def failing(jobs, tasks, after_s, **policy):
    """Run jobs of which an attempt of each of some tasks fails after some seconds."""
    rows = {"task": tasks, "after_s": after_s, "lost": [-1] * len(tasks)}
    workload = sim.Workload.from_jobs(jobs).with_failures(rows)
    result = sim.simulate(workload, sim.Cluster.slots(4), Widths(**policy))
    check_schedule(result)
    return result


def test_a_failing_attempt_stops_the_job_as_a_whole():
    # in two of four places: the attempt of task 3 ends after 3 s of work, that of task 2 after 6
    result = failing([job()], [2, 3], [6.0, 3.0], first=2)
    assert result.job_finish.tolist() == [6.0 + 12.0 + 16.0]
    stops = [(row["stop_s"], row["task"], row["reason"]) for row in result.stops.to_pylist()]
    first, second = (6.0, 0, "failed"), (18.0, 0, "failed")
    assert stops == [first, (6.0, 1, "gang stopped"), second, (18.0, 1, "gang stopped")]
    assert result.metrics["stops_mean"] == 2.0
    assert result.metrics["work_lost_mean_s"] == 2 * 6.0 + 2 * 12.0


def test_an_elastic_job_of_one_width_fails_as_a_gang_of_like_tasks():
    ends = []
    for name in ("width_min", "min_tasks"):
        like = {"submit_s": 0.0, name: 4, "stages": job()["stages"]}
        ends += failing([like], [1, 1, 3], [2.0, 5.0, 4.0]).job_finish.tolist()
    assert ends == [2.0 + 4.0 + 5.0 + 8.0] * 2


def test_work_before_a_change_of_width_is_lost_with_the_attempt():
    # 2 s at 1, 8 s at 1/4 until 4 s are done; then all 8 s at 1/4
    result = failing([job()], [0], [4.0], changes=((2.0, 0, 1),))
    assert result.job_finish.tolist() == [10.0 + 32.0]
    assert [row["reason"] for row in result.stops.to_pylist()] == ["resized"] * 3 + ["failed"]
    assert result.metrics["work_lost_mean_s"] == 3 * 2.0 + 10.0


def near(jobs, size, changes=(), first=None):
    """Run jobs on six machines of one CPU in racks; a job that is in two racks is half as fast."""
    levels = {"levels": {"rack": {"size": size, "factor": 2.0}}}
    cluster = sim.Cluster.machines(6, cpu=1).with_topology(levels)
    return run(jobs, cluster, changes=changes, first=first)


def test_a_run_begins_with_a_job_at_its_present_width():
    # in two of four places since 0; the policy may place, and change widths, from 2 on
    jobs = [job(), job(seconds=4.0, width=2, low=2)]
    state = sim.State(2.0, np.array([0.0, np.nan]), np.array([0, 0, -1, -1, 0, 0], np.int32))
    policy = Widths(changes=((1.0, 0, 4), (4.0, 0, 3), (6.0, 0, 4)))
    workload = sim.Workload.from_jobs(jobs)
    result = sim.simulate(workload, sim.Cluster.slots(4), policy, state=state)
    check_schedule(result)
    assert result.job_start.tolist() == [0.0, 2.0]
    # half of its speed until the other is done, at 6
    assert result.job_finish.tolist() == [6.0 + 5.0, 6.0]


def test_a_state_names_fewer_machines_than_the_least_width():
    cluster = sim.Cluster.machines(2, cpu=4)
    state = sim.State(1.0, np.array([0.0]), np.array([1, -1, -1, -1], np.int32))
    workload = sim.Workload.from_jobs([job(low=3)])
    result = sim.simulate(workload, cluster, Widths(), state=state)
    assert result.task_machine[:3].tolist() == [1, 1, 1]
    assert result.job_finish.tolist() == [8 / 0.75]


def test_a_run_goes_on_from_that_of_another_policy():
    result = run([job(), job(1.0, width=2)], first=2)
    state = sim.state_of(result, 3.0)
    assert state.machine.tolist() == [0, 0, -1, -1, 0, 0]
    other = sim.simulate(
        result.workload, result.cluster, Widths(changes=((8.0, 0, 4),)), state=state
    )
    # at 8 the other two places are in use until 9, so that it keeps its width
    assert other.job_finish.tolist() == [16.0, 9.0]
    with pytest.raises(InputError, match="its width changed"):
        sim.state_of(run([job()], changes=((4.0, 0, 4),), first=2), 5.0)


def test_each_place_of_an_exclusive_job_takes_a_whole_machine():
    # the cap counts all of a machine: 4 of 6 CPUs at first, and 6 with a third place
    cluster = sim.Cluster.machines(4, cpu=2).with_limits([{"of": "cpu", "at_most": 6}], {})
    small = {"submit_s": 1.0, "stages": [{"durations_s": [1.0], "demand": {"cpu": 1}}]}
    jobs = [job(exclusive=True), small]
    result = run(jobs, cluster, changes=((2.0, 0, 4), (4.0, 0, 1)), first=2)
    assert result.stops["machine"].to_pylist() == [1, 2]
    assert result.task_machine[4] == 2  # beside no exclusive place
    # two places until 2, three until 4, then one: 4 + 6 of 32 place seconds, and the rest
    assert result.job_finish.tolist() == [4 + (32 - 10), 2.0]


def test_a_job_goes_at_the_pace_of_a_place_away_from_its_input():
    # the inputs of tasks 0 to 3 are on machines 0 to 3; another job has machine 2
    other = {"submit_s": 0.0, "stages": [{"durations_s": [10.0], "demand": {"cpu": 1}}]}
    workload = placed(sim.Workload.from_jobs([job(), other]), home=0, factor=2.0)
    cluster = sim.Cluster.machines(4, cpu=1)
    result = sim.simulate(workload, cluster, Widths(changes=((4.0, 0, 3),), first=2))
    check_schedule(result)
    assert result.task_machine[[0, 1, 2, 4]].tolist() == [0, 1, 3, 2]
    # half of its speed, and from 4 on half of three quarters
    assert result.job_finish.tolist() == [4 + 6 / 0.375, 20.0]


def test_a_job_goes_at_the_least_rate_of_its_machines():
    # memory decides what fits: from 2 on another job takes 4 of 4 CPUs beside one of the places
    @dataclass(frozen=True)
    class ByMemory(Widths):
        name = "by_memory"

        def prepare(self, world, plan):
            plan.fit_resources = ("mem",)
            return super().prepare(world, plan)

    elastic, late = job(width=2), job(2.0, seconds=4.0, width=1)
    elastic["stages"][0]["demand"] = {"cpu": 2, "mem": 2}
    late["stages"][0]["demand"] = {"cpu": 4, "mem": 1}
    first = {"submit_s": 1.0, "stages": [{"durations_s": [9.0], "demand": {"mem": 1}}]}
    cluster = sim.Cluster.machines(2, cpu=4, mem=3, fungible=("cpu",))
    workload = sim.Workload.from_jobs([elastic, first, late])
    result = sim.simulate(workload, cluster, ByMemory())
    assert result.task_machine.tolist() == [0, 1, 0, 1]
    # both go at 4 / 6 of their speed, until that one is done
    assert result.job_finish.tolist() == pytest.approx([8 + (8 - 2 - 4), 10.0, 2 + 4 * 6 / 4])


BUSY = {"submit_s": 0.0, "stages": [{"durations_s": [3.0], "demand": {"cpu": 1}}]}
"""A job on the first machine until 3."""


def test_a_job_that_requires_a_rack_starts_narrower_in_the_one_with_most_room():
    # of racks of two and three free machines it takes that with three, until the other is free
    result = near([BUSY, job(topology_required="rack")], 3, changes=((4.0, 1, 4),))
    assert result.task_machine[1:4].tolist() == [3, 4, 5]
    assert result.job_finish[1] == 8 / 0.75


def test_a_job_that_prefers_a_rack_starts_as_wide_as_it_can_in_the_fewest():
    result = near([BUSY, job(topology_preferred="rack")], 3)
    assert result.task_machine[1:].tolist() == [1, 2, 3, 4]
    assert result.job_finish[1] == 16.0


def test_a_job_starts_in_the_rack_with_the_least_room_that_holds_its_width():
    result = near([BUSY, job(topology_preferred="rack")], 3, first=2)
    assert result.task_machine[1:3].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("level", "machines", "finish_s"),
    # a quarter, from 4 on a half of its speed; or two and three places at half of their speed
    [("required", [1, 0], 4 + 7 / 0.5), ("preferred", [1, 2, 0], 4 + 7 / 0.375)],
)
def test_a_job_grows_near_its_first_place(level, machines, finish_s):
    changes = ((2.0, 1, 2), (4.0, 1, 3))
    result = near([BUSY, job(**{f"topology_{level}": "rack"})], 2, changes=changes, first=1)
    assert result.task_machine[1 : 1 + len(machines)].tolist() == machines
    assert result.job_finish[1] == pytest.approx(finish_s)


def test_the_check_sees_a_job_in_several_racks():
    result = near([job(topology_required="rack", width=2)], 2)
    check_elastic(result)
    apart = Changed(result, result.task_finish)
    apart.task_machine = np.array([0, 3], np.int32)
    with pytest.raises(BrokenRuleError, match="several domains"):
        check_elastic(apart)


def test_attained_service_is_by_width():
    @dataclass(frozen=True)
    class Service(Policy):
        name = "service"
        events = Event.SERVICE

        def prepare(self, world, plan):
            plan.set_jobs(service_at=8.0, width=2)
            return []

        def react(self, memory, batch, world, plan):
            memory.append(batch.now)
            times.append(batch.now)

    times = []
    sim.simulate(sim.Workload.from_jobs([job()]), sim.Cluster.slots(4), Service())
    assert times == [4.0]


def test_bounds_take_the_best_width():
    jobs = [job(speedup=CURVE), job(speedup=CURVE, width=4, low=2)]
    workload, cluster = sim.Workload.from_jobs(jobs), sim.Cluster.slots(2)
    # the least room x time is at a width of 1 and 2: 1 / 0.5 and 2 / 0.8 of 4
    assert least_work_shares(workload.columns).tolist() == [0.5, 0.625]
    bounds = bound_arrays(workload.columns, cluster, tight=True)
    assert bounds["twork"].tolist() == [8.0, 10.0]  # half of 8 x 4 over 2; 5/8 of it
    assert bounds["cp_len"].tolist() == [8.0, 8.0]
    assert (bounds["tight_lb"] == bounds["new_lb"]).all()


def test_use_counts_places_that_were_given_back():
    result = run([job(seconds=4.0), job(6.0, width=1)], changes=((2.0, 0, 1),), first=4)
    # 4 places for 2 s, then one until 10; from 6 on another
    assert result.metrics["utilization"] == (8 + 4) / 24
    assert result.metrics["stops_mean"] == 0.0
    assert result.metrics["work_lost"] == 0.0


def test_the_check_sees_a_job_that_is_done_too_early():
    result = run([job()], changes=((4.0, 0, 1),))
    check_elastic(result)
    early = result.task_finish.copy()
    early[0] -= 3.0
    with pytest.raises(BrokenRuleError, match="lacks"):
        check_elastic(Changed(result, early))


class Changed:
    """A run with other ends of tasks."""

    def __init__(self, result, task_finish):
        self.result, self.task_finish = result, task_finish

    def __getattr__(self, name):
        return getattr(self.result, name)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"stages": [{"durations_s": [1.0, 2.0]}]}, "equal duration"),
        ({"stages": [{"durations_s": [1.0]}, {"durations_s": [1.0]}]}, "equal duration"),
        ({"low": 5}, "min_tasks is 5"),
        ({"min_tasks": 2}, "width_min is 1, min_tasks 2"),
        ({"speedup": "1:1 2:3"}, "points for the least and the greatest"),
        ({"speedup": "1:1 4:0.5"}, "no curve"),
        ({"speedup": "one"}, "no curve"),
        ({"reconfigure_s": -1.0}, "reconfigure_s is -1"),
    ],
)
def test_a_wrong_elastic_job_is_refused(change, message):
    with pytest.raises(InputError, match=message):
        sim.Workload.from_jobs([{**job(low=change.pop("low", 1)), **change}])


@dataclass(frozen=True)
class Refused(Policy):
    mechanism: str = ""
    name = "refused"

    def prepare(self, world, plan):
        plan.set_jobs(expected_s=10.0)
        if self.mechanism == "reservations":
            plan.reservations = 1
        else:
            plan.replan = Replan()


@pytest.mark.parametrize("mechanism", ["reservations", "periodic planning"])
def test_what_does_not_run_with_elastic_jobs_says_so(mechanism):
    workload, cluster = sim.Workload.from_jobs([job()]), sim.Cluster.machines(2, cpu=2)
    with pytest.raises(InputError, match=f"elastic jobs do not run with {mechanism}: .*no single"):
        sim.simulate(workload, cluster, Refused(mechanism=mechanism))


def test_a_workload_is_the_same_from_its_files(tmp_path):
    workload = sim.Workload.from_jobs([job(speedup=CURVE, reconfigure_s=None), job(1.0)])
    workload.write(tmp_path)
    columns = sim.Workload.read(tmp_path).columns
    assert columns.job_width_min.tolist() == [1, 1]
    assert columns.job_reconfigure.tolist() == [np.inf, 0.0]
    assert [columns.speedups[k] for k in columns.job_speedup] == [CURVE, ""]


def test_random_worlds_are_equal_and_keep_the_rules():
    n_resized = n_ran = 0
    for number in range(examples(60)):
        rng = np.random.default_rng([61, number])
        some = {("gangs",), ("callbacks", "skip"), ("devices", "choice")}
        world = draw_with(rng, {"elastic", *sorted(some)[number % 3]})
        result = compare(world)
        assert not result.differs, (number, result.differs)
        if result.refused:
            continue
        workload, cluster, policy = build(world)
        kernel = run_kernel(workload, cluster, policy)[0]
        check_schedule(kernel)
        done = np.isfinite(kernel.job_finish) & ~kernel.job_failed
        jct = (kernel.job_finish - kernel.job_submit)[done]
        for name, bound in bound_arrays(workload.columns, cluster, tight=True).items():
            assert (jct >= bound[done] * (1 - 1e-9) - 1e-9).all(), (number, name)
        n_ran += 1
        n_resized += "resized" in kernel.stops["reason"].to_pylist()
    assert n_ran > 3
    assert n_resized > 0


def test_a_preempted_job_begins_again_in_as_many_places_as_there_are():
    @dataclass(frozen=True)
    class Preempts(Policy):
        name = "preempts"

        def prepare(self, world, plan):
            level = np.arange(len(plan.jobs["key"]), dtype=np.float64)
            plan.set_jobs(preempt_level=level, preempts_below=level, key=-level)
            plan.preemption = Preemption(Right.LEVEL, Victims.LAST_STARTED)

    rigid = {"submit_s": 2.0, "min_tasks": 2, "stages": [{"durations_s": [3.0] * 2}]}
    workload = sim.Workload.from_jobs([job(checkpoint_s=1.0, restart_s=0.5), rigid])
    result = sim.simulate(workload, sim.Cluster.slots(4), Preempts())
    check_schedule(result)
    # 6 of 8 s are left at 2.0, and the time to restart, in the two places that are free
    assert result.job_finish.tolist() == [2.0 + 6.5 * 2, 5.0]
    assert sorted(result.stops["reason"].to_pylist()) == ["preempted"] * 4
    assert result.stops["kept_s"].to_pylist() == [2.0] * 4


def test_a_job_goes_at_the_speed_of_its_slowest_place():
    cluster = sim.Cluster.mixed([{"class": "fast", "count": 1, "cpu": 2}, {"count": 1, "cpu": 2}])
    slow = job()
    slow["stages"][0]["speed"] = {"fast": 2.0}
    result = run([slow], cluster, changes=((4.0, 0, 2),))
    assert result.job_finish.tolist() == [8.0]  # half of it at 1, half at half of 2
