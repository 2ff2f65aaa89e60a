"""Tables as plain text: words on the left, numbers on the right."""

import os
import sys

import pytest

from sim.base.errors import InputError
from sim.base.text import label, not_utf8, printable, table_lines


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


@pytest.mark.parametrize(
    ("text", "encoding", "reason"),
    [
        ("für", "utf-8", ""),
        ("plain", "ascii", ""),
        ("f\udcfcr", "utf-8", "is not valid UTF-8"),
        ("f\udcfcr", "ascii", "is not valid UTF-8"),
        ("f\udcc3\udcbcr", "ascii", "can't be read in the encoding ascii (PYTHONUTF8=0, LC_ALL=C)"),
        ("fÃ¼r", "latin-1", "can't be read in the encoding latin-1 (PYTHONUTF8=0, LC_ALL=C)"),
    ],
)
def test_a_name_that_is_no_utf8_has_its_reason(monkeypatch, text, encoding, reason):
    monkeypatch.setattr(sys, "getfilesystemencoding", lambda: encoding)
    monkeypatch.setattr(os, "fsencode", lambda name: name.encode(encoding, "surrogateescape"))
    for name, value in (("PYTHONUTF8", "0"), ("LC_ALL", "C"), ("LANG", "C.UTF-8")):
        monkeypatch.setenv(name, value)
    assert not_utf8(text).partition(":")[0] == reason
    assert not_utf8(text).endswith(": set PYTHONUTF8=1") == reason.startswith("can't")
