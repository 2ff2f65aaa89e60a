"""The cells of a sweep in order: what the columns of its tables are, and what its blocks."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, Mask
from sim.base.errors import InputError, unknown
from sim.cluster.load import FACTS
from sim.measures import NO_POLICY
from sweep.stats import metric_format

AXES = ("policy", "trace", "capacity", "seed")
ERROR = ("error_stage", "error_type", "error_message", "error_traceback")
NOT_METRICS = frozenset((*AXES, "status", *FACTS, *ERROR, "reproduce", "key"))
_POOL = '"shape":"slots"'  # in a cell's configuration, as canonical JSON
_COUNT = re.compile(r'"cluster":\{"count":\d')
_OF_COLUMN = ("policy.", "measure.")

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
class Arranged:
    """The rows of ``cells.parquet``, and where each stands."""

    rows: list[dict[str, Any]]  # a cell each: its labels, status and error; no metrics
    swept: list[str]  # columns swept besides policy, trace, capacity and seed
    columns: dict[Identity, Column]  # by policy and swept parameters, as text
    column: list[int]  # each row's position among `columns`
    bases: list[int | None]  # see `bases_of`
    blocks: dict[tuple[str, Settings], list[int]]  # rows by trace and the world's settings
    names: list[str]  # of the metrics, in the order shown
    values: F8  # NaN where a cell failed or a metric does not apply
    failed: Mask


def arrange(cells: pa.Table, swept: Sequence[str], baseline: str | None) -> Arranged:
    """Put cells in order; see `sweep.stats.summary.summarise` for the arguments."""
    swept = [key for key in swept if key in cells.column_names and key not in AXES]
    rows: list[dict[str, Any]] = cells.select(
        [name for name in cells.column_names if name in {*NOT_METRICS, *swept}]
    ).to_pylist()
    if "n_machines" in cells.column_names and "config" in cells.column_names:
        for row, config in zip(rows, cells.column("config").to_pylist(), strict=True):
            row["is_pool"] = _POOL in config
            row["is_counted"] = bool(_COUNT.search(config))
    names = [n for n in cells.column_names if n not in {*NOT_METRICS, *swept}]
    names = metric_format.in_order([n for n in names if _is_number(cells.schema.field(n).type)])
    values = _matrix(cells, names)
    failed = np.array([row["status"] == "failed" for row in rows], dtype=bool)
    values[failed] = math.nan

    of_policy = [key for key in swept if key.startswith(_OF_COLUMN)]
    of_block = [key for key in swept if not key.startswith(_OF_COLUMN)]
    columns, placed = columns_of(rows, of_policy, baseline)
    blocks: dict[tuple[str, Settings], list[int]] = {}
    for at, row in enumerate(rows):
        settings = tuple((key, text(row[key])) for key in of_block if row[key] is not None)
        blocks.setdefault((str(row["trace"]), settings), []).append(at)
    bases = bases_of(columns)
    return Arranged(rows, swept, columns, placed, bases, blocks, names, values, failed)


def about(config: Mapping[str, Any]) -> dict[str, Any]:
    """Take out of ``config.yaml`` what tables of the cells are made by."""
    is_fixed = bool(config.get("is_fixed"))
    return {"swept": config["swept"], "baseline": config["baseline"], "is_fixed": is_fixed}


ALL_METRICS = "all"
"""In place of the names of metrics to show."""


def chosen_metrics(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the metrics to show; empty where no names were given."""
    chosen = tuple(config["metrics"] or ())
    return () if ALL_METRICS in chosen else chosen


def shown_metrics(cells: pa.Table, config: Mapping[str, Any]) -> pa.Table:
    """Leave out the metrics that are not among those to show, if there are such."""
    chosen = chosen_metrics(config)
    if not chosen:
        return cells
    keep = {*NOT_METRICS, "config", *config["swept"], *chosen}
    return cells.select([name for name in cells.column_names if name in keep])


def by_seed(them: Arranged, members: Sequence[int]) -> dict[float, F8]:
    """Values of a block by capacity, ascending: (n_seeds, n_columns, n_metrics), NaN for none."""
    where = [(float(them.rows[at]["capacity"]), int(them.rows[at]["seed"])) for at in members]
    seeds: dict[float, list[int]] = {}
    for capacity, seed in sorted(set(where)):
        seeds.setdefault(capacity, []).append(seed)
    shape = (len(them.columns), len(them.names))
    values = {c: np.full((len(of), *shape), math.nan) for c, of in seeds.items()}
    place = {(c, seed): at for c, of in seeds.items() for at, seed in enumerate(of)}
    for at, (capacity, seed) in zip(members, where, strict=True):
        values[capacity][place[capacity, seed], them.column[at]] = them.values[at]
    return values


def columns_of(
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


def bases_of(columns: Mapping[Identity, Column]) -> list[int | None]:
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


def _matrix(cells: pa.Table, names: list[str]) -> F8:
    """Metrics as one float64 array, shape (n_cells, n_metrics); null becomes NaN."""
    values = np.full((cells.num_rows, len(names)), math.nan)
    for at, name in enumerate(names):
        column = cells.column(name).cast(pa.float64()).combine_chunks()
        values[:, at] = column.to_numpy(zero_copy_only=False)
    return values


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)
    )


def text(value: object) -> str:
    """Write a label: shortest text that reads back the same; nothing for None."""
    if value is None:
        return ""
    if isinstance(value, bool | list | dict):
        return json.dumps(value)
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


def machines(them: Arranged, members: Sequence[int], capacity: float) -> str:
    """Say how large the clusters of a block are at a capacity; empty if that is not known."""
    cells = [them.rows[at] for at in members if float(them.rows[at]["capacity"]) == capacity]
    counts = [float(n) for cell in cells if (n := cell.get("n_machines")) is not None]
    if not counts:
        return ""
    low, high = min(counts), max(counts)
    number = _count(low) if low == high else f"{low:,.0f} to {high:,.0f}"
    unit = "slot" if any(cell.get("is_pool") for cell in cells) else "machine"
    return f"{number} {unit}{'s' * (high != 1)}"


def _count(n: float) -> str:
    """Write a number of machines, of which one may be cut."""
    return f"{n:,.0f}" if n.is_integer() else f"{n:,.2f}"
