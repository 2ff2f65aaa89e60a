"""A candidate as a scheduler of a run that is simulated here: it decides, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_args

import numpy as np

from policies.knows import Knows, Source
from policies.views import cut
from sim.base.errors import PolicyError
from sim.engine.plan import Batch, Event, Plan, World
from sweep.questions.evaluate import plans
from sweep.questions.evaluate.candidate import BATCH
from sweep.questions.evaluate.processes import Budget, CandidateError, Child, Nursery

MAX_ANSWER = 2**26
"""Bytes of an answer, beside those that grow with the workload."""
MAX_NAME = 60


@dataclass(frozen=True)
class CandidateText:
    """Text of a candidate, and the limits of its processes."""

    text: str
    file: str
    memory_mb: float


@dataclass(frozen=True)
class About:
    """A candidate by its own words: name, events, and what it says to know."""

    name: str
    events: Event
    knows: Knows
    demands: str  # what its tasks are allocated: `policies.Policy.demands`
    has_own_lag: bool
    own_columns: tuple[str, ...]
    is_filtered: bool  # its system calls are


@dataclass
class Session:
    """A run: the candidate's process, and the world's live arrays."""

    child: Child
    n_most: int  # largest number of bytes of an answer


class Remote:
    """Scheduler whose decisions a candidate makes in another process, for one run at a time.

    Parameters
    ----------
    nursery : Nursery
        Starts the processes.
    text : CandidateText
        The candidate.
    budget : Budget
        The time that it may take, in all runs together.
    horizon_s : float
        Time on the clock of the run after which it counts as one without an end.
    """

    rigid_jobs = False
    conserves_work = False

    def __init__(
        self, nursery: Nursery, text: CandidateText, budget: Budget, horizon_s: float = np.inf
    ) -> None:
        self._nursery, self._text, self._budget = nursery, text, budget
        self.horizon_s = horizon_s
        self._child: Child | None = None
        child = self._begin()
        self.about = _about(child.answer(MAX_ANSWER, budget))
        self._child = child  # has said hello, and waits for a world
        self._own_timer_s = np.inf

    @property
    def name(self) -> str:
        """Name of the candidate."""
        return self.about.name

    @property
    def events(self) -> Event:
        """Events of the candidate, and the timer that ends a run without an end."""
        return self.about.events | Event.TIMER

    @property
    def knows(self) -> Knows:
        """Declared knowledge."""
        return self.about.knows

    @property
    def demands(self) -> str:
        """Source of the demands that its tasks are allocated: true ones if it knows the truth."""
        return self.about.demands if self.about.knows.demands == "true" else "declared"

    @property
    def has_own_lag(self) -> bool:
        """True if its cycles are the lag between room and start."""
        return self.about.has_own_lag

    @property
    def own_columns(self) -> tuple[str, ...]:
        """Columns of its own that it reads."""
        return self.about.own_columns

    def _begin(self) -> Child:
        child = self._nursery.new()
        order = {
            "source": self._text.text,
            "file": self._text.file,
            "cpu_s": self._budget.left_s + 1.0,
            "memory_mb": self._text.memory_mb,
        }
        child.send(order, self._budget)
        return child

    def begin(self, world: World, plan: Plan) -> Session:
        """Send what the candidate may know of the world; fill the plan with its answer."""
        child = self._child
        if child is None:
            child = self._begin()
            child.answer(MAX_ANSWER, self._budget)
        self._child = None
        views = [(k, v.dtype.str, v.shape) for k, v in world.view.items()]
        columns = world.columns
        sizes = (len(columns.job_submit), len(columns.stage_job), columns.n_tasks)
        child.share(world.view.values())
        child.send(
            {
                "columns": cut(columns, self.knows),
                "cluster": world.cluster,
                "seed": world.seed,
                "views": views,
                "sizes": sizes,
            },
            self._budget,
        )
        n_most = MAX_ANSWER + 512 * sum(sizes)
        answer = child.answer(n_most, self._budget)
        plans.fill(plan, answer.get("plan") or {})
        self._own_timer_s = plan.timer_s
        plan.events |= Event.TIMER
        plan.timer_s = min(plan.timer_s, self.horizon_s)
        return Session(child, n_most)

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        """Send the events of an instant; change the plan as the candidate says."""
        assert isinstance(memory, Session)
        if batch.now >= self.horizon_s:
            raise CandidateError(
                f"jobs are left at {batch.now:g} s, long after the baseline is done: it starves "
                "them, or preempts for ever"
            )
        kind, row, times = batch.kind, batch.row, batch.time_s
        if Event.TIMER not in self.about.events:
            chosen = kind != int(Event.TIMER)
            kind, row = kind[chosen], row[chosen]
            times = None if times is None else times[chosen]
        ticked = bool((kind == int(Event.TIMER)).any())
        own_timer_s = np.inf if ticked else self._own_timer_s
        head = BATCH.pack(batch.now, own_timer_s, len(kind), int(plan.deferred), times is not None)
        parts = [head, kind.tobytes(), row.tobytes()]
        if times is not None:
            parts.append(times.tobytes())
        memory.child.show()
        memory.child.write(parts, self._budget)
        content = memory.child.answer(memory.n_most, self._budget)
        plans.change(plan, content)
        self._own_timer_s = plan.timer_s
        plan.timer_s = min(plan.timer_s, self.horizon_s)

    def close(self) -> None:
        """End a process that waits for a world."""
        if self._child is not None:
            self._child.end()
        self._child = None


def _about(content: Mapping[str, Any]) -> About:
    """Return what a candidate says of itself, checked."""
    try:
        hello = content["hello"]
        sources = [str(word) for word in hello["knows"]]
        names = [field.name for field in fields(Knows)]
        if not {*sources} <= {*get_args(Source)}:
            raise PolicyError(f"knows: {', '.join(sources)}; valid: {', '.join(get_args(Source))}")
        return About(
            str(hello["name"])[:MAX_NAME],
            Event(hello["events"]),
            Knows(**dict(zip(names, sources, strict=True))),  # type: ignore[arg-type]
            str(hello["demands"]),
            hello["has_own_lag"] is True,
            tuple(map(str, hello["own_columns"])),
            content["is_filtered"] is True,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CandidateError(f"its process writes to the pipe of its answers: {error}") from None


def read_text(file: str | Path, memory_mb: float) -> CandidateText:
    """Read the file of a candidate."""
    path = Path(file)
    return CandidateText(path.read_text(encoding="utf-8"), str(path), memory_mb)
