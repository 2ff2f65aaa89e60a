"""Quotas: readings of Kueue's and YARN's documentation by hand, the two ends, and reclaiming."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import policies
import sim
from sim.base.errors import InputError
from sim.base.jit import specialised
from sim.engine.kernels import quotas as kernel
from tests.examples import COMPILED_WIDE, examples
from tests.sim.engine import outcome, reference
from tests.sim.engine.compared import STUCK, kernel_outcome
from tests.sim.engine.random_worlds import QUEUES, build, draw_with

pytestmark = pytest.mark.skipif(COMPILED_WIDE, reason="in no wide variant")


def job(name: str, queue: str, submit_s: float, n: int, duration_s: float, gang: bool = False):
    stage = {"durations_s": [duration_s] * n}
    gang_size = {"min_tasks": n} if gang else {}
    return {"job_id": name, "queue": queue, "submit_s": submit_s, "stages": [stage], **gang_size}


def run(jobs, cluster, policy="fifo", **params):
    """Run jobs by the kernel, which equals the naive simulator; return the starts of each job."""
    workload, built = sim.Workload.from_jobs(jobs), policies.build(policy, **params)
    result = sim.simulate(workload, cluster, built, record="tasks")
    naive = reference.simulate(workload, cluster, built)
    for name in ("job_start", "job_finish", "task_start", "task_machine"):
        np.testing.assert_array_equal(getattr(result, name), getattr(naive, name), err_msg=name)
    starts, rows = {}, workload.columns.stage_job.repeat(workload.columns.stage_n_tasks)
    for row, start_s in zip(rows.tolist(), result.task_start.tolist(), strict=True):
        by_time = starts.setdefault(jobs[row]["job_id"], {})
        by_time[start_s] = by_time.get(start_s, 0) + 1
    return starts


def two_teams(a, b):
    """Build the cluster of Kueue's page on cluster queues: 21 CPUs, teams a and b in a cohort."""
    tree = {"a": {"parent": "ab", "nominal": {"slot": 9}, **a}}
    tree["b"] = {"parent": "ab", "nominal": {"slot": 12}, **b}
    return sim.Cluster.slots(21).with_quotas(tree)


def test_kueue_who_fits_within_its_quota_goes_before_who_borrows():
    """Job a1 takes all 21 CPUs, as nobody else wants any. At 10 s either of the others could start.

    a2 needs 10, one beyond the quota of a; b1 needs the 12 of b: it goes first, though it is later.
    """
    jobs = [
        job("a1", "a", 0, 21, 10, gang=True),
        job("a2", "a", 1, 10, 10, gang=True),
        job("b1", "b", 2, 12, 10, gang=True),
    ]
    starts = run(jobs, two_teams({}, {}))
    assert starts == {"a1": {0: 21}, "a2": {20: 10}, "b1": {10: 12}}


def test_kueue_borrowing_limit():
    """With a borrowing limit of 1 a may use 9 + 1 CPUs, and b, without one, all 21."""
    cluster = two_teams({"borrow": {"slot": 1}}, {})
    assert run([job("a1", "a", 0, 12, 10)], cluster) == {"a1": {0: 10, 10: 2}}
    assert run([job("b1", "b", 0, 22, 10)], cluster) == {"b1": {0: 21, 10: 1}}


def test_kueue_lending_limit():
    """With a lending limit of 1 of b, a may use 9 + 1; 11 stay b's, and its twelfth is lent."""
    jobs = [job("a1", "a", 0, 12, 10), job("b1", "b", 1, 12, 10)]
    starts = run(jobs, two_teams({}, {"lend": {"slot": 1}}))
    assert starts == {"a1": {0: 10, 10: 2}, "b1": {1: 11, 10: 1}}


def test_kueue_nested_cohorts():
    """16 CPUs: 4 of the root, 4 + 2 of the queues of org1, 6 of that of org2.

    org1 may borrow 2, so 8 tasks of x run at 0. org2 lends 1: the quota of the root is 4 + 6 + 1 =
    11, of which org1 takes 8. z has 5 that org2 keeps and the 3 that are left: 8 tasks at 1. At 10
    org1 uses less than org2, which borrows: x takes 8 again, and the ninth task of z waits for 11.
    """
    tree = {
        "root": {"nominal": {"slot": 4}},
        "org1": {"parent": "root", "borrow": {"slot": 2}},
        "org2": {"parent": "root", "lend": {"slot": 1}},
        "x": {"parent": "org1", "nominal": {"slot": 4}},
        "y": {"parent": "org1", "nominal": {"slot": 2}},
        "z": {"parent": "org2", "nominal": {"slot": 6}},
    }
    cluster = sim.Cluster.slots(16).with_quotas(tree)
    starts = run([job("x1", "x", 0, 16, 10), job("z1", "z", 1, 9, 10)], cluster)
    assert starts == {"x1": {0: 8, 10: 8}, "z1": {1: 8, 11: 1}}


YARN = {
    "engineering": {"parent": "root"},
    "development": {"parent": "engineering", "nominal": "12%"},
    "qa": {"parent": "engineering", "nominal": "48%"},
    "support": {"parent": "root", "nominal": "10%"},
    "marketing": {"parent": "root", "nominal": "30%"},
}


def test_yarn_an_elastic_queue_gives_back_what_others_are_due():
    """YARN's example, in tenths of its 1,000 GB: engineering 60, of which development 12 and qa 48.

    Support and marketing use all that is theirs. Development takes all 60 of engineering at 1 and
    2 s. As its tasks end, at 11 s, all 24 go to qa, which is under its capacity; at 22 s qa gets
    the 24 that it is due, and development its 12; what is left of d3 waits for these.
    """
    jobs = [
        job("s", "support", 0, 10, 100),
        job("m", "marketing", 0, 30, 100),
        job("d1", "development", 1, 24, 10),
        job("d2", "development", 2, 36, 20),
        job("q", "qa", 3, 48, 100),
        job("d3", "development", 4, 24, 10),
    ]
    starts = run(jobs, sim.Cluster.slots(100).with_quotas(YARN))
    assert starts == {
        "s": {0: 10},
        "m": {0: 30},
        "d1": {1: 24},
        "d2": {2: 36},
        "q": {11: 24, 22: 24},
        "d3": {22: 12, 32: 12},
    }


def test_yarn_maximum_capacity():
    """A capacity of 12 % and a maximum capacity of 20 % are a quota of 12, and 8 borrowed."""
    tree = YARN | {"development": YARN["development"] | {"borrow": "8%"}}
    starts = run([job("d", "development", 0, 24, 10)], sim.Cluster.slots(100).with_quotas(tree))
    assert starts == {"d": {0: 20, 10: 4}}


def test_weights_share_what_is_borrowed():
    """9 slots of the cohort: queue a of weight 2 gets two of three tasks, as all of them borrow."""
    tree = {"all": {"nominal": "100%"}, "a": {"parent": "all", "weight": 2}, "b": {"parent": "all"}}
    jobs = [job("b1", "b", 0, 9, 10), job("a1", "a", 0, 9, 10)]
    starts = run(jobs, sim.Cluster.slots(9).with_quotas(tree))
    assert starts == {"b1": {0: 3, 10: 6}, "a1": {0: 6, 10: 3}}


def test_a_resource_that_no_quota_names_is_not_limited():
    """Each queue has 2 GPUs and borrows none; of CPUs any may use any number."""
    tree = {name: {"nominal": {"gpu": 2}} for name in "ab"}
    cluster = sim.Cluster.machines(1, cpu=10, gpu=4).with_quotas(tree)
    jobs = [job("a1", "a", 0, 3, 10), job("a2", "a", 0, 8, 10)]
    jobs[0]["stages"][0]["demand"] = {"cpu": 1, "gpu": 1}
    jobs[1]["stages"][0]["demand"] = {"cpu": 1}
    assert run(jobs, cluster, fit="skip") == {"a1": {0: 2, 10: 1}, "a2": {0: 8}}


def test_a_reservation_counts_with_the_quotas_of_its_time():
    """Of 8 slots each of two queues has 3, lent in full. r needs 6: from 10 s on, when b ends.

    c ends by then, so it starts at 2. d would run beyond: there is room for it, also beside r, but
    no quota then, so that it starts after r.
    """
    tree = {name: {"parent": "all", "nominal": {"slot": 3}} for name in "ab"}
    jobs = [
        job("b", "b", 0, 3, 10, gang=True),
        job("r", "a", 1, 6, 5, gang=True),
        job("c", "a", 2, 1, 8),
        job("d", "a", 2, 1, 9),
    ]
    for row, requested_s in zip(jobs, (10, 5, 8, 9), strict=True):
        row["requested_s"] = requested_s
    starts = run(jobs, sim.Cluster.slots(8).with_quotas(tree), "easy")
    assert starts == {"b": {0: 3}, "c": {2: 1}, "r": {10: 6}, "d": {15: 1}}


# ---- the ends: hard shares, and weighted queues


def as_quotas(world, rows):
    """Return a world whose queues are those rows of quotas."""
    cluster = {name: value for name, value in world["cluster"].items() if name != "queues"}
    tree = {"tree": rows, "by_share": True}
    return world | {"cluster": cluster | {"quotas": tree}}


THIRD = f"{100 / 3!r}%"
HARD = [
    {name: {"nominal": THIRD, "weight": 1 / 3} for name in QUEUES},
    {name: {"parent": "all", "nominal": THIRD, "borrow": 0, "weight": 1 / 3} for name in QUEUES},
]
WEIGHTED = [
    {name: {"parent": "all", "weight": 1 / 3} for name in QUEUES},
    {"all": {"nominal": "100%"}} | {name: {"parent": "all", "weight": 1 / 3} for name in QUEUES},
]


@pytest.mark.parametrize("fit", ["strict", "skip", "pack", "reservations", "planning"])
@pytest.mark.parametrize("mode", ["hard", "weighted"])
def test_the_ends_have_the_bits_of_hard_shares_and_weighted_queues(mode, fit):
    """Worlds of all mechanisms: queues that borrow nothing, and queues that borrow everything.

    Hard shares are queues without a parent, or whose borrowing limit is 0; weighted queues have no
    quota but that of their parent: none, or all of the cluster. With the latter a task that lacks
    room in all of the cluster waits for its quota: machines that pack owe it nothing, and Slurm's
    planner plans no start for it.
    """
    n_equal, ends = 0, HARD if mode == "hard" else WEIGHTED
    ends = ends[:1] if ends is WEIGHTED and fit in ("pack", "planning") else ends
    for number in range(examples(40)):
        rng = np.random.default_rng([61, number])
        more = {"gangs", "classes", "outages", "callbacks", "inputs", "devices", "like tasks"}
        on = {f"{mode} queues", fit} - {"strict"} | {name for name in more if rng.random() < 0.25}
        world = draw_with(rng, on)
        try:
            build(world)
            expected = kernel_outcome(world)
        except (InputError, sim.PolicyError):
            continue
        for rows in ends:
            result = kernel_outcome(as_quotas(world, rows))
            assert (result is STUCK) == (expected is STUCK), number
            assert not outcome.differences(result, expected), (number, sorted(on), rows)
        n_equal += 1
    assert n_equal >= examples(40) / 4


# ---- reclaiming


def lent():
    """Build the arrays of two queues of 4 of one resource, each below a root, and a third alone."""
    return SimpleNamespace(
        c_alignment_scale=np.ones((1, 1)),
        c_node_parent=np.array([3, 3, -1, -1]),
        c_node_limit=np.array([[2**60], [2**60], [4], [8]]),
        c_node_local=np.zeros((4, 1), int),
        c_node_nominal=np.array([[4], [4], [2**60], [2**60]]),
        c_org_path=np.array([[3, 0], [3, 1], [2, -1]]),
        state_node_used=np.zeros((4, 1), int),
        state_node_taken=np.zeros((4, 1), int),
        state_org_used=np.zeros((3, 1), int),
        w_job_org=np.array([0, 1, 2]),
    )


def test_a_queue_that_borrows_gives_back_to_one_within_its_quota():
    """Queue 0 uses 6, of which it borrows 2; a job of queue 1 that needs 4 may have them back.

    One that needs 5 would borrow itself; queue 2 is in a tree of its own.
    """
    names = ("count_in_tree", "is_borrowing", "may_reclaim", "lends_to")
    kernels = [specialised(getattr(kernel, name), frozenset(), interpreted=True) for name in names]
    count_in_tree, is_borrowing, may_reclaim, lends_to = kernels
    st = lent()
    for _ in range(6):
        count_in_tree(st, 0, 0, 0, 1)
    st.state_org_used[0] = 6
    assert is_borrowing(st, 0)
    assert not is_borrowing(st, 1)
    assert not is_borrowing(st, 3)
    needs = np.array([[4], [5]])
    assert may_reclaim(st, 1, needs, 0, 1)
    assert not may_reclaim(st, 1, needs, 1, 1)
    assert not may_reclaim(st, 0, needs, 0, 1)
    assert lends_to(st, 0, 1)
    assert not lends_to(st, 0, 2)
    count_in_tree(st, 0, 0, 0, -2)
    assert not is_borrowing(st, 0)
