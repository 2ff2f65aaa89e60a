"""Running the cells of a sweep that are not cached, and keeping what comes of them.

A runner takes work and gives outcomes, in whatever order they come: in this process (here), or as
Ray tasks (`sweep.execution.on_ray.pool`). It decides nothing about what to keep.
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


LOOK_EVERY_S, LOOK_PART = 2.0, 0.05
"""Interval between looks at cells that other sweeps have kept, s; maximum share of time."""
FIRST = 25_000
"""Cells that are looked at before the first runs: whether they fit, and which kernels they need."""
KEEP_EVERY_S = 0.5
"""What came is kept together after so long: a shard a cell would be many."""


MakeStoreSpec = Callable[[Sequence[PlannedCell]], StoreSpec]
"""Says how cells are kept by whoever runs them."""
ExcludeCached = Callable[[Sequence[PlannedCell]], Sequence[PlannedCell]]
"""Leaves out cells that another sweep has kept meanwhile."""
Arrival = tuple[CellResult, PlannedCell, str]
"""What came of a cell, and where it ran."""


class Workloads(Protocol):
    """Where a runner gets workloads by name."""

    def workload(self, name: str) -> Workload:
        """Return one, loading it if need be."""
        ...

    def recipe(self, name: str) -> Recipe:
        """Return what one is made from."""
        ...

    def learn(self, name: str, about: Mapping[str, Any]) -> None:
        """Take in what is known of one that was made elsewhere."""
        ...


class Runner(Protocol):
    """Runs cells somewhere."""

    @property
    def convert(self) -> Convert | None:
        """What has workers convert a trace, so that it can be described; None without workers."""
        ...

    @property
    def slots(self) -> int:
        """Cells that run at once."""
        ...

    def run(
        self,
        work: Iterable[PlannedCell],
        workloads: Workloads,
        keep: MakeStoreSpec | None = None,
        wanted: ExcludeCached = list,
    ) -> Iterator[ResultBatch | str]:
        """Yield the outcome of each cell once, in parts as they come.

        Cells are drawn from `work` as they are needed; its iterator's length hint says how many
        there are at most. Of those that are about to run only the `wanted` ones do.
        With `keep` workers keep what they compute, and hand over no tables.
        When none came for a while, a text: what is going on, empty if cells are simply running.
        A `Line` is said as it is.
        May be called again once all have come; `close` it first if they have not.
        """
        ...

    def close(self) -> None:
        """Stop what was started, if anything was; `run` would start it again."""
        ...


class InlineRunner:
    """Runs cells in this process, one after the other: what a debugger wants."""

    convert = None
    slots = 1

    def __init__(self, simulate: Simulate | None = None, timeout_s: float | None = None) -> None:
        self._simulate = simulate
        self._timeout_s = timeout_s

    def run(
        self,
        work: Iterable[PlannedCell],
        workloads: Workloads,
        keep: MakeStoreSpec | None = None,
        wanted: ExcludeCached = list,
    ) -> Iterator[ResultBatch | str]:
        """Yield each cell's outcome in the order of the work."""
        left = iter(work)
        first = list(itertools.islice(left, FIRST))
        if self._simulate is None:
            few_jobs, kinds = task.sample(
                [cell.spec for cell in first], lambda: _made_for(first, workloads)
            )
            with alarm(self._timeout_s):  # a policy that hangs is what its cell will say
                compiles = few_jobs is not None and task.missing((), few_jobs, kinds)
            if compiles:
                yield task.COMPILING
        to_run = (cell for each in itertools.chain(first, left) for cell in wanted([each]))
        for name, cells in itertools.groupby(to_run, lambda cell: cell.input):
            workload, built = workloads.workload(name), Clusters()
            for cell in cells:
                cluster = built.get_or_build(workload, cell.cell.cluster, cell.cell.capacity)
                try:
                    with alarm(self._timeout_s):
                        result = run_cell(workload, cell.spec, cluster, self._simulate)
                except CellTimeoutError as error:  # rang as the cell had just ended
                    result = CellResult(cell.key, error=describe_error("simulate", error))
                yield ResultBatch([result])

    def close(self) -> None:
        """Nothing was started."""


def _made_for(work: Sequence[PlannedCell], workloads: Workloads) -> tuple[Workload, Clusters]:
    """Load a few jobs of the first workload, and build the clusters of its cells."""
    workload, built = workloads.workload(work[0].input), Clusters()
    for cell in work:
        if cell.input == work[0].input:
            built.get_or_build(workload, cell.cell.cluster, cell.cell.capacity)
    return first_jobs(workload), built


def read_traces(prepared: PreparedGrid) -> None:
    """Read the traces of cells to run that never were, so that no cell runs if one is damaged."""
    needed = np.unique(prepared.of_input[prepared.rows_to_do()])
    for cell in prepared.first:
        if prepared.of_input[cell.row] in needed and prepared.inputs.is_read(cell.input):
            prepared.inputs.describe(cell.input)


class _Work:
    """Cells to run, each noted by its key as it is drawn, and those that others have kept since."""

    def __init__(self, prepared: PreparedGrid, cells: Iterator[PlannedCell], n_cells: int) -> None:
        self._prepared = prepared
        self._cells = cells
        self._n_left = n_cells
        self.by_key: dict[str, PlannedCell] = {}  # those that have not come back
        self._kept: set[str] = set()
        self._look_s = time.monotonic() + LOOK_EVERY_S

    def __iter__(self) -> _Work:
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

    def kept(self, some: Sequence[PlannedCell]) -> list[PlannedCell]:
        """Give up those cells that another sweep has kept, as far as the last look tells."""
        if time.monotonic() >= self._look_s:
            self._look()
        kept = [cell for cell in some if cell.key in self._kept]
        for cell in kept:
            del self.by_key[cell.key]
        return kept

    def _look(self) -> None:
        """Take over the metrics of what has not come back and is kept."""
        begin_s, names = time.monotonic(), [*self.by_key]
        keys = as_keys(bytes.fromhex("".join(names)))
        are_kept = self._prepared.cache.refresh(keys)
        if are_kept.any():
            columns = self._prepared.cache.columns(keys[are_kept])
            self._prepared.metrics.take(keys[are_kept], columns)
        self._kept = set(itertools.compress(names, are_kept))
        took_s = time.monotonic() - begin_s
        self._look_s = begin_s + took_s + max(LOOK_EVERY_S, took_s / LOOK_PART)


def run(
    prepared: PreparedGrid,
    cells: Iterator[PlannedCell],
    n_cells: int,
    journal: Journal,
    runner: Runner,
) -> dict[str, CellError]:
    """Run cells until there are none or too many failed, and keep what comes of them.

    There are `n_cells` at most. Those that another sweep keeps before they are handed out are not
    run. Return the errors of those that failed, by key.
    """
    errors: dict[str, CellError] = {}
    work = _Work(prepared, cells, n_cells)
    by_key = work.by_key
    limit = prepared.grid.request.settings.max_failures
    unknown = [name for name in _inputs(prepared) if prepared.inputs.known(name) is None]
    mark = cache(lambda: read_marker(prepared.cache.storage))

    def keep(some: Sequence[PlannedCell]) -> StoreSpec:
        where = storage.location_of(prepared.cache.results)
        return StoreSpec(where, mark(), [*plan.stored_configs(prepared, some)])

    came: list[Arrival] = []  # and does not count yet: what came in a moment
    written: list[PendingShard] = []
    kept_s, has_begun = time.monotonic(), False
    axes = prepared.grid.request.axes
    shape = len(axes["seed"]), len(axes["capacity"])
    left = TimeLeft(prepared.rows_to_do(), *shape, lambda: runner.slots)

    def wanted(some: Sequence[PlannedCell]) -> Sequence[PlannedCell]:
        kept = {cell.key: cell.row for cell in work.kept(some)}
        if not kept:
            return some
        left.done([*kept.values()], [0.0] * len(kept))
        progress.cells(len(kept), 0)
        return [cell for cell in some if cell.key not in kept]

    def count() -> None:
        with interrupt.deferred():
            n_failed = _take_in(came, written, prepared, journal, errors)
            took = [0.0 if result.error else result.seconds for result, *_ in came]
            left.done([cell.row for _, cell, _ in came], took)
            progress.cells(len(came), n_failed)
            came.clear()
            written.clear()

    try:
        with (
            Progress(console(), n_cells, left.seconds) as progress,
            ExitStack() as stack,
        ):
            try:
                for said in runner.run(work, prepared.inputs, keep, wanted):
                    journal.confirm()
                    if isinstance(said, ResultBatch):
                        if not has_begun:  # before, nothing has come that could be kept
                            stack.enter_context(interrupt.unwinding())
                            has_begun = True
                        at = said.node or platform.node()
                        came += [(result, by_key.pop(result.key), at) for result in said.results]
                        written += said.kept
                    elif isinstance(said, Line):
                        progress.say(said)
                        journal.append("said", text=mask(said))
                    else:
                        progress.beat(said)
                    is_time = time.monotonic() - kept_s >= KEEP_EVERY_S
                    if came and (is_time or len(came) >= MAX_CELLS or _has_failed(said)):
                        count()
                        kept_s = time.monotonic()
                    if limit is not None and len(errors) >= limit and (by_key or length_hint(work)):
                        break
            finally:
                if came:
                    count()
    except KeyboardInterrupt:
        raise KeyboardInterrupt(notes.interrupted(prepared, n_cells)) from None
    notes.traces(prepared, {name for name in unknown if prepared.inputs.known(name) is not None})
    return errors | skipped([*by_key, *(cell.key for cell in work)], limit)


def _inputs(prepared: PreparedGrid) -> set[str]:
    """Names of all workloads."""
    return {cell.input for cell in prepared.first}


def _has_failed(said: ResultBatch | str) -> bool:
    return isinstance(said, ResultBatch) and any(
        result.error is not None for result in said.results
    )


def skipped(keys: Iterable[str], limit: int | None) -> dict[str, CellError]:
    """Say of cells why they were not run."""
    message = f"not run: {limit} cells had failed before (max_failures={limit})"
    error: CellError = {"stage": "skipped", "type": "Skipped", "message": message, "traceback": ""}
    return dict.fromkeys(keys, error)


def _take_in(
    came: list[Arrival],
    written: list[PendingShard],
    prepared: PreparedGrid,
    journal: Journal,
    errors: dict[str, CellError],
) -> int:
    """Keep results, then say in the journal that they are there; return how many failed."""
    journal.confirm()
    _keep_sources(prepared, [cell for result, cell, _ in came if result.error is None])
    _pack(came, written, prepared)
    manifests = prepared.cache.commit(written)
    for names, alike in itertools.groupby(manifests, key=lambda manifest: manifest.names):
        some = [*alike]
        values = np.concatenate([manifest.metrics() for manifest in some], axis=1)
        keys = as_keys(b"".join(manifest.keys for manifest in some))
        prepared.metrics.take(keys, dict(zip(names, values, strict=True)))
    n_failed, lines = 0, []
    for result, cell, node in came:
        seconds = round(result.seconds, 3)
        fields = {"row": cell.row, "key": cell.key, "node": node, "seconds": seconds}
        if result.error is None:
            lines.append({"status": "done", **fields})
        else:
            n_failed += 1
            # it may quote what it could not reach
            errors[cell.key] = error = mask_tree(result.error)
            lines.append({"status": "failed", "error": error["message"][:500], **fields})
    journal.append_cells(lines)
    return n_failed


def _keep_sources(prepared: PreparedGrid, done: Iterable[PlannedCell]) -> None:
    """Keep the digests of modules that these cells and their workloads come from."""
    kept = prepared.cache.sources
    for cell in {(id(c.cell.policy), id(c.cell.evaluator), c.input): c for c in done}.values():
        for digest, table in plan.source_tables(prepared, cell).items():
            kept.store(digest, table)


def _pack(came: list[Arrival], written: list[PendingShard], prepared: PreparedGrid) -> None:
    """Put results that came with their tables, as from this process, into shards."""
    whole = [at for at, (result, *_) in enumerate(came) if result.jobs is not None]
    if not whole:
        return
    configs = plan.stored_configs(prepared, (came[at][1] for at in whole))
    done = [(came[at][0], config) for at, config in zip(whole, configs, strict=True)]
    part = pack(done, None)
    written += part.kept
    for at, result in zip(whole, part.results, strict=True):
        came[at] = (result, *came[at][1:])
