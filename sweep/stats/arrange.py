"""Cells of a sweep in order: the columns and blocks of its tables, and the rows of each."""

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
from sim.evaluators import NO_POLICY
from sweep.stats import metric_format
from sweep.stats.cell_columns import AXES, NOT_METRICS, Rows, cell_key, factorize, text, to_float64

_OF_COLUMN = ("policy.", "evaluator.")

Settings = tuple[tuple[str, str], ...]
Identity = tuple[str, ...]


@dataclass(frozen=True)
class Column:
    """A policy as the tables show it, with the swept parameters that tell its variants apart."""

    policy: str
    parameters: tuple[str, ...]
    is_baseline: bool

    @property
    def words(self) -> tuple[str, ...]:
        """Policy, if there is one, and parameters."""
        has_name = self.policy != NO_POLICY or not self.parameters
        return (self.policy, *self.parameters) if has_name else self.parameters

    @property
    def label(self) -> str:
        """One line, such as ``las levels=5``."""
        return " ".join(self.words)


@dataclass(frozen=True)
class ArrangedCells:
    """The rows of ``cells.parquet`` in columns, and where each stands."""

    cells: pa.Table
    swept: list[str]  # columns swept besides policy, trace, capacity and seed
    columns: dict[Identity, Column]  # by policy and swept parameters, as text
    column: Rows  # each row's position among `columns`
    bases: list[int | None]  # see `bases_of`
    blocks: dict[tuple[str, Settings], Rows]  # rows by trace and the world's settings
    names: list[str]  # of the metrics, in the order shown
    trace: Rows  # each row's trace, numbered in the order of their names
    capacity: F8
    seed: Rows
    failed: Mask

    def values(self, name: str, rows: Rows | slice = slice(None)) -> F8:
        """Return a metric of rows, NaN where a cell failed or it does not apply."""
        return np.where(self.failed[rows], math.nan, to_float64(self.cells, name)[rows])

    def row(self, at: int) -> dict[str, Any]:
        """Return a row by name, without metrics."""
        known = {*NOT_METRICS, *self.swept}
        names = [name for name in self.cells.column_names if name in known]
        return {name: self.cells.column(name)[at].as_py() for name in names}

    def key(self, at: int) -> str:
        """Return a cell's key."""
        return cell_key(self.cells, at)


def arrange(cells: pa.Table, swept: Sequence[str], baseline: str | None) -> ArrangedCells:
    """Put cells in order; see `sweep.stats.summary.summarise` for the arguments."""
    swept = [key for key in swept if key in cells.column_names and key not in AXES]
    names = [n for n in cells.column_names if n not in {*NOT_METRICS, *swept}]
    names = metric_format.in_order([n for n in names if _is_number(cells.schema.field(n).type)])
    of_policy = [key for key in swept if key.startswith(_OF_COLUMN)]
    of_block = [key for key in swept if not key.startswith(_OF_COLUMN)]
    heads, number = _heads(cells, ["policy", *of_policy])
    columns, placed = build_columns(heads, of_policy, baseline)
    worlds, world = _heads(cells, ["trace", *of_block])
    blocks: dict[tuple[str, Settings], Rows] = {}
    for head, rows in zip(worlds, split_by_id(world), strict=True):
        settings = tuple((key, text(head[key])) for key in of_block if head[key] is not None)
        blocks[str(head["trace"]), settings] = rows
    traces, of_trace = factorize(cells.column("trace"))
    rank = np.empty(len(traces), np.int64)
    rank[sorted(range(len(traces)), key=lambda k: str(traces[k]))] = np.arange(len(traces))
    statuses, of_status = factorize(cells.column("status"))
    return ArrangedCells(
        cells=cells,
        swept=swept,
        columns=columns,
        column=np.array(placed, np.int64)[number],
        bases=match_baselines(columns),
        blocks=blocks,
        names=names,
        trace=rank[of_trace],
        capacity=to_float64(cells, "capacity"),
        seed=to_numpy(cells.column("seed").combine_chunks()).astype(np.int64, copy=False),
        failed=np.isin(of_status, [k for k, value in enumerate(statuses) if value == "failed"]),
    )


def _heads(cells: pa.Table, names: Sequence[str]) -> tuple[list[dict[str, Any]], Rows]:
    """Give what rows have in some columns, by first appearance, and of each row which it is."""
    codes = (factorize(cells.column(name)) for name in names)
    number = group_ids([(len(values), which) for values, which in codes])
    first = np.unique(number, return_index=True)[1].tolist()
    return [{n: cells.column(n)[at].as_py() for n in names} for at in first], number


def group_ids(columns: Sequence[tuple[int, Rows]]) -> Rows:
    """Give rows that are alike in all columns one number, by first appearance.

    A column is how many values it has, and which of these each row has.
    """
    number = np.zeros(len(columns[0][1]), np.int64)
    for size, codes in columns:
        # numbered anew after each column, so that no product is too large
        found = pa.array(number * size + codes).dictionary_encode()
        number = to_numpy(found.indices).astype(np.int64)
    return number


def split_by_id(number: Rows) -> list[Rows]:
    """Part rows by their number, ascending."""
    order = np.argsort(number, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(number[order])) + 1) if len(number) else []


@dataclass(frozen=True)
class CapacityGroup:
    """The rows of a block at one capacity."""

    capacity: float
    rows: Rows
    place: Rows  # of each row, its seed's among those that are there, ascending
    n_seeds: int

    def by_seed(self, them: ArrangedCells, name: str) -> F8:
        """Values of a metric, (n_seeds, n_columns); NaN for none."""
        values = np.full((self.n_seeds, len(them.columns)), math.nan)
        values[self.place, them.column[self.rows]] = them.values(name, self.rows)
        return values


def by_capacity(them: ArrangedCells, members: Rows) -> Iterator[CapacityGroup]:
    """Part the rows of a block by capacity, ascending."""
    for capacity in np.unique(them.capacity[members]).tolist():
        rows = members[them.capacity[members] == capacity]
        seeds, place = np.unique(them.seed[rows], return_inverse=True)
        yield CapacityGroup(capacity, rows, place, len(seeds))


def build_columns(
    rows: Sequence[Mapping[str, Any]], of_policy: Sequence[str], baseline: str | None
) -> tuple[dict[Identity, Column], list[int]]:
    """Columns by identity, and which of them each row is of.

    Policies stand by first appearance, the variants of each together. The baseline is a policy, or
    one variant of it by its label.
    """
    identities = [(str(row["policy"]), *(text(row[key]) for key in of_policy)) for row in rows]
    seen: dict[str, dict[Identity, Mapping[str, Any]]] = {}
    for identity, row in zip(identities, rows, strict=True):
        seen.setdefault(identity[0], {}).setdefault(identity, row)
    columns: dict[Identity, Column] = {}
    for policy, variants in seen.items():
        differing = [
            key for key in of_policy if len({text(row[key]) for row in variants.values()}) > 1
        ]
        for identity, row in variants.items():
            parameters = tuple(
                f"{key.partition('.')[2].removeprefix(policy + '.')}={text(row[key])}"
                for key in differing
                if row[key] is not None
            )
            label = Column(policy, parameters, False).label
            columns[identity] = Column(policy, parameters, baseline in (policy, label))
    position = {identity: at for at, identity in enumerate(columns)}
    return columns, [position[identity] for identity in identities]


def match_baselines(columns: Mapping[Identity, Column]) -> list[int | None]:
    """Say of each column with which it is compared: None of the baseline, and without one.

    Of several settings of the baseline that is the one which agrees in what both have.
    """
    identities = list(columns)
    baselines = [at for at, column in enumerate(columns.values()) if column.is_baseline]

    def base(at: int) -> int | None:
        if at in baselines or len(baselines) == 1:
            return None if at in baselines else baselines[0]
        alike = (other for other in baselines if _agree(identities[at], identities[other]))
        return next(alike, None)

    return [base(at) for at in range(len(identities))]


def _agree(own: Identity, other: Identity) -> bool:
    """Tell whether two policies have the same values of what both have."""
    return all(a == b or "" in (a, b) for a, b in zip(own[1:], other[1:], strict=True))


def check_baseline(columns: Mapping[Identity, Column], baseline: str) -> None:
    """Refuse a baseline that is not there, and one of whose settings none can be told to be it."""
    labels = {identity: column.label for identity, column in columns.items()}
    bases = [identity for identity, column in columns.items() if column.is_baseline]
    if not bases:
        policies = [column.policy for column in columns.values()]
        raise InputError(
            unknown("baseline", baseline, list(dict.fromkeys([*policies, *labels.values()])))
            + "; the baseline is one of the policies that are swept",
            rule="unknown baseline",
        )
    others = [identity for identity in columns if identity not in bases]
    unclear = [one for one in others if sum(_agree(one, base) for base in bases) > 1]
    if len(bases) > 1 and (unclear or not others):
        settings = [labels[base] for base in bases]
        why = f", and {labels[unclear[0]]} could be compared with any" if unclear else ""
        raise InputError(
            f"baseline={baseline} has {len(bases)} settings{why}: name one as the tables do, "
            f"baseline='{settings[0]}'; valid: {', '.join(settings)}",
            rule="which baseline",
        )


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)
    )


def machines(them: ArrangedCells, rows: Rows) -> str:
    """Say how large the clusters of rows are; empty if that is not known."""
    if "n_machines" not in them.cells.column_names:
        return ""
    counts = to_float64(them.cells, "n_machines")[rows]
    counts = counts[~np.isnan(counts)]
    if not len(counts):
        return ""
    low, high = float(counts.min()), float(counts.max())
    number = _count(low) if low == high else f"{low:,.0f} to {high:,.0f}"
    unit = "slot" if _any(them.cells, "is_pool", rows) else "machine"
    return f"{number} {unit}{'s' * (high != 1)}"


def is_counted(them: ArrangedCells, rows: Rows) -> bool:
    """Tell whether any of these clusters was asked for by its number of machines."""
    return "n_machines" in them.cells.column_names and _any(them.cells, "is_counted", rows)


def _any(cells: pa.Table, name: str, rows: Rows) -> bool:
    """Tell whether a column says so of any row."""
    if name not in cells.column_names:  # of an older version
        return False
    return bool(to_numpy(cells.column(name).combine_chunks())[rows].any())


def _count(n: float) -> str:
    """Write a number of machines, of which one may be cut."""
    return f"{n:,.0f}" if n.is_integer() else f"{n:,.2f}"
