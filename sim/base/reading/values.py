"""JSON that a trace holds: its values one after the other, and numbers and texts in them."""

from __future__ import annotations

import json
import os
import reprlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from sim.base.arrays import F8
from sim.base.errors import InputError
from sim.base.reading.text import BadLineError


def parse_json(text: str | bytes) -> Any:
    """Parse JSON.

    Raises
    ------
    ValueError
        If it is none; also if its lists and objects lie too deep in each other.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("lists or objects lie too deep in each other") from None


def json_values(
    path: str | os.PathLike[str], text: str, begin: int = 0, between: str = " \t\r\n", end: str = ""
) -> Iterator[tuple[int, Any]]:
    """Yield each JSON value of a text from a place to the end, with the line that it begins in."""
    decode = json.JSONDecoder().raw_decode
    at, line, seen = begin, 1, 0
    while True:
        while at < len(text) and text[at] in between:
            at += 1
        line += text.count("\n", seen, at)
        seen = at
        if at >= len(text) or text[at] == end:
            return
        try:
            value, at = decode(text, at)
        except (ValueError, RecursionError) as error:
            words = f"what begins here is no JSON ({error})"
            raise InputError(words, file=path, line=line, rule="wrong line") from None
        yield line, value


def parse_numbers(key: str, given: Any) -> F8:
    """Return a list of JSON's numbers, none of them negative."""
    if not isinstance(given, list) or any(type(x) not in (int, float) for x in given):
        raise BadLineError("wrong type", f"{key} must be of numbers, not {reprlib.repr(given)}")
    try:
        numbers = np.array(given, dtype=np.float64)
    except OverflowError:
        raise BadLineError("number out of range", f"{key} is beyond 1e308") from None
    wrong = ~(np.isfinite(numbers) & (numbers >= 0))
    if wrong.any():
        first = numbers[int(np.argmax(wrong))]
        text = f"{key} is {first:g}; it must be a number of at least 0"
        raise BadLineError("number out of range", text)
    return numbers


def check_text(key: str, text: str) -> str:
    """Return a text, if UTF-8 has it: JSON can spell half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadLineError("not UTF-8", f"{key} is no text ({error})") from None
    return text
