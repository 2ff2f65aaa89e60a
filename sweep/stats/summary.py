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
from sweep.stats.arrange import Arranged, Column, arrange, by_seed, machines, text
from sweep.stats.best import best_of

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # of a worker's terminal


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
    failures: tuple[Failure, ...]
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
    rows = them.rows
    some = [not np.isnan(column).all() for column in them.values.T]
    shown = np.flatnonzero(some)
    return Summary(
        columns=tuple(them.columns.values()),
        metrics=tuple(them.names[at] for at in shown),
        unavailable=tuple(n for n, known in zip(them.names, some, strict=True) if not known),
        blocks=tuple(
            _block(trace, settings, members, them, shown)
            for (trace, settings), members in them.blocks.items()
        ),
        baseline=baseline,
        seeds=tuple(sorted({int(row["seed"]) for row in rows})),
        capacities=tuple(sorted({float(row["capacity"]) for row in rows})),
        n_cells=len(rows),
        failures=tuple(_failure(rows[at], them.swept) for at in np.flatnonzero(them.failed)),
        is_fixed=is_fixed,
    )


def _block(
    trace: str,
    settings: tuple[tuple[str, str], ...],
    members: list[int],
    them: Arranged,
    shown: I8,
) -> Block:
    rows, values = them.rows, them.values[:, shown]
    capacities = sorted({float(rows[at]["capacity"]) for at in members})
    shape = (len(capacities), len(them.columns))
    groups: dict[tuple[int, int], list[int]] = {}
    for at in members:
        where = (capacities.index(float(rows[at]["capacity"])), them.column[at])
        groups.setdefault(where, []).append(at)
    mean = np.full((*shape, values.shape[1]), math.nan)
    half = np.full_like(mean, math.nan)
    n = np.zeros(mean.shape, dtype=np.int64)
    n_planned, n_failed = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    for where, group in groups.items():
        group.sort(key=lambda at: int(rows[at]["seed"]))
        mean[where], half[where], n[where] = intervals(values[group])
        n_planned[where], n_failed[where] = len(group), int(them.failed[group].sum())
    paired = np.full_like(mean, math.nan)
    for capacity, column, both in contrasts.pairs(them, members):
        where = (capacities.index(capacity), column)
        paired[where] = intervals(values[both.own] - values[both.other])[1]
    best = np.zeros(mean.shape, dtype=bool)
    for at, per_seed in enumerate(by_seed(them, members).values()):
        for place, metric in enumerate(shown):
            found = best_of(them.names[metric], per_seed[:, :, metric])
            if found is not None and not found.is_all:
                best[at, list(found.members), place] = True
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
        machines=tuple(machines(them, members, capacity) for capacity in capacities),
    )


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
