"""Delimited text: fields of a layout."""

from __future__ import annotations

import io

import pytest

from sim.base.errors import InputError
from sim.base.reading import BadRows, Field, Layout, no_job_left, read_columns


def test_a_field_that_is_no_column_of_the_layout_is_named():
    fields = {"start_s": Field("number"), "stopp_s": Field("number")}
    layout = Layout(("start_s", "stop_s"))
    with pytest.raises(InputError) as caught:
        read_columns("log.csv", io.BytesIO(b"1,2\n"), layout, fields, "error", {})
    assert str(caught.value) == (
        "log.csv: unknown column 'stopp_s'; did you mean 'stop_s'? valid: start_s, stop_s; a "
        "reader's fields must be columns of its layout [missing column]"
    )


def read(text: str, fields: dict[str, Field], on_bad_row: str = "error", **layout: object) -> dict:
    names = ("name", "start_s")
    stream, bad = io.BytesIO(text.encode()), BadRows()
    return read_columns("log.csv", stream, Layout(names, **layout), fields, on_bad_row, bad)


def test_a_field_explains_its_wrong_values_and_long_ones_are_cut():
    field = Field(form=r"^\d+$", example="5", explain=lambda text: f" ({len(text)} letters?)")
    with pytest.raises(InputError) as caught:
        read("a,soon\n", {"start_s": field})
    assert "start_s is 'soon'; it must be like 5 (4 letters?); correct the file" in str(
        caught.value
    )
    with pytest.raises(InputError) as caught:
        read(f"a,{'x' * 70_000}\n", {"start_s": field})
    assert f"start_s is '{'x' * 80}...'; it must be like 5 (70000 letters?)" in str(caught.value)


def test_quoted_values_may_hold_line_ends_over_blocks():
    text = 'a,1\n"b\nc",2\n' * 500_000
    columns = read(text, {"start_s": Field("number")}, multiline=True)
    assert columns["start_s"].sum() == 1_500_000


def test_if_no_job_is_left_the_first_bad_row_of_each_rule_is_shown():
    with pytest.raises(InputError) as caught:
        read("a,soon\nb,later\nc\n", {"start_s": Field("number")}, "skip")
    assert caught.value.message == (
        "no job is left; dropped: 2 × text in a number (line 1: start_s is 'soon'; it must be a "
        "number of at least 0), 1 × wrong number of fields (line 3: the row has 1 fields; it needs "
        "2)"
    )
    error = no_job_left("log.csv", {"wrong line": 2}, {"never started": 1, "0 CPUs": 0})
    assert error.message == "no job is left; dropped: 2 × wrong line, 1 × never started"
    assert no_job_left("log.csv", {}).rule == "empty file"


@pytest.mark.parametrize("on_bad_row", ["error", "skip"])
def test_headers_between_parts_are_no_rows(on_bad_row):
    text = b"name,end_s\na,1\nname,end_s\nb,2\n\nname,end_s\nc,3\n"
    bad = BadRows()
    fields = {"name": Field(required=True), "end_s": Field("number")}
    layout = Layout(("name", "end_s"), skip_lines=1)
    columns = read_columns("log.csv", io.BytesIO(text), layout, fields, on_bad_row, bad)
    assert columns["name"].to_pylist() == ["a", "b", "c"]
    assert bad == {}
    assert bad.repaired == {"the header once more: left out": 2}
    damaged = text.replace(b"c,3", b"c,end_s")
    with pytest.raises(InputError, match="end_s is 'end_s'; it must be a number") as caught:
        read_columns("log.csv", io.BytesIO(damaged), layout, fields, "error", BadRows())
    assert caught.value.line == 7
