"""Evaluate generators of DAGs on held-out real DAGs (Tian et al., SoCC 2019, §7.3)."""

from __future__ import annotations

import numpy as np

from policies.alibaba.synth.shipped import load_tables
from sim.base.arrays import I8
from sim.base.errors import InputError, unknown
from sim.base.random import stream
from sim.dags.graphs import Graphs
from sim.dags.properties import distances, properties
from sim.dags.random_dags import uniform_dags
from sim.synth.fitted.fit import fit_structure
from sim.synth.fitted.tables import Tables
from sim.synth.fitted.tian_algorithm2 import synthesize_dags
from sim.workload.workload import Workload

MIN_STAGES = 6
"""Minimum number of stages of the jobs in the paper's statistics (§4.2)."""
GENERATORS = ("improved", "paper", "random", "ideal")
"""The two variants; DAGs uniform over all labelled ones; real DAGs of the fitted half."""
FITS = ("histograms", "half")


def clean_dags(workload: Workload, min_stages: int = MIN_STAGES) -> Graphs:
    """Return the DAGs that have enough stages and are complete (``jobs.n_lost`` is 0)."""
    graphs = Graphs.from_workload(workload)
    selected = graphs.job_n_stages >= min_stages
    if "n_lost" in workload.jobs.column_names:
        selected &= workload.jobs["n_lost"].to_numpy() == 0
    if selected.sum() < 2:
        raise InputError(
            f"a comparison needs 2 complete jobs of at least {min_stages} stages, and there are "
            f"{selected.sum()}"
        )
    return graphs.take(selected)


def judge(
    real: Graphs,
    generator: str,
    seed: int,
    tables: Tables | None = None,
    fit: str = "histograms",
    per_dag: int = 20,
) -> dict[str, float]:
    """Return the distances of a generator's DAGs from the held-out half of the real ones."""
    if generator not in GENERATORS:
        raise InputError(unknown("generator", generator, GENERATORS))
    if fit not in FITS:
        raise InputError(unknown("fit", fit, FITS))
    order = stream(seed, "judge", "halving").permutation(real.n_jobs)
    fitted, held_out = np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])
    truth = real.take(held_out)
    sizes = np.repeat(truth.job_n_stages, per_dag)
    if generator == "ideal":
        synthesized = real.take(_same_size(real, fitted, sizes, seed))
    elif generator == "random":
        synthesized = uniform_dags(sizes, seed)
    else:
        half = fit_structure(real.take(fitted), load_tables(tables), sizes=fit == "half")
        synthesized = synthesize_dags(half, sizes, seed, generator).graph
    return distances(properties(synthesized), properties(truth))


def _same_size(real: Graphs, fitted: I8, sizes: I8, seed: int) -> I8:
    """Pick a random DAG of the fitted half for each size, among those of the nearest size."""
    by_size = fitted[np.argsort(real.job_n_stages[fitted], kind="stable")]
    available, begin, count = np.unique(
        real.job_n_stages[by_size], return_index=True, return_counts=True
    )
    after = np.minimum(np.searchsorted(available, sizes), len(available) - 1)
    before = np.maximum(after - 1, 0)
    nearest = np.where(sizes - available[before] <= available[after] - sizes, before, after)
    uniform = stream(seed, "judge", "ideal").random(len(sizes))
    return by_size[begin[nearest] + (uniform * count[nearest]).astype(np.int64)]
