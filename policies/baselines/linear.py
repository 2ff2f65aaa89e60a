"""Jobs by a weighted sum of features that anybody sees, with weights that were trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from policies.acting import Acting
from policies.registry import register
from sim.base import maths
from sim.base.arrays import F8
from sim.env.observer import Form, Observation


@register("linear")
@dataclass(frozen=True)
class Linear(Acting):
    """The smallest weighted sum of the logarithms of six features first; no duration is known.

    A linear policy, trained by evolution strategies (Salimans et al., *Evolution strategies as a
    scalable alternative to reinforcement learning*, arXiv 1703.03864, 2017, Algorithm 1, with pairs
    of opposite directions) in `policies.baselines.training`. The weights are of 200 jobs of
    `alibaba_synth` at a capacity of 0.7 (docs/training.md): train others for other jobs.

    Attributes
    ----------
    factors : tuple of float
        Weights of log(1 + x) of a job's age, s, tasks, unfinished tasks, running tasks, work done,
        s, and work that is left if tasks last as long as those that have ended, s.
    """

    factors: Sequence[float] = (0.59, 4.61, 4.93, 4.35, -1.64, 1.43)

    form = Form(jobs=100)

    def act(self, observation: Observation) -> F8:
        """Return the keys of the jobs that are shown, between -1 and 1."""
        jobs = observation["jobs"][: int(observation["n_jobs"][0])].astype(np.float64)
        age_s, n_tasks, left, running, _, done_s = jobs.T[:6]
        left_s = done_s / np.maximum(n_tasks - left, 1.0) * left
        seen = maths.log1p(np.stack([age_s, n_tasks, left, running, done_s, left_s]))
        total = (np.array(self.factors, np.float64)[:, None] * seen).sum(axis=0) / 10
        keys: F8 = total / (1 + np.abs(total))
        return keys
