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

MOST_CELLS = 2048
"""Of a chunk."""
LEAST_S, MOST_S = 1.0, 20.0
"""For how long a task begins cells."""
SHARED_S = 3.0
"""The same where another sweep is at some of them: what it keeps meanwhile is not handed out."""
PARTS_S = 400.0
"""How many parts of chunks may come in a second, of all slots together."""
AHEAD, DRAWN = 2 * MOST_CELLS, 1024
"""Cells that wait at least, where there are more; those that are drawn at once."""
GOLDEN = 0.6180339887
"""Multiples of it, but for their whole numbers, lie evenly between 0 and 1."""
MAX_LOST = 5
MAX_OUT_OF_MEMORY = 1

Loss = Literal["lost", "memory", "broken", "away"]
"""``away``: cancelled, or with a node that was to have no cells; nothing is counted."""


@dataclass
class Batch:
    """Cells of one workload that make one task, in the order in which it runs them."""

    input: str  # name of the workload
    work: Sequence[PlannedCell]  # those that have not come back
    doubled: bool = False  # whether the task asks for twice the memory of a slot
    careful: bool = False  # whether a cell begins only once the one before has come back
    but: str = ""  # the node that it must not run on, as a cell of it failed there
    spread: float = 1.0  # how long its parts are, to those of others


@dataclass
class _Trials:
    lost: int = 0
    memory: int = 0


@dataclass
class TaskQueue:
    """The cells that wait, in order, and what is known of their durations and losses.

    Cells are drawn as they are needed, of which few wait at a time; `work` tells by its length
    hint how many are left. Those of one workload follow each other, so that few workloads are
    needed at a time. A task ends by its time, so that no chunk need be small for fear that its
    cells are long; what it leaves waits again.
    """

    work: Iterable[PlannedCell]
    slots: int  # how many tasks run at once
    drawn: Callable[[Sequence[PlannedCell]], object] = lambda _: (
        None
    )  # is told of those that wait now
    wanted: Callable[[Sequence[PlannedCell]], Sequence[PlannedCell]] = (
        list  # leaves out what others did
    )
    _waiting: dict[str, deque[PlannedCell]] = field(init=False, default_factory=dict)
    _again: deque[Batch] = field(init=False, default_factory=deque)
    _seconds: dict[str, float] = field(init=False, default_factory=dict)
    _left: dict[str, int] = field(init=False, default_factory=dict)
    _settled: set[str] = field(init=False, default_factory=set)  # workloads of which none is left
    _n_waiting: int = field(init=False, default=0)
    _n_first: int = field(init=False, default=0)
    _most_s: float = field(init=False, default=MOST_S)
    _last: str = field(init=False, default="")  # the workload of which more may come
    _trials: dict[str, _Trials] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.work = iter(self.work)

    def draw(self, n_cells: int = DRAWN) -> list[PlannedCell]:
        """Let so many more cells wait, and return them; empty if there are no more."""
        drawn = list(itertools.islice(self.work, n_cells))
        if not drawn:
            self.work = iter(())  # whatever its length hint was
        for cell in drawn:
            self._waiting.setdefault(cell.input, deque()).append(cell)
            self._count(cell.input, 1)
        self._n_waiting += len(drawn)
        self._last = drawn[-1].input if drawn else ""
        self.drawn(drawn)
        return drawn

    def next(self) -> Batch | None:
        """Take the next batch; None if nothing waits."""
        if self._again:
            return self._again.popleft()
        while True:
            while self._n_waiting < AHEAD and self.draw():
                pass
            name = next((name for name, queue in self._waiting.items() if queue), None)
            if name is None:
                return None
            queue, spread = self._waiting[name], self._spread(name)
            n_cells = min(self._size(name, spread), len(queue))
            self._n_waiting -= n_cells
            work = self.wanted([queue.popleft() for _ in range(n_cells)])
            if len(work) < n_cells:
                self._count(name, len(work) - n_cells)
                self._most_s = SHARED_S
            if work:
                return Batch(name, work, spread=spread)

    def _spread(self, name: str) -> float:
        """Let the first tasks be of any length up to that of the later ones, where slots are many.

        They end one after the other, and so do all that follow them, which are alike: the driver
        can't take them all in, and hand out the next, at one time.
        """
        if self._part_s() == LEAST_S or name in self._seconds:
            return 1.0
        self._n_first += 1
        return self._n_first * GOLDEN % 1.0

    def _size(self, name: str, spread: float) -> int:
        """Leave the other slots their part of the rest, but where they are many not too little.

        No more than there will be time for: what is left over would be handed out twice. Where that
        is not known it is taken for a second a cell.
        """
        fair = self._n_rest() / (2 * self.slots)
        least_s = self._part_s() - LEAST_S
        each = max(self._seconds.get(name, LEAST_S if least_s else 0.0), 1e-6)
        n_cells = max(min(fair, self._most_s / each), least_s / each) * spread
        return min(math.ceil(n_cells), MOST_CELLS)

    def _n_rest(self) -> int:
        return self._n_waiting + length_hint(self.work)

    def _part_s(self) -> float:
        return max(LEAST_S, self.slots / PARTS_S)

    def pace(self, batch: Batch) -> FlushPolicy:
        """Say how a task shall go through a batch.

        For long where much is left, so that tasks are few; for less and less towards the end, so
        that all slots end together.
        """
        left_s = self._seconds.get(batch.input, 0.0) * self._n_rest() / (2 * self.slots)
        part_s = self._part_s() * batch.spread
        return FlushPolicy(0.0 if batch.careful else part_s, max(part_s, min(left_s, self._most_s)))

    def put_back(self, batch: Batch) -> None:
        """Let a batch wait again that could not be handed out."""
        self._again.appendleft(batch)

    def done(self, batch: Batch, n_cells: int, seconds: float) -> None:
        """Note that the next `n_cells` of a batch have come back, and what they took together."""
        each = seconds / n_cells
        self._seconds[batch.input] = 0.5 * self._seconds.get(batch.input, each) + 0.5 * each
        self._count(batch.input, -n_cells)
        batch.work = batch.work[n_cells:]

    def left(self, batch: Batch) -> None:
        """Let what a task has left wait again, before all others of its workload."""
        if not batch.work:
            return
        if batch.doubled or batch.careful:
            self._again.append(batch)
        else:
            self._waiting[batch.input].extendleft(reversed(batch.work))
            self._n_waiting += len(batch.work)

    def lost(self, batch: Batch, loss: Loss) -> list[PlannedCell]:
        """Note that a task was lost; return those of its cells that won't be tried again.

        The cell to blame shall not take others with it. Of many it is not known which it is: they
        wait again with care, and if their task is lost again, it is the first. A task whose cells
        have all come back costs nothing.
        """
        if not batch.work:
            return []
        if loss == "away":
            self._again.append(Batch(batch.input, batch.work, batch.doubled, batch.careful))
            return []
        blamed, others = batch.work[:1], batch.work[1:]
        if others and (loss == "broken" or not batch.careful):
            if loss == "memory":
                for cell in batch.work:
                    self._of(cell).memory += 1
            again = [batch.work] if loss != "broken" else [[cell] for cell in batch.work]
            doubled = batch.doubled or loss == "memory"
            self._again.extend(Batch(batch.input, each, doubled, careful=True) for each in again)
            return []
        given_up = []
        for cell in blamed:
            trials = self._of(cell)
            trials.lost += loss == "lost"
            trials.memory += loss == "memory"
            if trials.lost > MAX_LOST or trials.memory > MAX_OUT_OF_MEMORY or loss == "broken":
                given_up.append(cell)
            else:
                self._again.append(Batch(batch.input, [cell], batch.doubled or loss == "memory"))
        if others:
            self._again.append(Batch(batch.input, others, batch.doubled, careful=batch.doubled))
        self._count(batch.input, -len(given_up))
        return given_up

    def ended(self, batch: Batch, key: str) -> PlannedCell | None:
        """Note that one cell of a batch was ended, and return it; the others wait again.

        None if it has come back: its result was handed over just before the limit.
        """
        over = next((cell for cell in batch.work if cell.key == key), None)
        others = [cell for cell in batch.work if cell is not over]
        if others:
            self._again.append(Batch(batch.input, others, batch.doubled))
        if over is not None:
            self._count(batch.input, -1)
        return over

    def elsewhere(self, cell: PlannedCell, but: str) -> None:
        """Let a cell that came back wait again, for another node than `but`."""
        self._count(cell.input, 1)
        self._again.append(Batch(cell.input, [cell], but=but))

    def n_lost(self, cell: PlannedCell) -> int:
        """How often a cell was to blame for the loss of its worker."""
        return self._of(cell).lost

    def over(self) -> list[str]:
        """Name workloads of which every cell is settled since; nothing is known of them then."""
        names = [name for name in self._settled if name != self._last]
        for name in names:
            self._settled.remove(name)
            for kept in (self._left, self._waiting, self._seconds):
                kept.pop(name, None)
        return names

    def _count(self, name: str, n_cells: int) -> None:
        self._left[name] = self._left.get(name, 0) + n_cells
        if self._left[name]:
            self._settled.discard(name)
        else:
            self._settled.add(name)

    def _of(self, cell: PlannedCell) -> _Trials:
        return self._trials.setdefault(cell.key, _Trials())
