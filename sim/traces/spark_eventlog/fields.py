"""Typed fields of a JSON record, with an error that names the field and its value."""

from __future__ import annotations

from typing import Any, Final

from sim.base.reading import BadLineError, check_text

MAX_NUMBER: Final = 1e15


def fields(value: Any) -> dict[str, Any]:
    """Return a JSON object as it is; anything else is an error."""
    if not isinstance(value, dict):
        raise BadLineError("wrong type", f"expected a JSON object, found {str(value)[:40]!r}")
    return value


def part(record: dict[str, Any], key: str, kind: type, default: Any = None) -> Any:
    """Return a field that is an object or a list; without a default it must be there."""
    value = record.get(key)
    if value is None and default is not None:
        return default
    if value is None:
        raise BadLineError("missing value", f"{key} is missing")
    if not isinstance(value, kind):
        name = "JSON object" if kind is dict else "list"
        problem = f"{key} must be a {name}, not {str(value)[:40]!r}"
        raise BadLineError("wrong type", problem)
    return value


def number(record: dict[str, Any], key: str, default: float | None = None) -> float:
    """Return a field that is a number from 0 to 1e15; without a default it must be there."""
    value = record.get(key)
    if value is None and default is not None:
        return default
    if value is None:
        raise BadLineError("missing value", f"{key} is missing")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise BadLineError("wrong type", f"{key} must be a number, not {str(value)[:40]!r}")
    if not 0 <= value <= MAX_NUMBER:
        problem = f"{key} is {str(value)[:40]}; valid: 0 to {MAX_NUMBER:g}"
        raise BadLineError("number out of range", problem)
    return float(value)


def ids(record: dict[str, Any], key: str) -> list[int]:
    """Return a list of ids; empty if the field is missing."""
    return [int(number({key: value}, key)) for value in part(record, key, list, [])]


def text(record: dict[str, Any], key: str) -> str:
    """Return a text; empty if the field is missing."""
    value = record.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadLineError("wrong type", f"{key} must be text, not {str(value)[:40]!r}")
    return check_text(key, value)


def number_or(value: object, default: float) -> float:
    """Return a number from 0 to 1e15; `default` for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return default
    return float(value) if 0 <= value <= MAX_NUMBER else default
