"""Which cells of a sweep the report looks into, job by job, and what they keep."""

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
"""Of cells' files that a report reads."""


@dataclass
class Jobs:
    """All jobs of one policy at one capacity, of all the seeds looked into.

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
    """What is looked into at one capacity of one block; ``of`` is by position of the column."""

    block: int
    capacity: float
    of: dict[int, Jobs]


@dataclass(frozen=True)
class JobSamples:
    """What the report looks into, and what it leaves out, in words."""

    samples: list[CapacitySample]
    left_out: list[str]


def sample_jobs(
    cells: pa.Table, cache: Cache, *, swept: Sequence[str], baseline: str | None
) -> JobSamples:
    """Read some of the cells' jobs: bounded in number and size, the same ones every time.

    The first `MAX_BLOCKS` blocks and `MAX_COLUMNS` policies, the lowest, middle and highest
    capacity, and as many seeds as `MAX_SEEDS` and `MAX_BYTES` allow.
    """
    them = arrange(cells, swept, baseline)
    left_out = []
    blocks = list(them.blocks.values())
    if len(blocks) > MAX_BLOCKS:
        left_out.append(f"{len(blocks) - MAX_BLOCKS} of {len(blocks)} traces and settings")
    if len(them.columns) > MAX_COLUMNS:
        left_out.append(f"{len(them.columns) - MAX_COLUMNS} of {len(them.columns)} policies")
    if len(np.unique(them.capacity)) > MAX_CAPACITIES:
        left_out.append("all capacities but the lowest, the middle and the highest")
    chosen = [
        (at, capacity, column, rows)
        for at, members in enumerate(blocks[:MAX_BLOCKS])
        for capacity, column, rows in _groups(them, members)
    ]
    n_seeds, n_all = _n_seeds(them, [rows for *_, rows in chosen], cache)
    if n_seeds < n_all:
        left_out.append(f"all but the first {n_seeds} seed{'s' * (n_seeds != 1)}")
    looked = np.array([row for *_, rows in chosen for row in rows[:n_seeds]], np.int64)
    other = dict(_baselines(them, blocks[:MAX_BLOCKS], looked))
    samples: dict[tuple[int, float], CapacitySample] = {}
    reader = _Reader(them, cache)
    for at, capacity, column, rows in chosen:
        jobs = Jobs()
        for row in rows[:n_seeds].tolist():
            reader.add(jobs, row, other.get(row))
        if jobs.jct_s:
            samples.setdefault((at, capacity), CapacitySample(at, capacity, {})).of[column] = jobs
    return JobSamples(list(samples.values()), left_out if samples else [])


def _groups(them: ArrangedCells, members: Rows) -> Iterator[tuple[float, int, Rows]]:
    """Rows of a block by capacity and column, seeds ascending, those that did not fail."""
    n = len(np.unique(them.capacity[members]))
    chosen = (0, n // 2, n - 1) if n > MAX_CAPACITIES else range(n)
    for world in (one for at, one in enumerate(by_capacity(them, members)) if at in chosen):
        rows = world.rows[np.argsort(world.seed_index, kind="stable")]
        rows = rows[~them.failed[rows]]
        for column in np.unique(them.column_index[rows]).tolist():
            if column < MAX_COLUMNS:
                yield world.capacity, column, rows[them.column_index[rows] == column]


def _n_seeds(them: ArrangedCells, groups: Sequence[Rows], cache: Cache) -> tuple[int, int]:
    """How many seeds of each group to read, at least one; and how many there are."""
    n_all = max(map(len, groups), default=0)
    used, n = 0, 0
    while n < min(n_all, MAX_SEEDS):
        rows = [int(group[n]) for group in groups if len(group) > n]
        used += sum(cache.n_bytes(them.key(at)) for at in rows)
        if n and used > MAX_BYTES:
            break
        n += 1
    return n, n_all


def _baselines(
    them: ArrangedCells, blocks: Sequence[Rows], wanted: Rows
) -> Iterator[tuple[int, int]]:
    """Each of the rows that are wanted with the baseline's of the same pair."""
    for members in blocks:
        for _, _, both in pairs(them, members):
            there = np.isin(both.policy_rows, wanted)
            yield from zip(
                both.policy_rows[there].tolist(), both.baseline_rows[there].tolist(), strict=True
            )


class _Reader:
    """Reads cells, the last few of the baseline's once."""

    def __init__(self, them: ArrangedCells, cache: Cache) -> None:
        self._them = them
        self._cache = cache
        self._kept: dict[int, F8] = {}

    def add(self, jobs: Jobs, row: int, other: int | None) -> None:
        """Add a cell's jobs, where they are kept; `other` is the baseline's row."""
        table, jct = self._read(row)
        if table is None or jct is None:
            return
        is_first = not jobs.jct_s
        jobs.jct_s.append(jct[np.isfinite(jct)])
        if other is not None:
            if other not in self._kept:
                base = self._read(other)[1]
                self._kept = dict([*self._kept.items()][-MAX_SEEDS:])
                self._kept[other] = np.empty(0) if base is None else base
            base_jct = self._kept[other]
            if base_jct.shape == jct.shape:
                both = np.isfinite(jct) & np.isfinite(base_jct) & (jct > 0) & (base_jct > 0)
                jobs.speedup.append(base_jct[both] / jct[both])
        for name, values in (("gap_lb", jobs.gap), ("prediction_error", jobs.error)):
            if name in table.column_names:
                column = to_numpy(table[name].combine_chunks()).astype(np.float64)
                values.append(column[np.isfinite(column)])
        if is_first:
            jobs.utilization = read_metadata(table, "utilization")
            jobs.value = read_metadata(table, "value")

    def _read(self, row: int) -> tuple[pa.Table | None, F8 | None]:
        result = self._cache.get(self._them.key(row))
        return (None, None) if result is None else (result.jobs, result.jct_s())


def read_metadata(table: pa.Table, name: str) -> Any | None:
    """Read what an evaluator kept beside its table; None where there is no such thing."""
    text = (table.schema.metadata or {}).get(name.encode())
    return None if text is None else json.loads(text)
