"""A named grid: what ``experiment=NAME`` stands for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sim.base.errors import InputError, unknown
from sweep.grid.options import Options
from sweep.grid.overrides import Assignment, parse
from sweep.papers import studies

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
    _check(config, file, options)
    lines = parse(list(config.get("overrides") or []), options.names_swept, source)
    if config.get("baseline") is not None:
        value = config["baseline"]
        lines.append(Assignment("baseline", (value,), False, "set", f"baseline={value}", source))
    for key, values in (config.get("axes") or {}).items():
        lines.append(_axis(str(key), values, options, source))
    replaced = {one.key for one in given}
    foreign = {
        group
        for group in ("trace", "cluster")
        if not _values(given, group) <= (_values(lines, group) or _values(given, group))
    }
    return [
        one for one in lines if one.key not in replaced and one.key.partition(".")[0] not in foreign
    ]


def study_of(config: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what the experiment makes of its sweep, None for nothing."""
    study = config.get("study")
    return None if study is None else dict(study)


def _check(config: Any, file: Path, options: Options) -> None:
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
    if config.get("study") is not None:
        studies.check(config["study"], file, options)


def _axis(key: str, values: Any, options: Options, source: str) -> Assignment:
    text = f"{key}={values}"
    if not isinstance(values, list):
        (one,) = parse([text], options.names_swept, source)
        values = one.values
    if not values:
        raise InputError(f"{text} ({source}) sweeps over nothing", rule="empty axis")
    return Assignment(key, tuple(values), True, "set", text, source)


def _values(lines: Sequence[Assignment], group: str) -> set[Any]:
    return {value for one in lines if one.key == group for value in one.values}
