"""Orders by value over resource-time, with predictions and with the truth."""

from __future__ import annotations

import numpy as np
import pytest

import policies
import sim
from policies.wing.lineage.worth import WAITS_S, decay_columns
from sim.base.errors import InputError, PolicyError
from sim.engine.plan import World
from tests.policies.wing.worlds import ONE, H, job, order, recurring, with_worth


def fig5():
    """Return the chain of Fig. 5: A to E with values 1 to 5, a job F in their way, one slot."""
    return with_worth(
        [
            job("X", 0, 0.5),
            job("F", 0.1, 1.2, downloads=[100 * H] * 7),
            job("A", 0.2, 0.5, downloads=[100 * H]),
            job("B", 1, 0.4, input_mode="blind", inputs=["A"], downloads=[100 * H] * 2),
            job("C", 2, 0.5, input_mode="blind", inputs=["A"], downloads=[100 * H] * 3),
            job("D", 3, 0.3, input_mode="blind", inputs=["C"], downloads=[100 * H] * 4),
            job("E", 3, 0.3, input_mode="blind", inputs=["C"], downloads=[100 * H] * 5),
        ],
        value=[0, 7, 1, 2, 3, 4, 5],
        compute_s=[0.5, 1.2, 0.5, 0.4, 0.5, 0.3, 0.3],
        agg_value=[0, 7, 15, 2, 12, 4, 5],
        agg_compute_s=[0.5, 1.2, 2.0, 0.4, 1.1, 0.3, 0.3],
    )


def test_aggregate_value_unblocks_the_chain_of_fig_5():
    attained = {}
    for name in ("wing_agg", "wing_direct", "priority"):
        result = sim.simulate(fig5(), ONE, policies.build(name, **(
            {"knowledge": "true"} if name != "priority" else {})))  # fmt: skip
        attained[name] = round(result.metrics["value_attained"] * 22)
    # A first: all of the chain's 15 and F's 7. F first (7 / 1.2 against 1 / 0.5): A is ready at
    # 2.2 h, after B (1 h) and C (2 h) came, so only A's 1 and F's 7 are left.
    assert attained == {"wing_agg": 22, "wing_direct": 8, "priority": 8}


def test_predictions_are_quotients_of_medians_and_the_oracle_is_exact():
    past = [("p", "u", 1, v, c) for v, c in ((2.0, 4.0), (8.0, 1.0), (6.0, 2.0))]
    past += [("q", "u", 1, v, c) for v, c in ((5.0, 2.0), (5.0, 2.0))]
    workload = recurring(
        past, who=[("q", "u"), ("p", "u")], value=[1, 1], compute_s=[1, 1],
        agg_value=[9, 1], agg_compute_s=[1, 1],
    )  # fmt: skip
    # p: 6 / 2 = 3 before q: 5 / 2; a median of quotients would be 3 too, means 5.3 / 2.3 below q
    assert order(workload, "wing_agg") == ["block", "j1", "j0"]
    assert order(workload, "wing_agg", knowledge="true") == ["block", "j0", "j1"]


def test_without_a_history_jobs_go_fcfs_and_oracles_are_errors():
    workload = sim.Workload.from_jobs([job(n, i, 5.0) for i, n in enumerate("abc")])
    for name in ("wing_agg", "wing_direct", "mil", "wing_mil", "wing_dep"):
        assert order(workload, name) == ["a", "b", "c"]
        with pytest.raises(PolicyError, match=r"needs the column '(agg_)?value' of jobs.*=history"):
            order(workload, name, knowledge="true")


@pytest.mark.parametrize("noise", [0.5, float("inf"), float("nan")])
def test_noise_has_a_range(noise):
    with pytest.raises(InputError, match="noise must be"):
        policies.build("wing_agg", knowledge="true", noise=noise)


def test_noise_is_for_oracles():
    with pytest.raises(InputError, match="knowledge=true"):
        policies.build("wing_agg", noise=2.0)


def test_factors_of_noise_are_even_on_a_log_scale_from_the_inverse_to_s():
    n = 4000
    workload = sim.Workload.from_jobs([job(str(i), 0, 0.1) for i in range(n)])
    world = World(workload.columns, ONE, 7, {})
    factor = policies.build("wing_agg", knowledge="true", noise=4.0).factors(world)
    assert 0.25 <= factor.min() < 0.252
    assert 3.98 < factor.max() <= 4.0
    for share, bound in ((0.25, 0.5), (0.5, 1.0), (0.75, 2.0)):
        assert np.mean(factor < bound) == pytest.approx(share, abs=0.025)
    again = policies.build("wing_mil", knowledge="true", noise=4.0).factors(world)
    assert np.array_equal(factor, again)


def test_each_queue_orders_its_own_jobs():
    jobs = [job("block", 0, 1.0, queue="a"), job("j0", 0.1, 1.0, queue="a"),
            job("j1", 0.1, 1.0, queue="b"), job("j2", 0.1, 1.0, queue="a")]  # fmt: skip
    workload = with_worth(jobs, value=[0, 1, 2, 3], compute_s=[1, 1, 1, 1],
                          agg_value=[0, 1, 2, 3], agg_compute_s=[1, 1, 1, 1])  # fmt: skip
    cluster = sim.Cluster.machines(1, tokens=2).with_queues("hard", {"a": 0.5, "b": 0.5})
    policy = policies.build("wing_agg", knowledge="true")
    start = sim.simulate(workload, cluster, policy).job_start / H
    assert start.tolist() == pytest.approx([0, 2, 0.1, 1])


def decaying(rescued):
    """Return two jobs behind another; j0 is worth more until its reader arrives at 2 h."""
    late = [10.0 if w < 2 * H else 1.0 for w in WAITS_S]
    workload = [job("block", 0, 3.0), job("j0", 0.1, 0.5), job("j1", 0.1, 0.5)]
    worth_columns = {
        "value": [0, 0, 0], "compute_s": [1, 1, 1], "agg_value": [0, 10, 5],
        "agg_compute_s": [1, 1, 1],
    }  # fmt: skip
    for column, worth in zip(decay_columns("agg_value"), late, strict=True):
        worth_columns[column] = [0, worth, 5]
    for column, worth in zip(decay_columns("rescued"), late, strict=True):
        worth_columns[column] = [0, worth if rescued else 10.0, 5]
    return with_worth(workload, **worth_columns)


def test_value_that_is_lost_while_a_job_waits_puts_it_behind():
    oracle = {"knowledge": "true"}
    assert order(decaying(True), "wing_agg", **oracle) == ["block", "j0", "j1"]
    assert order(decaying(True), "wing_mil", **oracle) == ["block", "j1", "j0"]
    assert order(decaying(True), "wing_dep", **oracle) == ["block", "j1", "j0"]
    # readers that poll are not lost
    assert order(decaying(False), "wing_mil", **oracle) == ["block", "j1", "j0"]
    assert order(decaying(False), "wing_dep", **oracle) == ["block", "j0", "j1"]


def test_the_order_is_refreshed_each_period():
    oracle = {"knowledge": "true"}
    assert order(decaying(True), "wing_mil", refresh_s=4 * H, **oracle) == ["block", "j0", "j1"]
    with pytest.raises(InputError, match="refresh_s must be a number above 0"):
        policies.build("wing_mil", refresh_s=0.0)


def test_each_part_of_the_quotient_can_be_left_out():
    past = [("p", "u", 1, 8.0, 8.0), ("q", "u", 1, 4.0, 2.0), ("r", "u", 1, 1.0, 1.0)]
    workload = recurring(
        past, who=[("p", "u"), ("q", "u"), ("r", "u")], value=[1] * 3, compute_s=[1] * 3,
        agg_value=[1, 8, 4], agg_compute_s=[1, 4, 2],
    )  # fmt: skip
    assert order(workload, "wing_agg") == ["block", "j1", "j0", "j2"]
    assert order(workload, "wing_agg", without="value") == ["block", "j2", "j1", "j0"]
    assert order(workload, "wing_agg", without="resource_time") == ["block", "j0", "j1", "j2"]
    oracle = {"knowledge": "true"}
    assert order(workload, "wing_agg", without="value", **oracle) == ["block", "j0", "j2", "j1"]
    greedy = order(workload, "wing_agg", without="resource_time", **oracle)
    assert greedy == ["block", "j1", "j2", "j0"]
