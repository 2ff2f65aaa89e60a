"""Running the cells of a sweep that are not cached, and keeping what comes of them.

A runner takes work and gives outcomes, in whatever order they come: in this process (here), or as
Ray tasks (`sweep.execution.on_ray.pool`). It decides nothing about what to keep.
"""

from __future__ import annotations

import itertools
import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from operator import length_hint
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from sim.base import interrupt
from sim.base.masking import mask, mask_tree
from sweep.execution import notes, origin, plan, task
from sweep.execution.cell import error_of, run_cell
from sweep.execution.inputs import Convert
from sweep.execution.known import Flags
from sweep.execution.made import Recipe, Sizes, few_of, size, sized, wanted_by
from sweep.execution.parts import Keeping, Part
from sweep.execution.plan import Planned, Prepared
from sweep.execution.time_left import TimeLeft
from sweep.execution.watch import CellTimeoutError, alarm
from sweep.store import place
from sweep.store.cell import CellError, CellResult
from sweep.store.index import as_keys
from sweep.store.journal import Journal
from sweep.store.keep import MOST_CELLS, Written, mark_of

if TYPE_CHECKING:
    from sim.workload.workload import Workload
    from sweep.execution.cell import Simulate
    from sweep.store.cell import CellSpec


FIRST = 25_000
"""Cells that are looked at before the first runs: whether they fit, and which kernels they need."""
KEEP_EVERY_S = 0.5
"""What came is kept together after so long: a shard a cell would be many."""


class Work(NamedTuple):
    """A cell to run."""

    spec: CellSpec
    input: str  # name of its workload
    labels: Mapping[str, Any] | str = ""  # its coordinates, or what it is called

    @property
    def name(self) -> str:
        """What it is called, for people: as its row is."""
        return self.labels if isinstance(self.labels, str) else _name(self.labels)


Keep = Callable[[Sequence[Work]], Keeping]
"""Says how cells are kept by whoever runs them."""
Came = tuple[CellResult, Planned, str]
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
        self, work: Iterable[Work], workloads: Workloads, keep: Keep | None = None
    ) -> Iterator[Part | str]:
        """Yield the outcome of each cell once, in parts as they come.

        Cells are drawn from `work` as they are needed; its iterator's length hint says how many
        there are at most.
        With `keep` workers keep what they compute, and hand over no tables.
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

    convert = None
    slots = 1

    def __init__(self, simulate: Simulate | None = None, timeout_s: float | None = None) -> None:
        self._simulate = simulate
        self._timeout_s = timeout_s

    def run(
        self, work: Iterable[Work], workloads: Workloads, keep: Keep | None = None
    ) -> Iterator[Part | str]:
        """Yield each cell's outcome in the order of the work."""
        left = iter(work)
        first = list(itertools.islice(left, FIRST))
        if self._simulate is None:
            specs = [cell.spec for cell in first]
            few_jobs, kinds = task.sample(specs, lambda: _sized_for(first, workloads))
            with alarm(self._timeout_s):  # a policy that hangs is what its cell will say
                compiles = few_jobs is not None and task.missing((), few_jobs, kinds)
            if compiles:
                yield task.COMPILING
        sizes: dict[tuple[str, str], dict[str, Any]] = {}
        for cell in itertools.chain(first, left):
            workload = workloads.workload(cell.input)
            wanted = wanted_by(cell.spec)
            if wanted is not None and (cell.input, wanted) not in sizes:
                sizes[cell.input, wanted] = size(workload, wanted)
            spec = sized(cell.spec, {} if wanted is None else {wanted: sizes[cell.input, wanted]})
            try:
                with alarm(self._timeout_s):
                    result = run_cell(workload, spec, self._simulate)
            except CellTimeoutError as error:  # rang as the cell had just ended
                result = CellResult(cell.spec.key, error=error_of("simulate", error))
            yield Part([result])

    def close(self) -> None:
        """Nothing was started."""


def _sized_for(work: Sequence[Work], workloads: Workloads) -> tuple[Workload, Sizes]:
    """Load a few jobs of the first workload, and size what clusters stand unsized of its cells."""
    workload = workloads.workload(work[0].input)
    wanted = {wanted_by(cell.spec) for cell in work if cell.input == work[0].input}
    return few_of(workload), {one: size(workload, one) for one in wanted if one is not None}


def begin(prepared: Prepared, journal: Journal, n_todo: int) -> Flags:
    """Say what is about to run; tell for each row whether an earlier sweep computed it."""
    notes.grid(prepared, n_todo)
    cached = _cached_before(prepared, journal)
    journal.append(
        "begin",
        cells=len(prepared.planned),
        todo=n_todo,
        cached=np.flatnonzero(cached).tolist(),
        argv=[mask(word) for word in sys.argv[1:]],
        **origin.words_of(prepared.grid.request),
    )
    return cached


class _Drawn:
    """Cells to run, each noted by its key as it is drawn."""

    def __init__(self, specs: Iterator[tuple[Planned, CellSpec]], n_cells: int) -> None:
        self._specs = specs
        self._n_left = n_cells
        self.by_key: dict[str, Planned] = {}  # those that have not come back

    def __iter__(self) -> _Drawn:
        return self

    def __next__(self) -> Work:
        try:
            cell, spec = next(self._specs)
        except StopIteration:
            self._n_left = 0
            raise
        self._n_left -= 1
        self.by_key[cell.key] = cell
        return Work(spec, cell.input, cell.cell.labels)

    def __length_hint__(self) -> int:
        return self._n_left


def run(
    prepared: Prepared,
    specs: Iterator[tuple[Planned, CellSpec]],
    n_cells: int,
    journal: Journal,
    cells: Runner,
    over: Callable[[Planned], object] = lambda _: None,
) -> dict[str, CellError]:
    """Run cells until there are none or too many failed, and keep what comes of them.

    There are `n_cells` at most. What is `over`, kept or failed, is told of. Return the errors of
    those that failed, by key.
    """
    errors: dict[str, CellError] = {}
    work = _Drawn(specs, n_cells)
    by_key = work.by_key
    limit = prepared.grid.request.settings.max_failures
    late = {*prepared.late}
    mark = cache(lambda: mark_of(prepared.cache.place))

    def keep(some: Sequence[Work]) -> Keeping:
        of = [by_key[cell.spec.key] for cell in some]
        configs = [*plan.kept_configs(prepared, of)]
        where = place.name_of(prepared.cache.results)
        return Keeping(where, mark(), configs, is_late=_is_late(of[0], prepared))

    came: list[Came] = []  # and does not count yet: what came in a moment
    written: list[Written] = []
    kept_s, has_begun = time.monotonic(), False
    axes = prepared.grid.request.axes
    shape = len(axes["seed"]), len(axes["capacity"])
    left = TimeLeft(prepared.rows_to_do(), *shape, lambda: cells.slots)

    def count() -> None:
        with interrupt.held_back():
            n_failed = _take_in(came, written, prepared, journal, errors)
            took = [0.0 if result.error else result.seconds for result, *_ in came]
            left.done([cell.row for _, cell, _ in came], took)
            progress.cells(len(came), n_failed)
            for _, cell, _ in came:
                over(cell)
            came.clear()
            written.clear()

    try:
        with (
            notes.Progress(notes.console(), n_cells, left.seconds) as progress,
            ExitStack() as stack,
        ):
            try:
                for said in cells.run(work, prepared.inputs, keep):
                    journal.confirm()
                    if isinstance(said, Part):
                        if not has_begun:  # before, nothing has come that could be kept
                            stack.enter_context(interrupt.unwinding())
                            has_begun = True
                        of = [(result, by_key.pop(result.key)) for result in said.results]
                        at = said.node or platform.node()
                        came += [(*_settled(*each, prepared), at) for each in of]
                        written += said.kept
                    elif isinstance(said, notes.Line):
                        progress.say(said)
                        journal.append("said", text=mask(said))
                    else:
                        progress.beat(said)
                    is_time = time.monotonic() - kept_s >= KEEP_EVERY_S
                    if came and (is_time or len(came) >= MOST_CELLS or _has_failed(said)):
                        count()
                        kept_s = time.monotonic()
                    if limit is not None and len(errors) >= limit and (by_key or length_hint(work)):
                        break
            finally:
                if came:
                    count()
    except KeyboardInterrupt:
        raise KeyboardInterrupt(notes.interrupted(prepared, n_cells)) from None
    plan.settle(prepared)
    notes.traces(prepared, late - prepared.late)
    errors |= skipped((prepared.planned[cell.row].key for cell in by_key.values()), limit)
    return errors


def _settled(result: CellResult, cell: Planned, prepared: Prepared) -> tuple[CellResult, Planned]:
    """Give a result the key of its content, which was not known where it was made meanwhile."""
    if not _is_late(cell, prepared):
        return result, cell
    found = plan.settled(prepared, cell)
    return result._replace(key=found.key), found


def _is_late(cell: Planned, prepared: Prepared) -> bool:
    """Tell whether a cell was given a key before its workload was known; it may be by now."""
    row = cell.row
    return cell.input in prepared.late or prepared.keys[row : row + 1].tobytes().hex() != cell.key


def _has_failed(said: Part | str) -> bool:
    return isinstance(said, Part) and any(result.error is not None for result in said.results)


def skipped(keys: Iterable[str], limit: int | None) -> dict[str, CellError]:
    """Say of cells why they were not run."""
    message = f"not run: {limit} cells had failed before (max_failures={limit})"
    error: CellError = {"stage": "skipped", "type": "Skipped", "message": message, "traceback": ""}
    return dict.fromkeys(keys, error)


def _name(labels: Mapping[str, Any]) -> str:
    """Name a cell as its row does."""
    masked = mask_tree(labels).items()
    return " ".join(
        str(value) if key in ("policy", "trace") else f"{key}={value}"
        for key, value in masked
        if value is not None
    )


def _take_in(
    came: Sequence[Came],
    written: Sequence[Written],
    prepared: Prepared,
    journal: Journal,
    errors: dict[str, CellError],
) -> int:
    """Keep results, then say in the journal that they are there; return how many failed."""
    journal.confirm()
    done = [cell for result, cell, _ in came if result.error is None]
    for cell in {(id(cell.cell.policy), id(cell.cell.measure)): cell for cell in done}.values():
        prepared.cache.sources.keep(plan.source_of(cell.cell), plan.table_of(cell.cell))
    manifests = prepared.cache.commit(written)
    for names, alike in itertools.groupby(manifests, key=lambda manifest: manifest.names):
        some = [*alike]
        values = np.concatenate([manifest.metrics() for manifest in some], axis=1)
        keys = as_keys(b"".join(manifest.keys for manifest in some))
        prepared.metrics.take(keys, dict(zip(names, values, strict=True)))
    whole = [result for result, *_ in came if result.jobs is not None]
    of = (cell for result, cell, _ in came if result.jobs is not None)
    configs = plan.kept_configs(prepared, of)
    unkept = prepared.cache.put_many([*zip(whole, configs, strict=True)])
    n_failed, lines = 0, []
    for result, cell, node in came:
        error = result.error
        if result.key in unkept:
            # a table of the user's measure that no file can hold is the cell's fault alone
            error = error_of("keep", unkept[result.key])
        seconds = round(result.seconds, 3)
        fields = {"row": cell.row, "key": cell.key, "node": node, "seconds": seconds}
        if error is None:
            if result.jobs is not None:
                prepared.metrics[cell.key] = result.metrics
            lines.append({"status": "done", **fields})
        else:
            n_failed += 1
            # it may quote what it could not reach
            errors[cell.key] = error = mask_tree(error)
            lines.append({"status": "failed", "error": error["message"][:500], **fields})
    journal.append_cells(lines)
    return n_failed


def _cached_before(prepared: Prepared, journal: Journal) -> Flags:
    """Tell for each row whether an earlier sweep computed it.

    A run that was killed is part of this one: what it computed counts as done here, so that the
    table is the same with or without the kill.
    """
    begun = journal.open_attempt()
    kept = prepared.is_known()
    return kept if begun is None else kept & np.isin(np.arange(len(kept)), begun["cached"])
