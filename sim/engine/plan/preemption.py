"""Preemption: which jobs may take the room of running ones, and which of these stop first."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum, IntFlag

from sim.base.errors import PolicyError


class Right(IntFlag):
    """By what a waiting job may preempt a running one.

    One of them; or LEVEL_IN_QUEUE and SHARE or QUOTA, of which either suffices.
    """

    LEVEL = 1
    """Its ``preempts_below`` is above the other's ``preempt_level``."""
    SHARE = 2
    """Its queue uses no more for its weight than the other's, with it and without the other, whose
    stop lowers that. What it stops of its own queue counts in its use."""
    LEVEL_IN_QUEUE = 4
    """As LEVEL, if both are in the same queue."""
    LIMIT = 8
    """It runs fewer tasks than its ``run_limit``, and the other more than its own: tasks beyond it
    are evicted. A gang's slots are no such tasks."""
    QUOTA = 16
    """Its queue stays within its quota with it, and the other's, of the same tree, has borrowed a
    resource that both take (`sim.cluster.quotas`): it takes back what was lent."""
    RUNS_ON = 32
    """No waiting job does: the policy takes machines away. After a callback, what runs of the jobs
    that it named stops on machines of classes that their ``runs_on`` leaves out."""


class Victims(IntEnum):
    """Order in which running jobs stop."""

    LOWEST_LEVEL = 0
    """Those of the lowest ``preempt_level``; of equal ones the last started."""
    LAST_STARTED = 1
    """The last started; of equal ones those of the lowest level."""
    LEAST_LOST = 2
    """Those whose stop loses the least work; of equal ones those of the lowest level."""
    FEWEST_MACHINES = 3
    """Those of the lowest level; of equal ones those whose tasks run on the fewest machines, then
    the first submitted, as in Slurm."""


class WhenPreempted(IntEnum):
    """Fate of a job that is preempted."""

    REQUEUE = 0
    """It waits again; the work since its last checkpoint is lost."""
    CANCEL = 1
    """It fails."""
    SUSPEND = 2
    """It waits again, and loses no work."""


@dataclass(frozen=True)
class Preemption:
    """Preemption of running jobs.

    A gang stops as a whole, and so does a job that is cancelled; other tasks stop one by one.
    Victims are added in their order until the waiting job fits, and those that are not needed in
    the end are spared, the last ones first.

    Attributes
    ----------
    by : Right
        By what a job may preempt another.
    victims : Victims
        Which stop first.
    grace_s : float
        Time that a victim goes on running before it stops, s. The job that preempts it waits, and
        starts before all others once its victims have stopped. Notice to a task or gang is void
        once that begins anew; notice of a cancellation is the job's, and stands.

    Raises
    ------
    PolicyError
        If `grace_s` is negative or not finite, or rights are combined that exclude each other.
    """

    by: Right = Right.LEVEL
    victims: Victims = Victims.LOWEST_LEVEL
    grace_s: float = 0.0

    def __post_init__(self) -> None:
        between = (Right.SHARE, Right.QUOTA)
        if self.by not in (*Right, *(Right.LEVEL_IN_QUEUE | right for right in between)):
            raise PolicyError(
                f"preemption: by is {self.by!r}; valid: one right, or LEVEL_IN_QUEUE and SHARE or "
                "QUOTA: by others together, jobs could take room from each other in turn for ever"
            )
        if self.by == Right.RUNS_ON and self.grace_s > 0:
            raise PolicyError(
                "preemption: a policy that changes runs_on gives notice itself: set a timer, and "
                "change it grace_s later"
            )
        if not 0 <= self.grace_s < math.inf:
            raise PolicyError(
                f"preemption: grace_s is {self.grace_s}; valid: a finite number, 0 or more (s)"
            )
