"""The cells of two sweeps matched by their labels, column by column: which came out otherwise."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, Mask
from sim.base.columns import from_numpy, to_numpy
from sim.base.errors import InputError
from sweep.stats.arrange import group_ids
from sweep.stats.cell_columns import NOT_METRICS, Rows, factorize, text, to_float64
from sweep.stats.metric_format import sort_metrics
from sweep.store.folder import SweepFolder

SAME, CHANGED, ONLY_A, ONLY_B = "same", "changed", "only in A", "only in B"
FAILS, MENDED, FAILS_TOO = "fails in B", "failed in A", "fails in both"
VERDICTS: Final = (SAME, CHANGED, FAILS, MENDED, FAILS_TOO, ONLY_A, ONLY_B)
"""`SAME` is every bit of every metric."""
NOWHERE = -1


@dataclass(frozen=True)
class Metric:
    """A metric of all pairs; NaN where a sweep has none of it."""

    name: str
    a: F8
    b: F8
    differs: Mask  # in any bit, of pairs that neither sweep failed at


@dataclass(frozen=True)
class Matched:
    """Cells as they are in one sweep or both: those of A in their order, then B's own."""

    folders: tuple[SweepFolder, SweepFolder]
    texts: Mapping[str, Sequence[str]]  # by label: what occurs, each once
    codes: Mapping[str, Rows]  # by label: which of these each pair has
    rows: tuple[Rows, Rows]  # of each pair in A's and B's table; `NOWHERE` if it is not there
    names: Sequence[str]  # of the metrics, in the order shown
    same_key: Mask  # whether both are one cell of the cache
    verdict: Rows  # of each pair its place in `VERDICTS`

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.verdict)

    def has(self, *verdicts: str) -> Mask:
        """Tell which pairs came out like that."""
        return np.isin(self.verdict, [VERDICTS.index(verdict) for verdict in verdicts])

    def verdict_of(self, at: int) -> str:
        """Say how a pair came out."""
        return VERDICTS[self.verdict[at]]

    def labels_of(self, at: int) -> dict[str, str]:
        """Return what a pair is matched by."""
        return {name: self.texts[name][codes[at]] for name, codes in self.codes.items()}

    def metrics(self) -> Iterator[Metric]:
        """Read the metrics, one after the other."""
        of_both = self.has(SAME, CHANGED)
        for name in self.names:
            yield _metric(self.folders, self.rows, name, of_both)


def match(a: SweepFolder, b: SweepFolder, labels: Sequence[str], but: Sequence[str]) -> Matched:
    """Match the cells of two sweeps, and say how each came out; metrics of `but` don't count.

    Raises InputError where labels do not tell the cells of a sweep apart.
    """
    folders = (a, b)
    columns = {name: _joined([_texts(folder, name) for folder in folders]) for name in labels}
    heads = [folder.cells(["key", "status"]) for folder in folders]
    n_mine = heads[0].num_rows
    texts = {name: values for name, (values, _) in columns.items()}
    number = group_ids([(len(values), codes) for values, codes in columns.values()])
    for folder, begin, end in ((a, 0, n_mine), (b, n_mine, len(number))):
        at = _repeated(number[begin:end])
        if at is not None:
            words = (values[codes[begin + at]] for values, codes in columns.values())
            raise InputError(f"{folder.sweep} has several cells {', '.join(filter(None, words))}")
    rows = _pairs(number[:n_mine], number[n_mine:])
    taken = np.where(rows[0] == NOWHERE, n_mine + rows[1], rows[0])
    codes = {name: of_each[taken] for name, (_, of_each) in columns.items()}
    same_key, verdict = _so_far(heads, rows)
    skip = {*NOT_METRICS, *labels, *but}
    names = [n for folder in folders for n in _metrics(folder) if n not in skip]
    names = sort_metrics(list(dict.fromkeys(names)))
    of_both = verdict == VERDICTS.index(SAME)
    for name in names:
        verdict[_metric(folders, rows, name, of_both).differs] = VERDICTS.index(CHANGED)
    return Matched(folders, texts, codes, rows, names, same_key, verdict)


def _texts(folder: SweepFolder, name: str) -> tuple[list[str], Rows]:
    """Return the texts of a label, and of each row which it is.

    What has no column is looked up in the cells' own configurations.
    """
    if name in folder.schema().names:
        values, which = factorize(folder.cells([name]).column(name))
    else:
        parts = folder.parts(columns=["config"])
        found = [_configured(each, name) for p in parts for each in p["config"].to_pylist()]
        values, which = found, np.arange(len(found))
    return [text(value) for value in values], which


def _configured(config: str | None, name: str) -> Any:
    """Value of a key in a cell's own configuration; None if it is not there."""
    value: Any = json.loads(config or "{}")
    head, *rest = name.split(".")
    for part in [head, *(["params"] if head == "policy" else []), *rest]:
        value = value.get(part) if isinstance(value, Mapping) else None
    return value if isinstance(value, str | int | float | None) else json.dumps(value)


def _joined(sides: Sequence[tuple[list[str], Rows]]) -> tuple[list[str], Rows]:
    """Give the texts of both sweeps one numbering, and the codes of all their rows by it."""
    known: dict[str, int] = {}
    codes = [
        np.array([known.setdefault(value, len(known)) for value in values], np.int64)[which]
        for values, which in sides
    ]
    return list(known), np.concatenate(codes)


def _repeated(number: Rows) -> int | None:
    """Return the first row of a number that was there before; None if there is none."""
    _, first = np.unique(number, return_index=True)
    again = np.setdiff1d(np.arange(len(number)), first)
    return int(again[0]) if len(again) else None


def _pairs(mine: Rows, theirs: Rows) -> tuple[Rows, Rows]:
    place = np.full(max(mine.max(initial=-1), theirs.max(initial=-1)) + 1, NOWHERE)
    place[theirs] = np.arange(len(theirs))
    beside = place[mine]
    own = np.setdiff1d(np.arange(len(theirs)), beside)
    nowhere = np.full(len(own), NOWHERE)
    return np.concatenate([np.arange(len(mine)), nowhere]), np.concatenate([beside, own])


def _so_far(heads: Sequence[pa.Table], rows: tuple[Rows, Rows]) -> tuple[Mask, Rows]:
    """Tell which pairs have one key, and how they came out but for their metrics."""
    import pyarrow.compute as pc  # 0.05 s to import

    both = np.flatnonzero((rows[0] != NOWHERE) & (rows[1] != NOWHERE))
    verdict = np.where(rows[0] == NOWHERE, VERDICTS.index(ONLY_B), VERDICTS.index(ONLY_A))
    keys, failed = [], []
    for head, side in zip(heads, rows, strict=True):
        statuses, which = factorize(head["status"])
        fails = np.array([status == "failed" for status in statuses], bool)[which]
        failed.append(fails[side[both]])
        keys.append(head["key"].combine_chunks().take(from_numpy(side[both])))
    same_key = np.zeros(len(verdict), bool)
    same_key[both] = to_numpy(pc.equal(*keys))
    verdict[both] = np.select(
        [failed[0] & failed[1], failed[0], failed[1]],
        [VERDICTS.index(one) for one in (FAILS_TOO, MENDED, FAILS)],
        VERDICTS.index(SAME),
    )
    return same_key, verdict


def _metrics(folder: SweepFolder) -> list[str]:
    return [field.name for field in folder.schema() if pa.types.is_floating(field.type)]


def _metric(
    folders: Sequence[SweepFolder], rows: tuple[Rows, Rows], name: str, of_both: Mask
) -> Metric:
    ends = []
    for folder, side in zip(folders, rows, strict=True):
        values = np.full(len(side), np.nan)
        if name in folder.schema().names:
            there = side != NOWHERE
            values[there] = to_float64(folder.cells([name]), name)[side[there]]
        ends.append(values)
    a, b = ends
    differs = (a.view(np.int64) != b.view(np.int64)) & ~(np.isnan(a) & np.isnan(b))
    return Metric(name, a, b, differs & of_both)
