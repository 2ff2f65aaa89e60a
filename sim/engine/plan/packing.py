"""What `sim.engine.plan.Fit.PACK` weighs when it picks a machine's next tasks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim.base.errors import PolicyError

MAX_BUNDLE = 32


@dataclass(frozen=True)
class Packing:
    """Parameters of the score by which machines pick tasks; the defaults are alignment alone.

    The score of a stage's next task on a machine is ``worth - η · remaining work of its job``,
    where worth is ``task_priority · alignment``, times `remote` if the task prefers another
    machine, and alignment is free · demand, both as fractions of the machine. η is `remaining`
    times Σ worth / Σ remaining work over the tasks that have started where they fit (the ratio of
    their running means), 0 before the first. Ties go to the first in order. (DAGPS,
    MSR-TR-2016-19, §5, Fig. 8; with the defaults Tetris, SIGCOMM 2014, §3.2.)

    Attributes
    ----------
    remaining : float
        What little remaining work counts beside worth: m of DAGPS, §8.5.
    remote : float
        Factor of a task's worth on a machine that it does not prefer, 0 to 1.
    bundle : int
        Of the best so many fitting tasks a machine takes the set that fits together and has the
        greatest total score (§7.2); 1 takes one by one. The tasks of a stage count as equals.
    overbook : bool
        Whether a machine where a task has ended, and nothing more fits, takes tasks that ask too
        much of its fungible resources alone, if that gains more than it costs: waiting time saved,
        until the task would fit, times its work rate (its stage's ``weight``), less the delays
        of itself and of the tasks there, each times its work rate. That takes alignment's place.
    unfairness : float
        Deficit from which a queue is owed (κC of §5); inf serves queues by tier and use instead.
        Where it is finite, queues of a tier compete by score alone; each task that starts adds its
        stage's ``cost`` times the fair share (of the weights of those with tasks that wait) to
        the deficit of each such queue, and takes its cost from its own. While the queue of
        greatest deficit among them (but for what gangs and caps hold up) is owed, only it is
        picked from: a machine where nothing of it fits takes nothing, so that room is kept for
        it. So of two queues neither is ever owed more than this and the cost of a task.
    """

    remaining: float = 0.0
    remote: float = 1.0
    bundle: int = 1
    overbook: bool = False
    unfairness: float = np.inf

    def __post_init__(self) -> None:
        """Raise PolicyError on a parameter out of its range."""
        if not 0 <= self.remaining < np.inf:
            raise PolicyError(f"packing: remaining must be 0 or more, not {self.remaining!r}")
        if not 0 <= self.remote <= 1:
            raise PolicyError(f"packing: remote must be 0 to 1, not {self.remote!r}")
        if not 1 <= self.bundle <= MAX_BUNDLE:
            raise PolicyError(f"packing: bundle must be 1 to {MAX_BUNDLE}, not {self.bundle!r}")
        if not self.unfairness >= 0:
            raise PolicyError(f"packing: unfairness must be 0 or more, not {self.unfairness!r}")
