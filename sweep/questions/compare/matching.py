"""Match the cells of two sweeps by their labels, and compare their metrics bit by bit."""

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
"""Results of the comparison of a cell; `SAME` requires equal bits of every metric."""
NOWHERE = -1


@dataclass(frozen=True)
class Metric:
    """A metric of all pairs; NaN where a sweep does not have it."""

    name: str
    a: F8
    b: F8
    differs: Mask  # in any bit; False where a cell failed


@dataclass(frozen=True)
class Matched:
    """Cells of either sweep: those of A in their order, then those only in B."""

    folders: tuple[SweepFolder, SweepFolder]
    texts: Mapping[str, Sequence[str]]  # by label: its distinct values
    codes: Mapping[str, Rows]  # by label: each pair's index into these
    rows: tuple[Rows, Rows]  # each pair's row in A's and B's table; `NOWHERE` if missing
    names: Sequence[str]  # of the metrics, in the order shown
    same_key: Mask  # both are one cell of the cache
    verdict: Rows  # each pair's index into `VERDICTS`

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.verdict)

    def has(self, *verdicts: str) -> Mask:
        """Mark the pairs with any of these verdicts."""
        return np.isin(self.verdict, [VERDICTS.index(verdict) for verdict in verdicts])

    def verdict_of(self, pair: int) -> str:
        """Return the verdict of a pair."""
        return VERDICTS[self.verdict[pair]]

    def labels_of(self, pair: int) -> dict[str, str]:
        """Return the labels that a pair is matched by."""
        return {name: self.texts[name][codes[pair]] for name, codes in self.codes.items()}

    def metrics(self) -> Iterator[Metric]:
        """Read the metrics, one after the other."""
        is_compared = self.has(SAME, CHANGED)
        for name in self.names:
            yield _metric(self.folders, self.rows, name, is_compared)


def match(a: SweepFolder, b: SweepFolder, labels: Sequence[str], exclude: Sequence[str]) -> Matched:
    """Match the cells of two sweeps and judge each pair; metrics in `exclude` are ignored.

    Raises InputError if two cells of a sweep have the same labels.
    """
    folders = (a, b)
    label_columns = {name: _joined([_texts(folder, name) for folder in folders]) for name in labels}
    heads = [folder.cells(["key", "status"]) for folder in folders]
    n_a = heads[0].num_rows
    texts = {name: values for name, (values, _) in label_columns.items()}
    ids = group_ids([(len(values), codes) for values, codes in label_columns.values()])
    for folder, begin, end in ((a, 0, n_a), (b, n_a, len(ids))):
        repeated = _repeated(ids[begin:end])
        if repeated is not None:
            words = (values[codes[begin + repeated]] for values, codes in label_columns.values())
            raise InputError(f"{folder.sweep} has several cells {', '.join(filter(None, words))}")
    rows = _pairs(ids[:n_a], ids[n_a:])
    row_of_pair = np.where(rows[0] == NOWHERE, n_a + rows[1], rows[0])
    codes = {name: all_codes[row_of_pair] for name, (_, all_codes) in label_columns.items()}
    same_key, verdict = _match_status(heads, rows)
    skip = {*NOT_METRICS, *labels, *exclude}
    names = [n for folder in folders for n in _metrics(folder) if n not in skip]
    names = sort_metrics(list(dict.fromkeys(names)))
    is_compared = verdict == VERDICTS.index(SAME)
    for name in names:
        verdict[_metric(folders, rows, name, is_compared).differs] = VERDICTS.index(CHANGED)
    return Matched(folders, texts, codes, rows, names, same_key, verdict)


def _texts(folder: SweepFolder, name: str) -> tuple[list[str], Rows]:
    """Return the values of a label as texts, and each row's index into them.

    A label without a column is looked up in the cells' configurations.
    """
    if name in folder.schema().names:
        values, codes = factorize(folder.cells([name]).column(name))
    else:
        parts = folder.parts(columns=["config"])
        values = [_configured(config, name) for p in parts for config in p["config"].to_pylist()]
        codes = np.arange(len(values))
    return [text(value) for value in values], codes


def _configured(config: str | None, name: str) -> Any:
    """Return the value of a key in a cell's configuration; None if it is missing."""
    value: Any = json.loads(config or "{}")
    head, *rest = name.split(".")
    for part in [head, *(["params"] if head == "policy" else []), *rest]:
        value = value.get(part) if isinstance(value, Mapping) else None
    return value if isinstance(value, str | int | float | None) else json.dumps(value)


def _joined(sides: Sequence[tuple[list[str], Rows]]) -> tuple[list[str], Rows]:
    """Merge the encodings of both sweeps: all distinct texts, and the codes of all rows."""
    code_of: dict[str, int] = {}
    joined = [
        np.array([code_of.setdefault(value, len(code_of)) for value in values], np.int64)[codes]
        for values, codes in sides
    ]
    return list(code_of), np.concatenate(joined)


def _repeated(ids: Rows) -> int | None:
    """Return the first row whose id occurred before; None if there is none."""
    _, first = np.unique(ids, return_index=True)
    repeated = np.setdiff1d(np.arange(len(ids)), first)
    return int(repeated[0]) if len(repeated) else None


def _pairs(ids_a: Rows, ids_b: Rows) -> tuple[Rows, Rows]:
    row_b = np.full(max(ids_a.max(initial=-1), ids_b.max(initial=-1)) + 1, NOWHERE)
    row_b[ids_b] = np.arange(len(ids_b))
    rows_b = row_b[ids_a]
    only_b = np.setdiff1d(np.arange(len(ids_b)), rows_b)
    missing = np.full(len(only_b), NOWHERE)
    return np.concatenate([np.arange(len(ids_a)), missing]), np.concatenate([rows_b, only_b])


def _match_status(heads: Sequence[pa.Table], rows: tuple[Rows, Rows]) -> tuple[Mask, Rows]:
    """Mark pairs with equal keys, and judge pairs by presence and failure, not by metrics yet."""
    import pyarrow.compute as pc  # 0.05 s to import

    in_both = np.flatnonzero((rows[0] != NOWHERE) & (rows[1] != NOWHERE))
    verdict = np.where(rows[0] == NOWHERE, VERDICTS.index(ONLY_B), VERDICTS.index(ONLY_A))
    keys, failed = [], []
    for head, side in zip(heads, rows, strict=True):
        statuses, codes = factorize(head["status"])
        fails = np.array([status == "failed" for status in statuses], bool)[codes]
        failed.append(fails[side[in_both]])
        keys.append(head["key"].combine_chunks().take(from_numpy(side[in_both])))
    same_key = np.zeros(len(verdict), bool)
    same_key[in_both] = to_numpy(pc.equal(*keys))
    verdict[in_both] = np.select(
        [failed[0] & failed[1], failed[0], failed[1]],
        [VERDICTS.index(verdict_name) for verdict_name in (FAILS_TOO, MENDED, FAILS)],
        VERDICTS.index(SAME),
    )
    return same_key, verdict


def _metrics(folder: SweepFolder) -> list[str]:
    return [field.name for field in folder.schema() if pa.types.is_floating(field.type)]


def _metric(
    folders: Sequence[SweepFolder], rows: tuple[Rows, Rows], name: str, is_compared: Mask
) -> Metric:
    ends = []
    for folder, side in zip(folders, rows, strict=True):
        values = np.full(len(side), np.nan)
        if name in folder.schema().names:
            exists = side != NOWHERE
            values[exists] = to_float64(folder.cells([name]), name)[side[exists]]
        ends.append(values)
    a, b = ends
    differs = (a.view(np.int64) != b.view(np.int64)) & ~(np.isnan(a) & np.isnan(b))
    return Metric(name, a, b, differs & is_compared)
