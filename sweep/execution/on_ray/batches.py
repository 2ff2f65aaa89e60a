"""What to hand out next: short cells in groups, lost ones again, each for so long.

Pure bookkeeping, without Ray, so that it can be tested by itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from sweep.execution.compute import Work

TARGET_S = 1.0
MAX_CELLS = 256
MAX_LOST = 5
MAX_OUT_OF_MEMORY = 1

Loss = Literal["lost", "memory", "broken", "away"]
"""``away``: with a node that said it would go, or was to have no cells; nothing is counted."""


@dataclass
class Batch:
    """Cells of one workload that make one task."""

    input: str  # name of the workload
    work: list[Work]
    doubled: bool = False  # whether the task asks for twice the memory of a slot
    but: str = ""  # the node that it must not run on, as a cell of it failed there


@dataclass
class _Trials:
    lost: int = 0
    memory: int = 0


@dataclass
class Batches:
    """The cells that wait, in order, and what is known of their durations and losses.

    Cells of one workload follow each other, so that few workloads are needed at a time.
    """

    work: Sequence[Work]
    slots: int  # how many tasks run at once
    _waiting: dict[str, deque[Work]] = field(init=False, default_factory=dict)
    _again: deque[Batch] = field(init=False, default_factory=deque)
    _seconds: dict[str, float] = field(init=False, default_factory=dict)
    _left: dict[str, int] = field(init=False, default_factory=dict)
    _trials: dict[str, _Trials] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for cell in self.work:
            self._waiting.setdefault(cell.input, deque()).append(cell)
            self._left[cell.input] = self._left.get(cell.input, 0) + 1

    def next(self) -> Batch | None:
        """Take the next batch; None if nothing waits."""
        if self._again:
            return self._again.popleft()
        for name, queue in self._waiting.items():
            if queue:
                return Batch(name, [queue.popleft() for _ in range(self._size(name, len(queue)))])
        return None

    def put_back(self, batch: Batch) -> None:
        """Let a batch wait again that could not be handed out."""
        self._again.appendleft(batch)

    def done(self, batch: Batch, seconds: float) -> None:
        """Note that a batch has come back."""
        each = seconds / len(batch.work)
        before = self._seconds.get(batch.input, each)
        self._seconds[batch.input] = 0.5 * before + 0.5 * each
        self._left[batch.input] -= len(batch.work)

    def lost(self, batch: Batch, loss: Loss) -> list[Work]:
        """Note that a batch gave nothing; return those of its cells that won't be tried again.

        The others wait again, each by itself: the cell to blame shall not take others with it.
        """
        given_up = []
        for cell in batch.work:
            trials = self._trials.setdefault(cell.spec.key, _Trials())
            trials.lost += loss == "lost"
            trials.memory += loss == "memory"
            over = trials.lost > MAX_LOST or trials.memory > MAX_OUT_OF_MEMORY
            if over or (loss == "broken" and len(batch.work) == 1):
                given_up.append(cell)
            else:
                doubled = batch.doubled or loss == "memory"
                self._again.append(Batch(cell.input, [cell], doubled))
        self._left[batch.input] -= len(given_up)
        return given_up

    def ended(self, batch: Batch, key: str) -> Work:
        """Note that one cell of a batch was ended; return it. The others wait again."""
        (over,) = (cell for cell in batch.work if cell.spec.key == key)
        others = (cell for cell in batch.work if cell is not over)
        self._again.extend(Batch(cell.input, [cell], batch.doubled) for cell in others)
        self._left[batch.input] -= 1
        return over

    def elsewhere(self, cell: Work, but: str) -> None:
        """Let a cell that came back wait again, for another node than `but`."""
        self._left[cell.input] += 1
        self._again.append(Batch(cell.input, [cell], but=but))

    def n_lost(self, cell: Work) -> int:
        """How often a cell's worker was lost."""
        return self._trials[cell.spec.key].lost

    def is_over(self, name: str) -> bool:
        """Tell whether every cell of a workload is settled."""
        return self._left[name] == 0

    def _size(self, name: str, n_waiting: int) -> int:
        """As many cells as fill the target, but leave the other slots their part of the rest."""
        seconds = self._seconds.get(name)
        if seconds is None:
            return 1
        fair = -(-n_waiting // (2 * self.slots))
        return max(1, min(int(TARGET_S / max(seconds, 1e-6)), fair, MAX_CELLS, n_waiting))
