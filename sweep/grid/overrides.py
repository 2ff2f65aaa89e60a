"""Parser of Hydra's override grammar into plain assignments; experiments are read the same way."""

from __future__ import annotations

import dataclasses
import fnmatch
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from hydra.core.override_parser import types
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from sim.base.errors import InputError, unknown
from sim.base.text import is_utf8, not_utf8
from sweep.grid.grammar_errors import grammar_error
from sweep.grid.options import Options

QUESTION = "question"
"""Key of a text in the asker's words."""
MAX_VALUES = 1_000_000
"""Values of an axis; a range with more is a mistake."""


@dataclass(frozen=True)
class Interval:
    """A range without steps, ``interval(low,high)``, in which a target or a search looks."""

    low: float
    high: float
    is_log: bool = False  # written as ``tag(log,interval(low,high))``


@dataclass(frozen=True)
class Assignment:
    """One ``key=value`` as given."""

    key: str  # dotted key or group
    # one value, or all swept values, or one `Interval`; empty for a deletion
    values: tuple[Any, ...]
    # written as a sweep: a comma list, ``range()``, ``choice()``, ``glob()`` or ``interval()``
    swept: bool
    kind: Literal["set", "add", "delete"]  # ``key=``, ``+key=`` (or ``++key=``), ``~key``
    text: str  # as it was written
    source: str = "command line"  # where it was written, for messages

    @property
    def value(self) -> Any:
        """The value of a key that can't be swept."""
        if len(self.values) != 1:
            raise InputError(f"{self.text}: {self.key} takes one value; it can't be swept")
        return self.values[0]


def parse(
    texts: Sequence[str], names: Callable[[str], Iterable[str]], source: str = "command line"
) -> list[Assignment]:
    """Parse overrides in Hydra's grammar."""
    parser = OverridesParser.create()
    assignments = []
    for text in texts:
        if not is_utf8(text):
            raise InputError(f"{text!r} ({source}) {not_utf8(text)}", rule="grammar")
        try:
            override = _parsed(parser, text)
        except (HydraException, RecursionError) as error:
            raise grammar_error(text, source, error) from error
        if not override.key_or_group or override.package is not None:
            raise InputError(f"{text!r} ({source}): write key=value", rule="grammar")
        assignments.append(_assignment(override, text, names, source))
    _check_braces(assignments)
    return assignments


def _check_braces(lines: Sequence[Assignment]) -> None:
    """Refuse braces that a shell expanded: ``shape={cpu:16,mem:64}`` became two words."""
    parts: dict[str, list[str]] = {}
    for line in lines:
        parts.setdefault(line.key, []).append(line.text.partition("=")[2])
    for key, values in parts.items():
        if len(values) > 1 and all(_BRACE_PART.fullmatch(value) for value in values):
            whole = f"{key}={{{','.join(values)}}}"
            raise InputError(
                f"{' '.join(f'{key}={value}' for value in values)}: the shell expanded the braces; "
                f"quote them: '{whole}'",
                rule="braces",
            )


_NEEDS_QUOTES = re.compile(r"[^\w\s/\-\\+.$%*@?|:,()\[\]{}='\"]|[^\x00-\x7f]")
"""Characters that Hydra's grammar accepts only in quotes: ``ü``, ``~``, ``#``."""

_CHANGE = "what_if."
"""Prefix of keys whose values may have ``=`` in them: ``account=ml:2``."""
_PART_OF_CHANGE = re.compile(r"[^,()\[\]{}'\"]*=[^,()\[\]{}'\"]*")
_BRACE_PART = re.compile(r"[A-Za-z_]\w*:[^/\\].*")

_PART = re.compile(r"(?:\$\{[^}]*\}|[^,()\[\]{}='\"])+")
_PART_OF_DICT = re.compile(r"(?:\$\{[^}]*\}|[^,()\[\]{}='\":])+")


def _parsed(parser: Any, text: str) -> Any:
    """Parse one override; quote a path with ``ü`` in it, and a baseline's setting, if needed.

    A question is a text, whatever signs it has, unless it is quoted already.
    """
    key, equals, value = text.partition("=")
    if key == QUESTION:
        value = " ".join(value.split())
        if value not in ("", "null") and value[0] not in "'\"":
            return parser.parse_override(f"{key}={_in_quotes(value)}")
    try:
        return parser.parse_override(text)
    except HydraException:
        if key == QUESTION:
            return parser.parse_override(f"{key}={_in_quotes(value)}")
        is_plain = key == "baseline" and not set(value) & set("'\"\\")
        quoted = f"'{value}'" if is_plain else _with_quotes(value)
        if key.lstrip("+").startswith(_CHANGE):
            quoted = _PART_OF_CHANGE.sub(lambda part: f"'{part[0].strip()}'", value)
        if not equals or quoted == value:
            raise
        return parser.parse_override(f"{key}={quoted.strip()}")


def _with_quotes(value: str) -> str:
    """Quote each part of a value that needs it, unless the value has quotes already."""
    if any(sign in value for sign in "'\"\\"):
        return value

    def quoted(match: re.Match[str]) -> str:
        part = match[0]
        if not _NEEDS_QUOTES.search(part):
            return part
        inner = part.strip()
        return part.replace(inner, f"'{inner}'")

    part = _PART_OF_DICT if value.lstrip().startswith("{") else _PART
    return part.sub(quoted, value)


def quote(key: str, value: Any) -> str:
    """Write an assignment in the grammar, such that `parse` reads the same value."""
    return f"{key}={_quoted(value)}"


def _assignment(
    override: Any, text: str, names: Callable[[str], Iterable[str]], source: str
) -> Assignment:
    key = override.key_or_group
    if override.type is types.OverrideType.DEL:
        return Assignment(key, (), False, "delete", text, source)
    kind: Literal["set", "add"] = "set" if override.type is types.OverrideType.CHANGE else "add"
    if not override.is_sweep_override():
        return Assignment(key, (override.value(),), False, kind, text, source)
    values = _swept(override, text, list(names(key)))
    if not values:
        raise InputError(f"{text} ({source}) has no values to sweep", rule="empty axis")
    return Assignment(key, values, True, kind, text, source)


def _swept(override: Any, text: str, names: list[str]) -> tuple[Any, ...]:
    sweep = override._value
    if isinstance(sweep, types.Glob):
        if not names:
            raise InputError(f"{text}: glob() picks from the options of a group, such as policy")
        if not all(isinstance(pattern, str) for pattern in (*sweep.include, *sweep.exclude)):
            raise InputError(f"{text}: glob() takes patterns such as ali*", rule="grammar")
        matches = [n for n in names if any(fnmatch.fnmatchcase(n, g) for g in sweep.include)]
        matches = [n for n in matches if not any(fnmatch.fnmatchcase(n, g) for g in sweep.exclude)]
        if not matches:
            raise InputError(f"{text} matches none of {', '.join(names)}", rule="empty axis")
        return tuple(matches)
    if isinstance(sweep, types.RangeSweep):
        return _range(sweep, text)
    if isinstance(sweep, types.ChoiceSweep):
        plain = dataclasses.replace(sweep, shuffle=False)
        return tuple(types.Override._convert_value(value) for value in plain.list)
    return (_interval(sweep, text),)


def _range(sweep: Any, text: str) -> tuple[float, ...]:
    """Return the values of a range, which must be finite."""
    start, stop, step = sweep.start, sweep.stop, sweep.step
    if not step or not all(math.isfinite(number) for number in (start, stop, step)):
        raise InputError(
            f"{text}: range(start,stop,step) takes finite numbers, and a step that is not 0",
            rule="grammar",
        )
    n_values = (stop - start) / step
    if n_values > MAX_VALUES:
        raise InputError(
            f"{text} has {n_values:.3g} values; an axis may have {MAX_VALUES:,}", rule="long axis"
        )
    return tuple(_without_drift(value) for value in sweep.range())


def _interval(sweep: Any, text: str) -> Interval:
    """Return a range without steps; its ends must be finite and in order."""
    low, high, tags = float(sweep.start), float(sweep.end), set(sweep.tags)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InputError(f"{text}: interval(low,high) takes two finite numbers, in that order")
    if tags - {"log"}:
        known = unknown("tag", min(tags - {"log"}), ["log"])
        raise InputError(f"{text}: {known}; write tag(log,interval(1,100))", rule="grammar")
    if tags and low <= 0:
        raise InputError(f"{text}: a log scale begins above 0, not at {low:g}", rule="range")
    return Interval(low, high, bool(tags))


def _without_drift(value: float) -> float:
    """Remove floating-point drift from a range's value (0.6000000000000001)."""
    return float(f"{value:.12g}") if isinstance(value, float) else value


def _quoted(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{_quoted(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(_quoted, value)) + "]"
    return _quoted_text(str(value))


@cache
def _quoted_text(text: str) -> str:
    try:
        # inside a list, where more characters need quotes
        override = OverridesParser.create().parse_override(f"key=[{text}]")
        if override.value() == [text]:
            return text
    except HydraException:
        pass
    return _in_quotes(text)


def _in_quotes(text: str) -> str:
    return str(types.QuotedString(text, types.Quote.single).with_quotes())


_KEYS = ("axes", "overrides", "baseline", "study", "judged", "gallery")


def assignments(
    name: str, config: Mapping[str, Any], command_line: Sequence[Assignment], options: Options
) -> list[Assignment]:
    """Read an experiment as assignments, without those that the command line replaces.

    The command line replaces a key by naming it. If it names a trace (or cluster) that is not one
    of the experiment's, the experiment's keys inside ``trace.`` (``cluster.``) are dropped, too:
    they were meant for another one.
    """
    file = options.files["experiment"][name]
    source = f"experiment {name}"
    _check(config, file)
    lines = parse(list(config.get("overrides") or []), options.names_swept, source)
    if config.get("baseline") is not None:
        value = config["baseline"]
        lines.append(Assignment("baseline", (value,), False, "set", f"baseline={value}", source))
    for key, values in (config.get("axes") or {}).items():
        lines.append(_axis(str(key), values, options, source))
    replaced = {line.key for line in command_line}
    dropped_groups = {
        group
        for group in ("trace", "cluster")
        if not _values(command_line, group)
        <= (_values(lines, group) or _values(command_line, group))
    }
    return [
        line
        for line in lines
        if line.key not in replaced and line.key.partition(".")[0] not in dropped_groups
    ]


def _check(config: Any, file: Path) -> None:
    if not isinstance(config, Mapping):
        raise InputError(f"an experiment has the keys {', '.join(_KEYS)}", file=file)
    for key in config:
        if key not in _KEYS:
            message = unknown("key of an experiment", str(key), _KEYS)
            raise InputError(message, file=file, rule="unknown key")
    if not isinstance(config.get("axes") or {}, Mapping):
        raise InputError("axes: give a list of values for each key", file=file)
    for key in ("overrides", "gallery"):
        texts = config.get(key) or []
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise InputError(f"{key}: give a list of texts such as trace.jobs=500", file=file)


def _axis(key: str, values: Any, options: Options, source: str) -> Assignment:
    text = f"{key}={values}"
    if not isinstance(values, list):
        (assignment,) = parse([text], options.names_swept, source)
        values = assignment.values
    if not values:
        raise InputError(f"{text} ({source}) has no values to sweep", rule="empty axis")
    return Assignment(key, tuple(values), True, "set", text, source)


def _values(lines: Sequence[Assignment], group: str) -> set[Any]:
    return {value for line in lines if line.key == group for value in line.values}
