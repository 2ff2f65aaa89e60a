"""Queues of a policy: service between them, order inside them, and packing scores of tasks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sim.base.arrays import F8, I4
from sim.base.errors import PolicyError


class Order(IntEnum):
    """Key that orders the jobs of a queue (then ``stage_key``, then the row of the stage)."""

    KEY = 0  #: ``job_key``, smallest first
    FIFO = 1  #: the order of submission
    #: work of the job's unfinished tasks (seconds, or ``expected_s``, × ``weight``), with `beyond`,
    #: over `worth`
    REMAINING = 2
    ATTAINED = 3  #: task seconds the job had received when one of its tasks last started or ended
    SHARE = 4  #: dominant share that the job's running tasks hold


class Fit(IntEnum):
    """Rule for a task that does not fit, although it is first in order."""

    STRICT = 0  #: those of its queue wait for it that could take a machine on which it can run
    SKIP = 1  #: the next in order that fits goes first
    PACK = 2  #: each machine takes the tasks that fill it best: free · demand (see `Packing`)
    PER_CLASS = 3  #: STRICT, by an older name


class Share(IntEnum):
    """Measure of a queue's use, where queues are served by use over weight."""

    DOMINANT = -1  #: the largest of its shares over all resources


@dataclass(frozen=True)
class Queues:
    """The policy's own queues, Q of them; every array has shape (Q,).

    Attributes
    ----------
    weight : float64
        Queues of one tier are served by least use over weight.
    tier : int32
        A queue is served only when no queue of a lower tier has anything that can start.
    order : int32
        `Order` inside each queue.
    demote_at : float64
        Attained service (task s) at which a job moves to ``demote_to``; inf for never.
    demote_to : int32
        The queue that a demoted job moves to.
    """

    weight: F8
    tier: I4
    order: I4
    demote_at: F8
    demote_to: I4

    @classmethod
    def make(
        cls,
        n: int,
        *,
        weight: ArrayLike = 1.0,
        tier: ArrayLike = 0,
        order: ArrayLike = Order.KEY,
        demote_at: ArrayLike = np.inf,
        demote_to: ArrayLike = -1,
    ) -> Queues:
        """Build `n` queues; a scalar stands for all of them.

        Raises
        ------
        PolicyError
            If a weight is not positive, a threshold is NaN, or ``demote_to`` names no queue.
        """
        if n < 1:
            raise PolicyError(f"a plan needs at least one queue, not {n}")
        queues = cls(
            _column(weight, n, np.float64),
            _column(tier, n, np.int32),
            _column(order, n, np.int32),
            _column(demote_at, n, np.float64),
            _column(demote_to, n, np.int32),
        )
        if not (np.isfinite(queues.weight).all() and (queues.weight > 0).all()):
            raise PolicyError(f"queue weights must be positive and finite: {queues.weight}")
        if np.isnan(queues.demote_at).any():
            raise PolicyError("a demotion threshold is NaN; use inf for never")
        demotes = np.isfinite(queues.demote_at)
        demote_to_queue = queues.demote_to[demotes]
        if (
            (demote_to_queue < 0)
            | (demote_to_queue >= n)
            | (demote_to_queue == np.flatnonzero(demotes))
        ).any():
            raise PolicyError(f"demote_to must name another of the {n} queues: {queues.demote_to}")
        if not np.isin(queues.order, [int(o) for o in Order]).all():
            raise PolicyError(f"unknown queue order in {queues.order}")
        return queues


def _column(value: ArrayLike, n: int, dtype: type) -> NDArray[Any]:
    return np.array(np.broadcast_to(np.asarray(value, dtype=dtype), (n,)), order="C")


MAX_BUNDLE = 32


@dataclass(frozen=True)
class Packing:
    """Parameters of the score by which machines pick tasks; the defaults are alignment alone.

    The score of a stage's next task on a machine is ``worth - η · remaining work of its job``,
    where worth is ``priority · alignment``, times `remote` if the task prefers another machine, and
    alignment is free · demand, both as fractions of the machine. Priority is the ``task_priority``
    of the plan, as far as `order` lets it count and `rebased` says; remaining work is that of
    `Order.REMAINING`. η is `remaining`
    times Σ worth / Σ remaining work over the tasks that have started where they fit (the ratio of
    their running means), 0 before the first. Ties go to the first in order. (DAGPS,
    MSR-TR-2016-19, §5, Fig. 8; with the defaults Tetris, SIGCOMM 2014, §3.2.)

    Attributes
    ----------
    remaining : float
        Weight of little remaining work beside worth: m of DAGPS, §8.5.
    aligned : bool
        If True, alignment counts. If False, worth is priority: machines take the tasks that fit in
        the order of priority, as in list scheduling.
    order : float
        Weight of ``task_priority`` p, 0 to 1: priority is 1 - order · (1 - p).
    rebased : bool
        If True, ``task_priority`` is the number of tasks of the job that come after this one, and p
        is that number over the number of other tasks of the job that have not started, at most 1:
        the first task that has not started gets 1, however much of the job is done.
    pending : bool
        If True, remaining work counts the tasks that have not started, rather than unfinished ones.
    remote : float
        Factor of a task's worth on a machine that it does not prefer, 0 to 1.
    bundle : int
        Number of best fitting tasks of which a machine takes the set that fits together and has the
        greatest total score (§7.2); 1 takes one by one. The tasks of a stage count as equals.
    overbook : bool
        If True, a machine where a task has ended, and nothing more fits, takes tasks that exceed
        only its fungible resources, if that gains more than it costs: waiting time saved,
        until the task would fit, times its work rate (its stage's ``weight``), less the delays
        of itself and of the tasks there, each times its work rate. That replaces alignment.
    unfairness : float
        Deficit from which a queue is owed (κC of §5); inf serves queues by tier and use instead.
        Where it is finite, queues of a tier compete by score alone; each task that starts adds its
        stage's ``cost`` times the fair share (of the weights of queues with waiting tasks) to
        the deficit of each such queue, and takes its cost from its own queue's. While the queue of
        greatest deficit among them (except tasks that gangs and caps hold up) is owed, only it is
        picked from, except tasks without a demand, which cost nothing: a machine where nothing of
        it fits takes nothing, so that room is kept for it. So of two queues neither is ever owed
        more than this and the cost of a task.
    """

    remaining: float = 0.0
    aligned: bool = True
    order: float = 1.0
    rebased: bool = False
    pending: bool = False
    remote: float = 1.0
    bundle: int = 1
    overbook: bool = False
    unfairness: float = np.inf

    def __post_init__(self) -> None:
        """Raise PolicyError on a parameter out of its range."""
        if not 0 <= self.remaining < np.inf:
            raise PolicyError(f"packing: remaining must be 0 or more, not {self.remaining!r}")
        for name, value in (("order", self.order), ("remote", self.remote)):
            if not 0 <= value <= 1:
                raise PolicyError(f"packing: {name} must be 0 to 1, not {value!r}")
        if not 1 <= self.bundle <= MAX_BUNDLE:
            raise PolicyError(f"packing: bundle must be 1 to {MAX_BUNDLE}, not {self.bundle!r}")
        if not self.unfairness >= 0:
            raise PolicyError(f"packing: unfairness must be 0 or more, not {self.unfairness!r}")
