"""Results as they travel: tables stay where they were computed, if results are kept from there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sweep.execution.cell import describe_error
from sweep.store import shard_writer

if TYPE_CHECKING:
    from sweep.execution.cell import Simulate
    from sweep.execution.watch import Watched
    from sweep.store.cell import CellResult
    from sweep.store.shard_writer import PendingShard
    from sweep.store.storage import Storage


@dataclass(frozen=True)
class FlushPolicy:
    """How a task goes through its cells."""

    part_s: float  # what was done is handed over after so long; 0 after every cell
    task_s: float  # after so long it begins no more cells: those that are left wait again


@dataclass(frozen=True)
class StoreSpec:
    """How a task keeps its cells."""

    where: str  # the place of results, and its mark
    mark: str
    configs: Sequence[Mapping[str, Any]]  # of each of its cells, for people to read


@dataclass(frozen=True)
class TaskPayload:
    """Cells of one workload, for one task, and how it goes through them.

    One argument of a task, of plain tuples: of others a driver would pickle thousands a second.
    """

    specs: Sequence[tuple[Any, ...]]  # the fields of `CellSpec`
    pace: FlushPolicy
    python_path: Sequence[str] = ()  # folders where modules of the user's may lie
    simulate: Simulate | None = None
    watched: Watched | None = None
    keeping: StoreSpec | None = None


@dataclass(frozen=True)
class ResultBatch:
    """Results of cells, their tables and metrics in shards; or with both, still to be packed."""

    results: list[CellResult]
    kept: Sequence[PendingShard] = ()
    node: str = ""  # name of the one where they ran, for people; empty: this machine


Done = tuple["CellResult", Mapping[str, Any]]
"""A result with its table, and its cell's configuration."""


def pack(done: Sequence[Done], there: Storage | None) -> ResultBatch:
    """Put the tables of cells into shards, in their place where it is reached from here."""
    rows, unkept = shard_writer.to_rows(
        (result, config) for result, config in done if not result.error
    )
    results = []
    for result, _ in done:
        # a table of the user's evaluator that no file can hold is the cell's fault alone
        found = unkept.get(result.key)
        error = result.error if found is None else describe_error("keep", found)
        results.append(result._replace(metrics={}, jobs=None, error=error))
    return ResultBatch(results, [*shard_writer.write(rows, there)])
