"""Distinct strings against a dict."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.base import distinct
from tests.examples import examples

LONG = ["x" * 128, "x" * 129, "x" * 1000, "x" * 999 + "y", "y" + "x" * 999]


@given(st.lists(st.sampled_from(["", "a", "b", "ab", "ba", "j_1", "j_10", "é", "x" * 40, *LONG])))
@settings(max_examples=examples(400), deadline=None)
def test_strings_are_numbered_by_first_appearance(words):
    array = pa.array(["skipped", *words], pa.string()).slice(1)
    code, first = distinct.number_by_appearance(array)
    names = list(dict.fromkeys(words))
    assert code.tolist() == [names.index(word) for word in words]
    assert first.tolist() == [words.index(word) for word in names]
    repeats = [(i, words.index(w)) for i, w in enumerate(words) if words.index(w) < i]
    assert distinct.first_repeat(array) == (repeats[0] if repeats else None)


def test_a_long_string_is_hashed_at_once():
    array = pa.array(["x" * 3_000_000, "a", "x" * 3_000_000])
    begin_s = time.process_time()
    assert distinct.first_repeat(array) == (2, 0)
    assert time.process_time() - begin_s < 1.0


def test_strings_with_equal_hashes_stay_distinct(monkeypatch):
    monkeypatch.setattr(distinct, "_hash64", lambda strings: np.zeros(len(strings), np.uint64))
    array = pa.array(["b", "a", "b", "c"])
    code, first = distinct.number_by_appearance(array)
    assert code.tolist() == [0, 1, 0, 2]
    assert first.tolist() == [0, 1, 3]
    assert distinct.first_repeat(array) == (2, 0)
    assert distinct.first_repeat(pa.array(["b", "a"])) is None
