"""Traces of cells: checks, identity and preparation of their workloads."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.base.errors import InputError
from sim.base.parameters import check as check_value
from sim.base.parameters import type_hints
from sim.base.plugins import check_names
from sweep.grid import cluster_size, config_tree, recipe, remote
from sweep.grid.recipe import ADD, AFTER, GENERIC_KEYS, WINDOW_KEYS

if TYPE_CHECKING:
    from sim.workload.workload import Workload


SOURCES = ("format", "synth")
"""Keys that name the reader or the generator; a file may have the same name."""


def check(option: str, trace: Mapping[str, Any], *, has_files: bool = True) -> None:
    """Refuse a trace that can't be loaded, as far as its configuration shows.

    Without `has_files`, its files need not be on this machine.
    """
    if sum(key in trace for key in SOURCES) != 1:
        raise InputError(
            f"trace={option} must name either a format to read or a synth to draw from, "
            f"not {' and '.join(key for key in SOURCES if key in trace) or 'neither'}"
        )
    for key in WINDOW_KEYS:
        value = trace.get(key)
        if value is not None and (type(value) not in (int, float) or not math.isfinite(value)):
            raise InputError(f"trace.{key} must be a time in s, not {value!r}", rule="wrong type")
    begin, end = (trace.get(key) for key in WINDOW_KEYS)
    if begin is not None and end is not None and begin >= end:
        raise InputError(f"trace.begin_s ({begin}) must be before trace.end_s ({end})")
    _check_options(option, trace)
    _check_transforms(option, trace, has_files=has_files)
    if "format" in trace:
        _check_path(option, trace.get("path"), has_files=has_files)


def identity(
    trace: Mapping[str, Any], cluster: Mapping[str, Any], digest: Callable[[Path], str]
) -> dict[str, Any]:
    """Return everything that determines a workload except its sources, without loading it.

    Equal identities and equal sources give the same workload. The identity holds the configuration,
    the name and `digest` of every file that it names, in any folder, and the cluster where arrivals
    are stretched to it.
    """
    options = {
        key: value if key in SOURCES else _with_digests(value, digest)
        for key, value in with_paths(trace, lambda path: "").items()
        if key not in ("path", "module")  # where it lies; its sources count by themselves
    }
    parts: dict[str, Any] = {"trace": options, "files": [], "stretch": None}
    if "path" in trace:
        parts["files"] = _file_digests(trace["path"], digest)
    added = [*paths(trace)]["path" in trace :]
    if added:
        parts["added"] = [_file_digests(path, digest) for path in added]
    if cluster_size.stretches(cluster):
        parts["stretch"] = {key: cluster.get(key) for key in ("shape", "count", "load", "tails")}
    elif trace.get(AFTER) and cluster.get("count") is None:
        sized_by = ("shape", "load", "usual_load", "tails")
        parts["sized"] = {key: cluster.get(key) for key in sized_by}
    return parts


FROM_TRACE = "from_trace"
"""Shape of a cluster that the trace tells."""


def with_own_cluster(parts: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """Return a trace and a cluster of shape `FROM_TRACE` with the cluster that the trace tells.

    `folder` is that of real traces, to which the trace's path may refer.

    Raises
    ------
    InputError
        If the trace tells none, or is not there.
    """
    raw = {key: value for key, value in parts["trace"].items() if key not in ("transforms", AFTER)}
    cluster = None
    if "format" in raw:
        trace = config_tree.resolved({"trace": raw, "paths": {"traces": folder}})["trace"]
        cluster = _own_cluster(trace)
    if cluster is None:
        raise InputError(
            "cluster=from_trace takes the cluster from the trace, as of trace=slurm_site, and this "
            "one tells none: choose another, such as cluster=slots",
            rule="wrong type",
        )
    return {**parts, "cluster": {**parts["cluster"], **cluster}}


def _own_cluster(trace: Mapping[str, Any]) -> dict[str, Any] | None:
    from sim import traces as formats  # readers load Arrow

    path = trace.get("path")
    _check_path(str(trace["format"]), path, has_files=True)
    options = {key: trace[key] for key in trace if key not in GENERIC_KEYS}
    if trace.get("begin_s") is not None:
        options["begin_s"] = float(trace["begin_s"])
    local, module = str(remote.local_path(str(path))), trace.get("module")
    return formats.cluster_of(trace["format"], local, module=module, **options)


def paths(trace: Mapping[str, Any]) -> Iterator[str]:
    """Yield the path of a trace, if it has one, and those of traces that its transforms add."""
    if "path" in trace:
        yield trace["path"]
    for name, chosen in recipe.all_transforms(trace):
        if name == ADD:
            yield from paths(chosen["trace"])


def with_paths(trace: Mapping[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    """Return a trace's configuration with each of its `paths` changed."""

    def added(transforms: Any) -> Any:
        return {
            name: {**chosen, "trace": with_paths(chosen["trace"], change)}
            if name == ADD
            else chosen
            for name, chosen in transforms.items()
        }

    changed = dict(trace)
    if "path" in trace:
        changed["path"] = change(trace["path"])
    if trace.get("transforms"):
        changed["transforms"] = added(trace["transforms"])
    if trace.get(AFTER):
        changed[AFTER] = [added(transforms) for transforms in trace[AFTER]]
    return changed


def _file_digests(path: str, digest: Callable[[Path], str]) -> list[list[str]]:
    """Return the name and digest of a file, or of all files of a folder."""
    root = remote.local_path(path).resolve()
    folder = root if root.is_dir() else root.parent
    files = sorted(root.rglob("*")) if root.is_dir() else [root]
    return [[file.relative_to(folder).as_posix(), digest(file)] for file in files if file.is_file()]


def source(trace: Mapping[str, Any]) -> tuple[Callable[..., Workload], dict[str, Any]]:
    """Return the generator or reader of a trace, and its options with their defaults."""
    # readers and generators load Arrow, which a plan of known options does not need
    from sim import synth
    from sim import traces as formats

    module: Any = synth if "synth" in trace else formats
    plugins = synth.GENERATORS if "synth" in trace else formats.FORMATS
    name = trace["synth" if "synth" in trace else "format"]
    own = trace.get("module")
    return plugins.function(name, own), module.options(name, own)


def option_names(trace: Mapping[str, Any]) -> set[str]:
    """Return the keys that a trace of this format, or of this generator, may have."""
    return {*GENERIC_KEYS, *source(trace)[1]}


def prepare(trace: Mapping[str, Any], cluster: Mapping[str, Any]) -> Workload:
    """Load or draw the workload, cut it to its window, apply transforms, stretch its arrivals."""
    local = with_paths(trace, lambda path: str(remote.local_path(path)))
    return recipe.make(local, cluster)


def _with_digests(option: Any, digest: Callable[[Path], str]) -> Any:
    """Replace each text in an option that is the path of a file by its name and digest."""
    if isinstance(option, Mapping):
        return {key: _with_digests(value, digest) for key, value in option.items()}
    if isinstance(option, list):
        return [_with_digests(value, digest) for value in option]
    if isinstance(option, str):
        with contextlib.suppress(OSError, ValueError):  # a text need not be a file name
            file = Path(option)
            if file.is_file():
                return [file.name, digest(file)]
    return option


def _check_options(option: str, trace: Mapping[str, Any]) -> None:
    arguments = {key: trace[key] for key in sorted(trace) if key not in GENERIC_KEYS}
    function, known = source(trace)
    _check_arguments(f"trace={option}", "trace", arguments, known, _hints(function))


def _check_transforms(option: str, trace: Mapping[str, Any], *, has_files: bool) -> None:
    from sim import transforms  # they load Arrow, too

    for key, chosen in (("transforms", [trace.get("transforms")]), (AFTER, trace.get(AFTER))):
        if not all(isinstance(entry or {}, Mapping) for entry in chosen or ()):
            raise InputError(f"trace.{key} of {option} must be {{name: {{option: value}}}}")
    for name, options in recipe.all_transforms(trace):
        if name == ADD:
            try:
                check(f"{option}'s addition", options["trace"], has_files=has_files)
            except InputError as error:
                message = f"the trace that is added to {option}: {error.message}"
                raise InputError(message, rule=error.rule) from None
            continue
        known, hints = transforms.options(name), _hints(getattr(transforms, name))
        _check_arguments(f"transform {name}", f"trace.transforms.{name}", options, known, hints)


_hints = cache(type_hints)


def _check_arguments(
    owner: str,
    prefix: str,
    arguments: Mapping[str, Any],
    known: Collection[str],
    hints: Mapping[str, Any],
) -> None:
    """Check options against the parameters of the function that takes them."""
    check_names(f"option of {owner}", arguments, known, "unknown key")
    for key, value in arguments.items():
        if key in hints:
            check_value(f"{prefix}.{key}", value, hints[key])


def _check_path(option: str, path: Any, *, has_files: bool) -> None:
    if path is None or path == "???":
        raise InputError(f"trace={option} needs a file: give trace.path=FILE", rule="missing path")
    check_value("trace.path", path, str)
    if remote.is_remote(path):
        remote.check(path)
    elif has_files and not remote.local_path(path).exists():
        raise InputError(
            f"trace.path={path}: no such file; give trace.path=FILE, or paths.traces=DIR with the "
            "real traces (--help traces says which need files)",
            rule="missing file",
        )
