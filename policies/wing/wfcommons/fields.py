"""Typed access to the JSON of a WfFormat file, with errors that name the file and its version."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sim.base.errors import InputError

MAX_NUMBER: Final = 1e18
_JSON: Final[dict[type, str]] = {dict: "an object", list: "a list", str: "text"}


@dataclass(frozen=True)
class Fields:
    """Reader of the parts of one file."""

    path: Path
    version: str

    def error(self, text: str, rule: str = "wrong shape") -> InputError:
        """Return an error of this file."""
        return InputError(text, file=self.path, rule=rule)

    def check_utf8(self, value: Any) -> None:
        """Refuse text that can't be written as UTF-8: JSON can spell half of a surrogate pair."""
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise self.error(f"text that can't be written as UTF-8: {error}", "not UTF-8") from None

    def record(self, value: Any, name: str) -> dict[str, Any]:
        """Return a value that must be an object."""
        if not isinstance(value, dict):
            raise self.error(
                f"{name} must be an object of WfFormat {self.version}, not {str(value)[:40]!r}"
            )
        return value

    def part(self, record: dict[str, Any], key: str, kind: type) -> Any:
        """Return an entry that must be of a kind: an object, a list or text."""
        value = record.get(key)
        if not isinstance(value, kind):
            actual = "missing" if value is None else f"{str(value)[:40]!r}"
            text = f"{key} of WfFormat {self.version} must be {_JSON[kind]}, but is {actual}"
            raise self.error(text)
        return value

    def records(self, record: dict[str, Any], key: str, name: str) -> list[dict[str, Any]]:
        """Return an entry that must be a list of objects."""
        return [self.record(value, name) for value in self.part(record, key, list)]

    def names(self, record: dict[str, Any], key: str, owner: str) -> list[str]:
        """Return a list of names without repetitions; empty if it is missing."""
        names = record.get(key) or []
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise self.error(f"{key} of the task {owner!r} must be a list of names")
        return list(dict.fromkeys(names))

    def number(self, record: dict[str, Any], key: str, owner: str) -> float:
        """Return a number of at least 0; NaN if it is missing."""
        value = record.get(key)
        if value is None:
            return math.nan
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.error(f"{key} of {owner} must be a number, not {value!r}")
        if not 0 <= value <= MAX_NUMBER:
            text = f"{key} of {owner} is {str(value)[:40]}"
            raise self.error(f"{text}; valid: 0 to {MAX_NUMBER:g}", "number out of range")
        return float(value)
