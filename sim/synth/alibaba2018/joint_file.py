"""What the file of tables tells of attributes together and of arrivals; and back, checked."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from sim.base.arrays import F8
from sim.base.errors import InputError
from sim.synth.alibaba2018.tables import ROLES, Arrivals, BySize, Cells, Joint, OfSize, Ranks
from sim.synth.alibaba2018.tables_text import (
    PathLike,
    array,
    in_braces,
    long_json,
    numbers,
    read_histogram,
    rows,
    show,
    wrap,
)

_MATRICES = ("job", "root", "pull", "noise")


def show_joint(joint: Joint) -> str:
    """Write a copula."""
    ranks = (
        f'"{name}": {{"edges": [{wrap(numbers(np.round(table.edges, 9)))}],\n'
        f' "counts": {rows(table.counts)}}}'
        for name, table in joint.ranks.items()
    )
    return in_braces(
        f'"provenance": {long_json(joint.provenance)}',
        f'"unequal": {joint.unequal!r}',
        f'"taken_over": {json.dumps(joint.taken_over.tolist())}',
        *(f'"{name}": {rows(getattr(joint, name))}' for name in _MATRICES),
        f'"ranks": {in_braces(*ranks)}',
    )


def read_joint(raw: Any, metrics: tuple[str, ...], path: PathLike) -> Joint:
    """Read what `show_joint` wrote."""
    try:
        ranks = {
            name: Ranks(array(table["edges"], 1), array(table["counts"], 2).astype(np.int64))
            for name, table in raw["ranks"].items()
        }
        joint = Joint(
            ranks=ranks,
            **{name: array(raw[name], 2) for name in _MATRICES},
            taken_over=array(raw["taken_over"], 1),
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
        and not _wrong_edges(edges)
        and bool((counts >= 0).all() and (counts.sum(axis=1) > 0).all())
    )
    return not good


def show_by_size(by_size: BySize) -> str:
    """Write what stages have, by the number of stages of their job."""
    parts = zip(by_size.lower.tolist(), by_size.parts, strict=True)
    return in_braces(*(f'"{low}": {_show_of_size(of)}' for low, of in parts))


def _show_of_size(of: OfSize) -> str:
    together = of.joint
    if isinstance(together, Cells):
        edges = (f'"{n}": [{wrap(numbers(np.round(e, 9)))}]' for n, e in together.edges.items())
        # a line a metric: short, and quick to read
        cells = in_braces(
            f'"edges": {in_braces(*edges)}',
            f'"places": {rows(together.places.T)}',
            f'"counts": [{wrap(numbers(together.counts.astype(np.float64)))}]',
        )
        written = f'"cells": {cells}'
    else:
        written = f'"joint": {show_joint(together)}'
    tables = (f'"{name}": {show(table)}' for name, table in of.tables.items())
    return in_braces(f'"tables": {in_braces(*tables)}', written)


def read_by_size(raw: Any, metrics: tuple[str, ...], path: PathLike) -> BySize:
    """Read what `show_by_size` wrote."""
    try:
        lower = np.array([int(key) for key in raw], dtype=np.int64)
        parts = [(of["tables"], of) for of in raw.values()]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _bad("'by_size' must hold tables for each number of stages", path) from error
    if not len(lower) or lower[0] < 1 or (np.diff(lower) <= 0).any():
        raise _bad("the numbers of stages of 'by_size' must ascend from 1 or more", path)
    read = []
    for low, (tables, of) in zip(lower.tolist(), parts, strict=True):
        label = f"by_size {low}"
        if not isinstance(tables, dict) or tuple(tables) != metrics:
            raise _bad(f"{label!r} needs tables of {', '.join(metrics)}, in this order", path)
        histograms = {
            name: read_histogram(table, f"{label} {name}", path, 1 if name == "n_tasks" else None)
            for name, table in tables.items()
        }
        together: Joint | Cells = (
            _read_cells(of["cells"], metrics, path)
            if "cells" in of
            else read_joint(of.get("joint"), metrics, path)
        )
        read.append(OfSize(histograms, together))
    return BySize(lower, tuple(read))


def _read_cells(raw: Any, metrics: tuple[str, ...], path: PathLike) -> Cells:
    try:
        edges = {name: array(raw["edges"][name], 1) for name in metrics}
        places = array(raw["places"], 2).T.astype(np.int64)
        counts = array(raw["counts"], 1).astype(np.int64)
    except (KeyError, TypeError, ValueError) as error:
        raise _bad(f"'cells' must hold edges, places and counts: {error}", path) from error
    good = (
        places.shape == (len(counts), len(metrics))
        and len(counts) > 0
        and bool((counts >= 1).all() and (places >= 0).all())
        and all(_wrong_edges(e) is False for e in edges.values())
        and all((places[:, m] < len(e) - 1).all() for m, e in enumerate(edges.values()))
    )
    if not good:
        raise _bad(
            "'cells' needs edges that ascend from 0 to 1, and for each cell a bin of every metric "
            "and a count of at least 1",
            path,
        )
    return Cells(edges, places, counts)


def show_arrivals(arrivals: Arrivals) -> str:
    """Write when jobs came."""
    return in_braces(
        f'"block_s": {arrivals.block_s!r}, "clock_s": {arrivals.clock_s!r}',
        f'"interval_s": [{wrap(numbers(arrivals.interval_s))}]',
    )


def read_arrivals(raw: Any, path: PathLike) -> Arrivals:
    """Read what `show_arrivals` wrote."""
    try:
        interval_s = array(raw["interval_s"], 1)
        block_s, clock_s = float(raw["block_s"]), float(raw["clock_s"])
    except (KeyError, TypeError, ValueError) as error:
        text = f"'arrivals' must hold interval_s, block_s and clock_s: {error}"
        raise _bad(text, path) from error
    most_s = interval_s.sum()
    good = 0 < block_s <= clock_s <= most_s and clock_s % block_s == 0
    if not good or not (interval_s >= 0).all():
        raise _bad(
            "'arrivals' needs intervals of at least 0 s, block_s above 0 and, as clock_s, a "
            f"multiple of it that is at most their sum ({most_s:g})",
            path,
        )
    return Arrivals(interval_s, block_s, clock_s)


def _bad(text: str, path: PathLike) -> InputError:
    return InputError(text, file=path, rule="bad table")


def _wrong_edges(edges: F8) -> bool:
    ascend = len(edges) > 1 and edges[0] == 0 and edges[-1] == 1
    return not (ascend and bool((np.diff(edges) > 0).all()))
