"""Results as they travel: tables stay where they were computed, if results are kept from there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sweep.execution.cell import error_of
from sweep.execution.keys import key_by_content
from sweep.store import keep

if TYPE_CHECKING:
    from sweep.execution.cell import Simulate
    from sweep.execution.watch import Watched
    from sweep.store.cell import CellResult, CellSpec
    from sweep.store.keep import Written


@dataclass(frozen=True)
class Pace:
    """How a task goes through its cells."""

    part_s: float  # what was done is handed over after so long; 0 after every cell
    task_s: float  # after so long it begins no more cells: those that are left wait again


@dataclass(frozen=True)
class Keeping:
    """How a task keeps its cells."""

    where: str  # the place of results, and its mark
    mark: str
    configs: Sequence[Mapping[str, Any]]  # of each of its cells, for people to read
    is_late: bool  # keys and configurations name the workload's recipe, as its digest is not known


@dataclass(frozen=True)
class Chunk:
    """Cells of one workload, for one task, and how it goes through them.

    One argument of a task, of plain tuples: of others a driver would pickle thousands a second.
    """

    specs: Sequence[tuple[Any, ...]]  # the fields of `CellSpec`
    pace: Pace
    python_path: Sequence[str] = ()  # folders where modules of the user's may lie
    simulate: Simulate | None = None
    watched: Watched | None = None
    keeping: Keeping | None = None


@dataclass(frozen=True)
class Part:
    """Results of cells: with their tables, or without these and their metrics, which are kept."""

    results: list[CellResult]
    kept: Sequence[Written] = ()
    node: str = ""  # name of the one where they ran, for people; empty: this machine


def pack(
    done: Sequence[tuple[CellSpec, CellResult, Mapping[str, Any]]], how: Keeping, workload: str
) -> Part:
    """Keep cells, each with its configuration; `workload` is the digest of theirs."""
    whole: list[tuple[str, CellResult, Mapping[str, Any]]] = []
    for spec, result, config in done:
        if result.error is None and how.is_late:
            key = key_by_content(spec, workload)
            whole.append((key, result, {**config, "workload": workload}))
        elif result.error is None:
            whole.append((result.key, result, config))
    rows, unkept = keep.rows_of(whole)
    written = [*keep.write(rows, keep.reached(how.where, how.mark))]
    results = []
    for _, result, _ in done:
        # a table of the user's measure that no file can hold is the cell's fault alone
        found = unkept.get(result.key)
        error = result.error if found is None else error_of("keep", found)
        results.append(result._replace(metrics={}, jobs=None, error=error))
    return Part(results, written)
