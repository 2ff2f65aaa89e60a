"""Rows without comments, read in pieces."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.base.errors import InputError
from sim.base.reading import CommentStripper, comments


def strip_comments(text):
    """Return the rows and their line numbers by a plain loop."""
    lines = [" ".join(line.partition(";")[0].split(" ")).split() for line in text.split("\n")]
    return [(index + 1, " ".join(words)) for index, words in enumerate(lines) if words]


@given(
    st.lists(st.sampled_from(["1 2", "  3   4 ", "", " ", ";", "; A: b", "5 ; c", ";;"])),
    st.integers(1, 9),
    st.integers(1, 7),
    st.booleans(),
)
def test_rows_equal_those_of_a_plain_loop_for_any_piece_size(lines, piece, size, ends):
    text = "\n".join(lines) + "\n" * ends
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comments, "PIECE_BYTES", piece)
        rows = CommentStripper("f", io.BytesIO(text.encode()))
        read = b"".join(iter(lambda: rows.read(size), b"")).decode().split("\n")[:-1]
    actual = [(rows.line_of(index + 1), line) for index, line in enumerate(read)]
    assert actual == strip_comments(text)
    assert rows.header == ({"A": "b"} if "; A: b" in lines else {})


def test_a_header_is_no_place_to_keep_a_book_in():
    text = b"".join(b"; K%d: %s\n" % (index, b"x y " * 5000) for index in range(2000))
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
