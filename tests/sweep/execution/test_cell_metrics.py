from __future__ import annotations

import math

import numpy as np
import pytest

from sweep.execution.cell_metrics import CellMetrics
from sweep.grid.lazy import LazySequence
from sweep.store import shards
from sweep.store.index import Keys


def keys(*numbers: int) -> Keys:
    return np.array([bytes([n] * 32) for n in numbers], "S32")


def name(n: int) -> str:
    return bytes([n] * 32).hex()


def test_metrics_are_a_mapping_and_what_is_kept_is_read_when_asked_for() -> None:
    loads = []

    def load(requested: Keys) -> dict[str, np.ndarray]:
        loads.append(len(requested))
        return {"a": np.array([1.0, math.nan]), "b": np.array([shards.ABSENT, 2.0])}

    metrics = CellMetrics(keys(1, 2, 3), np.array([True, False, True]), load)
    assert name(1) in metrics
    assert name(2) not in metrics
    assert name(9) not in metrics
    assert loads == []
    assert metrics[name(1)] == {"a": 1.0}
    assert repr(metrics[name(3)]) == "{'a': nan, 'b': 2.0}"
    assert loads == [2]
    with pytest.raises(KeyError):
        metrics[name(2)]
    metrics[name(2)] = {"c": 5.0}
    assert metrics[name(2)] == {"c": 5.0}
    assert sorted(metrics) == [name(1), name(2), name(3)]
    values, is_present = metrics.column("b")
    assert is_present.tolist() == [False, False, True]
    assert repr(values.tolist()) == "[nan, nan, 2.0]"
    assert metrics.names() == ["a", "b", "c"]
    assert len(metrics) == 3
    metrics[name(9)] = {"a": 7.0}  # not of the plan
    assert metrics.are_known(keys(1, 2, 3, 8, 9)).tolist() == [True, True, True, False, False]
    assert len(CellMetrics.empty()) == 0


def test_metrics_of_many_cells_are_taken_at_once_in_any_order() -> None:
    metrics = CellMetrics(keys(5, 2, 9, 2), np.zeros(4, bool), lambda _: {})
    assert metrics.n_keys == 3
    absent = shards.ABSENT
    taken = {"a": np.array([1.0, absent, 3.0]), "b": np.array([absent, math.nan, 6.0])}
    metrics.add(keys(2, 7, 5), taken)
    assert {key: repr(metrics[key]) for key in metrics} == {
        name(5): "{'a': 3.0, 'b': 6.0}",
        name(2): "{'a': 1.0}",
    }
    assert len(metrics) == 2
    values, is_present = metrics.column(
        "a"
    )  # in the plan's order, a key that is there twice as well
    assert repr(values.tolist()) == "[3.0, 1.0, nan, 1.0]"
    assert is_present.tolist() == [True, True, False, True]
    assert metrics.are_known(keys(5, 2, 9, 2)).tolist() == [True, True, False, True]
    metrics.add(keys(9), {"of others": np.array([absent])})
    assert metrics.names() == ["a", "b"]
    assert metrics[name(9)] == {}
    metrics.add(keys(), {})
    assert CellMetrics(keys(), np.zeros(0, bool), lambda _: {}).column("a")[0].tolist() == []


def test_a_sequence_that_keeps_nothing() -> None:
    computed: list[int] = []

    def make(position: int) -> int:
        computed.append(position)
        return 10 * position

    lazy = LazySequence(5, make)
    assert len(lazy) == 5
    assert computed == []
    assert lazy[-1] == 40
    assert [*lazy[1:4:2]] == [10, 30]
    assert lazy == [0, 10, 20, 30, 40]
    with pytest.raises(IndexError):
        lazy[5]
