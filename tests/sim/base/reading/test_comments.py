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


def split_sections(text, n_fields):
    """Return number of the line, shortened row and header of each row by a plain loop."""
    rows, header, has_rows = [], {}, False
    for number, line in enumerate(text.split("\n"), 1):
        key, separator, value = line.removeprefix(";").strip().partition(":")
        if line.startswith(";") and separator and key in ("A", "B"):
            header = {} if has_rows else header
            has_rows = False
            header = {key: value.strip()} | header
        words = line.partition(";")[0].split()
        if words:
            has_rows = True
            rows.append((number, " ".join(words[:n_fields]), header))
    return rows


@given(
    st.lists(st.sampled_from(["1 2", "3  4 5 6", "", "; A: b", "; B: c", ";A:d", "; C: e", "; x"])),
    st.integers(1, 9),
    st.integers(1, 7),
)
def test_a_header_after_rows_begins_a_section(lines, piece, size):
    text = "".join(line + "\n" for line in lines)
    actual = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comments, "PIECE_BYTES", piece)
        rows = CommentStripper("f", io.BytesIO(text.encode()), keys=("A", "B"), n_fields=3)
        while True:
            read = b"".join(iter(lambda: rows.read(size), b"")).decode().split("\n")[:-1]
            header = rows.sections[rows.section].header
            actual += [(rows.line_of(i), line, header) for i, line in enumerate(read, 1)]
            if not rows.next_section():
                break
    assert actual == split_sections(text, 3)
    assert rows.n_longer == lines.count("3  4 5 6")
    at_line = {section.line for section in rows.sections[1:]}
    assert all(lines[number - 1].startswith((";A", "; A", "; B")) for number in at_line)


def test_headers_have_a_limit():
    text = b"; A: 1\n7\n" * (comments.MAX_SECTIONS + 1)
    rows = CommentStripper("f", io.BytesIO(text), keys=("A",))
    with pytest.raises(InputError, match="more than 1,000 headers") as caught:
        rows.read()
    assert caught.value.line == 2 * comments.MAX_SECTIONS + 1


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
