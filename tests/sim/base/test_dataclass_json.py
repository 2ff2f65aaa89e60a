"""Dataclasses as JSON: round trips, and every kind of invalid value."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np
import pytest

from sim.base.arrays import F8, I8
from sim.base.dataclass_json import Shape, encode, load, save
from sim.base.errors import InputError
from sim.base.parameters import Between, Count


@dataclass(frozen=True)
class Steps:
    """A dataclass of one field, written as that field."""

    by_first: Mapping[int, tuple[int, float]]


class Even:
    """A custom rule."""

    def holds(self, inner: Inner) -> bool:
        return inner.n % 2 == 0

    def __str__(self) -> str:
        return "an even number of them"


@dataclass(frozen=True)
class Inner:
    n: Count
    weights: Annotated[F8, Between(0)]

    def check(self) -> None:
        if len(self.weights) != self.n:
            raise ValueError("must have n weights")


@dataclass(frozen=True)
class Outer:
    name: str
    inner: Annotated[Inner, Even()]
    matrix: Annotated[I8, Shape((2, -1))]
    steps: Steps
    parts: tuple[Inner, ...]
    flag: bool
    pair: tuple[float, bool]
    limit: float | None
    costs: Mapping[str, float] = field(metadata={"prefix": "cost "})
    other: Inner | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)


ONE = Outer(
    "é\n", Inner(2, np.array([1.0, 0.1])), np.array([[1, 2, 3], [4, 5, 6]]),
    Steps({1: (1, 2.0), 5: (3, 0.25)}), (Inner(1, np.array([3.0])),), True, (1.5, False), None,
    {"cpu": 2.0, "a b": 0.5}, notes={"any": ["thing", {"at": None}]},
)  # fmt: skip


@pytest.mark.parametrize("value", [
    ONE,
    replace(ONE, other=Inner(200, np.arange(200) / 3), limit=1e300, parts=(), notes={}),
])  # fmt: skip
def test_a_written_value_is_read_back(tmp_path, value):
    save(tmp_path / "new" / "a.json", "outer 1", value)
    read = load(Outer, tmp_path / "new" / "a.json", "outer 1", "make it")
    assert encode(read) == encode(value)
    assert read.matrix.dtype == np.int64
    assert read.inner.weights.tobytes() == value.inner.weights.tobytes()
    assert (read.steps, read.pair, read.costs) == (value.steps, value.pair, value.costs)
    text = (tmp_path / "new" / "a.json").read_text()
    assert max(map(len, text.splitlines())) < 120
    assert ("other" in json.loads(text)) == (value.other is not None)
    (tmp_path / "packed").write_bytes(gzip.compress(text.encode()))
    assert encode(load(Outer, tmp_path / "packed", "outer 1", "")) == encode(value)


def written(**changed: Any) -> dict[str, Any]:
    return {"format": "outer 1", **encode(ONE), **changed}


@pytest.mark.parametrize(("content", "message"), [
    ({**written(), "inner": {"n": 1}}, "inner: there is no entry 'weights'"),
    (written(name=3), "name: must be a text, not 3; make it anew"),
    (written(inner=[1]), "inner: must be an object of n, weights, not [1]"),
    (written(inner={"n": 0, "weights": []}), "n: must be a whole number of at least 1, not 0"),
    (written(inner={"n": 1, "weights": [2]}), "inner: must be an even number of them, not {"),
    (written(inner={"n": 2, "weights": [2]}), "inner: must have n weights, not {"),
    (written(inner={"n": 2, "weights": [2, -1]}), "must be numbers of at least 0, not [2, -1]"),
    (written(inner={"n": 2, "weights": [[2, 1]]}), "must be numbers of n, not [[2, 1]]"),
    (written(inner={"n": 2, "weights": [2, None]}), "must be finite numbers, up to 2^53"),
    (written(inner={"n": 2, "weights": {"a": 1}}), "inner.weights: must be a list of numbers"),
    (written(matrix=[[1, 2], [3]]), "matrix: must be a list of whole numbers, not [[1, 2], [3]]"),
    (written(matrix=[[1, 2]]), "matrix: must be whole numbers of 2 x n, not [[1, 2]]"),
    (written(matrix=[[1], [0.5]]), "matrix: must be whole numbers, not [[1], [0.5]]"),
    (written(matrix=[[1], [10**400]]), "matrix: must be a list of whole numbers, not [[1], [1000"),
    (written(steps={"a": [1, 2]}), "steps: must be an object with whole numbers for names"),
    (written(steps={"1": [1]}), "steps.1: must be a list of 2, not [1]"),
    (written(steps={"1": [1, "x"]}), "steps.1.1: must be a number, not 'x'"),
    (written(steps=3), "steps: must be an object, not 3"),
    (written(parts=[{"n": 1, "weights": [1]}, 7]), "parts.1: must be an object of n, weights"),
    (written(parts="x"), "parts: must be a list, not 'x'"),
    (written(pair=[True, False]), "pair.0: must be a number, not True"),
    (written(limit=10**400), "limit: must be a number, not 1000"),
    (written(flag=1), "flag: must be true or false, not 1"),
    (written(**{"cost cpu": "x"}), "costs.cpu: must be a number"),
    (written(flagg=True), "unknown entry 'flagg'; did you mean 'flag'?"),
    (written(name="x" * 10**6, flag="y" * 10**6), "flag: must be true or false, not 'yyy"),
    ({"format": "outer 2"}, "must be of the format 'outer 1'"),
    ([1], "must be of the format 'outer 1'"),
])  # fmt: skip
def test_a_wrong_value_is_named_with_file_field_range_and_the_way_out(tmp_path, content, message):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(content))
    with pytest.raises(InputError) as caught:
        load(Outer, path, "outer 1", "make it anew")
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert message in text
    assert "make it anew" in text
    assert len(text) < 400 + len(str(path))


@pytest.mark.parametrize(("content", "message"), [
    (b"{", "a.json:1: not JSON"),
    (b'{"a":' * 100_000, "nested too deeply"),
    (b'{"format": "outer 1", "name": ' + b"1" * 5_000 + b"}", "not JSON"),
    (b"\xff\xfe{}", "a.json"),
    (b"", "empty"),
    (gzip.compress(b'{"a": 1}' * 100, mtime=0)[:-9], "a.json"),
    (None, "there is no such file; make it anew"),
])  # fmt: skip
def test_invalid_json_is_refused(tmp_path, content, message):
    path = tmp_path / "a.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load(Outer, path, "outer 1", "make it anew")
    assert message in str(caught.value)
