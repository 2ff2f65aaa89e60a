"""The file of probability tables: JSON, short enough to read and to diff; and back, checked."""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import F8, I8
from sim.base.errors import InputError
from sim.base.files import write_text
from sim.synth.alibaba2018.tables import (
    FULL,
    ROLES,
    TREE,
    WIDE,
    Conditional,
    Grid,
    Histogram,
    Joint,
    Links,
    Ranks,
    Tables,
    check_tables,
)

FORMAT = "probability tables 1"
"""First entry of the file; a later, incompatible form gets another number."""
SHIPPED = Path(__file__).with_name("tables.json")
"""The tables of Alibaba's cluster-trace-v2018, which travel with the package."""
MOST = 2**31 - 1
PathLike = str | os.PathLike[str]
Table = Histogram | Conditional | Grid

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
_MATRICES = ("job", "root", "pull", "noise")


def write_tables(tables: Tables, path: PathLike) -> None:
    """Write `tables` to the file `path`, whole or not at all."""
    parts = [
        f'"format": {json.dumps(FORMAT)}',
        f'"provenance": {_long_json(tables.provenance)}',
        f'"quantum": {json.dumps(dict(tables.quantum))}',
        *(f'"{name}": {_show(getattr(tables, name))}' for name in (*_PLAIN, *_GIVEN)),
        *(f'"demand {name}": {_show(table)}' for name, table in tables.demand.items()),
    ]
    if tables.links is not None:
        parts.append(f'"links": {_show_links(tables.links)}')
    if tables.joint is not None:
        parts.append(f'"joint": {_show_joint(tables.joint)}')
    write_text(Path(path), "{\n" + ",\n".join(parts) + "\n}\n")


def _show_links(links: Links) -> str:
    arrays = ("first", *_COUNTS)
    return _object(
        f'"provenance": {_long_json(links.provenance)}',
        *(f'"{name}": {getattr(links, name)!r}' for name in _RUNS),
        *(f'"{name}": {json.dumps(getattr(links, name).tolist())}' for name in arrays),
        *(f'"{name}": {_show(getattr(links, name))}' for name in _LINKED),
    )


def _show_joint(joint: Joint) -> str:
    ranks = (
        f'"{name}": {{"edges": [{_wrap(_numbers(np.round(table.edges, 9)))}],\n'
        f' "counts": {_rows(table.counts)}}}'
        for name, table in joint.ranks.items()
    )
    return _object(
        f'"provenance": {_long_json(joint.provenance)}',
        f'"unequal": {joint.unequal!r}',
        f'"taken_over": {json.dumps(joint.taken_over.tolist())}',
        *(f'"{name}": {_rows(getattr(joint, name))}' for name in _MATRICES),
        f'"ranks": {_object(*ranks)}',
    )


def _show(table: Table) -> str:
    """Write a histogram, or one for each condition, and second condition."""
    if isinstance(table, Histogram):
        counts = ", ".join(map(str, table.counts.tolist()))
        return f'{{"values": [{_wrap(_numbers(table.values))}],\n "counts": [{_wrap(counts)}]}}'
    inner = zip(table.lower.tolist(), _inside(table), strict=True)
    return _object(*(f'"{low}": {_show(part)}' for low, part in inner))


def _inside(table: Conditional | Grid) -> tuple[Table, ...]:
    return table.rows if isinstance(table, Grid) else table.cells


def _object(*parts: str) -> str:
    return "{\n" + ",\n".join(parts) + "}"


def _long_json(content: Any) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False)


def _numbers(values: F8) -> str:
    """Write numbers, whole ones without a point."""
    return ", ".join(f"{v:.0f}" if v == int(v) else repr(float(v)) for v in values)


def _rows(matrix: NDArray[Any]) -> str:
    return "[" + ",\n ".join(_wrap(json.dumps(row)) for row in matrix.tolist()) + "]"


def _wrap(text: str) -> str:
    """Break a long line."""
    return "\n".join(textwrap.wrap(text, 100)) if len(text) > 80 else text


def read_tables(path: PathLike = SHIPPED) -> Tables:
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
        name: _histogram(raw[name], name, path, 1 if name in _WHOLE else None) for name in _PLAIN
    }
    read |= {name: _read(Conditional, raw[name], name, path, 1) for name in _GIVEN}
    if "links" in raw:
        read["links"] = _read_links(raw["links"], path)
    read["demand"] = {
        name.removeprefix("demand "): _histogram(table, name, path)
        for name, table in raw.items()
        if name.startswith("demand ")
    }
    if "joint" in raw:
        metrics = ("duration_s", "n_tasks", *(f"demand {name}" for name in read["demand"]))
        read["joint"] = _read_joint(raw["joint"], metrics, path)
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
        return _histogram(raw, name, path, least)
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


def _histogram(raw: Any, name: str, path: PathLike, least: int | None = None) -> Histogram:
    """Read a histogram; of whole values from `least`, or, without it, of values of at least 0."""
    try:
        values = np.asarray(raw["values"], dtype=np.float64)
        counts = np.asarray(raw["counts"], dtype=np.float64)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"table {name!r} must be {{values: [numbers], counts: [whole numbers]}}", file=path
        ) from error
    low = 0 if least is None else least
    broken = (
        (values.ndim != 1 or values.shape != counts.shape or not len(values), "one count a value"),
        (not np.isfinite(values).all() or (np.diff(values) <= 0).any(), "finite, ascending values"),
        (not ((counts >= 1) & (counts % 1 == 0)).all(), "whole counts of at least 1"),
        (not counts.sum() < 2**53, "counts that add up to less than 2^53"),
        (least is None and (values < 0).any(), "values of at least 0"),
        (
            least is not None
            and not ((values >= low) & (values <= MOST) & (values % 1 == 0)).all(),
            f"whole values from {low} to {MOST}",
        ),
    )
    for is_broken, needed in broken:
        if is_broken:
            raise InputError(f"table {name!r} needs {needed}", file=path, rule="bad table")
    return Histogram(values, counts.astype(np.int64))


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
    for part in _inside(table):
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


def _read_joint(raw: Any, metrics: tuple[str, ...], path: PathLike) -> Joint:
    try:
        ranks = {
            name: Ranks(_array(table["edges"], 1), _array(table["counts"], 2).astype(np.int64))
            for name, table in raw["ranks"].items()
        }
        joint = Joint(
            ranks=ranks,
            **{name: _array(raw[name], 2) for name in _MATRICES},
            taken_over=_array(raw["taken_over"], 1),
            unequal=float(raw["unequal"]),
            provenance=raw.get("provenance", {}),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"'joint' must hold ranks, {', '.join(_MATRICES)}, taken_over and unequal: {error}",
            file=path,
            rule="bad table",
        ) from error
    n, chances = len(metrics), joint.taken_over
    broken = [
        (tuple(ranks) != metrics, f"ranks of {', '.join(metrics)}, in this order"),
        (not 0 <= joint.unequal < 1, "unequal from 0 to below 1"),
        (
            chances.shape != (n,) or not ((chances >= 0) & (chances <= 1)).all(),
            f"{n} chances taken_over",
        ),
        *((getattr(joint, m).shape != (n, n), f"{m} of {n} rows and columns") for m in _MATRICES),
        *(
            (
                _wrong_ranks(table),
                f"ranks {name!r} that ascend from 0 to 1, with a count for each bin and role",
            )
            for name, table in ranks.items()
        ),
    ]
    for is_broken, needed in broken:
        if is_broken:
            raise InputError(f"'joint' needs {needed}", file=path, rule="bad table")
    return joint


def _wrong_ranks(table: Ranks) -> bool:
    edges, counts = table.edges, table.counts
    good = (
        counts.shape in ((1, len(edges) - 1), (ROLES, len(edges) - 1))
        and edges[0] == 0
        and edges[-1] == 1
        and bool((np.diff(edges) > 0).all())
        and bool((counts >= 0).all() and (counts.sum(axis=1) > 0).all())
    )
    return not good


def _array(raw: Any, n_axes: int) -> F8:
    array = np.asarray(raw, dtype=np.float64)
    if array.ndim != n_axes or not np.isfinite(array).all():
        raise ValueError("a list of finite numbers was expected")
    return array
