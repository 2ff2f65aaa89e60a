"""A named grid: what ``experiment=NAME`` stands for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sim.base.errors import InputError, unknown
from sweep.grid.options import Options
from sweep.grid.overrides import Assignment, parse

_KEYS = ("axes", "overrides", "baseline", "study", "gallery")


def assignments(
    name: str, config: Mapping[str, Any], given: Sequence[Assignment], options: Options
) -> list[Assignment]:
    """Read an experiment as the assignments it stands for, less what the command line replaces.

    The command line replaces a key by naming it. Where it names a trace (or cluster) that is not
    one of the experiment's, the experiment's keys inside ``trace.`` (``cluster.``) go too: they
    were meant for another.
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
    replaced = {line.key for line in given}
    foreign = {
        group
        for group in ("trace", "cluster")
        if not _values(given, group) <= (_values(lines, group) or _values(given, group))
    }
    return [
        line
        for line in lines
        if line.key not in replaced and line.key.partition(".")[0] not in foreign
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
        raise InputError(f"{text} ({source}) sweeps over nothing", rule="empty axis")
    return Assignment(key, tuple(values), True, "set", text, source)


def _values(lines: Sequence[Assignment], group: str) -> set[Any]:
    return {value for line in lines if line.key == group for value in line.values}
