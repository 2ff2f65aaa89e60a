"""From a cell's trace configuration to its workload."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.base.errors import InputError
from sim.base.parameters import check as check_value
from sim.base.parameters import hints_of
from sim.base.plugins import check_known
from sweep.grid import clusters, recipe, remote
from sweep.grid.recipe import OWN, WINDOW

if TYPE_CHECKING:
    from sim.workload.workload import Workload


def check(option: str, trace: Mapping[str, Any]) -> None:
    """Refuse a trace that can't be loaded, as far as can be told without loading it."""
    known = ("format", "synth")
    if sum(key in trace for key in known) != 1:
        raise InputError(
            f"trace={option} must name either a format to read or a synth to draw from, "
            f"not {' and '.join(key for key in known if key in trace) or 'neither'}"
        )
    for key in WINDOW:
        value = trace.get(key)
        if value is not None and (type(value) not in (int, float) or not math.isfinite(value)):
            raise InputError(f"trace.{key} must be a time in s, not {value!r}", rule="wrong type")
    begin, end = (trace.get(key) for key in WINDOW)
    if begin is not None and end is not None and begin >= end:
        raise InputError(f"trace.begin_s ({begin}) must be before trace.end_s ({end})")
    _check_options(option, trace)
    _check_knobs(option, trace.get("knobs") or {})
    if "format" in trace:
        _check_path(option, trace.get("path"))


def identity(trace: Mapping[str, Any], cluster: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that a workload's content follows from, without loading it.

    Two equal identities are the same workload, as long as the sources are: the configuration, the
    size and time of change of every file that it names, and the cluster where arrivals are
    stretched to it.
    """
    found: dict[str, Any] = {"trace": dict(trace), "files": [], "stretch": None}
    if "path" in trace:
        root = remote.here(trace["path"]).resolve()
        found["trace"]["path"] = str(root)
        found["files"] += _stamps(sorted(root.rglob("*")) if root.is_dir() else [root])
    options = {key: value for key, value in trace.items() if key != "path"}
    found["files"] += _stamps(Path(text) for text in _texts(options))
    if clusters.stretches(cluster):
        found["stretch"] = {key: cluster.get(key) for key in ("shape", "count", "load", "tails")}
    return found


def prepare(trace: Mapping[str, Any], cluster: Mapping[str, Any]) -> Workload:
    """Load or draw the workload, cut it to its window, turn its knobs, stretch its arrivals."""
    if "path" in trace:
        trace = {**trace, "path": str(remote.here(trace["path"]))}
    return recipe.make(trace, cluster)


def _stamps(files: Iterable[Path]) -> list[list[Any]]:
    """Size and time of change of those that are files."""
    found = []
    for file in files:
        with contextlib.suppress(OSError, ValueError):  # an option's text may be no name of a file
            if file.is_file():
                stat = file.stat()
                found.append([str(file.resolve()), stat.st_size, stat.st_mtime_ns])
    return found


def _texts(option: Any) -> Iterator[str]:
    """All texts in an option, however deep."""
    if isinstance(option, str):
        yield option
    elif isinstance(option, Mapping | list):
        for part in option.values() if isinstance(option, Mapping) else option:
            yield from _texts(part)


def _check_options(option: str, trace: Mapping[str, Any]) -> None:
    # readers and generators load Arrow, and a grid of known options is planned without
    from sim import synth
    from sim import traces as formats

    module: Any = synth if "synth" in trace else formats
    plugins = synth.GENERATORS if "synth" in trace else formats.FORMATS
    name = trace["synth" if "synth" in trace else "format"]
    given = {key: trace[key] for key in sorted(trace) if key not in OWN}
    check_known(f"option of trace={option}", given, module.options(name), "unknown key")
    _check_values("trace", given, _hints(plugins.function(name)))


def _check_knobs(option: str, chosen: Any) -> None:
    from sim import knobs  # they load Arrow, too

    if not isinstance(chosen, Mapping):
        raise InputError(f"trace.knobs of {option} must be {{name: {{option: value}}}}")
    for name, options in chosen.items():
        check_known(f"option of knob {name}", options or {}, knobs.options(name), "unknown key")
        _check_values(f"trace.knobs.{name}", options or {}, _hints(getattr(knobs, name)))


_hints = cache(hints_of)


def _check_values(where: str, options: Mapping[str, Any], hints: Mapping[str, Any]) -> None:
    """Hold options to the annotations of the function that takes them."""
    for key, value in options.items():
        if key in hints:
            check_value(f"{where}.{key}", value, hints[key])


def _check_path(option: str, path: Any) -> None:
    if path is None or path == "???":
        raise InputError(f"trace={option} needs a file: give trace.path=FILE", rule="missing path")
    check_value("trace.path", path, str)
    if remote.is_remote(path):
        remote.check(path)
    elif not remote.here(path).exists():
        raise InputError(f"trace.path={path}: there is no such file", rule="missing file")
