"""Transport of results: payloads of tasks and batches of results; tables stay in stored shards."""

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
    """Flush and stop times of a task."""

    flush_s: float  # interval between result batches; 0: one batch per cell
    stop_s: float  # time after which no further cell begins; the rest are requeued


@dataclass(frozen=True)
class StoreSpec:
    """Destination of a task's results."""

    location: str  # of the results' storage
    marker: str  # of the same
    configs: Sequence[Mapping[str, Any]]  # of each of its cells, for people to read


@dataclass(frozen=True)
class TaskPayload:
    """Payload of one task: cells of one workload and the settings to run them with.

    It is a single argument of plain tuples: the driver pickles thousands of cells a second.
    """

    specs: Sequence[tuple[Any, ...]]  # the fields of `CellSpec`
    flush_policy: FlushPolicy
    python_path: Sequence[str] = ()  # folders of the user's modules
    simulate: Simulate | None = None
    watched: Watched | None = None
    store_spec: StoreSpec | None = None


@dataclass(frozen=True)
class ResultBatch:
    """Results of cells; their tables and metrics are in shards, or in the results until packed."""

    results: list[CellResult]
    shards: Sequence[PendingShard] = ()
    node: str = ""  # name of the node, for people; empty: this machine


ResultWithConfig = tuple["CellResult", Mapping[str, Any]]
"""A result with its table, and its cell's configuration."""


def pack(done: Sequence[ResultWithConfig], target: Storage | None) -> ResultBatch:
    """Pack the tables of cells into shards; write them to `target` if it can be reached."""
    rows, unstored = shard_writer.to_rows(
        (result, config) for result, config in done if not result.error
    )
    results = []
    for result, _ in done:
        # if no file can hold a table of the user's evaluator, only its cell fails
        storage_error = unstored.get(result.key)
        error = result.error if storage_error is None else describe_error("keep", storage_error)
        results.append(result._replace(metrics={}, jobs=None, error=error))
    return ResultBatch(results, [*shard_writer.write(rows, target)])
