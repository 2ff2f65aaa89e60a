"""From one row a cell to means over seeds: what the tables, the plots and the report show."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I8, Mask
from sweep.stats import contrasts, intervals
from sweep.stats.arrange import ArrangedCells, Column, arrange, by_capacity, machines
from sweep.stats.best import best_of
from sweep.stats.cell_columns import Rows, text

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # of a worker's terminal


MOST_FAILURES = 500
"""Cells that failed of which a report tells why."""


@dataclass(frozen=True)
class Block:
    """All that was measured on one trace under one setting of the other swept parameters.

    ``mean``, ``half`` (float64) and ``n`` (int64) have shape (n_capacities, n_columns, n_metrics);
    ``n_planned`` and ``n_failed`` (int64), shape (n_capacities, n_columns), count cells.
    ``paired``, of the shape of ``mean``, is half the interval of the difference from the baseline,
    NaN without one, and of the baseline. ``best``, of that shape too, says which columns are best
    (`sweep.stats.best`), nowhere if all are. ``machines`` say how large each capacity is, such as
    ``41 machines``; empty if not known.
    """

    trace: str
    settings: tuple[tuple[str, str], ...]
    capacities: tuple[float, ...]
    mean: F8
    half: F8
    n: I8
    n_planned: I8
    n_failed: I8
    paired: F8
    best: Mask
    machines: tuple[str, ...]

    @property
    def title(self) -> str:
        """The trace and the settings, in one line."""
        return ", ".join((self.trace, *(f"{key}={value}" for key, value in self.settings)))


@dataclass(frozen=True)
class Failure:
    """A cell that failed: which, why, and the command that shows it again."""

    policy: str
    trace: str
    capacity: float
    seed: int
    settings: tuple[tuple[str, str], ...]
    stage: str
    type: str
    message: str
    reproduce: str

    @property
    def cell(self) -> str:
        """Name of the cell in one line."""
        words = [self.policy, self.trace, f"capacity {text(self.capacity)}", f"seed {self.seed}"]
        return ", ".join(words + [f"{key}={value}" for key, value in self.settings])


@dataclass(frozen=True)
class Summary:
    """A sweep's numbers, ready to be shown.

    ``metrics`` are in the order shown and have a value somewhere; ``unavailable`` are the
    others. ``baseline`` is None when speed-ups are quoted against nothing. ``is_fixed`` says that
    no seed can change anything.
    """

    columns: tuple[Column, ...]
    metrics: tuple[str, ...]
    unavailable: tuple[str, ...]
    blocks: tuple[Block, ...]
    baseline: str | None
    seeds: tuple[int, ...]
    capacities: tuple[float, ...]
    n_cells: int
    n_failed: int
    failures: tuple[Failure, ...]  # the first `MOST_FAILURES`
    is_fixed: bool = False

    @property
    def is_same(self) -> bool:
        """Whether all seeds gave the same, of several."""
        spreads = [b.half[(b.n > 1) & np.isfinite(b.mean)] for b in self.blocks]
        return sum(map(len, spreads)) > 0 and not any(spread.any() for spread in spreads)


def summarise(
    cells: pa.Table,
    *,
    swept: Sequence[str] = (),
    baseline: str | None = None,
    is_fixed: bool = False,
) -> Summary:
    """Average every metric over the seeds of each (policy, trace, capacity, other parameters)."""
    them = arrange(cells, swept, baseline)
    known = [name for name in them.names if not np.isnan(them.values(name)).all()]
    failed = np.flatnonzero(them.failed)
    return Summary(
        columns=tuple(them.columns.values()),
        metrics=tuple(known),
        unavailable=tuple(name for name in them.names if name not in known),
        blocks=tuple(
            _block(trace, settings, members, them, known)
            for (trace, settings), members in them.blocks.items()
        ),
        baseline=baseline,
        seeds=tuple(np.unique(them.seed).tolist()),
        capacities=tuple(np.unique(them.capacity).tolist()),
        n_cells=cells.num_rows,
        n_failed=len(failed),
        failures=tuple(
            _failure(them.row(at), them.swept) for at in failed[:MOST_FAILURES].tolist()
        ),
        is_fixed=is_fixed,
    )


def _block(
    trace: str,
    settings: tuple[tuple[str, str], ...],
    members: Rows,
    them: ArrangedCells,
    names: Sequence[str],
) -> Block:
    capacities = np.unique(them.capacity[members]).tolist()
    shape = (len(capacities), len(them.columns))
    mean = np.full((*shape, len(names)), math.nan)
    half, paired = np.full_like(mean, math.nan), np.full_like(mean, math.nan)
    n = np.zeros(mean.shape, dtype=np.int64)
    best = np.zeros(mean.shape, dtype=bool)
    n_planned, n_failed = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    sizes = []
    for at, world in enumerate(by_capacity(them, members)):
        sizes.append(machines(them, world.rows))
        ordered = world.rows[np.argsort(world.place, kind="stable")]
        for column in np.unique(them.column[ordered]).tolist():
            rows = ordered[them.column[ordered] == column]
            n_planned[at, column], n_failed[at, column] = len(rows), them.failed[rows].sum()
            mean[at, column], half[at, column], n[at, column] = intervals(_of(them, rows, names))
        for place, name in enumerate(names):
            found = best_of(name, world.by_seed(them, name))
            if found is not None and not found.is_all:
                best[at, list(found.members), place] = True
        for _, column, both in contrasts.pairs(them, world.rows):
            differences = _of(them, both.own, names) - _of(them, both.other, names)
            paired[at, column] = intervals(differences)[1]
    return Block(
        trace=trace,
        settings=settings,
        capacities=tuple(capacities),
        mean=mean,
        half=half,
        n=n,
        n_planned=n_planned,
        n_failed=n_failed,
        paired=paired,
        best=best,
        machines=tuple(sizes),
    )


def _of(them: ArrangedCells, rows: Rows, names: Sequence[str]) -> F8:
    """Values of rows, (n_rows, n_metrics)."""
    values = np.empty((len(rows), len(names)))
    for at, name in enumerate(names):
        values[:, at] = them.values(name, rows)
    return values


def _failure(row: Mapping[str, Any], swept: Sequence[str]) -> Failure:
    def error(name: str) -> str:
        value = row.get(name)
        return "" if value is None else _COLOURS.sub("", str(value))

    return Failure(
        policy=str(row["policy"]),
        trace=str(row["trace"]),
        capacity=float(row["capacity"]),
        seed=int(row["seed"]),
        settings=tuple((key, text(row[key])) for key in swept if row[key] is not None),
        stage=error("error_stage"),
        type=error("error_type"),
        message=error("error_message"),
        reproduce=error("reproduce"),
    )
