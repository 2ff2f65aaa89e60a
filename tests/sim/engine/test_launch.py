"""Starts that lag behind placements: the kernel against the naive simulator, and small worlds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import policies
import sim
from sim.cluster.faults import Outages, Slowdowns
from sim.cluster.launch import Launch
from sim.engine.plan import NO_LIMIT
from sim.engine.simulate import variant
from tests.examples import examples
from tests.sim.engine.reference_launch import philox
from tests.sim.engine.strategies import AnyPlan, clusters, failures, launching, workloads
from tests.sim.engine.test_kernel import FITS, assert_same
from tests.sim.engine.test_reservations import AnyReservations, rigid_workloads

SETTINGS = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow],
    "derandomize": True,
}


def test_the_reference_draws_known_numbers():
    # known answers of Random123, the library of Salmon et al.
    assert philox([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    ones = 2**32 - 1
    assert philox([ones] * 4, [ones] * 2) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]


@pytest.mark.parametrize("fit", FITS)
@given(data=st.data(), plan_seed=st.integers(0, 2**32 - 1), callbacks=st.booleans())
@settings(max_examples=examples(40), **SETTINGS)
def test_same_bits(fit, data, plan_seed, callbacks):
    w = data.draw(workloads(inputs=True))
    cluster = data.draw(clusters(w, launches=True))
    assert_same(w, cluster, AnyPlan(fit=fit, plan_seed=plan_seed, callbacks=callbacks))


@pytest.mark.parametrize("fit", FITS)
@given(data=st.data(), plan_seed=st.integers(0, 2**32 - 1), callbacks=st.booleans())
@settings(max_examples=examples(40), **SETTINGS)
def test_same_bits_with_faults(fit, data, plan_seed, callbacks):
    w = data.draw(workloads(gangs=False))
    w = data.draw(failures(w)) if data.draw(st.booleans()) else w
    cluster = data.draw(clusters(w, outages=True, launches=True))
    assert_same(w, cluster, AnyPlan(fit=fit, plan_seed=plan_seed, callbacks=callbacks))


@given(data=st.data(), plan_seed=st.integers(0, 2**32 - 1), callbacks=st.booleans())
@settings(max_examples=examples(40), **SETTINGS)
def test_same_bits_with_evictions(data, plan_seed, callbacks):
    w = data.draw(workloads(gangs=False))
    cluster = data.draw(clusters(w, outages=data.draw(st.booleans()), launches=True))
    assert_same(w, cluster, AnyPlan(plan_seed=plan_seed, callbacks=callbacks, evicts=True))


@pytest.mark.parametrize("callbacks", [False, True])
@given(data=st.data(), plan_seed=st.integers(0, 2**32 - 1))
@settings(max_examples=examples(60), **SETTINGS)
def test_same_bits_with_reservations(callbacks, data, plan_seed):
    w = data.draw(rigid_workloads())
    cluster = data.draw(launching(sim.Cluster.slots(data.draw(st.integers(6, 9)))))
    reservations = data.draw(st.sampled_from([1, 2, NO_LIMIT]))
    assert_same(
        w,
        cluster,
        AnyReservations(plan_seed=plan_seed, reservations=reservations, callbacks=callbacks),
    )


def jobs(*durations_s, **more):
    stage = {"durations_s": list(durations_s), "demand": {"slot": 1}}
    return sim.Workload.from_jobs([{"submit_s": 0.0, "stages": [stage], **more}])


def run(w, cluster, launch_s=0.5, seed=0, policy="fifo"):
    return sim.simulate(w, cluster.with_launch(launch_s, seed), policies.build(policy))


def test_room_is_held_from_placement_on():
    result = run(jobs(4.0, 1.0, 2.0), sim.Cluster.slots(2))
    assert result.task_start.tolist() == [0.5, 0.5, 2.0]  # the third is placed at 1.5
    assert result.task_finish.tolist() == [4.5, 1.5, 4.0]
    assert result.job_start.tolist() == [0.5]


def test_a_gang_is_launched_once():
    stages = [
        {"name": "a", "durations_s": [1.0, 2.0]},
        {"name": "b", "durations_s": [1.0, 1.0], "parents": ["a"]},
    ]
    w = sim.Workload.from_jobs([{"submit_s": 0.0, "stages": stages, "min_tasks": 2}])
    result = run(w, sim.Cluster.slots(2), {"low": 0.0, "high": 8.0})
    lag = result.job_start[0]
    assert lag > 0
    assert (result.task_start - lag).tolist() == pytest.approx([0, 0, 2, 2])
    assert run(w, sim.Cluster.slots(4), 1.0).task_start.tolist() == [1.0, 1.0, 3.0, 3.0]


def test_a_task_that_is_lost_while_it_launches_has_not_started():
    outages = Outages.from_columns([0], [0.25], [9.0])
    cluster = sim.Cluster.machines(1, slot=1).with_outages(outages)
    result = run(jobs(3.0), cluster)
    assert result.job_start.tolist() == [9.5]
    assert result.job_finish.tolist() == [12.5]
    later = Outages.from_columns([0], [2.0], [9.0])
    result = run(jobs(3.0), cluster.with_outages(later))
    assert result.job_start.tolist() == [0.5]
    assert result.task_start.tolist() == [9.5]  # a restart lags again


def test_a_lag_passes_as_fast_in_a_slow_period():
    slow = Slowdowns.from_columns([0.0], [2.5], [0.5])
    result = run(jobs(3.0), sim.Cluster.slots(1).with_slowdowns(slow))
    assert result.task_start.tolist() == [0.5]
    assert result.task_finish.tolist() == [4.5]


def rigid(*rows):
    return sim.Workload.from_jobs(
        [
            {
                "submit_s": submit_s,
                "stages": [{"durations_s": [run_s] * width}],
                "min_tasks": width,
                "requested_s": run_s,
            }
            for submit_s, run_s, width in rows
        ]
    )


def test_a_lag_counts_as_a_part_of_the_run_that_is_reserved_for():
    # the first runs from 1 to 5, so room is reserved for the second from 5 on; the third is placed
    # at 0.75, and ends at 5 if it runs for 3.25
    fitting = rigid((0.0, 4.0, 1), (0.5, 4.0, 2), (0.75, 3.25, 1))
    result = run(fitting, sim.Cluster.slots(2), 1.0, policy="easy")
    assert result.job_start.tolist() == [1.0, 6.0, 1.75]
    longer = rigid((0.0, 4.0, 1), (0.5, 4.0, 2), (0.75, 3.5, 1))
    result = run(longer, sim.Cluster.slots(2), 1.0, policy="easy")
    assert result.job_start.tolist() == [1.0, 6.0, 11.0]


def test_draws_follow_the_seed_and_the_task_alone():
    long, short = jobs(*[10.0] * 50), jobs(*[10.0] * 20)
    lags_s = {"low": 1.0, "high": 3.0}
    first = run(long, sim.Cluster.slots(50), lags_s).task_start
    assert (first >= 1.0).all()
    assert (first < 3.0).all()
    assert len(set(first.tolist())) == 50
    assert run(short, sim.Cluster.slots(50), lags_s).task_start.tolist() == first[:20].tolist()
    other = run(long, sim.Cluster.slots(50), lags_s, seed=1).task_start
    assert not (other == first).any()
    narrow = run(long, sim.Cluster.slots(1), lags_s)
    placed = np.concatenate([[0.0], narrow.task_finish[:-1]])
    np.testing.assert_allclose(narrow.task_start - placed, first)


def test_lags_of_a_list_are_drawn_equally_often():
    lags = run(jobs(*[1.0] * 3000), sim.Cluster.slots(3000), [0.0, 2.0, 5.0]).task_start
    values, counts = np.unique(lags, return_counts=True)
    assert values.tolist() == [0.0, 2.0, 5.0]
    assert np.abs(counts - 1000).max() < 4 * np.sqrt(3000 * 2 / 9)


def test_without_a_lag_the_same_variant_runs():
    w, cluster = jobs(1.0), sim.Cluster.slots(2)
    plain = variant(w, cluster, policies.build("fifo"))
    assert "POOL" in plain
    assert variant(w, cluster.with_launch(0), policies.build("fifo")) == plain
    on_machines = variant(w, sim.Cluster.machines(2, slot=1), policies.build("fifo"))
    assert variant(w, cluster.with_launch(1), policies.build("fifo")) == on_machines


@pytest.mark.parametrize(
    ("launch_s", "text"),
    [
        (-1, "launch_s must be a number of at least 0"),
        ("soon", "launch_s must be a number"),
        (float("nan"), "launch_s must be a number"),
        ([], r"must be a number of seconds, a list .* not \[\]"),
        ([1.0, -2.0], "at least 0, not -2"),
        ({"low": 1.0}, r"low: 0\.5, high: 1\.5"),
        ({"low": 2.0, "high": 1.0}, "low 2.0 is above high 1.0"),
    ],
)
def test_lags_that_can_not_be_are_refused(launch_s, text):
    with pytest.raises(sim.InputError, match=text):
        Launch.parse(launch_s)


def two_stages(submit_s, *durations_s):
    parts = zip("ab", durations_s, ([], ["a"]), strict=True)
    stages = [{"name": n, "durations_s": d, "parents": parents} for n, d, parents in parts]
    return {"submit_s": submit_s, "stages": stages}


def test_a_stage_opens_after_its_lag_and_leaves_room_to_others():
    w = sim.Workload.from_jobs(
        [two_stages(0.0, [1.0, 2.0], [4.0]), {"submit_s": 0.5, "stages": [{"durations_s": [3.0]}]}]
    )
    fifo, cluster = policies.build("fifo"), sim.Cluster.slots(1)
    at_once = sim.simulate(w, cluster, fifo)
    assert at_once.task_start.tolist() == [0.0, 1.0, 3.0, 7.0]
    lagging = sim.simulate(w, cluster.with_stage_lag(0.25), fifo)
    assert lagging.task_start.tolist() == [0.0, 1.0, 6.0, 3.0]
    with_room = sim.simulate(w, sim.Cluster.slots(3).with_stage_lag(0.25), fifo)
    assert with_room.task_start.tolist() == [0.0, 0.0, 2.25, 0.5]


def test_stages_with_lags_of_their_own_open_in_the_order_of_these():
    job = two_stages(0.0, [1.0], [1.0])
    lags = (60.0, 3.0, 0.0, 3.0)
    job["stages"] = job["stages"][:1] + [
        {"name": f"c{k}", "durations_s": [1.0], "parents": ["a"], "lag_s": lag_s}
        for k, lag_s in enumerate(lags)
    ]
    job["stages"][0]["name"] = "a"
    w, fifo = sim.Workload.from_jobs([job]), policies.build("fifo")
    own = sim.simulate(w, sim.Cluster.slots(9), fifo)
    assert own.task_start.tolist() == [0.0, 61.0, 4.0, 1.0, 4.0]
    both = sim.simulate(w, sim.Cluster.slots(9).with_stage_lag(0.5), fifo)
    assert both.task_start.tolist() == [0.0, 61.5, 4.5, 1.5, 4.5]
    narrow = sim.simulate(w, sim.Cluster.slots(1), fifo)
    assert narrow.task_start.tolist() == [0.0, 61.0, 4.0, 1.0, 5.0]


def test_the_last_lag_of_a_run_is_no_deadlock():
    w = sim.Workload.from_jobs([two_stages(0.0, [1.0], [1.0])])
    result = sim.simulate(w, sim.Cluster.slots(1).with_stage_lag(9.0), policies.build("fifo"))
    assert result.job_finish.tolist() == [11.0]


@pytest.mark.parametrize("lag", [-1.0, float("nan"), float("inf")])
def test_stage_lags_are_checked(lag):
    with pytest.raises(sim.InputError, match="stage_lag_s"):
        sim.Cluster.slots(1).with_stage_lag(lag)
