"""Tables as plain text: words on the left, numbers on the right."""

import pytest

from sim.base.errors import InputError
from sim.base.text import label, printable, table_lines


def test_words_are_flush_left_and_lines_end_with_their_text():
    lines = table_lines(["policy", "what"], [["fifo", "first in, first out"], ["las", "-"]])
    assert lines == ["policy  what", "fifo    first in, first out", "las     -"]


def test_numbers_are_flush_right_in_columns_of_a_least_width():
    lines = table_lines(["", "p50"], [["x", "1.5"], ["long", "12345"]], numbers=True, min_width=7)
    assert lines == ["          p50", "x         1.5", "long    12345"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\nof día 東京 🙂", "plain\ttext\nof día 東京 🙂"),
        ("\x1b[31mred\x1b]0;title\x07", "\\x1b[31mred\\x1b]0;title\\x07"),
        ("over\rwritten\x08\x7f\x9b2J\x00", "over\\rwritten\\x08\\x7f\\x9b2J\\x00"),
        ("\u202eback\u2066\u2028", "\\u202eback\\u2066\\u2028"),
        ("half a pair \ud83d", "half a pair \\ud83d"),
    ],
)
def test_control_characters_are_written_as_escapes(text, shown):
    assert printable(text) == shown
    in_a_line = shown.replace("\n", "\\n").replace("\t", "\\t")
    assert table_lines(["a"], [[text]]) == ["a", in_a_line]
    assert label(text) == in_a_line


def test_a_very_long_text_does_not_widen_the_lines_of_others():
    lines = table_lines(["policy", "jobs"], [["x" * 5000, "1"], ["fifo", "2"]])
    assert len(lines[2]) < 120
    assert lines[1].startswith("x" * 5000)
    assert label("y" * 5000) == "y" * 99 + "…"


def test_every_error_of_the_input_is_fit_for_a_terminal():
    error = InputError("no \x1b[2J here", file="a\x1b.swf", line=3, rule="\x07")
    assert str(error) == "a\\x1b.swf:3: no \\x1b[2J here [\\x07]"
    assert error.file == "a\x1b.swf"
