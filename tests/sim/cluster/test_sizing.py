import numpy as np
import pytest

import policies
import sim
from sim.cluster.load import offered_load
from sim.cluster.sizing import (
    full_count,
    queue_shares,
    scale_cluster,
    stage_demands,
    stage_shares,
    unit_cluster,
)
from sim.workload.paths import submit_span_s


def job(submit_s, durations, demand=None, **more):
    stages = [{"durations_s": durations, "demand": demand or {"cpu": 1, "mem": 2}}]
    return {"submit_s": submit_s, "stages": stages, **more}


def poisson(n=500, seed=0):
    rng = np.random.default_rng(seed)
    submit = np.sort(rng.uniform(0, 1000, n))
    return sim.Workload.from_jobs(
        [
            job(float(t), rng.exponential(20, 5).tolist(), {"cpu": 1, "mem": int(rng.integers(9))})
            for t in submit
        ]
    )


def size_cluster(w, shape, load=0.8, fraction=1.0, *, tails=False):
    return scale_cluster(unit_cluster(shape), fraction * full_count(w, shape, load, tails=tails))


def test_slots_give_the_target_load():
    w = sim.Workload.from_jobs([job(t, [10] * 4) for t in range(0, 101, 10)])
    # of 440 task seconds 400 can be done in 100 s: 4 slots busy, 5 at a load of 0.8
    cluster = size_cluster(w, "slots")
    assert cluster.unit
    assert cluster.total[0] == 5
    assert offered_load(w.inflow, cluster) == {"slot": pytest.approx(0.8)}
    # with tails, all of it: 4.4 slots busy
    assert size_cluster(w, "slots", tails=True).total[0] == 6
    assert size_cluster(w, {"cpu": 1, "mem": 2}, tails=True).total.tolist() == [5.5, 11.0]


@pytest.mark.parametrize("load", [0.5, 0.8, 1.5])
@pytest.mark.parametrize("shape", ["slots", {"cpu": 4, "mem": 16}, {"mem": 9, "cpu": 8}])
def test_bottleneck_has_the_target_load(load, shape):
    w = poisson()
    cluster = size_cluster(w, shape, load)
    slack = 0.5 / (cluster.total[0] - 0.5) if shape == "slots" else 1e-9
    assert max(offered_load(w.inflow, cluster).values()) == pytest.approx(load, rel=slack)
    cluster = size_cluster(w, shape, load, tails=True)
    slack = 0.5 / (cluster.total[0] - 0.5) if shape == "slots" else 1e-9
    assert max(w.mean_load(cluster).values()) == pytest.approx(load, rel=slack)


def test_a_fraction_of_a_machine_is_a_smaller_machine():
    w = poisson()
    full = size_cluster(w, {"cpu": 4, "mem": 16})
    cluster = size_cluster(w, {"cpu": 4, "mem": 16}, fraction=0.37)
    assert cluster.total == pytest.approx(full.total * 0.37)
    assert (cluster.capacity[:-1] == [4, 16]).all()
    part = cluster.capacity[-1] / [4, 16]
    assert part[0] == pytest.approx(part[1])
    assert 0 < part[0] < 1


def test_fraction_scales_the_count_and_rounds():
    w = sim.Workload.from_jobs([job(t, [10] * 4) for t in range(0, 101, 10)])
    sizes = {f: size_cluster(w, "slots", fraction=f).total[0] for f in (0.01, 0.5, 0.7, 1, 2)}
    assert sizes == {0.01: 1, 0.5: 3, 0.7: 4, 1: 5, 2: 10}


def test_machines_have_the_requested_shape():
    cluster = size_cluster(poisson(), {"cpu": 4, "mem": 16})
    assert cluster.resources == ("cpu", "mem")
    assert (cluster.capacity[:-1] == [4, 16]).all()
    assert cluster.n_machines > 1
    assert cluster.queue_mode == "global"


def test_a_gang_fits_at_full_size():
    w = sim.Workload.from_jobs([job(0, [1] * 40, min_tasks=40), job(1000, [1])])
    assert size_cluster(w, "slots").total[0] == 40
    # each machine has room for 3 slots of (1 cpu, 2 mem)
    cluster = size_cluster(w, {"cpu": 4, "mem": 7})
    assert cluster.n_machines == 14
    sim.cluster.fits.check_fits(w, cluster)
    with pytest.raises(sim.InputError, match="gang of 40 tasks"):
        sim.cluster.fits.check_fits(w, size_cluster(w, {"cpu": 4, "mem": 7}, fraction=13 / 14))


def test_gang_slots_hold_the_largest_demand_of_any_stage():
    stages = [
        {"durations_s": [1] * 4, "demand": {"cpu": 4, "mem": 1}},
        {"durations_s": [1] * 4, "demand": {"cpu": 1, "mem": 4}},
    ]
    w = sim.Workload.from_jobs([{"submit_s": 0, "min_tasks": 4, "stages": stages}, job(9000, [1])])
    assert size_cluster(w, {"cpu": 8, "mem": 8}).n_machines == 2


def test_demand_that_no_machine_holds_names_the_job():
    w = sim.Workload.from_jobs([job(0, [1], {"cpu": 9}, job_id="wide"), job(5, [1])])
    with pytest.raises(sim.InputError, match=r"'wide'.*9 cpu"):
        size_cluster(w, {"cpu": 8, "mem": 64})


def test_resource_missing_from_the_shape_is_an_error():
    with pytest.raises(sim.InputError, match="mem, of which the cluster has none"):
        size_cluster(poisson(), {"cpu": 8})


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), "half"])
def test_the_load_is_positive(bad):
    with pytest.raises(sim.InputError, match="load must be a number above 0"):
        full_count(poisson(5), "slots", bad)


def test_unknown_shape_is_an_error():
    with pytest.raises(sim.InputError, match="unknown cluster shape 'slot'"):
        size_cluster(poisson(5), "slot")


def test_jobs_of_one_instant_are_offered_over_the_longest_critical_path():
    stages = [
        {"name": "a", "durations_s": [5.0] * 8},
        {"name": "b", "durations_s": [15.0], "parents": ["a"]},
    ]
    w = sim.Workload.from_jobs([{"submit_s": 7.0, "stages": stages}, job(7.0, [5.0], {"cpu": 1})])
    assert submit_span_s(w.columns) == 20
    assert size_cluster(w, "slots", load=1).total[0] == 3  # 60 task seconds in 20 s


def test_jobs_of_no_length_need_one_slot():
    w = sim.Workload.from_jobs([job(7.0, [0.0, 0.0])])
    assert submit_span_s(w.columns) == 1
    assert size_cluster(w, "slots").total[0] == 1


def test_demands_are_in_the_order_of_the_cluster():
    w = sim.Workload.from_jobs([job(0, [1], {"mem": 3, "cpu": 0.5})])
    cluster = sim.Cluster.machines(1, cpu=1, disk=7, mem=4)
    assert stage_demands(w.columns, cluster).tolist() == [[0.5, 0, 3]]
    assert stage_demands(w.columns, sim.Cluster.slots(3)).tolist() == [[1]]


def test_shares_of_queues():
    w = sim.Workload.from_jobs([job(0, [1], queue=q) for q in "abc"])
    slots = sim.Cluster.slots(8)
    shares = {"c": 0.1, "b": 0.2, "a": 0.5}
    third = pytest.approx([1 / 3] * 3)
    assert queue_shares(w.columns, slots) == third
    assert queue_shares(w.columns, slots.with_queues("hard")) == third
    hard = slots.with_queues("hard", shares)
    assert queue_shares(w.columns, hard) == pytest.approx([0.5, 0.2, 0.1])
    soft = slots.with_queues("weighted", shares)
    assert queue_shares(w.columns, soft) == pytest.approx([5 / 8, 2 / 8, 1 / 8])


@pytest.mark.parametrize("policy", ["wserpt", "tetris", "dagps", "tez_tetris"])
def test_shares_are_of_the_largest_machine_where_the_first_lacks_a_resource(policy):
    site = sim.Cluster.mixed([{"cpu": 8}, {"class": "a100", "cpu": 16, "devices": {"gpu": 4}}])
    demands = ({"cpu": 4.0, "gpu": 1.0}, {"cpu": 8.0})
    stages = [{"durations_s": [2.0], "demand": demand} for demand in demands]
    workload = sim.Workload.from_jobs([{"submit_s": 0.0, "stages": [stage]} for stage in stages])
    assert stage_shares(workload.columns, site).tolist() == [[0.25, 0.25], [0.5, 0.0]]
    assert sim.simulate(workload, site, policies.build(policy)).job_finish.tolist() == [2.0, 2.0]
