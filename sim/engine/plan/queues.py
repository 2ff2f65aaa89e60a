"""Queues: which is served next, what orders the jobs in them, what happens when one doesn't fit."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sim.base.arrays import F8, I4
from sim.base.errors import PolicyError


class Order(IntEnum):
    """What orders the jobs of a queue (then ``stage_key``, then the row of the stage)."""

    KEY = 0  #: ``job_key``, smallest first
    FIFO = 1  #: the order of submission
    REMAINING = 2  #: work of the job's unfinished tasks (seconds, or ``seen_s``, × ``weight``)
    ATTAINED = 3  #: task seconds the job had received when one of its tasks last started or ended
    SHARE = 4  #: dominant share that the job's running tasks hold


class Fit(IntEnum):
    """What happens when the first in order does not fit."""

    STRICT = 0  #: its queue waits for it
    SKIP = 1  #: the next in order that fits goes first
    PACK = 2  #: each machine takes what fills it best: free · demand (see `packing.Packing`)


class Share(IntEnum):
    """What the use of a queue is measured in, when queues are served by use over weight."""

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
        Attained service (task s) at which a job leaves for ``demote_to``; inf for never.
    demote_to : int32
        The queue it leaves for.
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
        moving = np.isfinite(queues.demote_at)
        target = queues.demote_to[moving]
        if ((target < 0) | (target >= n) | (target == np.flatnonzero(moving))).any():
            raise PolicyError(f"demote_to must name another of the {n} queues: {queues.demote_to}")
        if not np.isin(queues.order, [int(o) for o in Order]).all():
            raise PolicyError(f"unknown queue order in {queues.order}")
        return queues


def _column(value: ArrayLike, n: int, dtype: type) -> NDArray[Any]:
    return np.array(np.broadcast_to(np.asarray(value, dtype=dtype), (n,)), order="C")
