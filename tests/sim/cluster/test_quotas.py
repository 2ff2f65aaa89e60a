"""Quotas: what a table says, in quanta, and the refusal of what nobody means."""

from __future__ import annotations

import numpy as np
import pytest

import policies
import sim
from sim.base.errors import InputError
from sim.cluster.quotas import NO_LIMIT, quota_tree
from sweep.grid import cluster_checks

TREE = {
    "org": {"parent": "all", "nominal": {"cpu": 2}, "borrow": "25%"},
    "a": {"parent": "org", "nominal": {"cpu": 4, "mem": "50%"}, "lend": {"cpu": 1}, "weight": 2},
    "b": {"parent": "org", "nominal": "25%", "borrow": 0},
    "alone": {"nominal": {"cpu": 1}},
}
CLUSTER = sim.Cluster.machines(2, cpu=8, mem=10)


def test_a_tree_in_quanta():
    """16 CPUs in quanta of a half, 20 GiB of mem in quanta of one; nodes b, a, org, alone, all.

    a keeps 3 of its 4 CPUs and all below may use 2 + 1 + 4 in org, which borrows 4 more: a may use
    3 + 11 = 14 of them while nobody else uses any, b its own 4.
    """
    cluster = CLUSTER.with_quotas(TREE)
    total, quantum = np.array([32, 20]), np.array([0.5, 1.0])
    tree = quota_tree(cluster.quotas, ("b", "a"), cluster.resources, total, quantum)
    assert tree.parent.tolist() == [2, 2, 4, -1, -1]
    assert tree.path.tolist() == [[4, 2, 0], [4, 2, 1]]
    assert tree.local[1].tolist() == [6, 0]
    assert tree.limit[0].tolist() == [8, 5]
    assert tree.limit[1].tolist() == [NO_LIMIT, NO_LIMIT]
    assert tree.limit[2].tolist() == [4 + 2 + 8 + 8, 10 + 5 + 5]
    assert tree.nominal[0].tolist() == [NO_LIMIT, NO_LIMIT]
    assert tree.nominal[1].tolist() == [8, 10]
    assert tree.weight[1] == 2
    assert tree.potential(0).tolist() == [8, 5]
    assert tree.potential(1).tolist() == [6 + 14, 15]
    assert not tree.is_isolated
    assert cluster.queue_share == {"a": 2, "b": 1, "alone": 1}
    assert "quotas" in repr(cluster)


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({}, "quotas names no queue; for example"),
        (
            {"a": 3},
            r"quotas\.a has the keys parent, .* flavor_choice, not 3",
        ),
        ({"a": {"nominl": 3}}, "did you mean 'nominal'"),
        ({"a": {"parent": "b"}, "b": {"parent": "a"}}, "a is below b is below a, in a circle"),
        ({"a": {"borrow": 1}}, r"quotas\.a\.borrow: 1, and it has no parent to borrow from; name"),
        ({"a": {"lend": {"cpu": 1}}}, "has no parent to lend to; name a parent, or leave lend out"),
        ({"a": {"nominal": "120%"}}, r"a share of the cluster from 0% to 100%.*not '120%'"),
        (
            {"a": {"nominal": {"cpu": "3"}}},
            r"quotas\.a\.nominal\.cpu must be an amount of at least",
        ),
        ({"a": {"nominal": -1}}, r"quotas\.a\.nominal must be a number of at least 0, not -1"),
        ({"a": {"nominal": {"gpu": 1}}}, r"unknown resource in quotas\.a 'gpu'; .*valid: cpu, mem"),
        ({"a": {"weight": 0}}, r"quotas\.a\.weight must be a number above 0, not 0"),
    ],
)
def test_what_nobody_means_is_refused(tree, message):
    with pytest.raises(InputError, match=message):
        CLUSTER.with_quotas(tree)


def run(queue: str, cpu: float, n: int = 1, **more) -> sim.Result:
    stage = {"durations_s": [1.0] * n, "demand": {"cpu": cpu}}
    workload = sim.Workload.from_jobs([{"submit_s": 0, "queue": queue, "stages": [stage]} | more])
    return sim.simulate(workload, CLUSTER.with_quotas(TREE), policies.build("fifo"))


def test_a_job_that_its_queue_can_never_hold_is_refused():
    """Job b may use 25 % of 16 CPUs; jobs wait in leaves alone."""
    with pytest.raises(InputError, match=r"'b' may use, and borrow, at most 4; give it a larger"):
        run("b", 5)
    with pytest.raises(InputError, match=r"gang of 5 tasks that hold 5 cpu .* at most 4; give"):
        run("b", 1, 5, min_tasks=5)
    assert run("b", 4).job_finish == [1]
    with pytest.raises(InputError, match="'org', which is the parent of others in quotas; give"):
        run("org", 1)
    with pytest.raises(InputError, match=r"'c', which quotas does not name; .*add 'c'"):
        run("c", 1)


def test_the_configuration_has_one_way_to_share():
    config = {"shape": {"cpu": 8}, "count": None, "quotas": {"a": {"parent": "all"}}}
    cluster_checks.check(config)
    with pytest.raises(InputError, match=r"cluster\.queues\.mode is hard, and there are"):
        cluster_checks.check(config | {"queues": {"mode": "hard"}})
    with pytest.raises(InputError, match=r"cluster\.quotas must be a mapping"):
        cluster_checks.check(config | {"quotas": 3})
