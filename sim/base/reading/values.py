"""JSON values of a trace, and validation of the numbers and texts in them."""

from __future__ import annotations

import json
import math
import os
import reprlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

import numpy as np

from sim.base.arrays import F8
from sim.base.errors import InputError
from sim.base.reading.text import BadLineError

_WORDS: Final[dict[type, str]] = {
    dict: "an object", list: "a list", str: "text", float: "a number", bool: "true or false"
}  # fmt: skip
_MAX_NUMBER: Final = 1e18
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
T = TypeVar("T")


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


def json_field(record: Any, name: str, kind: type[T]) -> T:
    """Return a field of a JSON object; ``spec.containers`` is one inside another.

    Parameters
    ----------
    record : object
        The object.
    name : str
        Names of objects and of the field, with dots between them.
    kind : {dict, list, str, float, bool}
        Type of the field. A missing or null field is empty or false, a missing number NaN.

    Raises
    ------
    BadLineError
        If the field is of another type, an object on the way to it is none, a text can't be written
        as UTF-8 or a number is not of -1e18 to 1e18.
    """
    value: Any = record
    for depth, key in enumerate(parts := name.split(".")):
        if value is None:
            break
        if not isinstance(value, dict):
            owner = ".".join(parts[:depth]) or "a record"
            raise _wrong_type(owner, dict, value)
        value = value.get(key)
    if value is None:
        value = math.nan if kind is float else kind()
    elif kind is float and type(value) is int:
        value = float(max(min(value, 10**19), -(10**19)))
    if type(value) is not kind:
        raise _wrong_type(name, kind, value)
    if isinstance(value, float) and abs(value) > _MAX_NUMBER:
        text = f"{name} is {value:g}; it must be a number of -1e18 to 1e18"
        raise BadLineError("number out of range", text)
    if isinstance(value, str):
        check_text(name, value)
    return value


def parse_time(key: str, text: str) -> float:
    """Return a date and time in s since 1970; NaN for an empty text and for the year 1.

    Without a time zone it is UTC. Programs in Go write 0001-01-01T00:00:00Z for no time.
    """
    if not text or text.startswith("0001-01-01T00:00:00"):
        return math.nan
    try:
        time = datetime.fromisoformat(text)
        zoned = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
        return (zoned - _EPOCH).total_seconds()
    except (ValueError, OverflowError):
        form = "2026-03-01T09:30:00Z"
        raise BadLineError(
            "wrong time", f"{key} must be a time like {form}, not {text!r}"
        ) from None


def _wrong_type(name: str, kind: type, value: Any) -> BadLineError:
    return BadLineError("wrong type", f"{name} must be {_WORDS[kind]}, not {reprlib.repr(value)}")
