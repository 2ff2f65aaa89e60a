"""Slots of jobs on several nodes, shared out so that the nodes can have held them."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.base.arrays import offsets
from sweep.questions.backtest.node_lists import Nodes
from sweep.questions.backtest.node_shares import shares
from sweep.questions.backtest.node_sizes import families, kinds_of_nodes, least_sizes
from tests.examples import examples

N_NODES = 4
Use = tuple[int, int, int, set[int]]
"""Begin, length, room and nodes of a use."""

uses = st.lists(
    st.tuples(
        st.integers(0, 9),
        st.integers(1, 7),
        st.integers(1, 20),
        st.sets(st.integers(0, N_NODES - 1), min_size=1),
    ),
    min_size=1,
    max_size=12,
)


def columns(rows: list[Use], names: tuple[str, ...] = ("n0", "n1", "n2", "n3")) -> tuple[Any, ...]:
    """Return begin, end and room of the uses, their rows in the nodes, and the nodes."""
    begin = np.array([row[0] for row in rows], float)
    count = np.array([len(row[3]) for row in rows])
    node = np.array([node for row in rows for node in sorted(row[3])])
    stage = np.arange(len(rows))
    room = np.array([row[2] for row in rows])
    nodes = Nodes(np.repeat(stage, count), node, count, names)
    return begin, begin + [row[1] for row in rows], room, stage, nodes


def most_inside(rows: list[Use]) -> dict[tuple[int, ...], int]:
    """Return what must have been in use at one time on each set of nodes."""
    amounts_inside = {}
    for n in range(1, N_NODES + 1):
        for group in combinations(range(N_NODES), n):
            inside = [0]
            for now in {row[0] for row in rows}:
                on = [row for row in rows if row[0] <= now < row[0] + row[1]]
                amounts = [
                    amount
                    if nodes <= {*group}
                    else len(nodes & {*group}) * min(1, amount // len(nodes))
                    for _, _, amount, nodes in on
                ]
                inside.append(sum(amounts))
            amounts_inside[group] = max(inside)
    return amounts_inside


@settings(max_examples=examples(300), deadline=None)
@given(uses)
def test_sizes_are_the_least_that_the_log_allows(rows: list[Use]) -> None:
    sizes = least_sizes(*columns(rows))
    minima = most_inside(rows)
    assert all(sizes.size[[*group]].sum() >= amount for group, amount in minima.items())
    if len({*sizes.kind.tolist()}) == 1:
        minimum = max(-(-amount // len(group)) for group, amount in minima.items())
        assert sizes.size.tolist() == [minimum] * N_NODES


def test_each_node_is_sized_by_what_ran_there() -> None:
    names = tuple(f"n{i:02}" for i in range(9))
    peaks = [16, 14, 16, 32, 64, 24, 32, 48, 3]
    alone: list[Use] = [(0, 9, amount, {i}) for i, amount in enumerate(peaks)]
    sizes = least_sizes(*columns(alone, names))
    # of like names there are kinds: sizes that several nodes have, and the largest
    assert sizes.size.tolist() == [16, 16, 16, 32, 64, 32, 32, 64, 3]
    assert sizes.n_alike == 3
    # a job on several nodes may have had more of any of them; none of another kind grows
    sizes = least_sizes(*columns([*alone, (9, 5, 34, {0, 1})], names))
    assert sizes.size.tolist() == [17, 17, 17, 32, 64, 32, 32, 64, 3]


def test_of_a_kind_by_the_first_resource_others_may_be_alike() -> None:
    peak, known = np.array([250, 140, 78, 60, 0]), np.array([True] * 4 + [False])
    kind, size = kinds_of_nodes(peak, known, np.zeros(5, np.int64), 4, only_largest=True)
    assert size.tolist() == [250, 250, 250, 60, 60]
    assert kind[0] == kind[2] != kind[3] != kind[4]
    gpus = np.array([4, 4, 0])
    size = kinds_of_nodes(gpus, gpus >= 0, np.zeros(3, np.int64), 4, only_largest=True)[1]
    assert size.tolist() == [4, 4, 0]


@settings(max_examples=examples(200), deadline=None)
@given(uses, st.integers(1, 30))
def test_shares_add_up(rows: list[Use], size: int) -> None:
    begin, end, room, stage, nodes = columns(rows)
    use = np.stack([room, 3 * room], axis=1)
    node_room = np.full((N_NODES, 2), size)
    use0, node, share = shares(begin, end, use, stage, nodes, node_room)
    assert use0.tolist() == offsets(nodes.count).tolist()
    assert np.add.reduceat(share, use0[:-1]).tolist() == use.tolist()
    assert (share >= 0).all()
    assert node.tolist() == nodes.node.tolist()


@pytest.mark.parametrize(
    "rows",
    [
        [(0, 9, 20, {0}), (0, 9, 28, {0, 1})],
        [(0, 9, 28, {0, 1}), (3, 3, 20, {0})],  # the job on one node comes later
        [(0, 9, 20, {0, 1}), (3, 3, 28, {0, 1})],
        [(0, 9, 28, {0, 1}), (1, 9, 1, {2}), (3, 3, 20, {0})],
    ],
)
def test_two_nodes_of_24(rows: list[Use]) -> None:
    begin, end, room, stage, nodes = columns(rows)
    sizes = least_sizes(begin, end, room, stage, nodes)
    assert sizes.size[:2].tolist() == [24, 24]
    assert sizes.is_spread
    size = sizes.size[:, None]
    _, node, share = shares(begin, end, room[:, None], stage, nodes, size)
    used = np.zeros(N_NODES, np.int64)
    np.add.at(used, node, share[:, 0])
    assert used[:2].tolist() == [24, 24]


def test_a_job_has_some_of_each_of_its_nodes() -> None:
    # 24 of the first are taken, so that a job on both of them shows it to be larger
    rows: list[Use] = [(0, 9, 24, {0}), (0, 9, 6, {0, 1})]
    sizes = least_sizes(*columns(rows))
    assert sizes.size[:2].tolist() == [25, 25]  # nothing is known of the second but its name
    assert not sizes.is_spread


def test_nodes_of_other_names_may_have_other_sizes() -> None:
    names = ("c1", "c2", "g1", "g2")
    rows: list[Use] = [(0, 9, 16, {0}), (0, 9, 9, {1}), (0, 9, 8, {2}), (0, 9, 24, {2, 3})]
    sizes = least_sizes(*columns(rows, names))
    assert sizes.size.tolist() == [16, 16, 16, 16]
    assert (sizes.is_spread, sizes.n_alike) == (True, 1)
    sizes = least_sizes(*columns([*rows, (0, 9, 50, {2})], names))
    assert sizes.size.tolist() == [16, 16, 59, 59]
    # a job on nodes of both families enlarges the smaller one
    sizes = least_sizes(*columns([(0, 9, 40, {2}), (1, 8, 52, {0, 1, 2, 3})], names))
    assert sizes.size.tolist() == [5, 5, 41, 41]


def test_families_of_names() -> None:
    names = ("c1", "c07", "rack2-g1", "rack3-g1", "gpu", "n1-ib", "n2-ib")
    assert families(names).tolist() == [0, 0, 1, 2, 3, 4, 4]
