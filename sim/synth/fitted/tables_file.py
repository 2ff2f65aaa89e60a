"""The file of probability tables: JSON, short enough to read and to diff; and back, checked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import I8
from sim.base.errors import InputError
from sim.base.files import write_text
from sim.synth.fitted.joint_file import (
    read_arrivals,
    read_by_size,
    read_joint,
    show_arrivals,
    show_by_size,
    show_joint,
)
from sim.synth.fitted.tables import (
    FULL,
    TREE,
    WIDE,
    Conditional,
    Grid,
    Histogram,
    Links,
    Tables,
    check_tables,
)
from sim.synth.fitted.tables_text import (
    MOST,
    PathLike,
    Table,
    in_braces,
    inside,
    long_json,
    read_histogram,
    show,
)

FORMAT = "probability tables 1"
"""First entry of the file; a later, incompatible form gets another number."""

_WHOLE = ("n_stages", "n_tasks")
_PLAIN = (*_WHOLE, "duration_s", "interval_s")
_GIVEN = ("length", "level")

_RUNS = ("run_tree", "run_other")
_COUNTS = dict.fromkeys(("idle_tree", "idle_other", "idle_late", "scatter", "far_busy"), (3, 2)) | {
    "far_idle": (2,)
}
_JOINED = ("joined_tree", "joined_first", "joined_plain", "joined_again")
_LINKED: dict[str, tuple[type[Table], int, int]] = {
    "span": (Histogram, 2, MOST),
    "surplus": (Conditional, 0, FULL),
    "far": (Conditional, 0, MOST),
    "shape": (Grid, TREE, WIDE),
    **dict.fromkeys(_JOINED, (Grid, 0, FULL)),
}
"""Tables of the edge step: of how many conditions, and the least and greatest value."""


def write_tables(tables: Tables, path: PathLike) -> None:
    """Write `tables` to the file `path`, whole or not at all."""
    parts = [
        f'"format": {json.dumps(FORMAT)}',
        f'"provenance": {long_json(tables.provenance)}',
        f'"quantum": {json.dumps(dict(tables.quantum))}',
        *(f'"{name}": {show(getattr(tables, name))}' for name in (*_PLAIN, *_GIVEN)),
        *(f'"demand {name}": {show(table)}' for name, table in tables.demand.items()),
    ]
    if tables.links is not None:
        parts.append(f'"links": {_show_links(tables.links)}')
    if tables.joint is not None:
        parts.append(f'"joint": {show_joint(tables.joint)}')
    if tables.longest is not None:
        parts.append(f'"longest": {show(tables.longest)}')
    if tables.by_size is not None:
        parts.append(f'"by_size": {show_by_size(tables.by_size)}')
    if tables.arrivals is not None:
        parts.append(f'"arrivals": {show_arrivals(tables.arrivals)}')
    write_text(Path(path), "{\n" + ",\n".join(parts) + "\n}\n")


def _show_links(links: Links) -> str:
    arrays = ("first", *_COUNTS)
    return in_braces(
        f'"provenance": {long_json(links.provenance)}',
        *(f'"{name}": {getattr(links, name)!r}' for name in _RUNS),
        *(f'"{name}": {json.dumps(getattr(links, name).tolist())}' for name in arrays),
        *(f'"{name}": {show(getattr(links, name))}' for name in _LINKED),
    )


def read_tables(path: PathLike) -> Tables:
    """Read what `write_tables` wrote."""
    try:
        raw = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            f"can't read the tables: {error.strerror}; make them with `python -m sim fit`",
            file=path,
        ) from error
    except ValueError as error:
        line = getattr(error, "lineno", None)
        raise InputError(f"not a file of tables: {error}", file=path, line=line) from error
    if not isinstance(raw, dict) or raw.get("format") != FORMAT:
        raise InputError(
            f"not a file of tables (no format {FORMAT!r}); make one with `python -m sim fit`",
            file=path,
        )
    needed = (*_PLAIN, *_GIVEN, "quantum")
    missing = [name for name in needed if name not in raw]
    if missing:
        raise InputError(f"no table {missing[0]!r}; needed: {', '.join(needed)}", file=path)
    read: dict[str, Any] = {
        name: read_histogram(raw[name], name, path, 1 if name in _WHOLE else None)
        for name in _PLAIN
    }
    read |= {name: _read(Conditional, raw[name], name, path, 1) for name in _GIVEN}
    if "links" in raw:
        read["links"] = _read_links(raw["links"], path)
    read["demand"] = {
        name.removeprefix("demand "): read_histogram(table, name, path)
        for name, table in raw.items()
        if name.startswith("demand ")
    }
    metrics = ("duration_s", "n_tasks", *(f"demand {name}" for name in read["demand"]))
    if "joint" in raw:
        read["joint"] = read_joint(raw["joint"], metrics, path)
    if "longest" in raw:
        read["longest"] = read_histogram(raw["longest"], "longest", path)
        metrics = (*metrics, "longest")
    if "by_size" in raw:
        read["by_size"] = read_by_size(raw["by_size"], metrics, path)
    if "arrivals" in raw:
        read["arrivals"] = read_arrivals(raw["arrivals"], path)
    quantum = _quantum(raw["quantum"], path)
    tables = Tables(**read, quantum=quantum, provenance=raw.get("provenance", {}))
    check_tables(tables, path)
    return tables


def _quantum(raw: Any, path: PathLike) -> dict[str, float]:
    if isinstance(raw, dict) and all(
        isinstance(v, (int, float)) and not isinstance(v, bool) and 0 < v < float("inf")
        for v in raw.values()
    ):
        return {str(k): float(v) for k, v in raw.items()}
    raise InputError("'quantum' must give a positive number for each resource", file=path)


def _read(kind: type[Table], raw: Any, name: str, path: PathLike, least: int) -> Table:
    """Read a histogram of whole values from `least`, or one for each condition, and second one."""
    if kind is Histogram:
        return read_histogram(raw, name, path, least)
    try:
        lower = np.array([int(key) for key in raw], dtype=np.int64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"table {name!r} must hold one table for each whole number it depends on", file=path
        ) from error
    if not isinstance(raw, dict) or not len(lower) or (np.diff(lower) <= 0).any():
        raise InputError(f"the conditions of table {name!r} must be ascending", file=path)
    inner: type[Table] = Conditional if kind is Grid else Histogram
    parts = (_read(inner, part, f"{name} given {key}", path, least) for key, part in raw.items())
    return kind(lower, tuple(parts))  # type: ignore[arg-type]  # as deep as `kind` is


def _read_links(raw: Any, path: PathLike) -> Links:
    if not isinstance(raw, dict):
        raise InputError("'links' must hold the tables of the edge step", file=path)
    for name in (*_RUNS, "first", *_COUNTS, *_LINKED):
        if name not in raw:
            raise InputError(f"no table {'links ' + name!r}", file=path)
    read: dict[str, Any] = {name: _chance(raw[name], f"links {name}", path) for name in _RUNS}
    read["first"] = _at_least_0(
        raw["first"], (WIDE,), "'links first'", f"{WIDE} factors of at least 0", path
    )
    for name, shape in _COUNTS.items():
        words = f"whole counts, {shape}"
        counts: I8 = _at_least_0(raw[name], shape, repr(f"links {name}"), words, path, 1)
        read[name] = counts.astype(np.int64)
    for name, (kind, low, high) in _LINKED.items():
        least = low if kind is Histogram else 0
        read[name] = _read(kind, raw[name], f"links {name}", path, least)
        for cell in _cells(read[name]):
            if cell.values[0] < low or cell.values[-1] > high:
                raise InputError(
                    f"table {'links ' + name!r} needs values from {low} to {high}",
                    file=path,
                    rule="bad table",
                )
    return Links(**read, provenance=raw.get("provenance", {}))


def _cells(table: Table) -> Iterator[Histogram]:
    if isinstance(table, Histogram):
        yield table
        return
    for part in inside(table):
        yield from _cells(part)


def _chance(raw: Any, name: str, path: PathLike) -> float:
    if isinstance(raw, (int, float)) and not isinstance(raw, bool) and 0 <= raw < 1:
        return float(raw)
    raise InputError(f"{name!r} must be a chance from 0 to below 1, not {raw!r}", file=path)


def _at_least_0(
    raw: Any, shape: tuple[int, ...], name: str, words: str, path: PathLike, step: float = 0.0
) -> NDArray[Any]:
    """Read finite numbers of at least 0, multiples of `step` if it is positive."""
    try:
        numbers = np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.full(1, np.nan)
    ok = numbers.shape == shape and np.isfinite(numbers).all() and (numbers >= 0).all()
    if ok and not (step and (numbers % step).any()):
        return numbers
    raise InputError(f"{name} must be {words}, not {raw!r}", file=path)
