"""Running the cells of a sweep that are not cached, and keeping what comes of them.

A runner takes work and gives outcomes, in whatever order they come: in this process (here), or as
Ray tasks (`sweep.execution.on_ray.pool`). It decides nothing about what to keep.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from sim.base.masking import mask, mask_tree
from sweep.execution import notes, plan, task
from sweep.execution.cell import error_of, run_cell
from sweep.execution.plan import Planned, Prepared
from sweep.execution.watch import CellTimeoutError, alarm
from sweep.store.cell import CellError, CellResult
from sweep.store.journal import Journal

if TYPE_CHECKING:
    from sim.workload.workload import Workload
    from sweep.execution.cell import Simulate
    from sweep.store.cell import CellSpec


@dataclass(frozen=True)
class Work:
    """A cell to run."""

    spec: CellSpec
    input: str  # name of its workload
    name: str = ""  # for people


class Workloads(Protocol):
    """Where a runner gets workloads by name."""

    def workload(self, name: str) -> Workload:
        """Return one, loading it if need be."""
        ...

    def release(self, name: str) -> None:
        """Forget this process's copy of one."""
        ...


class Runner(Protocol):
    """Runs cells somewhere."""

    def run(self, work: Sequence[Work], workloads: Workloads) -> Iterator[CellResult | str]:
        """Yield the outcome of each cell once, as it comes.

        When none came for a while, a text: what is going on, empty if cells are simply running.
        A `notes.Line` is said as it is.
        May be called again once all have come; `close` it first if they have not.
        """
        ...

    def close(self) -> None:
        """Stop what was started, if anything was; `run` would start it again."""
        ...


class InlineRunner:
    """Runs cells in this process, one after the other: what a debugger wants."""

    def __init__(self, simulate: Simulate | None = None, timeout_s: float | None = None) -> None:
        self._simulate = simulate
        self._timeout_s = timeout_s

    def run(self, work: Sequence[Work], workloads: Workloads) -> Iterator[CellResult | str]:
        """Yield each cell's outcome in the order of the work."""
        if self._simulate is None:
            few_jobs, specs = task.sample(
                [cell.spec for cell in work], lambda: workloads.workload(work[0].input)
            )
            with alarm(self._timeout_s):  # a policy that hangs is what its cell will say
                compiles = few_jobs is not None and task.missing((), few_jobs, specs)
            if compiles:
                yield task.COMPILING
        for cell in work:
            workload = workloads.workload(cell.input)
            try:
                with alarm(self._timeout_s):
                    result = run_cell(workload, cell.spec, self._simulate)
            except CellTimeoutError as error:  # rang as the cell had just ended
                result = CellResult(cell.spec.key, error=error_of("simulate", error))
            yield result

    def close(self) -> None:
        """Nothing was started."""


def begin(prepared: Prepared, journal: Journal, n_todo: int) -> list[bool]:
    """Say what is about to run; tell for each row whether an earlier sweep computed it."""
    notes.grid(prepared, n_todo)
    cached = _cached_before(prepared, journal)
    journal.append(
        "begin",
        cells=len(prepared.planned),
        todo=n_todo,
        cached=[row for row, was in enumerate(cached) if was],
        argv=[mask(word) for word in sys.argv[1:]],
    )
    return cached


def run(
    prepared: Prepared,
    specs: Sequence[tuple[Planned, CellSpec]],
    journal: Journal,
    cells: Runner,
) -> dict[str, CellError]:
    """Run cells until there are none or too many failed, and keep what comes of them.

    Return the errors of those that failed, by key.
    """
    errors: dict[str, CellError] = {}
    by_key = {cell.key: cell for cell, _ in specs}
    limit = prepared.grid.request.settings.max_failures
    work = [Work(spec, cell.input, _name(cell)) for cell, spec in specs]
    try:
        with notes.Progress(notes.console(), len(work)) as progress:
            for result in cells.run(work, prepared.inputs):
                if isinstance(result, notes.Line):
                    progress.say(result)
                    continue
                if isinstance(result, str):
                    progress.beat(result)
                    continue
                _take_in(result, by_key.pop(result.key), prepared, journal, errors)
                progress.cell(failed=result.error is not None)
                if limit is not None and len(errors) >= limit and by_key:
                    break
    except KeyboardInterrupt:
        notes.interrupted(prepared, len(specs))
        raise
    errors |= skipped(by_key, limit)
    return errors


def skipped(keys: Iterable[str], limit: int | None) -> dict[str, CellError]:
    """Say of cells why they were not run."""
    message = f"not run: {limit} cells had failed before (max_failures={limit})"
    error: CellError = {
        "stage": "skipped",
        "type": "Skipped",
        "message": message,
        "traceback": "",
    }
    return dict.fromkeys(keys, error)


def _name(cell: Planned) -> str:
    """Name a cell as its row does."""
    labels = mask_tree(cell.cell.labels).items()
    return " ".join(
        str(value) if key in ("policy", "trace") else f"{key}={value}"
        for key, value in labels
        if value is not None
    )


def _take_in(
    result: CellResult,
    cell: Planned,
    prepared: Prepared,
    journal: Journal,
    errors: dict[str, CellError],
) -> None:
    """Keep a result, then say in the journal that it is there."""
    seconds = round(result.seconds, 3)
    fields: dict[str, Any] = {"row": cell.row, "key": cell.key, "seconds": seconds}
    if result.error is None:
        prepared.cache.sources.keep(plan.source_of(cell.cell), plan.table_of(cell.cell))
        try:
            prepared.cache.put(result, plan.kept_config(prepared, cell))
        except (pa.ArrowException, TypeError, ValueError) as why:
            # a table of the user's measure that no file can hold is the cell's fault alone
            result = replace(result, error=error_of("keep", why))
    if result.error is None:
        prepared.metrics[cell.key] = result.metrics
        journal.append("cell", status="done", **fields)
    else:
        # it may quote what it could not reach
        errors[cell.key] = error = mask_tree(result.error)
        journal.append("cell", status="failed", error=error["message"][:500], **fields)


def _cached_before(prepared: Prepared, journal: Journal) -> list[bool]:
    """Tell for each row whether an earlier sweep computed it.

    A run that was killed is part of this one: what it computed counts as done here, so that the
    table is the same with or without the kill.
    """
    begun = journal.open_attempt()
    known = None if begun is None else set(begun["cached"])
    return [
        cell.key in prepared.metrics and (known is None or cell.row in known)
        for cell in prepared.planned
    ]
