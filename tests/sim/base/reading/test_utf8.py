"""Bytes that are no UTF-8, in any place of a row: marked, and told as such."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sim
from sim.base.reading import BadRows, Field, Layout, OnBadRow, open_text, read_columns
from sim.base.reading.utf8 import INVALID, Utf8Stream

LAYOUT = Layout(("id", "name", "cpus", "note"), free_text=("note",))
FIELDS = {"id": Field(required=True), "name": Field(), "cpus": Field("whole")}
NOT_UTF8, WIDTH = "not UTF-8", "wrong number of fields"


def read(
    folder: Path, content: bytes, on_bad_row: OnBadRow = "skip"
) -> tuple[dict[str, Any], BadRows]:
    file, bad = folder / "log.csv", BadRows()
    file.write_bytes(content)
    with open_text(file) as stream:
        return read_columns(file, stream, LAYOUT, FIELDS, on_bad_row, bad), bad


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        (b"\xff,n,1,x", NOT_UTF8),
        (b"b,n\xe9e,1,x", NOT_UTF8),
        (b"b,\xed\xa0\x80,1,x", NOT_UTF8),
        (b"b,n,\xff,x", "text in a number"),
        (b"b,n,1\xff", WIDTH),
        (b"\xff", WIDTH),
        (b"b,n,1,x,\xff,\xff", ""),  # in a column that is not read: its fields are joined
        (b"b,n,1,\xff", ""),
        (b"b,\xff,1,x,x", WIDTH),
        (b'b,"\xff,1,x', WIDTH),
        ("b,\ufffd,1,x".encode(), ""),  # a text that was damaged earlier
        (b"b,n,1", WIDTH),
    ],
)
def test_a_row_that_is_no_utf8_breaks_one_rule(tmp_path: Path, row: bytes, rule: str) -> None:
    content = b"a,n,1,x\n" + row + b"\n"
    log, bad = read(tmp_path, content)
    assert log["id"].to_pylist() == (["a"] if rule else ["a", "b"])
    assert bad == ({rule: 1} if rule else {})
    if rule:
        with pytest.raises(sim.InputError) as caught:
            read(tmp_path, content, "error")
        assert (caught.value.rule, caught.value.line) == (rule, 2)
        assert INVALID not in str(caught.value)


@given(st.binary(max_size=40), st.integers(1, 7))
def test_the_stream_is_utf8_and_changes_no_valid_text(content: bytes, size: int) -> None:
    stream, pieces = Utf8Stream(io.BytesIO(content)), []
    while piece := stream.read(size):
        assert len(piece) <= size
        pieces.append(piece)
    text = b"".join(pieces).decode()
    try:
        assert text == content.decode()
    except UnicodeDecodeError:
        assert text.replace(INVALID, "") == content.decode(errors="ignore")
        assert INVALID in text
