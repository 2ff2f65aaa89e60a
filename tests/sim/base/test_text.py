"""Tables as plain text: left for words, right for numbers."""

from sim.base.text import table_lines


def test_words_are_flush_left_and_lines_end_with_their_text():
    lines = table_lines(["policy", "what"], [["fifo", "first in, first out"], ["las", "-"]])
    assert lines == ["policy  what", "fifo    first in, first out", "las     -"]


def test_numbers_are_flush_right_in_columns_of_a_least_width():
    lines = table_lines(["", "p50"], [["x", "1.5"], ["long", "12345"]], numbers=True, narrowest=7)
    assert lines == ["          p50", "x         1.5", "long    12345"]
