"""Jockey with a fallback to fair sharing for large model errors: beyond the paper (§5.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from policies.jockey.control import Job, Running
from policies.jockey.online import JockeyOnline, RemainderModel
from policies.registry import register
from sim.base.errors import InputError
from sim.engine.plan import World


class DistrustedModel(RemainderModel):
    """The model of a job whose progress differed from it."""


@register("jockey_fallback")
@dataclass(frozen=True)
class JockeyFallback(JockeyOnline):
    """Jockey that leaves a job to fair sharing once its progress differs from the prediction.

    The difference is detected as in `jockey_online`. From then on the job has no tokens of its own
    and runs on spare tokens, which are shared max-min fairly between jobs.

    Ferguson et al. (EuroSys 2012, §5.6) mention this as the simpler solution for large prediction
    errors.

    Attributes
    ----------
    tolerance : float
        Tolerated relative difference between elapsed and predicted time.
    """

    tolerance: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.spare:
            raise InputError(
                "jockey_fallback falls back to spare tokens, so spare must be true, not False",
                rule="out of range",
            )

    def allocate(self, memory: Running, due: Sequence[Job], now: float, world: World) -> None:
        """Apply the control law, except to jobs whose models are distrusted."""
        super().allocate(memory, due, now, world)
        for job in due:
            if isinstance(job.model, DistrustedModel):
                job.allocation = 0.0

    def _refresh_model(self, job: Job, world: World, factor: float) -> RemainderModel:
        if isinstance(job.model, DistrustedModel):
            return job.model  # not around itself, again at each check: each would ask the next
        n = len(job.n_tasks)
        return DistrustedModel(job.model, np.arange(n, dtype=np.int32), np.ones(n))
