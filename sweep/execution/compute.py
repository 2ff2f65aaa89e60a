"""Run of the cells of a sweep that are not cached; stores their results.

A runner takes work and yields outcomes, in any order: in this process (here), or as Ray tasks
(`sweep.execution.on_ray.pool`). It does not decide what is stored.
"""

from __future__ import annotations

import itertools
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from operator import length_hint
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from sim.base import interrupt
from sim.base.masking import mask, mask_tree
from sweep.execution import notes, plan, task
from sweep.execution.cell import describe_error, run_cell
from sweep.execution.inputs import Convert
from sweep.execution.plan import PlannedCell, PreparedGrid
from sweep.execution.progress import Line, Progress, console
from sweep.execution.result_batch import ResultBatch, StoreSpec, pack
from sweep.execution.time_left import TimeLeft
from sweep.execution.watch import CellTimeoutError, alarm
from sweep.execution.workload_build import Clusters, Recipe, first_jobs
from sweep.store import storage
from sweep.store.cell import CellError, CellResult
from sweep.store.index import as_keys
from sweep.store.journal import Journal
from sweep.store.shard_writer import MAX_CELLS, PendingShard, read_marker

if TYPE_CHECKING:
    from sim.workload.workload import Workload
    from sweep.execution.cell import Simulate


REFRESH_EVERY_S, REFRESH_SHARE = 2.0, 0.05
"""Interval of checks for cells that other sweeps have stored, s; their maximum share of time."""
N_FIRST = 25_000
"""Cells that are inspected before the first runs: do they fit, and which kernels do they need."""
FLUSH_EVERY_S = 0.5
"""Interval at which arrived results are stored together: one shard per cell would be too many."""


MakeStoreSpec = Callable[[Sequence[PlannedCell]], StoreSpec]
"""Builds the store spec of cells for the worker that runs them."""
ExcludeCached = Callable[[Sequence[PlannedCell]], Sequence[PlannedCell]]
"""Removes cells that another sweep has stored meanwhile."""
Arrival = tuple[CellResult, PlannedCell, str]
"""Result of a cell, the cell, and the node where it ran."""


class Workloads(Protocol):
    """Source of workloads by name."""

    def workload(self, name: str) -> Workload:
        """Return a workload, loading it if needed."""
        ...

    def recipe(self, name: str) -> Recipe:
        """Return the recipe of a workload."""
        ...

    def add_description(self, name: str, description: Mapping[str, Any]) -> None:
        """Store the description of a workload that was built elsewhere."""
        ...


class Runner(Protocol):
    """Runs cells somewhere."""

    @property
    def convert(self) -> Convert | None:
        """Function with which workers convert a trace; None without workers."""
        ...

    @property
    def slots(self) -> int:
        """Cells that run at once."""
        ...

    def run(
        self,
        work: Iterable[PlannedCell],
        workloads: Workloads,
        make_store_spec: MakeStoreSpec | None = None,
        exclude_cached: ExcludeCached = list,
    ) -> Iterator[ResultBatch | str]:
        """Yield the outcome of each cell once, in batches as they arrive.

        Cells are drawn from `work` as they are needed; its iterator's length hint is their maximum
        number. Cells that are about to run pass through `exclude_cached`. With `make_store_spec`
        workers store their results, and return no tables. Without an outcome for a while it yields
        a text: the current activity, empty if cells are simply running. A `Line` is printed as it
        is. It may be called again once all outcomes have arrived; `close` it first if they have
        not.
        """
        ...

    def close(self) -> None:
        """Stop Ray or leave the cluster, if needed; `run` would start again."""
        ...


class InlineRunner:
    """Runs cells in this process, one after the other, as for a debugger."""

    convert = None
    slots = 1

    def __init__(self, simulate: Simulate | None = None, timeout_s: float | None = None) -> None:
        self._simulate = simulate
        self._timeout_s = timeout_s

    def run(
        self,
        work: Iterable[PlannedCell],
        workloads: Workloads,
        make_store_spec: MakeStoreSpec | None = None,
        exclude_cached: ExcludeCached = list,
    ) -> Iterator[ResultBatch | str]:
        """Yield each cell's outcome in the order of the work."""
        remaining = iter(work)
        first = list(itertools.islice(remaining, N_FIRST))
        if self._simulate is None:
            few_jobs, variants = task.sample_variants(
                [cell.spec for cell in first], lambda: _load_first(first, workloads)
            )
            with alarm(self._timeout_s):  # a cell whose policy hangs will report it
                compiles = few_jobs is not None and task.missing_variants((), few_jobs, variants)
            if compiles:
                yield task.COMPILING
        queue = itertools.chain(first, remaining)
        to_run = itertools.chain.from_iterable(exclude_cached([cell]) for cell in queue)
        for name, cells in itertools.groupby(to_run, lambda cell: cell.workload):
            workload, clusters = workloads.workload(name), Clusters()
            for cell in cells:
                cluster = clusters.get_or_build(workload, cell.cell.cluster, cell.cell.capacity)
                try:
                    with alarm(self._timeout_s):
                        result = run_cell(workload, cell.spec, cluster, self._simulate)
                except CellTimeoutError as error:  # the alarm came as the cell had just ended
                    result = CellResult(cell.key, error=describe_error("simulate", error))
                yield ResultBatch([result])

    def close(self) -> None:
        """Nothing was started."""


def _load_first(work: Sequence[PlannedCell], workloads: Workloads) -> tuple[Workload, Clusters]:
    """Load a few jobs of the first workload, and build the clusters of its cells."""
    workload, clusters = workloads.workload(work[0].workload), Clusters()
    for cell in work:
        if cell.workload == work[0].workload:
            clusters.get_or_build(workload, cell.cell.cluster, cell.cell.capacity)
    return first_jobs(workload), clusters


def read_traces(prepared: PreparedGrid) -> None:
    """Read the new traces of cells to run, so that no cell runs if a trace is damaged."""
    needed = np.unique(prepared.workload_numbers[prepared.missing_rows()])
    for cell in prepared.representatives:
        is_needed = prepared.workload_numbers[cell.row] in needed
        if is_needed and prepared.inputs.is_from_files(cell.workload):
            prepared.inputs.describe(cell.workload)


class _WorkQueue:
    """Iterator over cells to run; tracks the ones in flight, and those stored by other sweeps."""

    def __init__(self, prepared: PreparedGrid, cells: Iterator[PlannedCell], n_cells: int) -> None:
        self._prepared = prepared
        self._cells = cells
        self._n_left = n_cells
        self.by_key: dict[str, PlannedCell] = {}  # in flight
        self._cached: set[str] = set()
        self._next_refresh_s = time.monotonic() + REFRESH_EVERY_S

    def __iter__(self) -> _WorkQueue:
        return self

    def __next__(self) -> PlannedCell:
        try:
            cell = next(self._cells)
        except StopIteration:
            self._n_left = 0
            raise
        self._n_left -= 1
        self.by_key[cell.key] = cell
        return cell

    def __length_hint__(self) -> int:
        return self._n_left

    def take_cached(self, cells: Sequence[PlannedCell]) -> list[PlannedCell]:
        """Take out the cells that another sweep had stored at the last refresh; return them."""
        if time.monotonic() >= self._next_refresh_s:
            self._refresh()
        cached = [cell for cell in cells if cell.key in self._cached]
        for cell in cached:
            del self.by_key[cell.key]
        return cached

    def _refresh(self) -> None:
        """Add the metrics of cells in flight that another sweep has stored."""
        begin_s, names = time.monotonic(), [*self.by_key]
        keys = as_keys(bytes.fromhex("".join(names)))
        is_cached = self._prepared.cache.refresh(keys)
        if is_cached.any():
            columns = self._prepared.cache.columns(keys[is_cached])
            self._prepared.metrics.add(keys[is_cached], columns)
        self._cached = set(itertools.compress(names, is_cached))
        elapsed_s = time.monotonic() - begin_s
        pause_s = max(REFRESH_EVERY_S, elapsed_s / REFRESH_SHARE)
        self._next_refresh_s = begin_s + elapsed_s + pause_s


def run(
    prepared: PreparedGrid,
    cells: Iterator[PlannedCell],
    n_cells: int,
    journal: Journal,
    runner: Runner,
) -> dict[str, CellError]:
    """Run cells until none are left or too many have failed, and store their results.

    There are `n_cells` at most. Cells that another sweep stores before they are handed out are not
    run. Return the errors of the failed cells, by key.
    """
    errors: dict[str, CellError] = {}
    work = _WorkQueue(prepared, cells, n_cells)
    by_key = work.by_key
    limit = prepared.grid.request.settings.max_failures
    inputs = prepared.inputs
    new_workloads = [name for name in _workload_names(prepared) if inputs.known(name) is None]
    marker = cache(lambda: read_marker(prepared.cache.storage))

    def make_store_spec(cells: Sequence[PlannedCell]) -> StoreSpec:
        location = storage.location_of(prepared.cache.results)
        return StoreSpec(location, marker(), [*plan.stored_configs(prepared, cells)])

    arrivals: list[Arrival] = []  # since the last flush
    shards: list[PendingShard] = []
    flushed_s, has_begun = time.monotonic(), False
    axes = prepared.grid.request.axes
    shape = len(axes["seed"]), len(axes["capacity"])
    time_left = TimeLeft(prepared.missing_rows(), *shape, lambda: runner.slots)

    def exclude_cached(cells: Sequence[PlannedCell]) -> Sequence[PlannedCell]:
        cached = {cell.key: cell.row for cell in work.take_cached(cells)}
        if not cached:
            return cells
        time_left.done([*cached.values()], [0.0] * len(cached))
        progress.cells(len(cached), 0)
        return [cell for cell in cells if cell.key not in cached]

    def flush() -> None:
        with interrupt.deferred():
            n_failed = _store(arrivals, shards, prepared, journal, errors)
            elapsed_s = [0.0 if result.error else result.seconds for result, *_ in arrivals]
            time_left.done([cell.row for _, cell, _ in arrivals], elapsed_s)
            progress.cells(len(arrivals), n_failed)
            arrivals.clear()
            shards.clear()

    try:
        with (
            Progress(console(), n_cells, time_left.seconds, journal.note_status) as progress,
            ExitStack() as stack,
        ):
            try:
                for event in runner.run(work, inputs, make_store_spec, exclude_cached):
                    journal.confirm()
                    if isinstance(event, ResultBatch):
                        if not has_begun:  # before, there was no result to store
                            stack.enter_context(interrupt.unwinding())
                            has_begun = True
                        node = event.node or platform.node()
                        arrivals += [(r, by_key.pop(r.key), node) for r in event.results]
                        shards += event.shards
                    elif isinstance(event, Line):
                        progress.print_line(event)
                        journal.append("said", text=mask(event))
                    else:
                        progress.beat(event)
                    is_due = time.monotonic() - flushed_s >= FLUSH_EVERY_S
                    is_due |= len(arrivals) >= MAX_CELLS or _has_failed(event)
                    if arrivals and is_due:
                        flush()
                        flushed_s = time.monotonic()
                    if limit is not None and len(errors) >= limit and (by_key or length_hint(work)):
                        break
            finally:
                if arrivals:
                    flush()
    except KeyboardInterrupt:
        raise KeyboardInterrupt(notes.interrupted(prepared, n_cells)) from None
    notes.traces(prepared, {name for name in new_workloads if inputs.known(name) is not None})
    return errors | skipped([*by_key, *(cell.key for cell in work)], limit)


def _workload_names(prepared: PreparedGrid) -> set[str]:
    return {cell.workload for cell in prepared.representatives}


def _has_failed(event: ResultBatch | str) -> bool:
    return isinstance(event, ResultBatch) and any(r.error is not None for r in event.results)


def skipped(keys: Iterable[str], limit: int | None) -> dict[str, CellError]:
    """Build the error of cells that were not run, as too many others had failed."""
    message = f"not run: {limit} cells had failed before (max_failures={limit})"
    error: CellError = {"stage": "skipped", "type": "Skipped", "message": message, "traceback": ""}
    return dict.fromkeys(keys, error)


def _store(
    arrivals: list[Arrival],
    shards: list[PendingShard],
    prepared: PreparedGrid,
    journal: Journal,
    errors: dict[str, CellError],
) -> int:
    """Store results, then note them in the journal; return how many failed."""
    journal.confirm()
    _store_source_tables(prepared, [cell for result, cell, _ in arrivals if result.error is None])
    _pack_local(arrivals, shards, prepared)
    manifests = prepared.cache.commit(shards)
    for names, group in itertools.groupby(manifests, key=lambda manifest: manifest.names):
        same_names = [*group]
        values = np.concatenate([manifest.metrics() for manifest in same_names], axis=1)
        keys = as_keys(b"".join(manifest.keys for manifest in same_names))
        prepared.metrics.add(keys, dict(zip(names, values, strict=True)))
    n_failed, lines = 0, []
    for result, cell, node in arrivals:
        seconds = round(result.seconds, 3)
        fields = {"row": cell.row, "key": cell.key, "node": node, "seconds": seconds}
        if result.error is None:
            lines.append({"status": "done", **fields})
        else:
            n_failed += 1
            # it may quote an address that it could not reach
            errors[cell.key] = error = mask_tree(result.error)
            lines.append({"status": "failed", "error": error["message"][:500], **fields})
    journal.append_cells(lines)
    return n_failed


def _store_source_tables(prepared: PreparedGrid, cells: Iterable[PlannedCell]) -> None:
    """Store the digests of the modules that these cells and their workloads come from."""
    distinct = {(id(c.cell.policy), id(c.cell.evaluator), c.workload): c for c in cells}
    for cell in distinct.values():
        for digest, table in plan.source_tables(prepared, cell).items():
            prepared.cache.sources.store(digest, table)


def _pack_local(
    arrivals: list[Arrival], shards: list[PendingShard], prepared: PreparedGrid
) -> None:
    """Pack results that arrived with their tables, as from this process, into shards."""
    indices = [k for k, (result, *_) in enumerate(arrivals) if result.jobs is not None]
    if not indices:
        return
    configs = plan.stored_configs(prepared, (arrivals[k][1] for k in indices))
    done = [(arrivals[k][0], config) for k, config in zip(indices, configs, strict=True)]
    batch = pack(done, None)
    shards += batch.shards
    for k, result in zip(indices, batch.results, strict=True):
        arrivals[k] = (result, *arrivals[k][1:])
