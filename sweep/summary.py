"""From one row a cell to means over seeds: what the tables, the plots and the report show."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sweep import metric_format
from sweep.cell import NO_POLICY
from sweep.stats import intervals

AXES = ("policy", "trace", "capacity", "seed")
ERROR = ("error_stage", "error_type", "error_message", "error_traceback")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # of a worker's terminal
_OF_COLUMN = ("policy.", "measure.")
NOT_METRICS = frozenset((*AXES, "status", *ERROR, "reproduce", "key"))


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
class Block:
    """All that was measured on one trace under one setting of the other swept parameters.

    ``mean``, ``half`` (float64) and ``n`` (int64) have shape (n_capacities, n_columns, n_metrics);
    ``n_planned`` and ``n_failed`` (int64), shape (n_capacities, n_columns), count cells.
    """

    trace: str
    settings: tuple[tuple[str, str], ...]
    capacities: tuple[float, ...]
    mean: NDArray[np.float64]
    half: NDArray[np.float64]
    n: NDArray[np.int64]
    n_planned: NDArray[np.int64]
    n_failed: NDArray[np.int64]

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
        words = [self.policy, self.trace, f"capacity {_text(self.capacity)}", f"seed {self.seed}"]
        return ", ".join(words + [f"{key}={value}" for key, value in self.settings])


@dataclass(frozen=True)
class Summary:
    """A sweep's numbers, ready to be shown.

    ``metrics`` are in the order shown and have a value somewhere; ``unavailable`` are the
    others. ``baseline`` is None when speed-ups are quoted against nothing.
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


def summarise(
    cells: pa.Table, *, swept: Sequence[str] = (), baseline: str | None = None
) -> Summary:
    """Average every metric over the seeds of each (policy, trace, capacity, other parameters).

    Parameters
    ----------
    cells : pyarrow.Table
        One row a cell, as in ``cells.parquet``. A row whose status is ``failed`` counts as
        failed and gives no number; a NaN or null metric is left out.
    swept : sequence of str
        Columns swept besides policy, trace, capacity and seed. A key that begins with
        ``policy.`` or ``measure.`` tells columns apart; each combination of the others is a block
        of its own. Null means that the key does not apply to the cell.
    baseline : str, optional
        Name of the policy that speed-ups are quoted against.

    Returns
    -------
    Summary
        Policies in their order of appearance, capacities ascending. Every number is independent
        of the order of the seeds' rows.
    """
    swept = [key for key in swept if key in cells.column_names and key not in AXES]
    rows: list[dict[str, Any]] = cells.select(
        [name for name in cells.column_names if name in NOT_METRICS or name in swept]
    ).to_pylist()
    names = [name for name in cells.column_names if name not in NOT_METRICS and name not in swept]
    names = metric_format.in_order([n for n in names if _is_number(cells.schema.field(n).type)])
    values = _matrix(cells, names)
    failed = np.array([row["status"] == "failed" for row in rows], dtype=bool)
    values[failed] = math.nan

    of_policy = [key for key in swept if key.startswith(_OF_COLUMN)]
    of_block = [key for key in swept if not key.startswith(_OF_COLUMN)]
    columns = _columns(rows, of_policy, baseline)
    column_at = {identity: at for at, identity in enumerate(columns)}
    blocks: dict[tuple[str, tuple[tuple[str, str], ...]], list[int]] = {}
    for at, row in enumerate(rows):
        settings = tuple((key, _text(row[key])) for key in of_block if row[key] is not None)
        blocks.setdefault((str(row["trace"]), settings), []).append(at)
    placed = [column_at[_identity(row, of_policy)] for row in rows]
    some = [not np.isnan(column).all() for column in values.T]
    shown = np.flatnonzero(some)
    return Summary(
        columns=tuple(columns.values()),
        metrics=tuple(names[at] for at in shown),
        unavailable=tuple(name for name, known in zip(names, some, strict=True) if not known),
        blocks=tuple(
            _block(trace, settings, members, rows, placed, len(columns), values[:, shown], failed)
            for (trace, settings), members in blocks.items()
        ),
        baseline=baseline,
        seeds=tuple(sorted({int(row["seed"]) for row in rows})),
        capacities=tuple(sorted({float(row["capacity"]) for row in rows})),
        n_cells=len(rows),
        failures=tuple(_failure(row, swept) for row, bad in zip(rows, failed, strict=True) if bad),
    )


def _block(
    trace: str,
    settings: tuple[tuple[str, str], ...],
    members: list[int],
    rows: list[dict[str, Any]],
    placed: list[int],
    n_columns: int,
    values: NDArray[np.float64],
    failed: NDArray[np.bool_],
) -> Block:
    capacities = sorted({float(rows[at]["capacity"]) for at in members})
    shape = (len(capacities), n_columns)
    groups: dict[tuple[int, int], list[int]] = {}
    for at in members:
        where = (capacities.index(float(rows[at]["capacity"])), placed[at])
        groups.setdefault(where, []).append(at)
    mean = np.full((*shape, values.shape[1]), math.nan)
    half = np.full_like(mean, math.nan)
    n = np.zeros(mean.shape, dtype=np.int64)
    n_planned, n_failed = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    for where, group in groups.items():
        group.sort(key=lambda at: int(rows[at]["seed"]))
        mean[where], half[where], n[where] = intervals(values[group])
        n_planned[where], n_failed[where] = len(group), int(failed[group].sum())
    return Block(trace, settings, tuple(capacities), mean, half, n, n_planned, n_failed)


def _columns(
    rows: list[dict[str, Any]], of_policy: list[str], baseline: str | None
) -> dict[tuple[str, ...], Column]:
    """Columns by identity: policies by first appearance, the variants of each together."""
    seen: dict[str, dict[tuple[str, ...], dict[str, Any]]] = {}
    for row in rows:
        seen.setdefault(str(row["policy"]), {}).setdefault(_identity(row, of_policy), row)
    columns: dict[tuple[str, ...], Column] = {}
    for policy, variants in seen.items():
        differing = [
            key for key in of_policy if len({_text(row[key]) for row in variants.values()}) > 1
        ]
        for identity, row in variants.items():
            parameters = tuple(
                f"{key.partition('.')[2].removeprefix(policy + '.')}={_text(row[key])}"
                for key in differing
                if row[key] is not None
            )
            columns[identity] = Column(policy, parameters, policy == baseline)
    return columns


def _identity(row: Mapping[str, Any], of_policy: list[str]) -> tuple[str, ...]:
    return (str(row["policy"]), *(_text(row[key]) for key in of_policy))


def _failure(row: Mapping[str, Any], swept: Sequence[str]) -> Failure:
    def text(name: str) -> str:
        value = row.get(name)
        return "" if value is None else _COLOURS.sub("", str(value))

    return Failure(
        policy=str(row["policy"]),
        trace=str(row["trace"]),
        capacity=float(row["capacity"]),
        seed=int(row["seed"]),
        settings=tuple((key, _text(row[key])) for key in swept if row[key] is not None),
        stage=text("error_stage"),
        type=text("error_type"),
        message=text("error_message"),
        reproduce=text("reproduce"),
    )


def _matrix(cells: pa.Table, names: list[str]) -> NDArray[np.float64]:
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


def _text(value: object) -> str:
    if value is None:
        return ""
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)
