"""Rows without comments, a piece at a time."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.base.errors import InputError
from sim.base.reading import CommentStripper, comments


def plainly(text):
    """Say what is left, and which lines those are, the slow and obvious way."""
    lines = [" ".join(line.partition(";")[0].split(" ")).split() for line in text.split("\n")]
    return [(at + 1, " ".join(words)) for at, words in enumerate(lines) if words]


@given(
    st.lists(st.sampled_from(["1 2", "  3   4 ", "", " ", ";", "; A: b", "5 ; c", ";;"])),
    st.integers(1, 9),
    st.integers(1, 7),
    st.booleans(),
)
def test_is_what_a_plain_loop_finds_however_it_is_cut(lines, piece, size, ends):
    text = "\n".join(lines) + "\n" * ends
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comments, "PIECE_BYTES", piece)
        rows = CommentStripper("f", io.BytesIO(text.encode()))
        read = b"".join(iter(lambda: rows.read(size), b"")).decode().split("\n")[:-1]
    found = [(rows.line_of(at + 1), line) for at, line in enumerate(read)]
    assert found == plainly(text)
    assert rows.header == ({"A": "b"} if "; A: b" in lines else {})


def test_a_header_is_no_place_to_keep_a_book_in():
    text = b"".join(b"; K%d: %s\n" % (at, b"x y " * 5000) for at in range(2000))
    rows = CommentStripper("f", io.BytesIO(text))
    assert rows.read() == b""
    assert len(rows.header) == comments.MAX_KEYS
    assert {len(value) for value in rows.header.values()} == {comments.MAX_VALUE}


def test_a_line_without_end_is_an_error_a_comment_without_end_is_none():
    long = b"7" * (2 * comments.MAX_LINE)
    with pytest.raises(InputError, match="longer than 1,048,576 characters") as caught:
        CommentStripper("f", io.BytesIO(b"1 2\n\n" + long)).read()
    assert (caught.value.line, caught.value.rule) == (3, "line too long")
    rows = CommentStripper("f", io.BytesIO(b";" + 10 * long + b"\n1 2\n"))
    assert (rows.read(), rows.line_of(1)) == (b"1 2\n", 2)
