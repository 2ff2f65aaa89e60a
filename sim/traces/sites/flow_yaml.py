"""YAML of an option: a mapping whose long values have a line for each entry."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.|/-]*")
_WORDS = ("true", "false", "null", "yes", "no", "on", "off", "y", "n")
_WIDTH = 88


def dump(values: Mapping[str, Any], comments: Mapping[str, str]) -> str:
    """Return the text, with a comment before each key that has one."""
    lines: list[str] = []
    for key, value in values.items():
        lines += [f"# {comment}" for comment in comments.get(key, "").splitlines()]
        line = f"{_text(key)}: {_flow(value)}"
        if len(line) <= _WIDTH or not value or not isinstance(value, (Mapping, list, tuple)):
            lines.append(line)
        elif isinstance(value, Mapping):
            lines += [f"{_text(key)}:", *(f"  {_text(k)}: {_flow(v)}" for k, v in value.items())]
        else:
            lines += [f"{_text(key)}:", *(f"  - {_flow(v)}" for v in value)]
    return "\n".join(lines) + "\n"


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_text(k)}: {_flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value)


def _text(text: str) -> str:
    is_plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
    return text if is_plain else json.dumps(text)
