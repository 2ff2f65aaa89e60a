"""Rows that are there twice, and ids that are given twice."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.base.reading import distinct_ids, repeated_rows

NUMBERS = st.sampled_from([1.0, 2.0, np.nan])
ROWS = st.lists(
    st.tuples(st.integers(1, 3), NUMBERS, st.sampled_from(["a", "b", None])), min_size=1
)


@pytest.mark.parametrize("as_text", [False, True])
@given(ROWS)
def test_a_row_is_repeated_if_an_earlier_one_is_the_same(as_text, rows):
    numbers, times, names = zip(*rows, strict=True)
    ids = pa.array([f"j{n}" for n in numbers]) if as_text else np.array(numbers)
    columns = {"id": ids, "time": np.array(times), "name": pa.array(names, pa.string())}
    contents = [str(row) for row in rows]  # nan is nan here
    expected = [content in contents[:index] for index, content in enumerate(contents)]
    assert repeated_rows(ids, columns).tolist() == expected


def test_no_row_is_repeated_under_another_id():
    assert not repeated_rows(np.array([1, 2]), {"time": np.array([5.0, 5.0])}).any()


@given(st.lists(st.sampled_from(["a", "a#2", "b", "a#3"]), min_size=1))
def test_ids_are_made_distinct(names):
    distinct, is_again = distinct_ids(pa.array(names))
    texts = distinct.to_pylist()
    assert len(set(texts)) == len(texts)
    first = [name not in names[:index] for index, name in enumerate(names)]
    assert is_again.tolist() == [not is_first for is_first in first]
    assert [text for text, is_first in zip(texts, first, strict=True) if is_first] == [
        name for name, is_first in zip(names, first, strict=True) if is_first
    ]
    assert all(text.rpartition("#")[0] == name for text, name in zip(texts, names, strict=True)
               if text != name)  # fmt: skip
