"""Fields in quotes, against the module csv."""

from __future__ import annotations

import csv
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sim.base.reading.quotes import ends_in_quotes, split_fields

MB = 1_000_000


@given(st.text('a",;', max_size=12))
@example('"a""b",c')
@example('a"b,"c"d"e,"f')
def test_fields_are_those_of_csv(text: str) -> None:
    assert split_fields(text, ",") == (next(csv.reader([text])) or [""])


@given(st.lists(st.text('a",', max_size=6), min_size=1, max_size=5))
def test_a_row_goes_on_after_a_line_as_for_csv(lines: list[str]) -> None:
    n_lines, inside = [], False
    for number, line in enumerate(lines, 1):
        inside = ends_in_quotes(line, ",", inside=inside)
        if not inside:
            n_lines.append(number)
    reader = csv.reader([f"{line}\n" for line in lines])
    expected = [reader.line_num for _ in reader]
    assert n_lines == expected[: len(n_lines)]
    assert len(expected) - len(n_lines) == inside  # the last row has no end


def test_fields_that_csv_refuses() -> None:
    long = "x" * 200_000
    assert split_fields(f'a,"{long}"', ",") == ["a", long]
    assert split_fields("a\rb,c", ",") == ["a\rb", "c"]
    assert split_fields('"a\nb",c', ",") == ["a\nb", "c"]


@pytest.mark.parametrize("text", ['""' * MB, '"' + "x" * MB, '"' + '""' * MB, '"x' * MB])
def test_the_time_grows_with_the_length_alone(text: str) -> None:
    begin_s = time.process_time()
    split_fields(text, ",")
    ends_in_quotes(text, ",", inside=True)
    assert time.process_time() - begin_s < 1.0
