"""Jockey that falls back to fair sharing where its model errs much: beyond the paper (§5.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from policies.jockey.control import Job, Running
from policies.jockey.online import JockeyOnline, Rest
from policies.registry import register
from sim.base.errors import InputError
from sim.engine.plan import World


class Disbelieved(Rest):
    """The model of a job that went otherwise than it said."""


@register("jockey_fallback")
@dataclass(frozen=True)
class JockeyFallback(JockeyOnline):
    """Jockey that leaves a job to fair sharing once its progress is not as predicted.

    What is off is found as by `jockey_online`. The job then has no tokens of its own to its end,
    and takes part in what is spare, shared max-min fairly between jobs.

    Ferguson et al. (EuroSys 2012, §5.6) name this as the simpler thing to do where predictions err
    much.

    Attributes
    ----------
    tolerance : float
        How far the pace may be off, as a fraction of it.
    """

    tolerance: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.spare:
            raise InputError(
                "jockey_fallback shares what is spare, so spare must be true, not False",
                rule="out of range",
            )

    def allocate(self, memory: Running, due: Sequence[Job], now: float, world: World) -> None:
        """Go by the control law, but for the jobs whose model is disbelieved."""
        super().allocate(memory, due, now, world)
        for job in due:
            if isinstance(job.model, Disbelieved):
                job.allocation = 0.0

    def _refreshed(self, job: Job, world: World, factor: float) -> Rest:
        n = len(job.n_tasks)
        return Disbelieved(job.model, np.arange(n, dtype=np.int32), np.ones(n))
