"""DAGs beside real ones that their generator has not seen (Tian et al., SoCC 2019, §7.3)."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import I8
from sim.base.errors import InputError, unknown
from sim.base.random import stream
from sim.dags.graphs import Graphs
from sim.dags.properties import distances, properties
from sim.dags.random_dags import uniform_dags
from sim.synth.alibaba2018.shipped import tables_of
from sim.synth.fitted.fit import fit_structure
from sim.synth.fitted.tables import Tables
from sim.synth.fitted.tian_algorithm2 import synthesize_dags
from sim.workload.workload import Workload

LEAST_STAGES = 6
"""The paper looks at jobs of that many stages and more (§4.2)."""
GENERATORS = ("improved", "paper", "random", "ideal")
"""The two variants; DAGs uniform over all labelled ones; real DAGs of the known half."""
FITS = ("histograms", "half")


def clean_dags(workload: Workload, least_stages: int = LEAST_STAGES) -> Graphs:
    """Return the DAGs that can be judged: of enough stages, and whole (``jobs.n_lost`` is 0)."""
    graphs = Graphs.from_workload(workload)
    good = graphs.job_n_stages >= least_stages
    if "n_lost" in workload.jobs.column_names:
        good &= workload.jobs["n_lost"].to_numpy() == 0
    if good.sum() < 2:
        raise InputError(
            f"{good.sum()} whole jobs have {least_stages} stages and more; a comparison needs 2"
        )
    return graphs.take(good)


def judge(
    real: Graphs,
    generator: str,
    seed: int,
    tables: Tables | None = None,
    fit: str = "histograms",
    per_dag: int = 20,
) -> dict[str, float]:
    """Judge a generator by DAGs it has not seen."""
    if generator not in GENERATORS:
        raise InputError(unknown("generator", generator, GENERATORS))
    if fit not in FITS:
        raise InputError(unknown("fit", fit, FITS))
    order = stream(seed, "judge", "halving").permutation(real.n_jobs)
    known, judged = np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])
    truth = real.take(judged)
    sizes = np.repeat(truth.job_n_stages, per_dag)
    if generator == "ideal":
        made = real.take(_same_size(real, known, sizes, seed))
    elif generator == "random":
        made = uniform_dags(sizes, seed)
    else:
        half = fit_structure(real.take(known), tables_of(tables), sizes=fit == "half")
        made = synthesize_dags(half, sizes, seed, generator).graph
    return distances(properties(made), properties(truth))


def _same_size(real: Graphs, fitted: I8, sizes: I8, seed: int) -> I8:
    """Pick a DAG of the known half for each size, at random among those of the nearest size."""
    by_size = fitted[np.argsort(real.job_n_stages[fitted], kind="stable")]
    there, begin, count = np.unique(
        real.job_n_stages[by_size], return_index=True, return_counts=True
    )
    after = np.minimum(np.searchsorted(there, sizes), len(there) - 1)
    before = np.maximum(after - 1, 0)
    nearest = np.where(sizes - there[before] <= there[after] - sizes, before, after)
    uniform = stream(seed, "judge", "ideal").random(len(sizes))
    return by_size[begin[nearest] + (uniform * count[nearest]).astype(np.int64)]
