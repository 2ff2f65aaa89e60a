"""Multifactor priority: equal to plain Python, and on examples by hand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import policies
import sim
from policies.backfill.fair_share import Shares
from policies.backfill.kernels.priorities import begin
from policies.backfill.kernels.priority_record import FAIR_TREE, make
from policies.backfill.priorities import Priorities
from policies.backfill.slurm import Slurm
from sim.engine.plan import Batch, Event, World
from tests.policies.backfill.priorities import Site, starts

SLOTS = 12
SHARES = {"physics": 3, "chemistry": 1, "physics/ann": 2, "chemistry/cat": 3, "spare": 4}
PARENTS = {"physics": "science", "chemistry": "science"}
WEIGHTS = {"age": 700.0, "size": 300.0, "fair": 2000.0, "partition": 100.0, "qos": 250.0}
PLACES = [("physics", "ann"), ("physics", "bob"), ("chemistry", "ann"), ("chemistry", "cat")]
PLACES += [("industry", "dan"), ("science", "eve")]


def site(**changes):
    return Site(
        SLOTS, WEIGHTS, max_age=40.0, half_life=60.0, period=7.0, shares=SHARES, parents=PARENTS,
        partitions={"express": 4}, qos={"high": 10, "low": 3}, **changes,
    )  # fmt: skip


def policy(name, site, **params):
    weights = {"age": "age", "size": "job_size", "fair": "fair_share"}
    return policies.build(
        name,
        **{f"weight_{weights.get(k, k)}": v for k, v in site.weights.items()},
        max_age_s=site.max_age, half_life_s=site.half_life, calc_period_s=site.period,
        shares=site.shares, parents=site.parents, partitions=site.partitions, qos=site.qos,
        tiers=site.tiers, fair_tree=site.fair_tree, favor_small=site.favor_small, **params,
    )  # fmt: skip


def drawn(seed, n=70):
    """Draw jobs that come faster than they can be served."""
    rng = np.random.default_rng(seed)
    jobs = []
    for submit in np.round(np.cumsum(rng.exponential(3.0, n)), 1).tolist():
        account, user = PLACES[int(rng.integers(len(PLACES)))]
        run = float(np.round(rng.lognormal(1.7, 1.0), 1) + 0.1)
        jobs.append(
            {
                "submit": submit, "run": run, "limit": run * float(rng.choice([1.0, 2.0, 5.0])),
                "width": int(rng.choice([1, 1, 2, 3, 4, 7, SLOTS])),
                "account": account, "user": user,
                "partition": str(rng.choice(["batch", "express"])),
                "qos": str(rng.choice(["normal", "high", "low"])),
            }
        )  # fmt: skip
    return jobs


def workload(jobs):
    return sim.Workload.from_jobs(
        {
            "submit_s": job["submit"],
            "stages": [{"durations_s": [job["run"]] * job["width"]}],
            "min_tasks": job["width"],
            "requested_s": job["limit"],
            **{name: job[name] for name in ("user", "account", "qos")},
            "queue": job["partition"],
        }
        for job in jobs
    )


def simulated(jobs, policy):
    return sim.simulate(workload(jobs), sim.Cluster.slots(SLOTS), policy).job_start


@pytest.mark.parametrize(
    "changes",
    [{}, {"fair_tree": False, "favor_small": True}, {"tiers": {"express": 2}}],
    ids=["tree", "classic", "tiers"],
)
@pytest.mark.parametrize(("name", "easy"), [("multifactor", False), ("multifactor_easy", True)])
def test_equals_plain_python(name, easy, changes):
    settings = site(**changes)
    fifo = 0
    for seed in range(6):
        jobs = drawn(seed)
        # plain Python's clock begins at 0, as the trace's does not: shifted by from_jobs
        ours = simulated(jobs, policy(name, settings))
        np.testing.assert_array_equal(ours, starts(settings, jobs, easy))
        fifo += (ours != simulated(jobs, policies.build("easy" if easy else "fifo"))).sum()
    assert fifo > 100, "priorities hardly change the order"


@pytest.mark.parametrize("tree", [True, False], ids=["tree", "classic"])
@pytest.mark.parametrize("rigid", [True, False])
def test_ends_that_wait_for_other_events_change_nothing(monkeypatch, rigid, tree):
    batches = []
    update = Priorities.update
    monkeypatch.setattr(
        Priorities, "update", lambda self, batch: batches.append(batch.now) or update(self, batch)
    )
    for seed in range(4):
        jobs = drawn(seed)
        w = workload(jobs) if rigid else in_tasks(jobs)
        ours = policy("multifactor", site(fair_tree=tree))
        starts = [sim.simulate(w, sim.Cluster.slots(SLOTS), ours).job_start]
        n_batches = len(batches)
        with monkeypatch.context() as at_once:
            at_once.setattr("sim.engine.plan.world.MIN_RUN_S", np.inf)
            starts.append(sim.simulate(w, sim.Cluster.slots(SLOTS), ours).job_start)
        np.testing.assert_array_equal(*starts)
        assert n_batches < len(batches) - n_batches
        batches.clear()


def in_tasks(jobs):
    """Make jobs that start task by task, in two stages."""
    names = ("user", "account", "qos")
    return sim.Workload.from_jobs(
        {
            "submit_s": job["submit"],
            "stages": [
                {"name": "a", "durations_s": [job["run"] / (i + 1) for i in range(job["width"])]},
                {"durations_s": [job["run"] / 3] * 2, "parents": ["a"]},
            ],
            **{name: job[name] for name in names},
        }
        for job in jobs
    )


def test_orders_by_priority_by_hand():
    # all of 4 slots are busy until 8 s, and taken to be until 20 s; b and c don't fit together
    jobs = [(0.0, 8.0, 20.0, 4, "low"), (1.0, 5.0, 5.0, 3, "low"), (2.0, 5.0, 5.0, 3, "high")]
    w = sim.Workload.from_jobs(
        {
            "submit_s": submit,
            "stages": [{"durations_s": [run] * width}],
            "min_tasks": width,
            "requested_s": limit,
            "qos": qos,
        }
        for submit, run, limit, width, qos in jobs
    )
    for name in ("multifactor", "multifactor_easy", "multifactor_conservative"):
        policy = policies.build(name, qos={"high": 1}, calc_period_s=3.0)
        start = sim.simulate(w, sim.Cluster.slots(4), policy).job_start
        assert start.tolist() == [0, 13, 8], name
    plain = sim.simulate(w, sim.Cluster.slots(4), policies.build("conservative"))
    assert plain.job_start.tolist() == [0, 8, 13]


def used(jobs, half_life_s, at_s, period_s=1e9):
    """Usage of jobs (submit, start, end, cpus), each of a user of its own, at the last event.

    Calculated at some times or, with a period, every period, and caught up with at these times.
    """
    w = sim.Workload.from_jobs(
        {
            "submit_s": submit,
            "stages": [{"durations_s": [1.0] * cpus}],
            "min_tasks": cpus,
            "user": str(row),
        }
        for row, (submit, _, _, cpus) in enumerate(jobs)
    )
    view = {"submit": w.columns.job_submit, "done_work": np.zeros(len(jobs))}
    view["start"] = np.full(len(jobs), np.nan)
    settings = policies.build("multifactor", half_life_s=half_life_s, calc_period_s=period_s)
    world = World(w.columns, sim.Cluster.slots(9), 0, view)
    priorities = Priorities(settings, world, np.zeros(len(jobs)))
    events = [(s, 3, 0) for s in at_s]
    no_events = np.zeros(0, dtype=np.int32)
    for row, (submit, start, end, _) in enumerate(jobs):
        events += [(submit, 0, row), (start, 1, row), (end, 2, row)]
    for now, kind, row in sorted(events):
        if kind == 1:
            view["start"][row] = now
        elif kind == 3 and period_s == 1e9:
            priorities.calculate(now)
        elif kind == 3:
            priorities.update(Batch(now, no_events, no_events))
        else:
            event = Event.JOB_DONE if kind else Event.JOB_ARRIVED
            kinds, rows = np.array([[event], [row]], dtype=np.int32)
            priorities.update(Batch(now, kinds, rows))
    usage = dict(zip(priorities.associations, priorities.arrays["state_usage"], strict=True))
    return [usage["default", str(row)] for row in range(len(jobs))]


@pytest.mark.parametrize(("is_one", "nodes"), [(True, 4), (False, 1)])
def test_size_counts_nodes_that_a_job_asks_for(is_one, nodes):
    """Four tasks of two CPUs ask for four nodes if no two may share one, else for one of eight."""
    job = {"submit_s": 0.0, "min_tasks": 4, "one_per_node": is_one}
    w = sim.Workload.from_jobs(
        [job | {"stages": [{"durations_s": [1.0] * 4, "demand": {"cpu": 2.0}}]}]
    )
    settings = policies.build("multifactor", weight_job_size=320.0)
    world = World(w.columns, sim.Cluster.machines(8, cpu=4), 0, {})
    priorities = Priorities(settings, world, np.zeros(1))
    size = priorities.weighted(0)[1]["job_size"]
    assert size == 320.0 * (8 / 32 + nodes / 8) / 2


@pytest.mark.parametrize(("is_alone", "first"), [(False, "x"), (True, "y")])
def test_an_exclusive_gang_uses_its_whole_machines(is_alone, first):
    """Of x and y that one goes first which used less: 2 CPUs, or 1, or the 4 of a whole machine."""

    def job(name, submit_s, cpus, run_s=10.0, **more):
        stages = [{"durations_s": [run_s], "demand": {"cpu": cpus}}]
        return {"submit_s": submit_s, "user": name, "min_tasks": 1, "stages": stages, **more}

    jobs = [job("x", 0.0, 1.0, exclusive=is_alone), job("y", 0.0, 2.0)]
    jobs += [job("z", 10.0, 4.0), job("z", 10.0, 4.0, 30.0)]  # one machine is free at 20 s
    jobs += [job("x", 12.0, 4.0), job("y", 12.0, 4.0)]
    weights = {"weight_age": 0.0, "weight_job_size": 0.0, "calc_period_s": 11.0}
    built = policies.build("multifactor", **weights)
    result = sim.simulate(sim.Workload.from_jobs(jobs), sim.Cluster.machines(2, cpu=4), built)
    assert dict(zip("xy", result.job_start[4:].tolist(), strict=True))[first] == 20.0
    assert max(result.job_start[4:]) == 30.0


def test_usage_decays_by_hand():
    jobs = [(0.0, 0.0, 15.0, 2), (0.0, 4.0, 99.0, 1)]
    half_life_s = 693.0  # 0.999 a second
    usage = used(jobs, half_life_s, [10.0])
    first = 2 * 10 * 0.999**10 + 2 * 5 * 0.999**5
    assert usage == pytest.approx([first, 6 * 0.999**6 + 89 * 0.999**89])
    usage = used(jobs, half_life_s, [10.0, 20.0])
    assert usage[0] == pytest.approx(first * 0.999**10)


@pytest.mark.parametrize("half_life_s", [-1.0, 1e-9, 0.5, 0.692, 0.693, 0.999])
def test_a_half_life_below_a_second_is_refused(half_life_s):
    for name in ("multifactor", "multifactor_easy", "multifactor_slurm"):
        with pytest.raises(
            sim.InputError, match=r"half_life_s must be .*at least [01], not"
        ) as error:
            policies.build(name, half_life_s=half_life_s)
        assert repr(half_life_s) in error.value.message


def test_usage_stays_a_number_at_the_shortest_half_life():
    jobs = [(0.0, 0.0, 10.0, 2), (0.0, 4.0, 100.0, 1)]
    for period_s in (0.5, 7.0, 1e9):
        usage = used(jobs, 1.0, [10.0], period_s)
        assert np.isfinite(usage).all()
        assert (np.array(usage) >= 0).all()


@pytest.mark.parametrize("half_life_s", [0.0, 50.0])
def test_many_decays_equal_single_ones(half_life_s):
    jobs = [(0.0, 1.0, 30.0, 3), (0.0, 0.0, 63.0, 2), (0.0, 8.0, 63.0, 4)]
    single = used(jobs, half_life_s, [7.0 * k for k in range(1, 9)], 7.0)
    often = used(jobs, half_life_s, [], 7.0)
    assert often == pytest.approx(single, rel=1e-12)
    assert single[0] < 3 * 29 or not half_life_s


def factors(pairs, used, shares=None, parents=None):
    tree = Shares(pairs, shares or {}, parents or {})
    cpu_s = np.array([used.get(pair, 0.0) for pair in tree.associations])
    state, arrays = make(tree.arrays | {"state_usage": cpu_s})
    arrays["state_i"][FAIR_TREE] = True
    begin(state)
    return dict(zip(tree.associations, arrays["state_factor"].tolist(), strict=True))


def test_fair_tree_by_hand():
    # a and b have 3 and 1 shares, and used as much: level fair share 1.5 and 0.5. In a, u used
    # 0.75 and v 0.25: 0.67 and 2; the root's user and w, who used nothing, have infinity.
    used = {("a", "u"): 30.0, ("a", "v"): 10.0, ("b", "w"): 0.0, ("b", "x"): 40.0}
    got = factors(list(used), used, {"a": 3, "b": 1})
    assert got == {
        ("root", "root"): 5 / 5,
        ("a", "v"): 4 / 5,
        ("a", "u"): 3 / 5,
        ("b", "w"): 2 / 5,
        ("b", "x"): 1 / 5,
    }


def test_fair_tree_merges_accounts_and_ranks_a_user_with_the_first_of_an_equal_account():
    # c and d, and the user of s, all used a third of s
    used = {("s", "p"): 10.0, ("c", "q"): 10.0, ("d", "q"): 9.0, ("d", "r"): 1.0}
    got = factors(list(used), used, parents={"c": "s", "d": "s"})
    # p; then, merged, r (5), q of c (1) and q of d (0.56): p is as good as r
    assert got == {
        ("root", "root"): 1.0,
        ("s", "p"): 4 / 5,
        ("d", "r"): 4 / 5,
        ("c", "q"): 2 / 5,
        ("d", "q"): 1 / 5,
    }


def test_no_shares_rank_last_and_no_usage_ranks_all_alike():
    pairs = [("a", "u"), ("a", "v"), ("b", "w")]
    assert set(factors(pairs, {}).values()) == {1.0}
    got = factors(pairs, {("a", "u"): 5.0}, {"b": 0})
    assert got["b", "w"] == 1 / 4 < got["a", "u"] < got["a", "v"]


def test_wrong_trees_are_errors():
    with pytest.raises(sim.InputError, match="its own ancestor"):
        Shares([("a", "u")], {}, {"a": "b", "b": "a"})
    with pytest.raises(sim.InputError, match="shares of 'a' must be 0 to"):
        policies.build("multifactor", shares={"a": -1})
    with pytest.raises(sim.InputError, match="order must be 'fcfs'"):
        policies.build("multifactor_conservative", order="sjf")


PLAIN = {
    "multifactor": "fifo",
    "multifactor_easy": "easy",
    "multifactor_conservative": "conservative",
    "multifactor_slurm": "slurm",
}
NO_WEIGHTS = dict.fromkeys([f"weight_{name}" for name in ("age", "job_size", "fair_share")], 0.0)
NO_WEIGHTS |= {"weight_partition": 0.0}


@pytest.mark.parametrize("name", PLAIN)
def test_equal_priorities_are_first_come_first_served(name):
    jobs, settings = drawn(1), NO_WEIGHTS | {"weight_qos": 0.0, "calc_period_s": 5.0}
    ours = simulated(jobs, policies.build(name, **settings))
    np.testing.assert_array_equal(ours, simulated(jobs, policies.build(PLAIN[name])))


def test_slurm_takes_the_jobs_in_the_order_of_priority():
    @dataclass(frozen=True)
    class ByQos(Slurm):
        """slurm with keys that are set before the run."""

        def prepare(self, world, plan):
            super().prepare(world, plan)
            plan.set_jobs(key=[-{"high": 10, "low": 3}.get(job["qos"], 0) for job in jobs])

    for seed in range(3):
        jobs = drawn(seed)
        qos = NO_WEIGHTS | {"qos": {"high": 10, "low": 3}, "calc_period_s": 5.0}
        ours = simulated(jobs, policies.build("multifactor_slurm", **qos))
        np.testing.assert_array_equal(ours, simulated(jobs, ByQos(order="priority")))
        assert (ours != simulated(jobs, policies.build("slurm"))).any()


def test_jobs_that_may_preempt_others_come_before_them() -> None:
    """As in Slurm, whatever the priorities: low waits for longer, and top goes first.

    The first job may not be preempted.
    """
    jobs = [
        {"job_id": name, "submit_s": submit_s, "qos": qos, "requested_s": 10.0, "min_tasks": 1,
         "stages": [{"durations_s": [10.0]}]}
        for name, submit_s, qos in (("a", 0.0, "high"), ("low", 1.0, "low"), ("top", 2.0, "high"))
    ]  # fmt: skip
    preemption = {"by": "qos", "levels": {"high": 1, "low": 0}}

    def order(**options: object) -> list[float]:
        built = policies.build("multifactor", weight_age=1000.0, qos={"low": 100}, **options)
        workload = sim.Workload.from_jobs(jobs)
        return sim.simulate(workload, sim.Cluster.slots(1), built).job_start.tolist()

    assert order(weight_qos=10.0) == [0.0, 10.0, 20.0]
    assert order(weight_qos=10.0, preemption=preemption) == [0.0, 20.0, 10.0]


@pytest.mark.parametrize("name", ["multifactor", "multifactor_easy", "multifactor_slurm"])
def test_jobs_that_ask_for_gpus_alone_use_gpus(name):
    """With CPUs that nobody asks for the schedule is that of machines with GPUs alone."""
    rng = np.random.default_rng(5)
    jobs = [
        {
            "submit_s": float(k), "user": str(rng.choice(["ann", "bob"])), "requested_s": 90.0,
            "min_tasks": 1, "stages": [{"durations_s": [float(rng.integers(5, 60))],
                                        "demand": {"gpu": int(rng.integers(1, 5))}}],
        }
        for k in range(40)
    ]  # fmt: skip
    w = sim.Workload.from_jobs(jobs)
    weighted = policies.build(name, weight_fair_share=1000.0, weight_job_size=500.0)
    kinds = [{"count": 2, "gpu": 4}, {"count": 2, "cpu": 64, "gpu": 4}]
    without, with_cpus = (
        sim.simulate(w, sim.Cluster.mixed([kind]), weighted).job_start for kind in kinds
    )
    assert np.array_equal(without, with_cpus)
    assert not np.array_equal(without, np.sort(without))  # the order is not that of submission
