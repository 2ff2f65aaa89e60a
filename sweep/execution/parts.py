"""Results as they travel: in parts, the tables of many cells as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sweep.store.cell import CellResult

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Pace:
    """How a task goes through its cells."""

    part_s: float  # what was done is handed over after so long; 0 after every cell
    task_s: float  # after so long it begins no more cells: those that are left wait again


@dataclass(frozen=True)
class Part:
    """Results of cells, their tables apart."""

    results: list[CellResult]  # without tables
    tables: list[pa.Table]  # one for each layout that there is, a cell's rows under the other's
    parts: list[tuple[int, int]]  # of each result which of the tables, −1 for none; and its rows


def pack(results: Sequence[CellResult]) -> Part:
    """Put the tables of results together."""
    import pyarrow as pa  # in a worker, which has it

    alike: list[list[pa.Table]] = []
    parts = []
    for result in results:
        at, jobs = -1, result.jobs
        if jobs is not None:
            same = (k for k, there in enumerate(alike) if _fits(there[0], jobs))
            at = next(same, len(alike))
            if at == len(alike):
                alike.append([])
            alike[at].append(jobs)
        parts.append((at, 0 if jobs is None else jobs.num_rows))
    tables = [pa.concat_tables(each).combine_chunks() for each in alike]
    return Part([replace(result, jobs=None) for result in results], tables, parts)


def unpack(part: Part) -> list[CellResult]:
    """Give each result its table again."""
    found, begins = [], [0] * len(part.tables)
    for result, (at, n_rows) in zip(part.results, part.parts, strict=True):
        if at < 0:
            found.append(result)
            continue
        jobs = part.tables[at].slice(begins[at], n_rows)
        begins[at] += n_rows
        found.append(replace(result, jobs=jobs))
    return found


def _fits(one: pa.Table, other: pa.Table) -> bool:
    return bool(one.schema.equals(other.schema, check_metadata=True))
