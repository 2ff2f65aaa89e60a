"""Group the rows of ``cells.parquet`` for tables: a column a policy, a block a trace."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, Mask
from sim.base.columns import to_numpy
from sim.base.errors import InputError, unknown
from sim.base.text import format_count
from sim.evaluators import NO_POLICY
from sweep.stats import metric_format
from sweep.stats.cell_columns import (
    AXES,
    BOOTSTRAP,
    COST,
    KNOWS,
    NOT_METRICS,
    Rows,
    cell_key,
    factorize,
    text,
    to_float64,
)

_POLICY_PREFIXES = ("policy.", "evaluator.")

Settings = tuple[tuple[str, str], ...]
Identity = tuple[str, ...]


@dataclass(frozen=True)
class Column:
    """A column of the tables: a policy and the swept parameters that distinguish its variants."""

    policy: str
    parameters: tuple[str, ...]
    is_baseline: bool
    knows: str = ""  # of durations (`policies.knows.Knows`); empty if not known
    is_oracle: bool = False  # nobody can run it

    @property
    def name_parts(self) -> tuple[str, ...]:
        """Policy, unless the cells have none, and parameters."""
        has_name = self.policy != NO_POLICY or not self.parameters
        return (self.policy, *self.parameters) if has_name else self.parameters

    @property
    def label(self) -> str:
        """Name on one line, such as ``las levels=5``."""
        return " ".join(self.name_parts)


@dataclass(frozen=True)
class ArrangedCells:
    """Cells of a sweep with the column, block, capacity and seed of each row."""

    cells: pa.Table
    swept: list[str]  # columns swept besides policy, trace, capacity and seed
    columns: dict[Identity, Column]  # by policy and swept parameters, as text
    column_index: Rows  # each row's position among `columns`
    baselines: list[int | None]  # of each column, see `match_baselines`
    blocks: dict[tuple[str, Settings], Rows]  # rows by trace and the other swept settings
    metrics: list[str]  # names, in the order shown
    trace_index: Rows  # each row's trace, numbered in alphabetical order
    capacity: F8
    seed: Rows
    failed: Mask
    is_bootstrap: bool = False  # seeds are draws of a log (`sweep.stats.inference`)

    def values(self, name: str, rows: Rows | slice = slice(None)) -> F8:
        """Return a metric of these rows, NaN where a cell failed or the metric does not apply."""
        return np.where(self.failed[rows], math.nan, to_float64(self.cells, name)[rows])

    def without_oracles(self, by_column: F8) -> F8:
        """Return values by column (last axis), NaN for oracles unless only they have values."""
        oracles = np.array([column.is_oracle for column in self.columns.values()], dtype=bool)
        runnable: F8 = np.where(oracles, math.nan, by_column)
        return by_column if np.isnan(runnable).all() else runnable

    def row(self, row: int) -> dict[str, Any]:
        """Return a row as a dictionary without its metrics."""
        label_columns = {*NOT_METRICS, *self.swept}
        names = [name for name in self.cells.column_names if name in label_columns]
        return {name: self.cells.column(name)[row].as_py() for name in names}

    def key(self, row: int) -> str:
        """Return a cell's key."""
        return cell_key(self.cells, row)


def arrange(cells: pa.Table, swept: Sequence[str], baseline: str | None) -> ArrangedCells:
    """Group cells into columns and blocks.

    Parameters
    ----------
    cells : pa.Table
        A row a cell (``cells.parquet``).
    swept : sequence of str
        Keys that the sweep varies.
    baseline : str, optional
        A policy, or the label of one of its variants.
    """
    swept = [key for key in swept if key in cells.column_names and key not in AXES]
    metrics = [n for n in cells.column_names if n not in {*NOT_METRICS, *swept}]
    metrics = metric_format.sort_metrics(
        [n for n in metrics if _is_number(cells.schema.field(n).type)]
    )
    policy_keys = [key for key in swept if key.startswith(_POLICY_PREFIXES)]
    block_keys = [key for key in swept if not key.startswith(_POLICY_PREFIXES)]
    about = [name for name in (KNOWS, "is_oracle") if name in cells.column_names]
    column_labels, column_ids = _heads(cells, ["policy", *policy_keys, *about])
    columns, column_of = build_columns(column_labels, policy_keys, baseline)
    block_labels, block_ids = _heads(cells, ["trace", *block_keys])
    blocks: dict[tuple[str, Settings], Rows] = {}
    for labels, rows in zip(block_labels, split_by_id(block_ids), strict=True):
        settings = tuple((key, text(labels[key])) for key in block_keys if labels[key] is not None)
        blocks[str(labels["trace"]), settings] = rows
    traces, trace_codes = factorize(cells.column("trace"))
    trace_rank = np.empty(len(traces), np.int64)
    trace_rank[sorted(range(len(traces)), key=lambda k: str(traces[k]))] = np.arange(len(traces))
    statuses, status_codes = factorize(cells.column("status"))
    return ArrangedCells(
        cells=cells,
        swept=swept,
        columns=columns,
        column_index=np.array(column_of, np.int64)[column_ids],
        baselines=match_baselines(columns),
        blocks=blocks,
        metrics=metrics,
        trace_index=trace_rank[trace_codes],
        capacity=to_float64(cells, "capacity"),
        seed=to_numpy(cells.column("seed").combine_chunks()).astype(np.int64, copy=False),
        failed=np.isin(status_codes, [k for k, value in enumerate(statuses) if value == "failed"]),
        is_bootstrap=_any(cells, BOOTSTRAP, np.arange(cells.num_rows)),
    )


def _heads(cells: pa.Table, names: Sequence[str]) -> tuple[list[dict[str, Any]], Rows]:
    """Return the distinct combinations of some columns, first seen first, and each row's index."""
    encoded = (factorize(cells.column(name)) for name in names)
    ids = group_ids([(len(values), codes) for values, codes in encoded])
    first_rows = np.unique(ids, return_index=True)[1].tolist()
    return [{n: cells.column(n)[row].as_py() for n in names} for row in first_rows], ids


def group_ids(columns: Sequence[tuple[int, Rows]]) -> Rows:
    """Assign a number to each row by its values in all columns: equal rows share one.

    Numbers ascend in the order of first appearance. A column is a pair: the number of its distinct
    values, and the code of each row's value.
    """
    ids = np.zeros(len(columns[0][1]), np.int64)
    for size, codes in columns:
        # renumbered after each column, so that no product overflows
        encoded = pa.array(ids * size + codes).dictionary_encode()
        ids = to_numpy(encoded.indices).astype(np.int64)
    return ids


def split_by_id(ids: Rows) -> list[Rows]:
    """Split row numbers by group id, ascending."""
    order = np.argsort(ids, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(ids[order])) + 1) if len(ids) else []


@dataclass(frozen=True)
class CapacityGroup:
    """The rows of a block at one capacity."""

    capacity: float
    rows: Rows
    seed_index: Rows  # of each row: the position of its seed among the seeds here, ascending
    n_seeds: int

    def by_seed(self, arranged: ArrangedCells, name: str) -> F8:
        """Return a metric as an (n_seeds, n_columns) array; NaN where there is no value."""
        values = np.full((self.n_seeds, len(arranged.columns)), math.nan)
        values[self.seed_index, arranged.column_index[self.rows]] = arranged.values(name, self.rows)
        return values


def by_capacity(arranged: ArrangedCells, block_rows: Rows) -> Iterator[CapacityGroup]:
    """Split the rows of a block by capacity, ascending."""
    for capacity in np.unique(arranged.capacity[block_rows]).tolist():
        rows = block_rows[arranged.capacity[block_rows] == capacity]
        seeds, seed_index = np.unique(arranged.seed[rows], return_inverse=True)
        yield CapacityGroup(capacity, rows, seed_index, len(seeds))


def build_columns(
    rows: Sequence[Mapping[str, Any]], policy_keys: Sequence[str], baseline: str | None
) -> tuple[dict[Identity, Column], list[int]]:
    """Return the columns by identity, and the column number of each row.

    Policies are in the order of first appearance, the variants of each together. The baseline is a
    policy, or one variant of it by its label.
    """
    identities = [(str(row["policy"]), *(text(row[key]) for key in policy_keys)) for row in rows]
    variants_of: dict[str, dict[Identity, Mapping[str, Any]]] = {}
    for identity, row in zip(identities, rows, strict=True):
        variants_of.setdefault(identity[0], {}).setdefault(identity, row)
    columns: dict[Identity, Column] = {}
    for policy, variants in variants_of.items():
        differing = [
            key for key in policy_keys if len({text(row[key]) for row in variants.values()}) > 1
        ]
        for identity, row in variants.items():
            parameters = tuple(
                f"{key.partition('.')[2].removeprefix(policy + '.')}={text(row[key])}"
                for key in differing
                if row[key] is not None
            )
            label = Column(policy, parameters, False).label
            knows, is_oracle = str(row.get(KNOWS) or ""), bool(row.get("is_oracle"))
            is_baseline = baseline in (policy, label)
            columns[identity] = Column(policy, parameters, is_baseline, knows, is_oracle)
    position = {identity: index for index, identity in enumerate(columns)}
    return columns, [position[identity] for identity in identities]


def match_baselines(columns: Mapping[Identity, Column]) -> list[int | None]:
    """Map each column to the column of its baseline: None for a baseline, and without one.

    If the baseline has several settings, it is the one that agrees with the column in all
    parameters that both have.
    """
    identities = list(columns)
    baselines = [index for index, column in enumerate(columns.values()) if column.is_baseline]

    def baseline_of(index: int) -> int | None:
        if index in baselines or len(baselines) == 1:
            return None if index in baselines else baselines[0]
        matching = (
            candidate for candidate in baselines if _agree(identities[index], identities[candidate])
        )
        return next(matching, None)

    return [baseline_of(index) for index in range(len(identities))]


def _agree(first: Identity, second: Identity) -> bool:
    """Tell whether two policies have equal values of all parameters that both have."""
    return all(x == y or "" in (x, y) for x, y in zip(first[1:], second[1:], strict=True))


def check_baseline(columns: Mapping[Identity, Column], baseline: str) -> None:
    """Reject a baseline that is not swept, and one with several settings that leave it open."""
    labels = {identity: column.label for identity, column in columns.items()}
    baselines = [identity for identity, column in columns.items() if column.is_baseline]
    if not baselines:
        policies = [column.policy for column in columns.values()]
        raise InputError(
            unknown("baseline", baseline, list(dict.fromkeys([*policies, *labels.values()])))
            + "; the baseline is one of the policies that are swept",
            rule="unknown baseline",
        )
    other_policies = [identity for identity in columns if identity not in baselines]
    ambiguous = [
        identity
        for identity in other_policies
        if sum(_agree(identity, variant) for variant in baselines) > 1
    ]
    if len(baselines) > 1 and (ambiguous or not other_policies):
        settings = [labels[variant] for variant in baselines]
        reason = (
            f", and {labels[ambiguous[0]]} could be compared with any of them" if ambiguous else ""
        )
        raise InputError(
            f"baseline={baseline} has {len(baselines)} settings{reason}: choose one, such as "
            f"baseline='{settings[0]}'; valid: {', '.join(settings)}",
            rule="which baseline",
        )


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)
    )


def machines_text(arranged: ArrangedCells, rows: Rows) -> str:
    """Write the size of the rows' clusters, such as ``41 machines``; empty if it is not known."""
    if "n_machines" not in arranged.cells.column_names:
        return ""
    counts = to_float64(arranged.cells, "n_machines")[rows]
    counts = counts[~np.isnan(counts)]
    if not len(counts):
        return ""
    low, high = float(counts.min()), float(counts.max())
    ends = [f"{low:,.0f}", f"{high:,.0f}"] if low >= 1 else []
    if len(set(ends)) < 2:
        ends = list(dict.fromkeys((format_count(low), format_count(high))))
    number = " to ".join(ends)
    unit = "slot" if _any(arranged.cells, "is_pool", rows) else "machine"
    return f"{number} {unit}{'s' * (number != '1')}"


def cost_text(arranged: ArrangedCells, rows: Rows) -> str:
    """Write what the rows' clusters cost, such as ``5,840 a month``; empty without a price."""
    if COST not in arranged.cells.column_names:
        return ""
    costs = to_float64(arranged.cells, COST)[rows]
    return month_text(costs[~np.isnan(costs)].max(initial=0.0))


def month_text(cost: float) -> str:
    """Write a cost a month, such as ``5,840 a month``; empty for none."""
    return f"{cost:,.{0 if cost >= 100 else 2}f} a month" if cost else ""


def is_counted(arranged: ArrangedCells, rows: Rows) -> bool:
    """Tell whether any of these clusters is configured by its number of machines."""
    return "n_machines" in arranged.cells.column_names and _any(arranged.cells, "is_counted", rows)


def _any(cells: pa.Table, name: str, rows: Rows) -> bool:
    """Tell whether a column of flags is true in any of the rows."""
    if name not in cells.column_names:  # of an older version
        return False
    return bool(to_numpy(cells.column(name).combine_chunks())[rows].any())
