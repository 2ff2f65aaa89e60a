"""How the tasks of a job differ: as much as is asked for, job by job."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I8
from sim.base.ragged import offsets
from sim.base.random import stream
from sim.describe.slearn import SAMPLED, spread
from sim.synth.recurring.programs import Programs

SHORTEST = 0.01
"""The shortest that a task can be, over the mean of its job."""

ALIKE = 0.7
"""Correlation between runs of a program in how much their tasks vary."""

_STEPS = 48
_STEEPEST = 64.0


def variations(programs: Programs, over_space: tuple[float, float], seed: int) -> F8:
    """Return the wanted σ₁ / (√(0.03 n) μ) of each job, log-normal over jobs of several tasks."""
    from scipy.special import ndtri

    program = programs.program[: programs.n_jobs]
    own = stream(seed, "recurring", "spread").standard_normal(len(program))
    score = np.sqrt(ALIKE) * programs.steadiness[program] + np.sqrt(1 - ALIKE) * own
    rows = np.flatnonzero(programs.width[program] > 1)
    found = np.zeros(len(program))
    if len(rows):
        rank = np.argsort(np.argsort(score[rows], kind="stable"), kind="stable")
        median, high = over_space
        normal = ndtri((rank + 0.5) / len(rows))
        found[rows] = median * np.exp(normal * np.log(high / median) / ndtri(0.9))
    return found


def durations(n_tasks: I8, mean_s: F8, over_space: F8, seed: int) -> F8:
    """Return the duration of every task, with exactly the job's mean and variation.

    What is above `SHORTEST` of the mean has normal logarithms. What n tasks can't reach, a σ₁/μ of
    √(n-1) or more, is cut.
    """
    first = offsets(n_tasks)
    normal = stream(seed, "recurring", "tasks").standard_normal(int(first[-1]))
    normal -= np.repeat(np.maximum.reduceat(normal, first[:-1]), n_tasks)
    wanted = np.minimum(over_space * np.sqrt(SAMPLED * n_tasks), 0.94 * np.sqrt(n_tasks - 1))
    wanted /= 1 - SHORTEST
    low, high = np.zeros(len(n_tasks)), np.full(len(n_tasks), _STEEPEST)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        less = spread(np.exp(np.repeat(middle, n_tasks) * normal), first) < wanted
        low, high = np.where(less, middle, low), np.where(less, high, middle)
    shape = np.exp(np.repeat(low, n_tasks) * normal)
    mean = np.add.reduceat(shape, first[:-1]) / n_tasks
    part = (1 - SHORTEST) * shape / np.repeat(mean, n_tasks) + SHORTEST
    found: F8 = part * np.repeat(mean_s, n_tasks)
    return found
