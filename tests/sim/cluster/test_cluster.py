"""Clusters, as people describe them."""

from __future__ import annotations

import numpy as np
import pytest

import sim
from sim.cluster.faults import Outages


def test_slots_are_one_pool():
    cluster = sim.Cluster.slots(7)
    assert cluster.unit
    assert cluster.total.tolist() == [7]
    assert cluster.describe() == "7 slots"


def test_machines_are_equal_and_a_fraction_is_the_last():
    cluster = sim.Cluster.machines(2.5, cpu=4, mem=8)
    assert cluster.capacity.tolist() == [[4, 8], [4, 8], [2, 4]]
    assert cluster.describe() == "2.5 machines: cpu 4, mem 8"
    assert sim.Cluster.machines(1, cpu=4).describe() == "1 machine: cpu 4"
    assert sim.Cluster.machines(12_345, cpu=4).describe() == "12,345 machines: cpu 4"
    assert sim.Cluster.machines(3 - 1e-12, cpu=4).n_machines == 3


def test_a_cluster_is_described_in_a_line():
    assert repr(sim.Cluster.slots(7)) == "Cluster(7 slots)"
    cluster = sim.Cluster.machines(280, cpu=16, mem=128)
    assert repr(cluster) == "Cluster(280 machines: cpu 16, mem 128)"
    lost = cluster.with_outages(Outages.from_columns([1, 2], [0.0, 0.0], [5.0, 5.0]))
    assert repr(lost) == "Cluster(280 machines: cpu 16, mem 128; 2 outages)"


def test_capacity_is_read_only():
    with pytest.raises(ValueError, match="read-only"):
        sim.Cluster.machines(2, cpu=4).capacity[0, 0] = 5


def test_queues_are_part_of_the_cluster():
    cluster = sim.Cluster.slots(4).with_queues("hard", {"a": 0.75, "b": 0.25})
    assert cluster.queue_share == {"a": 0.75, "b": 0.25}
    assert cluster.describe() == "4 slots; hard queues"
    assert sim.Cluster.slots(4).queue_mode == "global"


@pytest.mark.parametrize("n", [0, -1, 1.5, np.nan, "4", True, None])
def test_a_number_of_slots_is_whole_and_positive(n):
    with pytest.raises(sim.InputError, match="slots >= 1"):
        sim.Cluster.slots(n)


@pytest.mark.parametrize("count", [0, -1, np.nan, np.inf, "4", True])
def test_a_number_of_machines_is_positive(count):
    with pytest.raises(sim.InputError, match="positive number of machines"):
        sim.Cluster.machines(count, cpu=4)


@pytest.mark.parametrize("resources", [{}, {"cpu": 0}, {"cpu": -1}, {"cpu": np.nan}])
def test_a_machine_has_something_of_each_resource(resources):
    with pytest.raises(sim.InputError, match=r"resource|positive"):
        sim.Cluster.machines(2, **resources)


@pytest.mark.parametrize(
    ("mode", "shares", "message"),
    [
        ("soft", None, "unknown queue mode 'soft'"),
        ("hard", {"a": 0.7, "b": 0.7}, "add up to 1.4"),
        ("hard", {"a": 0}, "must be positive"),
        ("weighted", {"a": np.nan}, "must be positive"),
    ],
)
def test_nonsense_shares_are_refused(mode, shares, message):
    with pytest.raises(sim.InputError, match=message):
        sim.Cluster.slots(4).with_queues(mode, shares)
