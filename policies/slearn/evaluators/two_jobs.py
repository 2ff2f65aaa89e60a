"""Evaluator of size estimators for a job of unknown size: history against samples.

The model of Jajoo et al. (NSDI 2022, §4.1): the mean task length x of a job is normal around μ with
variance σ₀² over its runs, and a task is normal around x with variance σ₁². History says μ, m
samples say their mean, the posterior weighs the two.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.errors import InputError
from sim.base.random import Normal, posterior, stream
from sim.evaluators import Evaluation, Simulate

USES_POLICY = False


def evaluate(
    run: Simulate, workload: Any, cluster: Any, policy: Any, seed: int,
    mean: float = 10.0,
    sd_jobs: float = 2.0,
    sd_tasks: float = 3.0,
    samples: int = 3,
    draws: int = 200_000,
) -> Evaluation:  # fmt: skip
    """Draw jobs and samples, and compare the estimators' errors with the formulas.

    Parameters
    ----------
    run, workload, cluster, policy, seed
        As for every evaluator; only the seed matters.
    mean, sd_jobs, sd_tasks : float
        μ, σ₀ and σ₁, s.
    samples : int
        m, at least 1.
    draws : int
        Number of jobs to draw.

    Returns
    -------
    metrics : dict of str to float
        For ``history``, ``samples`` and ``posterior``: the mean squared error over the draws
        (``mse_<name>``) and its formula (``variance_<name>``: σ₀², σ₁²/m, and
        1 / (m/σ₁² + 1/σ₀²)); and how often each orders the job wrongly against a job with tasks of
        length μ, if their means differ by σ₀/2 or more (``wrong_<name>``).
    table : pyarrow.Table
        A row per estimator: ``estimator``, ``mse``, ``variance``, ``wrong``.
    """
    if samples < 1 or draws < 1 or not (sd_jobs >= 0 and sd_tasks >= 0):
        raise InputError(
            "two_jobs needs samples and draws of at least 1 and sd_jobs and sd_tasks of at least "
            f"0, not {samples!r}, {draws!r}, {sd_jobs!r} and {sd_tasks!r}"
        )
    rng = stream(seed, "measure", "two_jobs")
    x = rng.normal(mean, sd_jobs, draws)
    sampled = x + rng.normal(0.0, sd_tasks / math.sqrt(samples), draws)
    posterior_variance = posterior(Normal(mean, sd_jobs**2), samples, mean, sd_tasks**2).variance
    weight = 1.0 if sd_tasks == 0 else posterior_variance * samples / sd_tasks**2
    estimates = {
        "history": (np.full(draws, mean), sd_jobs**2),
        "samples": (sampled, sd_tasks**2 / samples),
        "posterior": (mean + weight * (sampled - mean), posterior_variance),
    }
    far = np.abs(x - mean) >= sd_jobs / 2
    table: dict[str, list[float]] = {"mse": [], "variance": [], "wrong": []}
    for estimate, variance in estimates.values():
        table["mse"].append(float(np.mean((estimate - x) ** 2)))
        table["variance"].append(float(variance))
        wrong = (estimate <= mean)[far] != (x <= mean)[far]
        table["wrong"].append(float(wrong.mean()) if len(wrong) else math.nan)
    metrics = {
        f"{statistic}_{name}": value
        for statistic, values in table.items()
        for name, value in zip(estimates, values, strict=True)
    }
    return metrics, pa.table({"estimator": list(estimates), **table})
