"""Sample of cells whose single jobs the report plots, read from the cache."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8
from sim.base.columns import to_numpy
from sweep.stats.arrange import ArrangedCells, arrange, by_capacity
from sweep.stats.cell_columns import Rows
from sweep.stats.contrasts import pairs
from sweep.store.cache import Cache

MAX_BLOCKS, MAX_CAPACITIES, MAX_COLUMNS, MAX_SEEDS = 4, 3, 10, 10
MAX_BYTES = 2**28
"""Size limit of the cached cells that one report reads."""


@dataclass
class Jobs:
    """All jobs of one policy at one capacity, of all sampled seeds.

    ``jct_s``, ``speedup``, ``gap`` and ``error`` are float64 arrays, a value a job that has one;
    ``utilization`` and ``value`` are as `sim.metrics` has them over time, of the first seed.
    """

    jct_s: list[F8] = field(default_factory=list)
    speedup: list[F8] = field(default_factory=list)
    gap: list[F8] = field(default_factory=list)
    error: list[F8] = field(default_factory=list)
    utilization: Mapping[str, Any] | None = None
    value: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class CapacitySample:
    """Sampled jobs at one capacity of one block, by column number."""

    block: int
    capacity: float
    jobs_by_column: dict[int, Jobs]


@dataclass(frozen=True)
class JobSamples:
    """All samples of a report, and descriptions of the cells left out."""

    samples: list[CapacitySample]
    left_out: list[str]


def sample_jobs(
    cells: pa.Table, cache: Cache, *, swept: Sequence[str], baseline: str | None
) -> JobSamples:
    """Read the jobs of some cells: bounded in number and size, the same cells every time.

    These are the first `MAX_BLOCKS` blocks and `MAX_COLUMNS` policies, the lowest, middle and
    highest capacity, and as many seeds as `MAX_SEEDS` and `MAX_BYTES` allow.
    """
    arranged = arrange(cells, swept, baseline)
    left_out = []
    blocks = list(arranged.blocks.values())
    if len(blocks) > MAX_BLOCKS:
        left_out.append(f"{len(blocks) - MAX_BLOCKS} of {len(blocks)} traces and settings")
    if len(arranged.columns) > MAX_COLUMNS:
        left_out.append(
            f"{len(arranged.columns) - MAX_COLUMNS} of {len(arranged.columns)} policies"
        )
    if len(np.unique(arranged.capacity)) > MAX_CAPACITIES:
        left_out.append("all capacities but the lowest, the middle and the highest")
    chosen = [
        (index, capacity, column, rows)
        for index, members in enumerate(blocks[:MAX_BLOCKS])
        for capacity, column, rows in _groups(arranged, members)
    ]
    n_seeds, n_all = _n_seeds(arranged, [rows for *_, rows in chosen], cache)
    if n_seeds < n_all:
        left_out.append(f"all but the first {n_seeds} seed{'s' * (n_seeds != 1)}")
    selected = np.array([row for *_, rows in chosen for row in rows[:n_seeds]], np.int64)
    baseline_row_of = dict(_baselines(arranged, blocks[:MAX_BLOCKS], selected))
    samples: dict[tuple[int, float], CapacitySample] = {}
    reader = _Reader(arranged, cache)
    for index, capacity, column, rows in chosen:
        jobs = Jobs()
        for row in rows[:n_seeds].tolist():
            reader.add(jobs, row, baseline_row_of.get(row))
        if jobs.jct_s:
            samples.setdefault(
                (index, capacity), CapacitySample(index, capacity, {})
            ).jobs_by_column[column] = jobs
    return JobSamples(list(samples.values()), left_out if samples else [])


def _groups(arranged: ArrangedCells, block_rows: Rows) -> Iterator[tuple[float, int, Rows]]:
    """Yield the rows of a block that did not fail, by capacity and column, seeds ascending."""
    n = len(np.unique(arranged.capacity[block_rows]))
    selected = (0, n // 2, n - 1) if n > MAX_CAPACITIES else range(n)
    for group in (
        group for index, group in enumerate(by_capacity(arranged, block_rows)) if index in selected
    ):
        rows = group.rows[np.argsort(group.seed_index, kind="stable")]
        rows = rows[~arranged.failed[rows]]
        for column in np.unique(arranged.column_index[rows]).tolist():
            if column < MAX_COLUMNS:
                yield group.capacity, column, rows[arranged.column_index[rows] == column]


def _n_seeds(arranged: ArrangedCells, row_groups: Sequence[Rows], cache: Cache) -> tuple[int, int]:
    """Return the number of seeds of each group to read, at least one, and the number it has."""
    n_all = max(map(len, row_groups), default=0)
    n_bytes, n = 0, 0
    while n < min(n_all, MAX_SEEDS):
        rows = [int(row_group[n]) for row_group in row_groups if len(row_group) > n]
        n_bytes += sum(cache.n_bytes(arranged.key(row)) for row in rows)
        if n and n_bytes > MAX_BYTES:
            break
        n += 1
    return n, n_all


def _baselines(
    arranged: ArrangedCells, blocks: Sequence[Rows], selected: Rows
) -> Iterator[tuple[int, int]]:
    """Yield each selected row and the baseline's row of the same trace and seed."""
    for block_rows in blocks:
        for _, _, paired_rows in pairs(arranged, block_rows):
            is_selected = np.isin(paired_rows.policy_rows, selected)
            yield from zip(
                paired_rows.policy_rows[is_selected].tolist(),
                paired_rows.baseline_rows[is_selected].tolist(),
                strict=True,
            )


class _Reader:
    """Reader of cells; keeps the baseline's last few, so that each is read once."""

    def __init__(self, arranged: ArrangedCells, cache: Cache) -> None:
        self._arranged = arranged
        self._cache = cache
        self._baseline_jct: dict[int, F8] = {}

    def add(self, jobs: Jobs, row: int, baseline_row: int | None) -> None:
        """Add a cell's jobs, if the cache has them; `baseline_row` is for speed-ups."""
        table, jct = self._read(row)
        if table is None or jct is None:
            return
        is_first = not jobs.jct_s
        jobs.jct_s.append(jct[np.isfinite(jct)])
        if baseline_row is not None:
            if baseline_row not in self._baseline_jct:
                jct_s = self._read(baseline_row)[1]
                self._baseline_jct = dict([*self._baseline_jct.items()][-MAX_SEEDS:])
                self._baseline_jct[baseline_row] = np.empty(0) if jct_s is None else jct_s
            base_jct = self._baseline_jct[baseline_row]
            if base_jct.shape == jct.shape:
                is_valid = np.isfinite(jct) & np.isfinite(base_jct) & (jct > 0) & (base_jct > 0)
                jobs.speedup.append(base_jct[is_valid] / jct[is_valid])
        for name, values in (("gap_lb", jobs.gap), ("prediction_error", jobs.error)):
            if name in table.column_names:
                column = to_numpy(table[name].combine_chunks()).astype(np.float64)
                values.append(column[np.isfinite(column)])
        if is_first:
            jobs.utilization = read_metadata(table, "utilization")
            jobs.value = read_metadata(table, "value")

    def _read(self, row: int) -> tuple[pa.Table | None, F8 | None]:
        result = self._cache.get(self._arranged.key(row))
        return (None, None) if result is None else (result.jobs, result.jct_s())


def read_metadata(table: pa.Table, name: str) -> Any | None:
    """Read an entry of the metadata that an evaluator stored with its table; None if missing."""
    text = (table.schema.metadata or {}).get(name.encode())
    return None if text is None else json.loads(text)
