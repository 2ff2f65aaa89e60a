"""Errors of Hydra's override parser in plain words, without its token lists."""

from __future__ import annotations

import re

from sim.base.errors import InputError, summary_line

_EXPECTING = re.compile(r" expecting .*")
_UNEXPECTED = re.compile(r"(?:extraneous|mismatched) input '(.*)'")
_UP_TO = re.compile(r"no viable alternative at input '(.*)'")
_TOKEN = re.compile(r"token recognition error at: '(.*)'")
_EMPTY = re.compile(r"(?:(?<=[,(\[{])|^)\s*(?:,|(?<=,)\s*(?:$|(?=[)\]}])))")
_WAY_OUT = (
    "write key=value, key=a,b or key=range(0,5), and quote a value that holds , ( or =: "
    "\"key='a,b'\""
)


def grammar_error(text: str, source: str, error: Exception) -> InputError:
    """Explain why an override can't be parsed; an empty value is located."""
    key, _, value = text.partition("=")
    if not set(value) & set("'\"\\") and (empty := _EMPTY.search(value)):
        filled = _without_empty(value)
        way_out = f"write {key}={filled}" if filled else f"write {key}=VALUE"
        in_list = not set(value) & set("()[]{}")
        position = f"value {value.count(',', 0, empty.start()) + 1}" if in_list else "a value"
        return InputError(
            f"{text} ({source}): {position} of {key} is empty; {way_out}", rule="grammar"
        )
    return InputError(
        f"{text!r} ({source}) is not in Hydra's grammar: {_reason(error)}; {_WAY_OUT}",
        rule="grammar",
    )


def _without_empty(value: str) -> str:
    value = re.sub(r",(?:\s*,)+", ",", value)
    value = re.sub(r"([(\[{])\s*,", r"\1", value)
    return re.sub(r",\s*([)\]}])", r"\1", value).strip(", ")


def _reason(error: Exception) -> str:
    """Reword the first line of the parser's message, without its tokens."""
    line = _EXPECTING.sub("", summary_line(error))
    if line == "missing EQUAL at '<EOF>'":
        return "it has no ="
    if line == "mismatched input '<EOF>'":
        return "it ends too early"
    if match := _UP_TO.fullmatch(line):
        return f"it can't be read from {match[1]!r} on"
    if match := _UNEXPECTED.fullmatch(line) or _TOKEN.fullmatch(line):
        return f"unexpected {match[1]!r}"
    return line
