"""Means over seeds, aggregated from one row a cell: the data of tables, plots and report."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I8, Mask
from sim.base.errors import InputError, did_you_mean
from sim.metrics.groups import split
from sim.metrics.stops import METRICS as STOPS
from sweep.stats import contrasts, intervals
from sweep.stats.arrange import (
    ArrangedCells,
    Column,
    arrange,
    by_capacity,
    cost_text,
    machines_text,
)
from sweep.stats.best import best_of
from sweep.stats.cell_columns import Rows, chosen_metrics, table_options, text
from sweep.stats.common import common_seeds
from sweep.stats.done_jobs import FAILED, is_of_done_jobs

_ANSI_COLORS = re.compile(r"\x1b\[[0-9;]*m")  # of a worker's terminal


MAX_FAILURES = 500
"""Failed cells that a report explains."""


@dataclass(frozen=True)
class Block:
    """Results on one trace under one setting of the other swept parameters.

    ``mean``, ``half`` (float64) and ``n`` (int64) have shape (n_capacities, n_columns, n_metrics);
    ``n_planned`` and ``n_failed`` (int64), shape (n_capacities, n_columns), count cells.
    ``paired``, of the shape of ``mean``, is half the interval of the difference from the baseline:
    NaN without a baseline, and for the baseline itself. ``best``, of that shape too, marks the best
    columns (`sweep.stats.best`) that are no oracles: none if all are, or if jobs failed, so that
    the means are of other jobs under each policy. ``machines`` is the size of the cluster at each
    capacity, such as ``41 machines``, and its cost; empty if not known.
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
        """Trace and settings on one line."""
        return ", ".join((self.trace, *(f"{key}={value}" for key, value in self.settings)))


@dataclass(frozen=True)
class Failure:
    """A failed cell: its labels, the error, and the command that reproduces it."""

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
        """Name of the cell on one line."""
        words = [self.policy, self.trace, f"capacity {text(self.capacity)}", f"seed {self.seed}"]
        return ", ".join(words + [f"{key}={value}" for key, value in self.settings])


@dataclass(frozen=True)
class Summary:
    """Aggregated results of a sweep.

    ``metrics`` are in display order and have a value in at least one cell; ``unavailable`` are the
    others. ``baseline`` is None if nothing is compared. ``is_fixed``: no seed can change anything.
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
    is_bootstrap: bool = False  # seeds are draws of a log

    @property
    def eventful(self) -> tuple[str, ...]:
        """The metrics, but for those of stops where no job, or none of a group, ever stopped."""
        return tuple(name for name in self.metrics if not _is_of_stops(name) or self._occurs(name))

    def _occurs(self, metric: str) -> bool:
        index = self.metrics.index(metric)
        return any(bool((block.mean[..., index] > 0).any()) for block in self.blocks)

    @property
    def is_same(self) -> bool:
        """True if there are several seeds and all gave the same results."""
        spreads = [b.half[(b.n > 1) & np.isfinite(b.mean)] for b in self.blocks]
        return sum(map(len, spreads)) > 0 and not any(spread.any() for spread in spreads)


def _is_of_stops(metric: str) -> bool:
    grouped = split(metric)
    return (grouped[0] if grouped else metric) in STOPS


def summarise(
    cells: pa.Table,
    *,
    swept: Sequence[str] = (),
    baseline: str | None = None,
    is_fixed: bool = False,
) -> Summary:
    """Average every metric over the seeds of each (policy, trace, capacity, other parameters).

    `swept` and `baseline` are those of `sweep.stats.arrange.arrange`; `is_fixed` is passed on.
    """
    arranged = arrange(cells, swept, baseline)
    available = [name for name in arranged.metrics if not np.isnan(arranged.values(name)).all()]
    failed = np.flatnonzero(arranged.failed)
    return Summary(
        columns=tuple(arranged.columns.values()),
        metrics=tuple(available),
        unavailable=tuple(name for name in arranged.metrics if name not in available),
        blocks=tuple(
            _block(trace, settings, members, arranged, available)
            for (trace, settings), members in arranged.blocks.items()
        ),
        baseline=baseline,
        seeds=tuple(np.unique(arranged.seed).tolist()),
        capacities=tuple(np.unique(arranged.capacity).tolist()),
        n_cells=cells.num_rows,
        n_failed=len(failed),
        failures=tuple(
            _failure(arranged.row(row), arranged.swept) for row in failed[:MAX_FAILURES].tolist()
        ),
        is_fixed=is_fixed,
        is_bootstrap=arranged.is_bootstrap,
    )


def _block(
    trace: str,
    settings: tuple[tuple[str, str], ...],
    block_rows: Rows,
    arranged: ArrangedCells,
    names: Sequence[str],
) -> Block:
    capacities = np.unique(arranged.capacity[block_rows]).tolist()
    shape = (len(capacities), len(arranged.columns))
    mean = np.full((*shape, len(names)), math.nan)
    half, paired = np.full_like(mean, math.nan), np.full_like(mean, math.nan)
    n = np.zeros(mean.shape, dtype=np.int64)
    best = np.zeros(mean.shape, dtype=bool)
    n_planned, n_failed = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    machines = []
    for level, group in enumerate(by_capacity(arranged, block_rows)):
        size = machines_text(arranged, group.rows), cost_text(arranged, group.rows)
        machines.append(", ".join(filter(None, size)))
        ordered = group.rows[np.argsort(group.seed_index, kind="stable")]
        for column in np.unique(arranged.column_index[ordered]).tolist():
            rows = ordered[arranged.column_index[ordered] == column]
            n_planned[level, column], n_failed[level, column] = (
                len(rows),
                arranged.failed[rows].sum(),
            )
            mean[level, column], half[level, column], n[level, column] = intervals(
                _values_matrix(arranged, rows, names), is_bootstrap=arranged.is_bootstrap
            )
        for metric_index, name in enumerate(names):
            common = common_seeds(arranged.without_oracles(group.by_seed(arranged, name)))
            best_policies = best_of(name, common, is_bootstrap=arranged.is_bootstrap)
            is_of_others = is_of_done_jobs(name) and _any_failed(arranged, group.rows)
            if best_policies is not None and not best_policies.is_all and not is_of_others:
                best[level, list(best_policies.members), metric_index] = True
        for _, column, paired_rows in contrasts.pairs(arranged, group.rows):
            differences = _values_matrix(arranged, paired_rows.policy_rows, names)
            with np.errstate(invalid="ignore"):  # inf - inf: no interval
                differences -= _values_matrix(arranged, paired_rows.baseline_rows, names)
            paired[level, column] = intervals(differences, is_bootstrap=arranged.is_bootstrap)[1]
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
        machines=tuple(machines),
    )


def _any_failed(arranged: ArrangedCells, rows: Rows) -> bool:
    """Tell whether a job failed in any of the cells."""
    return FAILED in arranged.metrics and bool((arranged.values(FAILED, rows) > 0).any())


def _values_matrix(arranged: ArrangedCells, rows: Rows, names: Sequence[str]) -> F8:
    """Return metrics of rows as an (n_rows, n_metrics) array."""
    values = np.empty((len(rows), len(names)))
    for index, name in enumerate(names):
        values[:, index] = arranged.values(name, rows)
    return values


def _failure(row: Mapping[str, Any], swept: Sequence[str]) -> Failure:
    def error(name: str) -> str:
        value = row.get(name)
        return "" if value is None else _ANSI_COLORS.sub("", str(value))

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


def check_metrics(cells: pa.Table, config: Mapping[str, Any]) -> None:
    """Refuse a name in ``metrics=`` that no finished cell has.

    What an evaluator of a user's own returns is known only now; its cells are cached already.
    """
    missing = [name for name in chosen_metrics(config) if name not in cells.column_names]
    if not missing or set(cells["status"].unique().to_pylist()) <= {"failed"}:
        return
    computed = summarise(cells, **table_options(config)).metrics
    raise InputError(
        f"metrics={missing[0]}: no cell has this metric; {did_you_mean(missing[0], computed)}"
        f"computed: {', '.join(computed)}. Return it from the evaluator, or leave it out of "
        "metrics=; finished cells are cached",
        rule="unknown metric",
    )
