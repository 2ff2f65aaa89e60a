"""JSON values of a trace, and validation of the numbers and texts in them."""

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
        If it is invalid, or its lists and objects are nested too deeply.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("lists or objects are nested too deeply") from None


def json_values(
    path: str | os.PathLike[str], text: str, begin: int = 0, between: str = " \t\r\n", end: str = ""
) -> Iterator[tuple[int, Any]]:
    """Yield each JSON value of a text from a position to the end, with its first line."""
    decode = json.JSONDecoder().raw_decode
    position, line, counted = begin, 1, 0
    while True:
        while position < len(text) and text[position] in between:
            position += 1
        line += text.count("\n", counted, position)
        counted = position
        if position >= len(text) or text[position] == end:
            return
        try:
            value, position = decode(text, position)
        except (ValueError, RecursionError) as error:
            message = f"invalid JSON from here on ({error})"
            raise InputError(message, file=path, line=line, rule="wrong line") from None
        yield line, value


def parse_numbers(key: str, values: Any) -> F8:
    """Convert a JSON list of non-negative numbers to an array."""
    if not isinstance(values, list) or any(type(x) not in (int, float) for x in values):
        message = f"{key} must be a list of numbers, not {reprlib.repr(values)}"
        raise BadLineError("wrong type", message)
    try:
        numbers = np.array(values, dtype=np.float64)
    except OverflowError:
        raise BadLineError("number out of range", f"{key} is beyond 1e308") from None
    wrong = ~(np.isfinite(numbers) & (numbers >= 0))
    if wrong.any():
        first = numbers[int(np.argmax(wrong))]
        message = f"{key} is {first:g}; it must be a number of at least 0"
        raise BadLineError("number out of range", message)
    return numbers


def check_text(key: str, text: str) -> str:
    """Return a text if UTF-8 can encode it: JSON can spell half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadLineError("not UTF-8", f"{key} can't be written as UTF-8 ({error})") from None
    return text
