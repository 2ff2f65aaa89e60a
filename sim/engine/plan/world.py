"""The world that a policy reads before the run, and the batches of events during it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntFlag
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import F8, I4
from sim.base.random import Stream, stream
from sim.cluster.cluster import Cluster
from sim.workload.columns import Columns


class Event(IntFlag):
    """Events that a policy can subscribe to."""

    NONE = 0
    JOB_ARRIVED = 1
    TASKS_DONE = 2  #: the first ``notify_at`` started tasks of a job have all ended
    STAGE_DONE = 4
    JOB_DONE = 8
    SERVICE = 16  #: a job's attained service crossed its ``service_at``
    TIMER = 32
    FAULT = 64  #: a machine was lost or came back
    JOB_FAILED = 128  #: an input was missing, or a limit of run time is over; submitted or not
    REFINED = 256  #: more is known of a job (`sim.engine.plan.learning`)
    RESIZE = 512  #: the width of an elastic job changed


MIN_RUN_S = 1e-6
"""Shortest task, s, whose start and end are never rounded to one instant."""


@dataclass(frozen=True)
class World:
    """Read-only view of a run for its policy.

    All times, of columns, cluster, events and the plan, are on the clock of the run
    (`sim.engine.clock`).

    Attributes
    ----------
    columns : Columns
        The workload as read-only arrays (see `sim.workload.columns.Columns`). A policy reads a
        view of it (`policies.views`): columns that it does not declare to know raise.
    cluster : Cluster
        The simulated cluster.
    seed : int
        The seed of the run.
    view : Mapping of str to array
        Live read-only views of the kernel's counters, one entry a job: ``left`` (unfinished
        tasks; 0 once it is ended at its limit), ``running`` (of an elastic job its width),
        ``started`` (except those lost with their machine; of an elastic job all, while it runs),
        ``done`` (finished tasks), ``done_work`` (their summed durations at the speed of their
        machines' classes, s), ``first_work`` (the same of the first ``notify_at`` started tasks),
        ``submit`` (s; that of the workload until it happens), ``start`` and
        ``finish`` (s, NaN before), ``failed`` (0 or 1; 2 if it was ended at its limit), ``turn``
        (how many were submitted before it, -1 until it is), ``whole`` ((J, R), quanta: what the
        machines of a gang that takes whole ones have beyond its slots, since it last began; one
        row if there is none). ``free`` ((M, R), quanta): the free room of each machine, columns in
        the cluster's order, those that decide what fits first; after those that can't be overbooked
        one of parts of machines, if jobs take whole ones. One entry a stage: ``stage_left``
        (unfinished tasks), ``stage_started`` (except those lost or evicted) and, if the plan sets
        the stage column ``expected_s``, ``stage_done_work`` (``done_work`` of its tasks, s).
    """

    columns: Columns
    cluster: Cluster
    seed: int
    view: Mapping[str, NDArray[Any]]
    truth: Columns | None = field(default=None, repr=False)  # of which `columns` is a view, if any

    def once_ended(self, compute: Callable[[Columns], F8]) -> Ended:
        """Return a number of each stage, (G,), that follows from true durations, as it ends.

        It is computed of all columns before the run, and known of a stage after its end.
        """
        return Ended(compute(self.whole))

    @property
    def fails(self) -> bool:
        """True if tasks of the workload fail; not when, and which."""
        return len(self.whole.attempt_s) > 0

    @property
    def takes_time(self) -> bool:
        """True if no task starts and ends at one instant of the clock (`MIN_RUN_S`)."""
        return bool(self.whole.run_duration.min(initial=math.inf) > MIN_RUN_S)

    @property
    def whole(self) -> Columns:
        """All columns, for the engine and its mixes of demands, which leave out refused jobs."""
        return self.columns if self.truth is None else self.truth

    def rng(self, purpose: str) -> Stream:
        """Return the counter-based random stream of this (seed, purpose)."""
        return stream(self.seed, purpose)


class Batch(NamedTuple):
    """All subscribed events of one instant, and those deferred since the last batch.

    The arrays are the kernel's own, valid until the callback returns: copy what is to be kept.

    Attributes
    ----------
    now : float
        The instant, s.
    kind : (n,) int32
        `Event` codes, in the order in which the kernel met them.
    row : (n,) int32
        The job's row (the stage's for STAGE_DONE, the machine's for FAULT, -1 for TIMER).
    time_s : (n,) float64 or None
        When each happened, s; None while the plan defers no events.
    """

    now: float
    kind: I4
    row: I4
    time_s: F8 | None = None

    def rows(self, kind: Event) -> I4:
        """Return the rows of the events of one kind."""
        picked: I4 = self.row[self.kind == int(kind)]
        return picked


class Ended:
    """A number of each stage that is known once the stage has ended (`World.once_ended`).

    Attributes
    ----------
    column : (G,) float64
        The numbers, read-only; NaN of a stage that has not ended, or whose end was not taken.
    values : (G,) float64
        The numbers of all stages. For code that reads one as the stage ends, and can't afford a
        step for each batch: a view does not hold it to that, but the check of policies does.
    """

    def __init__(self, values: F8) -> None:
        self.values = values
        self._column = np.full(len(values), np.nan)
        self.column = self._column.view()
        self.column.setflags(write=False)

    def take(self, batch: Batch) -> None:
        """Take the stages whose ends are in a batch."""
        stages = batch.rows(Event.STAGE_DONE)
        self._column[stages] = self.values[stages]
