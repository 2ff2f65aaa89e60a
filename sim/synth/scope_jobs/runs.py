"""Recurring jobs and runs of them: what differs from the runs before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from sim.base.arrays import F8
from sim.knobs.faults import straggling
from sim.published import numbers
from sim.synth.scope_jobs.structure import Law, Structure, draw_init_s, draw_law, draw_structure

STAGES, VERTICES = (10, 60), (700, 8500)
FASTEST_P90_S, SLOWEST_P90_S = (1.4, 4.0), (22.0, 320.0)
"""Between which the others are drawn, evenly in the logarithm: about the ranges of Table 2."""
BARRIERS = (0.0, 0.25)
"""What part of the stages begins with a full shuffle, evenly; Table 2 has 0 to 0.26."""
BULK, SKEW, SIGMA = (0.35, 1.0), (0.5, 2.5), (0.25, 0.5)
"""Of how the times of stages spread (`sim.synth.scope_jobs.structure`)."""
INIT_EXPONENT = 1 / 3
"""Where a run needs x times the work, what goes before a vertex runs takes x to this power as long:
ln(6.8 / 5.8) over ln(23.5 / 12.7), and ln(6.9 / 5.8) over ln(18.5 / 12.7), are 0.26 and 0.46 (Table
3)."""
WORK_H = {name: numbers_of_run[0] for name, numbers_of_run in numbers("jockey")["table3"].items()}
"""Total work of job F in training and of the two runs of Table 3, hours."""
RUN_SIGMA = 0.2
"""Spread of the logarithm of what all vertices of a run take longer or shorter."""
OVERLOADED = 0.06
"""Chance that the cluster is overloaded while a job runs."""
EXTRA = float(np.mean([WORK_H[run] / WORK_H["training"] - 1 for run in ("job 1", "job 2")]))
EXTRA_WITHIN, EXTRA_SPREAD = 0.3, 0.85
"""What a run of the median job takes longer then, 0.65 as the runs of Table 3 on average, give or
take as much of it as they lie apart; for others that times exp(0.85 z), by the normal score z of
their place."""
INPUT_VARIATION = (0.10, 0.28, 0.6, 2.8)
"""Variation of the factor of inputs that are not alike, at Table 1's percentiles of jobs. All but
`EXTRA` is set so that completion times vary as in Table 1 (docs/jockey_workload.md)."""
LIKE = 0.05
"""Inputs that are alike are at most this much smaller or larger than usual."""
STAGE_SIGMA = 0.1
"""Spread of what a single stage takes longer or shorter in a run; an assumption."""


@dataclass(frozen=True, eq=False)
class Template:
    """A recurring job."""

    name: str  # what it is called
    structure: Structure  # its g stages
    law: Law  # how long their vertices run in a run like the one that was published
    place: float  # how much its runs vary: its place among all recurring jobs, between 0 and 1
    # how much the run that was recorded took: its place among all runs of the job, 0 to 1
    recorded: float = 0.5


@dataclass(frozen=True, eq=False)
class JobRun:
    """One run of a job of T tasks, stage by stage."""

    template: Template  # the job
    run_s: F8  # how long each vertex runs, and what goes before
    init_s: F8

    @property
    def duration_s(self) -> F8:
        """How long each task holds its token, (T,) s."""
        return self.run_s + self.init_s


def draw_template(
    name: str,
    rng: np.random.Generator,
    vertices: tuple[int, int],
    place: float = 0.5,
    recorded: float = 0.5,
) -> Template:
    """Draw a job like the seven, with a number of vertices in a range."""
    n_stages = round(_between(STAGES, rng))
    n_barriers = round(n_stages * rng.uniform(*BARRIERS))
    n_vertices = max(round(_between(vertices, rng)), 6 * n_stages)
    structure = draw_structure(n_stages, n_barriers, n_vertices, rng)
    ends = (_between(FASTEST_P90_S, rng), _between(SLOWEST_P90_S, rng))
    shape = (rng.uniform(*BULK), _between(SKEW, rng))
    law = draw_law(structure.n_tasks, shape, ends, rng.uniform(*SIGMA), rng)
    return Template(name, structure, law, place, recorded)


def _between(ends: tuple[float, float], rng: np.random.Generator) -> float:
    low, high = np.log(ends)
    return float(np.exp(rng.uniform(low, high)))


def recorded_run(template: Template, rng: np.random.Generator, slower: float = 1.0) -> JobRun:
    """Draw a run that takes as much work as published of the recorded one, or `slower` times it."""
    return _run(template, 1.0, slower, np.ones(len(template.structure.n_tasks)), rng)


def draw_run(template: Template, rng: np.random.Generator, like_inputs: bool = True) -> JobRun:
    """Draw a run.

    All vertices run longer or shorter by one factor of the run and one of its input, log-normal
    with a median of 1, by another where the cluster is overloaded, and those of a stage by one of
    the stage; initialisation grows less (`INIT_EXPONENT`), and not with the input. The recorded run
    is one of them, so that another takes more or less than it did.
    """
    z_input, z_run = rng.normal(size=2)
    chance, within = rng.random(2)
    size = np.exp(input_sigma(template.place) * z_input)
    if like_inputs:
        size = rng.uniform(1 - LIKE, 1 + LIKE)
    slower = float(np.exp(RUN_SIGMA * (z_run - _score(template.recorded))))
    if chance < OVERLOADED:
        slower *= 1 + extra(template.place) * (1 + EXTRA_WITHIN * (2 * within - 1))
    each = np.exp(STAGE_SIGMA * rng.normal(size=len(template.structure.n_tasks)))
    return _run(template, float(size), slower, each, rng)


def extra(place: float) -> float:
    """Return what a run takes longer while the cluster is overloaded, on average."""
    return EXTRA * float(np.exp(EXTRA_SPREAD * _score(place)))


def input_sigma(place: float) -> float:
    """Return the spread of the logarithm of the inputs of the job at `place` among all, 0 to 1.

    Between Table 1's percentiles the logarithm of the variation is linear in the normal score, and
    below the first as between the first two.
    """
    at, log_cov = (
        ndtri(np.array(numbers("jockey")["table1"]["percentiles"]) / 100),
        np.log(INPUT_VARIATION),
    )
    slope = (log_cov[1] - log_cov[0]) / (at[1] - at[0])
    z = _score(place)
    log_at = np.interp(z, at, log_cov) + slope * min(z - at[0], 0.0)
    return float(np.sqrt(np.log1p(np.exp(2 * log_at))))


def _score(place: float) -> float:
    return float(ndtri(np.clip(place, 0.01, 0.99)))


def _run(
    template: Template, size: float, slower: float, each: F8, rng: np.random.Generator
) -> JobRun:
    n_tasks = template.structure.n_tasks
    run_s = template.law.run_s(n_tasks, rng) * np.repeat(each, n_tasks) * size * slower
    init_s = draw_init_s(len(run_s), rng) * slower**INIT_EXPONENT
    return JobRun(template, run_s * straggling(len(run_s), rng), init_s)
