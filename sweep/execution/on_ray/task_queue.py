"""Task queue: batching, pacing and retry of cells.

Pure bookkeeping, without Ray, so that it can be tested by itself. The states in which a task can be
lost, and the cost of each, are listed in ``docs/architecture.md``; in two of them (all cells handed
over, ended but not collected) a batch may have no work left.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import length_hint
from typing import TYPE_CHECKING, Literal

from sweep.execution.result_batch import FlushPolicy

if TYPE_CHECKING:
    from sweep.execution.plan import PlannedCell

MAX_CELLS = 2048
"""Of a task."""
MIN_S, MAX_S = 1.0, 20.0
"""Time in which a task begins cells."""
SHARED_S = 3.0
"""Its maximum where another sweep runs some of the cells, whose results this one can use."""
MAX_BATCHES_PER_S = 400.0
"""Result batches a second from all slots together."""
MIN_WAITING, N_DRAW = 2 * MAX_CELLS, 1024
"""Minimum number of waiting cells, if there are more; number that is drawn at once."""
GOLDEN = 0.6180339887
"""Golden ratio − 1: the fractional parts of its multiples lie evenly between 0 and 1."""
MAX_LOST = 5
MAX_OUT_OF_MEMORY = 1

Loss = Literal["lost", "memory", "broken", "excluded"]
"""``excluded``: cancelled, or lost with a node that should have no cells; not counted."""


@dataclass
class Batch:
    """Cells of one workload for one task, in the order in which it runs them."""

    workload: str  # name of the workload
    cells: Sequence[PlannedCell]  # not finished yet
    double_memory: bool = False  # request twice the memory of a slot
    one_by_one: bool = False  # a cell begins only once the result of the one before has arrived
    exclude: str = ""  # node that it must not run on, as a cell of it failed there
    flush_scale: float = 1.0  # length of its flush interval relative to others


@dataclass
class _LossCounts:
    lost: int = 0
    memory: int = 0


@dataclass
class TaskQueue:
    """Queue of waiting cells, with their run times and losses.

    Cells are drawn as they are needed, so that few wait at a time; the length hint of `work` is the
    number that is left. Cells of one workload follow each other, so that few workloads are needed
    at a time. A task stops after a time limit, so a batch may be large even if its cells turn out
    to be long; the cells that it did not begin are requeued.
    """

    work: Iterable[PlannedCell]
    slots: int  # tasks that run at once
    # called with cells that were drawn into the queue
    on_draw: Callable[[Sequence[PlannedCell]], object] = lambda _: None
    # removes cells that other sweeps have stored
    exclude_cached: Callable[[Sequence[PlannedCell]], Sequence[PlannedCell]] = list
    _waiting: dict[str, deque[PlannedCell]] = field(init=False, default_factory=dict)
    _requeued: deque[Batch] = field(init=False, default_factory=deque)
    _mean_s: dict[str, float] = field(init=False, default_factory=dict)
    _n_unfinished: dict[str, int] = field(init=False, default_factory=dict)
    # workloads without unfinished cells
    _completed: set[str] = field(init=False, default_factory=set)
    _n_waiting: int = field(init=False, default=0)
    _n_first: int = field(init=False, default=0)
    _max_s: float = field(init=False, default=MAX_S)
    _open_workload: str = field(init=False, default="")  # workload that may get more cells
    _losses: dict[str, _LossCounts] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.work = iter(self.work)

    def draw(self, n_cells: int = N_DRAW) -> list[PlannedCell]:
        """Draw so many more cells into the queue, and return them; empty if there are none."""
        drawn = list(itertools.islice(self.work, n_cells))
        if not drawn:
            self.work = iter(())  # whatever its length hint was
        for cell in drawn:
            self._waiting.setdefault(cell.workload, deque()).append(cell)
            self._count(cell.workload, 1)
        self._n_waiting += len(drawn)
        self._open_workload = drawn[-1].workload if drawn else ""
        self.on_draw(drawn)
        return drawn

    def next(self) -> Batch | None:
        """Take the next batch; None if the queue is empty."""
        if self._requeued:
            return self._requeued.popleft()
        while True:
            while self._n_waiting < MIN_WAITING and self.draw():
                pass
            name = next((name for name, queue in self._waiting.items() if queue), None)
            if name is None:
                return None
            queue, flush_scale = self._waiting[name], self._first_flush_scale(name)
            n_cells = min(self._batch_size(name, flush_scale), len(queue))
            self._n_waiting -= n_cells
            work = self.exclude_cached([queue.popleft() for _ in range(n_cells)])
            if len(work) < n_cells:
                self._count(name, len(work) - n_cells)
                self._max_s = SHARED_S
            if work:
                return Batch(name, work, flush_scale=flush_scale)

    def _first_flush_scale(self, name: str) -> float:
        """Spread the lengths of the first tasks, up to the full one, where slots are many.

        They end one after the other, and so do all similar tasks after them: the driver can't
        collect all of them, and hand out the next, at the same time.
        """
        if self._flush_s() == MIN_S or name in self._mean_s:
            return 1.0
        self._n_first += 1
        return self._n_first * GOLDEN % 1.0

    def _batch_size(self, name: str, flush_scale: float) -> int:
        """Return the number of cells of a task: a fair share, with a minimum where slots are many.

        No more than the task has time for: the others would be handed out twice. An unknown run
        time is taken for a second a cell.
        """
        fair = self._n_left() / (2 * self.slots)
        min_s = self._flush_s() - MIN_S
        cell_s = max(self._mean_s.get(name, MIN_S if min_s else 0.0), 1e-6)
        n_cells = max(min(fair, self._max_s / cell_s), min_s / cell_s) * flush_scale
        return min(math.ceil(n_cells), MAX_CELLS)

    def _n_left(self) -> int:
        return self._n_waiting + length_hint(self.work)

    def _flush_s(self) -> float:
        return max(MIN_S, self.slots / MAX_BATCHES_PER_S)

    def flush_policy(self, batch: Batch) -> FlushPolicy:
        """Return the flush policy of a batch's task.

        It runs for long where much is left, so that tasks are few; for less and less towards the
        end, so that all slots end together.
        """
        remaining_s = self._mean_s.get(batch.workload, 0.0) * self._n_left() / (2 * self.slots)
        flush_s = self._flush_s() * batch.flush_scale
        stop_s = max(flush_s, min(remaining_s, self._max_s))
        return FlushPolicy(0.0 if batch.one_by_one else flush_s, stop_s)

    def put_back(self, batch: Batch) -> None:
        """Requeue a batch that could not be submitted."""
        self._requeued.appendleft(batch)

    def done(self, batch: Batch, n_cells: int, seconds: float) -> None:
        """Record that the next `n_cells` of a batch have finished, and their run time together."""
        cell_s = seconds / n_cells
        mean_s = self._mean_s.get(batch.workload, cell_s)
        self._mean_s[batch.workload] = 0.5 * mean_s + 0.5 * cell_s
        self._count(batch.workload, -n_cells)
        batch.cells = batch.cells[n_cells:]

    def requeue(self, batch: Batch) -> None:
        """Requeue a task's unfinished cells, before all others of its workload."""
        if not batch.cells:
            return
        if batch.double_memory or batch.one_by_one:
            self._requeued.append(batch)
        else:
            self._waiting[batch.workload].extendleft(reversed(batch.cells))
            self._n_waiting += len(batch.cells)

    def lost(self, batch: Batch, loss: Loss) -> list[PlannedCell]:
        """Requeue the cells of a lost task; return those that have failed for good.

        The cell that caused the loss must not take others with it. Among many it is not known: they
        run again one by one, and if their task is lost again, it is the first. A task whose cells
        have all finished costs nothing.
        """
        if not batch.cells:
            return []
        if loss == "excluded":
            self._requeued.append(
                Batch(batch.workload, batch.cells, batch.double_memory, batch.one_by_one)
            )
            return []
        suspects, innocent = batch.cells[:1], batch.cells[1:]
        if innocent and (loss == "broken" or not batch.one_by_one):
            if loss == "memory":
                for cell in batch.cells:
                    self._losses_of(cell).memory += 1
            groups = [batch.cells] if loss != "broken" else [[cell] for cell in batch.cells]
            doubled = batch.double_memory or loss == "memory"
            self._requeued.extend(
                Batch(batch.workload, group, doubled, one_by_one=True) for group in groups
            )
            return []
        failed = []
        for cell in suspects:
            losses = self._losses_of(cell)
            losses.lost += loss == "lost"
            losses.memory += loss == "memory"
            if losses.lost > MAX_LOST or losses.memory > MAX_OUT_OF_MEMORY or loss == "broken":
                failed.append(cell)
            else:
                self._requeued.append(
                    Batch(batch.workload, [cell], batch.double_memory or loss == "memory")
                )
        if innocent:
            self._requeued.append(
                Batch(batch.workload, innocent, batch.double_memory, one_by_one=batch.double_memory)
            )
        self._count(batch.workload, -len(failed))
        return failed

    def timed_out(self, batch: Batch, key: str) -> PlannedCell | None:
        """Record that one cell of a batch ran over the limit, and return it; requeue the others.

        None if it has finished: its result was handed over just before the limit.
        """
        timed_out_cell = next((cell for cell in batch.cells if cell.key == key), None)
        rest = [cell for cell in batch.cells if cell is not timed_out_cell]
        if rest:
            self._requeued.append(Batch(batch.workload, rest, batch.double_memory))
        if timed_out_cell is not None:
            self._count(batch.workload, -1)
        return timed_out_cell

    def retry_elsewhere(self, cell: PlannedCell, exclude: str) -> None:
        """Requeue a finished cell for another node than `exclude`."""
        self._count(cell.workload, 1)
        self._requeued.append(Batch(cell.workload, [cell], exclude=exclude))

    def n_losses(self, cell: PlannedCell) -> int:
        """Return the number of losses that a cell has caused."""
        return self._losses_of(cell).lost

    def pop_completed(self) -> list[str]:
        """Return the workloads whose cells have all finished since the last call; forget them."""
        names = [name for name in self._completed if name != self._open_workload]
        for name in names:
            self._completed.remove(name)
            for mapping in (self._n_unfinished, self._waiting, self._mean_s):
                mapping.pop(name, None)
        return names

    def _count(self, name: str, n_cells: int) -> None:
        self._n_unfinished[name] = self._n_unfinished.get(name, 0) + n_cells
        if self._n_unfinished[name]:
            self._completed.discard(name)
        else:
            self._completed.add(name)

    def _losses_of(self, cell: PlannedCell) -> _LossCounts:
        return self._losses.setdefault(cell.key, _LossCounts())
