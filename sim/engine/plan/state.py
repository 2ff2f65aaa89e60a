"""State of a cluster in which a run begins: which jobs ran, since when, and on which machines."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from sim.base.arrays import F8, I4, frozen

_NONE = frozen(np.zeros(0))


@dataclass(frozen=True)
class State:
    """Pinned jobs: those that are placed at given times on given machines.

    A pinned job is placed at its time, or later, once it waits and its machines have room for it;
    partitions, caps, shares and windows are not asked. The policy places nothing before `begins_s`.
    Jobs that ended before count in what it knows (usage, attained service).

    Attributes
    ----------
    begins_s : float
        Time from which on the policy places jobs, s; inf for never.
    placed_s : (J,) float64
        Time at which each job is placed, s; NaN for those that are not pinned. Only gangs, elastic
        jobs and jobs of one task can be.
    machine : (T,) int32
        Machine of each task of these; 0 on a pool; -1 for any of the others of its gang, each of
        which takes as many as fit, in order. The tasks of a gang may change places. An elastic job
        has as many places as its tasks have machines, its least width if these are fewer; its width
        stays until `begins_s`.
    moments_s : (K,) float64
        Times at which placements are tried (`sim.engine.trials`), ascending, s.
    """

    begins_s: float
    placed_s: F8
    machine: I4
    moments_s: F8 = field(default_factory=lambda: _NONE)

    def later(self, by_s: float) -> State:
        """Return the same on a clock on which everything is so much later."""
        if by_s == 0.0:
            return self
        return replace(
            self,
            begins_s=self.begins_s + by_s,
            placed_s=self.placed_s + by_s,
            moments_s=self.moments_s + by_s,
        )
