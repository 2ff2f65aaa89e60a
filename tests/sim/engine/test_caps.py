"""Caps: examples by hand, with the arithmetic; and the refusals of what could never run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import policies
import sim
from sim.base.errors import InputError
from sim.cluster.faults import Outages
from tests.examples import COMPILED_WIDE
from tests.sim.engine import reference
from tests.sim.engine.test_held_machines import Holds

pytestmark = pytest.mark.skipif(COMPILED_WIDE, reason="in no wide variant")


def job(name: str, duration_s: float, n: int = 1, submit_s: float = 0.0, **more):
    demand = more.pop("demand", {"cpu": 1})
    stage = {"durations_s": [duration_s] * n, "demand": demand}
    return {"job_id": name, "submit_s": submit_s, "stages": [stage], **more}


def run(jobs, cluster, policy="fifo", **params):
    """Run jobs by the kernel, which equals the naive simulator; return the result."""
    workload = sim.Workload.from_jobs(jobs)
    built = policies.build(policy, **params) if isinstance(policy, str) else policy
    result = sim.simulate(workload, cluster, built)
    naive = reference.simulate(workload, cluster, built)
    for name in ("job_start", "job_finish", "job_failed", "task_start", "task_machine"):
        np.testing.assert_array_equal(getattr(result, name), getattr(naive, name), err_msg=name)
    return result


def starts(result) -> dict[str, float]:
    return dict(zip(result.jobs["job_id"].to_pylist(), result.job_start.tolist(), strict=True))


def test_an_array_runs_as_many_jobs_as_its_throttle():
    """Four slots, five jobs of 10 s of an array of throttle 2, then one of three tasks of 3 s.

    The array takes two slots at 0, and again at 10; its last job runs from 20. The other job is
    behind it in the queue and passes it: two tasks at 0, the third at 3.
    """
    array = [job(f"a{i}", 10.0, array="a", throttle=2) for i in range(5)]
    result = run([*array, job("b", 3.0, n=3)], sim.Cluster.slots(4))
    assert starts(result) == {"a0": 0, "a1": 0, "a2": 10, "a3": 10, "a4": 20, "b": 0}
    np.testing.assert_array_equal(result.task_start[5:], [0, 0, 3])


@pytest.mark.parametrize("policy", ["fifo", "easy", "conservative", "tetris"])
def test_jobs_that_a_cap_spares_count_and_may_exceed_it(policy):
    """Account a may use 2 CPUs; its job of QOS high takes 3, so that the other waits for it."""
    more = {"requested_s": 10.0, "qos": "normal"}
    jobs = [
        job("high", 10.0, n=3, min_tasks=3, account="a", **more | {"qos": "high"}),
        job("a", 10.0, min_tasks=1, account="a", **more),
        job("b", 10.0, min_tasks=1, account="b", **more),
    ]
    row = {"of": "cpu", "by": ["account"], "at_most": {"a": 2}, "spares": {"qos": ["high"]}}
    result = run(jobs, sim.Cluster.machines(1, cpu=8).with_limits([row]), policy)
    assert starts(result) == {"high": 0, "a": 10, "b": 0}
    with pytest.raises(InputError, match="would wait for ever"):
        run(jobs, sim.Cluster.machines(1, cpu=8).with_limits([row | {"spares": {}}]), policy)


@pytest.mark.parametrize("counted", ["running_jobs", "submitted_jobs"])
def test_jobs_that_a_cap_of_jobs_spares(counted):
    """One job at once: u's second is spared and runs at 0; the third waits, or is rejected."""
    jobs = [job(f"u{i}", 10.0, user="u", qos="high" if i == 1 else "normal") for i in range(3)]
    row = {"of": counted, "by": ["user"], "at_most": 1, "spares": {"qos": "high"}}
    result = run(jobs, sim.Cluster.slots(4).with_limits([row]))
    third = 10.0 if counted == "running_jobs" else float("nan")
    np.testing.assert_array_equal(result.job_start, [0.0, 0.0, third])


NODES_OF_USERS = [{"of": "nodes", "by": ["user"], "at_most": 4}]


@pytest.mark.parametrize("policy", ["fifo", "easy", "conservative", "tetris"])
def test_each_user_runs_on_four_nodes(policy):
    """Of u the first and the third run on 3 nodes, so that the second, on 3, waits until 10."""
    jobs = [
        job(f"{user}{n}", 10.0, n=n, min_tasks=n, user=user, requested_s=10.0)
        for user, n in (("u", 2), ("u", 3), ("u", 1), ("v", 4))
    ]
    cluster = sim.Cluster.machines(8, cpu=2).with_limits(NODES_OF_USERS)
    assert starts(run(jobs, cluster, policy)) == {"u2": 0, "u3": 10, "u1": 0, "v4": 0}


def test_a_job_counts_all_of_its_nodes_from_its_first_start_to_its_end():
    """The first has two tasks on 3 nodes, one after the other: the second job waits for both."""
    jobs = [
        job("u1", 5.0, n=2, n_nodes=3, user="u", demand={"cpu": 2}),
        job("u2", 5.0, n_nodes=2, user="u"),
        job("v", 1.0, user="v"),
    ]
    cluster = sim.Cluster.machines(1, cpu=3).with_limits(NODES_OF_USERS)
    assert starts(run(jobs, cluster, fit="skip")) == {"u1": 0, "u2": 10, "v": 0}


def test_jobs_of_fewer_nodes_pass_like_ones_of_more():
    """Tasks of one CPU each: the first and the third are of 3 nodes together."""
    jobs = [job(f"u{n}", 10.0, n_nodes=n, user="u") for n in (2, 3, 1)]
    cluster = sim.Cluster.machines(1, cpu=4).with_limits(NODES_OF_USERS)
    assert starts(run(jobs, cluster, fit="skip")) == {"u2": 0, "u3": 10, "u1": 0}


LICENCES = [{"of": "license_m", "at_most": 3}]


@pytest.mark.parametrize("policy", ["fifo", "easy", "conservative", "slurm", "tetris"])
def test_jobs_hold_licences_of_the_whole_cluster(policy):
    """Of three licences two are held, so that the job of three waits, and is passed over."""
    jobs = [
        job(f"l{n}", 10.0, licenses={"m": n} if n else {}, requested_s=10.0) for n in (2, 3, 0, 1)
    ]
    got = starts(run(jobs, sim.Cluster.machines(8, cpu=1).with_limits(LICENCES), policy))
    if policy != "slurm":
        assert got == {"l2": 0, "l3": 10, "l0": 0, "l1": 0}
    first = got["l2"]
    assert got["l0"] == got["l1"] == first
    assert first + 10 <= got["l3"] < first + 20


def test_a_job_of_several_tasks_holds_its_licences_once():
    jobs = [job("a", 5.0, n=4, licenses={"m": 2}), job("b", 5.0, licenses={"m": 1})]
    assert starts(run(jobs, sim.Cluster.slots(8).with_limits(LICENCES))) == {"a": 0, "b": 0}
    jobs = [job(f"l{n}", 5.0, licenses={"m": n}) for n in (2, 2, 1)]
    jobs[1]["job_id"] = "again"
    got = starts(run(jobs, sim.Cluster.machines(1, cpu=4).with_limits(LICENCES), fit="skip"))
    assert got == {"l2": 0, "again": 5, "l1": 0}


def test_licences_that_are_not_there_are_an_error():
    cluster = sim.Cluster.slots(2).with_limits(LICENCES)
    with pytest.raises(InputError, match="needs 4 license_m to start, and the cap of all jobs"):
        run([job("a", 1.0, licenses={"m": 4})], cluster)
    with pytest.raises(InputError, match="counts license_m, and the workload's jobs have no such"):
        run([job("a", 1.0)], cluster)
    with pytest.raises(InputError, match="a whole number of licences"):
        cluster.with_limits([{"of": "license_m", "at_most": 1.5}])
    with pytest.raises(InputError, match="license_m"):
        run([job("a", 1.0, licenses={"m": 0.5})], cluster)


def test_a_cap_on_nodes_may_block():
    jobs = [
        job("u1", 5.0, n_nodes=3, user="u"),
        job("u2", 5.0, n_nodes=2, user="u"),
        job("v", 1.0, user="v"),
    ]
    blocks = [row | {"blocks": True} for row in NODES_OF_USERS]
    result = run(jobs, sim.Cluster.machines(1, cpu=3).with_limits(blocks))
    assert starts(result) == {"u1": 0, "u2": 5, "v": 5}


def test_a_job_of_more_nodes_than_its_cap_is_an_error():
    cluster = sim.Cluster.machines(8, cpu=2).with_limits(NODES_OF_USERS)
    with pytest.raises(InputError, match="needs 5 nodes to start, and the cap of u is 4"):
        run([job("u", 1.0, n=5, min_tasks=5, user="u")], cluster)
    with pytest.raises(InputError, match="a whole number of nodes"):
        cluster.with_limits([{"of": "nodes", "at_most": 1.5}])


def test_each_user_runs_one_job_at_once():
    """Four slots; user u has three jobs of 10 s and v two: each runs them one after the other."""
    jobs = [job(f"{u}{i}", 10.0, user=u) for i in range(3) for u in "uv" if (u, i) != ("v", 2)]
    limits = [{"of": "running_jobs", "by": ["user"], "at_most": 1}]
    result = run(jobs, sim.Cluster.slots(4).with_limits(limits))
    assert starts(result) == {"u0": 0, "v0": 0, "u1": 10, "v1": 10, "u2": 20}


def test_an_account_counts_the_cpus_of_those_below_it():
    """Account a may use 4 CPUs, and a1, which is below it, as a2 is, 3 of them; b any number.

    At 0 job x of a1 takes 3 CPUs, and y of a2 the fourth of a; z of b takes 3. At 10 these end: the
    fourth task of x and the second of y run from 10 to 20.
    """
    jobs = [
        job("x", 10.0, n=4, account="a1"),
        job("y", 10.0, n=2, account="a2"),
        job("z", 5.0, n=3, account="b"),
    ]
    limits = [{"of": "cpu", "by": ["account"], "at_most": {"a": 4, "a1": 3}}]
    cluster = sim.Cluster.machines(1, cpu=8).with_limits(limits, {"a1": "a", "a2": "a"})
    result = run(jobs, cluster)
    np.testing.assert_array_equal(result.task_start, [0, 0, 0, 10, 0, 10, 0, 0, 0])


def test_gpus_of_each_user_and_qos():
    """User u may use 2 GPUs with QOS high and 1 with any other; v is not named, and has no cap.

    Of 8 GPUs u's jobs take 2 and 1 at 0, v's job 4; the last task of each of u's runs from 10.
    """
    gpu = {"cpu": 1, "gpu": 1}
    jobs = [
        job("h", 10.0, n=3, user="u", qos="high", demand=gpu),
        job("n", 10.0, n=2, user="u", qos="normal", demand=gpu),
        job("v", 10.0, n=4, user="v", qos="normal", demand=gpu),
    ]
    limits = [{"of": "gpu", "by": ["user", "qos"], "at_most": {"u": {"high": 2, "*": 1}}}]
    cluster = sim.Cluster.mixed([{"cpu": 16, "devices": {"gpu": 8}}]).with_limits(limits)
    result = run(jobs, cluster)
    np.testing.assert_array_equal(result.task_start, [0, 0, 10, 0, 10, 0, 0, 0, 0])


@pytest.mark.parametrize(("blocks", "started"), [(False, 0), (True, 10)])
def test_a_job_beyond_its_cap_lets_others_pass_or_blocks_them(blocks, started):
    """Two slots, jobs of u (10 s), u (10 s) and v (5 s), one job of a user at once.

    The second of u waits until 10. That of v starts at 0 if it may pass, and at 10 if not.
    """
    jobs = [job("u0", 10.0, user="u"), job("u1", 10.0, user="u"), job("v", 5.0, user="v")]
    limits = [{"of": "running_jobs", "by": "user", "at_most": 1, "blocks": blocks}]
    result = run(jobs, sim.Cluster.slots(2).with_limits(limits))
    assert starts(result) == {"u0": 0, "u1": 10, "v": started}


def test_a_job_beyond_the_cap_of_submitted_jobs_is_rejected():
    """One slot, jobs of 10 s, two of a user at once in the system.

    The third, at 5, finds two and is rejected; the one that polls for its output fails. The fourth,
    at 12, finds one.
    """
    jobs = [
        job("a", 10.0, user="u"),
        job("b", 10.0, user="u"),
        job("c", 10.0, user="u", submit_s=5.0),
        job("d", 1.0, user="v", submit_s=6.0, input_mode="poll", inputs=["c"]),
        job("e", 10.0, user="u", submit_s=12.0),
    ]
    limits = [{"of": "submitted_jobs", "by": ["user"], "at_most": 2}]
    result = run(jobs, sim.Cluster.slots(1).with_limits(limits))
    assert result.jobs["outcome"].to_pylist() == ["done", "done", "rejected", "failed", "done"]
    assert result.metrics["jobs_failed"] == 0.4
    assert starts(result)["e"] == 20


@pytest.mark.parametrize(("submit_s", "second"), [(0.0, 300.0), (10.0, 590.0)])
def test_minutes_left_to_the_limits_of_running_jobs(submit_s, second):
    """Two slots, two jobs of 580 s with limits of 600 s, at most 15 slot minutes left.

    The first leaves 10, the second needs 10. From 0 on, 5 are left at the tick at 300 s, and
    5 + 10 = 15. From 10 s on, 310 s are left at that tick, and 310 + 600 > 900 s: the second
    starts when the first ends, at 590 s.
    """
    jobs = [job(name, 580.0, submit_s=submit_s, requested_s=600.0) for name in "ab"]
    limits = [{"of": "slot_minutes", "at_most": 15}]
    result = run(jobs, sim.Cluster.slots(2).with_limits(limits))
    assert starts(result) == {"a": submit_s, "b": second}


def test_a_job_beyond_its_cap_gets_no_reservation():
    """Three slots, one job of a user at once; all limits are exact.

    u0 takes one slot for 10 s. u1 needs all three, but is beyond its cap, so that nothing is
    reserved for it at 10, and v may take two slots for 100 s. At 10 there is one free: u1 starts at
    100. Without the cap it starts at 10, and v after it, at 20.
    """
    jobs = [
        job("u0", 10.0, user="u", requested_s=10.0),
        job("u1", 10.0, n=3, user="u", requested_s=10.0, min_tasks=3),
        job("v", 100.0, n=2, user="v", requested_s=100.0, min_tasks=2),
    ]
    cluster = sim.Cluster.slots(3)
    limits = [{"of": "running_jobs", "by": ["user"], "at_most": 1}]
    capped = run(jobs, cluster.with_limits(limits), "easy")
    assert starts(capped) == {"u0": 0, "u1": 100, "v": 0}
    assert starts(run(jobs, cluster, "easy")) == {"u0": 0, "u1": 10, "v": 20}


def test_a_partition_counts_the_jobs_that_name_none_in_the_default_one():
    """Partition batch is the default and runs two jobs at once, long any number, of 10 s each.

    Two of a, b and c, which name batch or none, run at 0, and the third from 10 on.
    """
    partitions = {"a": "batch", "b": "", "c": "batch", "d": "long", "e": "long", "f": "long"}
    jobs = [job(name, 10.0, partition=partition) for name, partition in partitions.items()]
    limits = [{"of": "running_jobs", "by": ["partition"], "at_most": {"batch": 2}}]
    cluster = sim.Cluster.mixed([{"cpu": 8, "partitions": ["batch*", "long"]}])
    result = run(jobs, cluster.with_limits(limits))
    assert starts(result) == {"a": 0, "b": 0, "c": 10, "d": 0, "e": 0, "f": 0}


def test_a_job_that_is_ended_at_its_limit_leaves_its_groups():
    """Two slots, one job of a user at once and two in the system; the first is ended at 5 s.

    The second starts then. The third, submitted at 4, is rejected; the fourth, at 6, is not.
    """
    jobs = [
        job("a", 10.0, user="u", requested_s=5.0),
        job("b", 10.0, user="u"),
        job("c", 10.0, user="u", submit_s=4.0),
        job("d", 10.0, user="u", submit_s=6.0),
    ]
    limits = [
        {"of": "running_jobs", "by": ["user"], "at_most": 1},
        {"of": "submitted_jobs", "by": ["user"], "at_most": 2},
    ]
    cluster = sim.Cluster.slots(2).with_limits(limits).with_enforced_limits()
    result = run(jobs, cluster)
    assert result.jobs["outcome"].to_pylist() == ["timeout", "done", "rejected", "done"]
    assert starts(result)["b"] == 5
    assert starts(result)["d"] == 15


def test_a_gang_that_stops_leaves_room_under_its_cap():
    """Two machines of 2 CPUs, one running job of a user at once; machine 1 is lost from 2 to 4.

    u0, a gang of two tasks of 2 CPUs and 5 s, stops at 2, so that u1 starts on machine 0 until 5.
    Then u0 may run again, until 10.
    """
    cpus = {"cpu": 2}
    jobs = [
        job("u0", 5.0, n=2, user="u", min_tasks=2, demand=cpus),
        job("u1", 3.0, user="u", demand=cpus),
    ]
    limits = [{"of": "running_jobs", "by": ["user"], "at_most": 1}]
    cluster = sim.Cluster.machines(2, cpu=2).with_outages(Outages.from_columns([1], [2.0], [4.0]))
    result = run(jobs, cluster.with_limits(limits), "fifo", fit="skip")
    assert starts(result)["u1"] == 2
    np.testing.assert_array_equal(result.job_finish, [10, 5])


def test_only_jobs_with_these_values_count():
    """One job of QOS low at once; those of other users and QOS are free."""
    jobs = [job(f"{q}{i}", 10.0, qos=q) for q in ("low", "high") for i in range(2)]
    limits = [{"of": "running_jobs", "at_most": 1, "where": {"qos": "low"}}]
    result = run(jobs, sim.Cluster.slots(4).with_limits(limits))
    assert starts(result) == {"low0": 0, "low1": 10, "high0": 0, "high1": 0}


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({"of": "running_jobs"}, "has no 'at_most'"),
        ({"of": "cpu", "at_most": -1}, "at_most must be a number of at least 0, not -1"),
        ({"of": "running_jobs", "at_most": 1.5}, "a whole number of jobs, not 1.5"),
        ({"of": "cpu", "at_most": 1, "by": ["usr"]}, "did you mean 'user'"),
        ({"of": "cpu", "at_most": {"u": 1}}, "must be a number, as the row counts by no further"),
        ({"of": "cpu", "at_most": 1, "blck": True}, "did you mean 'blocks'"),
        ({"of": "submitted_jobs", "at_most": 1, "blocks": True}, "is rejected, so that it can't"),
    ],
)
def test_rows_that_can_not_be_are_refused(row, text):
    with pytest.raises(InputError, match=text):
        sim.Cluster.slots(1).with_limits([row])


def test_accounts_in_a_circle_are_refused():
    with pytest.raises(InputError, match="a is below b is below a, in a circle"):
        sim.Cluster.slots(1).with_limits([], {"a": "b", "b": "a"})


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({"of": "cpus", "at_most": 1}, "did you mean 'cpu'"),
        ({"of": "cpu", "at_most": 1}, "needs 2 cpu to start, and the cap of all jobs is 1"),
        ({"of": "cpu", "at_most": 3, "where": {"qos": "x"}}, "have no such column"),
        ({"of": "running_jobs", "at_most": {"u": 0}, "by": "user"}, "the cap of u is 0"),
        ({"of": "cpu_minutes", "at_most": 9}, "has none; give all jobs a limit"),
    ],
)
def test_caps_under_which_a_job_never_starts_are_refused(row, text):
    workload = sim.Workload.from_jobs([job("a", 1.0, user="u", demand={"cpu": 2})])
    cluster = sim.Cluster.machines(1, cpu=4).with_limits([row])
    with pytest.raises(InputError, match=text):
        sim.simulate(workload, cluster, policies.build("fifo"))


@pytest.mark.parametrize(("is_alone", "second_s"), [(False, 0.0), (True, 10.0)])
def test_an_exclusive_gang_counts_with_its_whole_machines(is_alone, second_s):
    """Of 6 CPUs it has 4, its node, while it runs; another user's limit is not touched."""
    jobs = [
        job("a", 10.0, user="u", min_tasks=1, exclusive=is_alone),
        job("b", 5.0, user="u", min_tasks=1, demand={"cpu": 3}),
        job("c", 5.0, user="v", min_tasks=1, demand={"cpu": 3}),
    ]
    limits = [{"of": "cpu", "by": ["user"], "at_most": 6}]
    cluster = sim.Cluster.machines(3, cpu=4).with_limits(limits)
    assert starts(run(jobs, cluster, fit="skip")) == {"a": 0, "b": second_s, "c": 0}


def test_a_planned_exclusive_gang_counts_with_the_nodes_chosen_before_it_starts():
    """Of 10 CPUs, user u has 3 on the first small node; another user has the second until 30.

    The big node is free, but with its 8 CPUs u would have 11: b waits for a small one, of 4. User v
    has nothing, and takes it.
    """
    kinds = [
        {"class": "small", "cpu": 4, "count": 2, "weight": 1},
        {"class": "big", "cpu": 8, "weight": 5},
    ]
    cpus = {"min_tasks": 1, "requested_s": 60.0, "demand": {"cpu": 3}}
    jobs = [
        job("a", 60.0, user="u", **cpus),
        job("x", 30.0, user="w", exclusive=True, **cpus),
        job("b", 5.0, user="u", submit_s=5.0, exclusive=True, **cpus),
        job("c", 5.0, user="v", submit_s=10.0, exclusive=True, **cpus),
    ]
    limits = [{"of": "cpu", "by": ["user"], "at_most": 10}]
    result = run(jobs, sim.Cluster.mixed(kinds).with_limits(limits), "slurm")
    a, x, b, c = result.job_start
    assert result.task_machine.tolist() == [0, 1, 1, 2]
    assert b >= x + 30.0
    assert a < 5.0
    assert 10.0 <= c < 15.0
    # alone it would choose the big one for ever: so it starts there
    alone = [job("b", 5.0, n=2, user="u", exclusive=True, **(cpus | {"min_tasks": 2}))]
    big = sim.Cluster.mixed([{"class": "big", "cpu": 8, "count": 2}]).with_limits(limits)
    assert run(alone, big, "slurm").job_start[0] < 5.0


CHANGES = [[5, 1], [25, 4]]


@pytest.mark.parametrize("policy", ["fifo", "easy", "conservative", "tetris"])
def test_a_cap_changes_and_what_runs_goes_on(policy):
    """Eight jobs of 10 s: four at 0; from 5 s on one at a time, at 10 and 20; the others at 25."""
    jobs = [job(f"j{i}", 10.0, min_tasks=1, requested_s=10.0) for i in range(8)]
    rows = [{"of": "cpu", "at_most": 4, "changes": CHANGES}]
    result = run(jobs, sim.Cluster.machines(4, cpu=2).with_limits(rows), policy)
    assert sorted(starts(result).values()) == [0, 0, 0, 0, 10, 20, 25, 25]


def test_a_table_changes_and_another_user_has_no_cap_any_more():
    jobs = [job(f"{user}{i}", 10.0, user=user) for user in "uv" for i in range(2)]
    rows = [
        {"of": "running_jobs", "by": ["user"], "at_most": 1, "changes": [[4, {"u": 1, "w": 1}]]}
    ]
    result = run(jobs, sim.Cluster.slots(4).with_limits(rows))
    assert starts(result) == {"u0": 0, "u1": 10, "v0": 0, "v1": 4}


def test_changes_count_from_the_first_submission():
    jobs = [job(f"j{i}", 10.0, submit_s=1.6e9) for i in range(2)]
    rows = [{"of": "cpu", "at_most": 1, "changes": [[3, 2]]}]
    result = run(jobs, sim.Cluster.machines(2, cpu=1).with_limits(rows))
    assert starts(result) == {"j0": 1.6e9, "j1": 1.6e9 + 3}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([[3, 1], [2, 4]], r"changes\[1\] is at 2 s, and the row above at 3"),
        ([[3]], r"changes\[0\] must be \[seconds, number\]"),
        ([[3, -1]], r"changes\[0\]\[1\]"),
        ([[3, 0]], "is 0 after its last change, so that it would wait for ever"),
    ],
)
def test_invalid_changes_are_refused(changes, message):
    rows = [{"of": "cpu", "at_most": 4, "changes": changes}]
    with pytest.raises(InputError, match=message):
        run([job("j", 1.0)], sim.Cluster.machines(4, cpu=2).with_limits(rows))


def test_a_job_that_ends_at_its_limit_leaves_one_place_in_the_queue():
    """Two may be submitted: a ends at 5; c takes its place at 6, so that d is rejected at 7."""
    jobs = [
        job("a", 50.0, requested_s=5.0),
        job("b", 50.0, requested_s=100.0),
        job("c", 1.0, submit_s=6.0, requested_s=100.0),
        job("d", 1.0, submit_s=6.5, requested_s=100.0),
    ]
    cluster = sim.Cluster.slots(1).with_limits([{"of": "submitted_jobs", "at_most": 2}])
    result = run(jobs, cluster.with_enforced_limits())
    assert result.jobs["outcome"].to_pylist() == ["timeout", "done", "done", "rejected"]


def test_machines_are_held_for_the_first_gang_that_its_cap_lets_start():
    """Three gangs wait; the first two are of a user who has two running jobs of two.

    The third needs both machines whole, and lacks the least on the first: it is held for it.
    So the small job takes room on the second, though the first has more.
    """
    jobs = [
        job("first", 50.0, demand={"cpu": 2}, user="u"),
        job("second", 50.0, demand={"cpu": 3}, user="u"),
        job("beyond", 1.0, n=2, submit_s=1.0, min_tasks=2, user="u"),
        job("beyond, too", 1.0, n=2, submit_s=2.0, min_tasks=2, user="u"),
        job("whole", 1.0, n=2, submit_s=3.0, demand={"cpu": 4}, min_tasks=2, user="v"),
        job("small", 1.0, submit_s=4.0, user="v"),
    ]
    row = {"of": "running_jobs", "by": ["user"], "at_most": {"u": 2}}
    cluster = sim.Cluster.machines(2, cpu=4).with_limits([row])
    result = run(jobs, cluster, Holds(n=1))
    assert starts(result)["small"] == 4
    assert result.task_machine[-1] == 1
    assert run(jobs, cluster, Holds(n=0)).task_machine[-1] == 0


@dataclass(frozen=True)
class InOrder(Holds):
    """Jobs by keys, the smallest first."""

    keys: tuple[float, ...] = ()

    def prepare(self, world, plan):
        super().prepare(world, plan)
        plan.set_jobs(key=np.array(self.keys))


def test_the_first_job_of_the_workload_waits_behind_gangs_beyond_their_cap():
    """As before, in another order: the gang that needs whole machines is in row 0."""
    jobs = [
        job("whole", 1.0, n=2, demand={"cpu": 4}, min_tasks=2, user="v"),
        job("beyond", 1.0, n=2, min_tasks=2, user="u"),
        job("second", 50.0, demand={"cpu": 3}, user="u"),
        job("first", 50.0, demand={"cpu": 2}, user="u"),
        job("small", 1.0, submit_s=1.0, user="v"),
    ]
    row = {"of": "running_jobs", "by": ["user"], "at_most": {"u": 2}}
    cluster = sim.Cluster.machines(2, cpu=4).with_limits([row])
    result = run(jobs, cluster, InOrder(n=1, keys=(4, 3, 2, 1, 5)))
    assert starts(result)["small"] == 1
    assert result.task_machine[-1] == 1
