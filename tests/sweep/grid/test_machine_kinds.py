"""Kinds of machines by name, and machines of one kind that are added."""

from __future__ import annotations

from typing import Any

import pytest

import sim
from sim.base.errors import InputError
from sweep.grid import cluster_size
from sweep.grid.machine_kinds import described_change, find_kind, kinds_of, parse_added
from tests.sweep.grid.test_planner import LOG, cells

SHAPE: list[dict[str, Any]] = [
    {"count": 4, "class": "c", "cpu": 16, "mem": 62.5, "partitions": ["batch*"]},
    {"count": 2, "cpu": 32, "mem": 250, "gpu": 4, "partitions": ["gpu", "batch"]},
    {"count": 1, "cpu": 32, "mem": 500, "partitions": ["batch"]},
]
CLUSTER = sim.Cluster.mixed(SHAPE)
KINDS = "cluster.shape=[{count:4,class:c,cpu:16},{count:2,cpu:32,gpu:4},{count:1,cpu:64}]"


@pytest.mark.parametrize(
    ("text", "row"),
    [("c", 0), ("cpu16", 0), ("gpu", 4), ("cpu32-gpu4", 4), ("gpu4-cpu32", 4), ("mem500", 6)],
)
def test_a_kind_is_named_by_class_partition_or_shape(text: str, row: int) -> None:
    assert find_kind(CLUSTER, text).row == row


@pytest.mark.parametrize(("text", "message"), [("cpu32", "names 2 kinds"), ("x", "no kind")])
def test_other_names_are_refused_with_the_kinds(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        find_kind(CLUSTER, text)
    assert "cpu32-mem250-gpu4 (2 of cpu 32, mem 250, gpu 4)" in str(error.value)


def test_a_name_of_several_kinds_of_one_shape_means_the_largest() -> None:
    kinds: list[dict[str, Any]] = [
        {"count": 1, "class": "g", "cpu": 32, "gpu": 4, "partitions": ["gpu", "debug"]},
        {"count": 2, "class": "g", "cpu": 32, "gpu": 4, "partitions": ["gpu"]},
        {"count": 4, "class": "c-avx2", "cpu": 16, "partitions": ["batch*"]},
        {"count": 2, "class": "c-avx2-ib", "cpu": 16, "partitions": ["batch", "debug"]},
    ]
    cluster = sim.Cluster.mixed(kinds)
    names = ("g", "gpu", "c", "c-avx2", "c-avx2-ib", "batch", "debug-c", "debug-g")
    assert [find_kind(cluster, name).row for name in names] == [1, 1, 3, 3, 7, 3, 7, 0]
    with pytest.raises(InputError, match="names 2 kinds"):
        find_kind(cluster, "debug")
    config = {"shape": kinds, "count": 1, "extra": 2, "extra_kind": "g"}
    more = cluster_size.at_capacity(config, 1.0, 1.0)
    assert described_change(cluster, more) == "2 of g (cpu 32, gpu 4) in gpu more"


def test_numbers_and_kinds() -> None:
    assert parse_added("c:+4") == ("c", 4)
    assert parse_added("4") == (None, 4)
    assert parse_added("c:-12") == ("c", -12)
    assert parse_added("c:") is None
    assert kinds_of(sim.Cluster.slots(4)) == []
    (only,) = kinds_of(sim.Cluster.machines(3, cpu=16, mem=8))
    assert (only.name, only.count) == ("cpu16-mem8", 3)


@pytest.mark.parametrize("capacity", [1.0, 2.0])
def test_machines_of_a_kind_beside_any_capacity(capacity: float) -> None:
    config = {"shape": SHAPE, "count": 1}
    before = cluster_size.at_capacity(config, 1.0, capacity)
    after = cluster_size.at_capacity({**config, "extra": 3, "extra_kind": "gpu"}, 1.0, capacity)
    assert after.n_machines == 7 * capacity + 3
    assert [kind.count for kind in kinds_of(after)] == [4 * capacity, 2 * capacity + 3, capacity]
    assert described_change(before, after) == "3 of (cpu 32, mem 250, gpu 4) more"
    assert described_change(after, before) == "3 of (cpu 32, mem 250, gpu 4) fewer"
    fewer = cluster_size.at_capacity({**config, "extra": -1, "extra_kind": "c"}, 1.0, capacity)
    assert described_change(before, fewer) == "1 of c (cpu 16, mem 62.5) fewer"
    with pytest.raises(InputError, match="machines of this kind"):
        cluster_size.at_capacity({**config, "extra": -9, "extra_kind": "c"}, 1.0, capacity)


def test_changes_of_other_clusters() -> None:
    slots, more = sim.Cluster.slots(4), sim.Cluster.slots(9)
    assert described_change(slots, more) == "5 slots more (a pool has no nodes)"
    machines = sim.Cluster.machines(4, cpu=16), sim.Cluster.machines(3, cpu=16)
    assert described_change(*machines) == "1 of (cpu 16) fewer"
    shares = [
        cluster_size.at_capacity({"shape": SHAPE, "count": 1, "extra": n}, 1.0, 1.0) for n in (0, 4)
    ]
    assert described_change(*shares) == (
        "2 of c (cpu 16, mem 62.5) more and 1 of (cpu 32, mem 250, gpu 4) more and 1 of (cpu 32, "
        "mem 500) more"
    )


def test_a_request_names_the_kind() -> None:
    log = [word for word in LOG if not word.startswith("cluster.")]
    words = (*log, "cluster=machines", "cluster.count=1", KINDS)
    today, by_class, by_shape, whole = cells(*words, "what_if.nodes=c:+4,cpu64:-1,+7")
    assert today.cluster.get("extra") is None
    assert (by_class.cluster["extra_kind"], by_class.cluster["extra"]) == ("c", 4)
    assert (by_shape.cluster["extra_kind"], by_shape.cluster["extra"]) == ("cpu64", -1)
    assert whole.cluster.get("extra_kind") is None
    with pytest.raises(InputError, match="names no kind of machines; the cluster has c"):
        cells(*words, "what_if.nodes=x:+4")
    with pytest.raises(InputError, match="a pool of slots, which has no kinds"):
        cells(*LOG, "what_if.nodes=c:+4")
    identical = (*log, "cluster=machines", "cluster.count=3", "cluster.shape={cpu:16,mem:8}")
    assert cells(*identical, "what_if.nodes=cpu16:+4")[1].cluster["extra"] == 4
    with pytest.raises(InputError, match="names no kind"):
        cells(*identical, "what_if.nodes=cpu32:+4")
    with pytest.raises(InputError, match="of one kind as KIND"):
        cells(*LOG, "what_if.nodes=c:0")
