"""One run of a recurring job: what differs from the runs before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sim.knobs.faults import straggling
from sim.synth.scope_jobs.published import INIT_EXPONENT, PERCENTILES
from sim.synth.scope_jobs.times import draw_init_s

if TYPE_CHECKING:
    from sim.synth.scope_jobs.templates import Template

F8 = NDArray[np.float64]

VARIATION = {"runs": (0.195, 0.205, 0.38, 1.28), "inputs": (0.133, 0.30, 0.59, 2.8)}
"""Variation of the factors that a run's work is multiplied by, at Table 1's percentiles of jobs:
of runs with like inputs, and of the inputs. They are set so that completion times vary as published
(docs/jockey_workload.md)."""
LIKE = 0.05
"""Inputs that are alike are at most this much smaller or larger than usual."""
STAGE_SIGMA = 0.1
"""Spread of what a single stage takes longer or shorter in a run; an assumption."""


@dataclass(frozen=True, eq=False)
class JobRun:
    """One run of a job of T tasks, stage by stage.

    Attributes
    ----------
    template : Template
        The job.
    run_s, init_s : (T,) float64
        How long each vertex runs, and what goes before.
    """

    template: Template
    run_s: F8
    init_s: F8

    @property
    def duration_s(self) -> F8:
        """How long each task holds its token, (T,) s."""
        both: F8 = self.run_s + self.init_s
        return both


def usual_run(template: Template, rng: np.random.Generator) -> JobRun:
    """Draw a run that takes no more and no less work than published."""
    return _run(template, 1.0, 1.0, np.ones(len(template.structure.n_tasks)), rng)


def draw_run(template: Template, rng: np.random.Generator, like_inputs: bool = True) -> JobRun:
    """Draw a run.

    All vertices run longer or shorter by one factor of the run and one of its input, log-normal
    with a median of 1, and those of a stage by one of the stage; initialisation grows less
    (`INIT_EXPONENT`), and not with the input.

    Parameters
    ----------
    template : Template
        The job.
    rng : numpy.random.Generator
        To draw from.
    like_inputs : bool
        Whether the input is about as large as usual.
    """
    z_input, z_run = rng.normal(size=2)
    size = np.exp(sigma_at("inputs", template.place) * z_input)
    if like_inputs:
        size = rng.uniform(1 - LIKE, 1 + LIKE)
    slower = float(np.exp(sigma_at("runs", template.place) * z_run))
    each = np.exp(STAGE_SIGMA * rng.normal(size=len(template.structure.n_tasks)))
    return _run(template, float(size), slower, each, rng)


def sigma_at(what: str, place: float) -> float:
    """Return the spread of the logarithm for the job at `place` among all, 0 to 1.

    Between Table 1's percentiles the logarithm of the variation is linear in the normal score.
    """
    at = ndtri(np.array(PERCENTILES) / 100)
    z = float(ndtri(np.clip(place, 0.01, 0.99)))
    log_cov = np.interp(z, at, np.log(VARIATION[what]))
    if z < at[0]:  # go on as between the first two
        slope = np.diff(np.log(VARIATION[what]))[0] / np.diff(at)[0]
        log_cov += slope * (z - at[0])
    return float(np.sqrt(np.log1p(np.exp(2 * log_cov))))


def _run(
    template: Template, size: float, slower: float, each: F8, rng: np.random.Generator
) -> JobRun:
    n_tasks = template.structure.n_tasks
    run_s = template.law.run_s(n_tasks, rng) * np.repeat(each, n_tasks) * size * slower
    init_s = draw_init_s(len(run_s), rng) * slower**INIT_EXPONENT
    return JobRun(template, run_s * straggling(len(run_s), rng), init_s)
