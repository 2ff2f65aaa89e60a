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
    asked = []

    def load(wanted: Keys) -> dict[str, np.ndarray]:
        asked.append(len(wanted))
        return {"a": np.array([1.0, math.nan]), "b": np.array([shards.ABSENT, 2.0])}

    found = CellMetrics(keys(1, 2, 3), np.array([True, False, True]), load)
    assert name(1) in found
    assert name(2) not in found
    assert name(9) not in found
    assert asked == []
    assert found[name(1)] == {"a": 1.0}
    assert repr(found[name(3)]) == "{'a': nan, 'b': 2.0}"
    assert asked == [2]
    with pytest.raises(KeyError):
        found[name(2)]
    found[name(2)] = {"c": 5.0}
    assert found[name(2)] == {"c": 5.0}
    assert sorted(found) == [name(1), name(2), name(3)]
    values, there = found.column("b")
    assert there.tolist() == [False, False, True]
    assert repr(values.tolist()) == "[nan, nan, 2.0]"
    assert found.names() == ["a", "b", "c"]
    assert len(found) == 3
    found[name(9)] = {"a": 7.0}  # not of the plan
    assert found.are_known(keys(1, 2, 3, 8, 9)).tolist() == [True, True, True, False, False]
    assert len(CellMetrics.empty()) == 0


def test_metrics_of_many_cells_are_taken_at_once_in_any_order() -> None:
    found = CellMetrics(keys(5, 2, 9, 2), np.zeros(4, bool), lambda _: {})
    assert found.n_keys == 3
    absent = shards.ABSENT
    taken = {"a": np.array([1.0, absent, 3.0]), "b": np.array([absent, math.nan, 6.0])}
    found.add(keys(2, 7, 5), taken)
    assert {key: repr(found[key]) for key in found} == {
        name(5): "{'a': 3.0, 'b': 6.0}",
        name(2): "{'a': 1.0}",
    }
    assert len(found) == 2
    values, there = found.column("a")  # in the plan's order, a key that is there twice as well
    assert repr(values.tolist()) == "[3.0, 1.0, nan, 1.0]"
    assert there.tolist() == [True, True, False, True]
    assert found.are_known(keys(5, 2, 9, 2)).tolist() == [True, True, False, True]
    found.add(keys(9), {"of others": np.array([absent])})
    assert found.names() == ["a", "b"]
    assert found[name(9)] == {}
    found.add(keys(), {})
    assert CellMetrics(keys(), np.zeros(0, bool), lambda _: {}).column("a")[0].tolist() == []


def test_a_sequence_that_keeps_nothing() -> None:
    made: list[int] = []

    def make(at: int) -> int:
        made.append(at)
        return 10 * at

    lazy = LazySequence(5, make)
    assert len(lazy) == 5
    assert made == []
    assert lazy[-1] == 40
    assert [*lazy[1:4:2]] == [10, 30]
    assert lazy == [0, 10, 20, 30, 40]
    with pytest.raises(IndexError):
        lazy[5]
