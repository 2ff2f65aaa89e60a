"""Synthesized DAGs beside real ones, held out: the static comparison of Tian et al. (SoCC 2019).

The paper (§7.3, Figs. 11 and 12) compares with the DAGs that its tables were counted from. Here the
real DAGs are halved at random, again and again: a generator may know one half, and is judged on the
other by the Kolmogorov-Smirnov distance of six properties.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.dags.compare import OF_STAGES, PROPERTIES, distances, properties
from sim.dags.graphs import Graphs
from sim.dags.random_dags import uniform_dags
from sim.errors import InputError, unknown
from sim.random import stream

if TYPE_CHECKING:
    from sim.synth.alibaba2018.tables import Tables
    from sim.workload import Workload

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
Fit = Literal["histograms", "half"]

LEAST_STAGES = 6
"""The paper looks at jobs of that many stages and more (§4.2)."""

GENERATORS = ("improved", "paper", "random", "ideal")
"""The two variants; DAGs uniform over all labelled ones; real DAGs of the known half."""


def clean_dags(workload: Workload, least_stages: int = LEAST_STAGES) -> Graphs:
    """Return the DAGs that can be judged: of enough stages, and whole.

    A job is whole if its loader lost none of its stages and dependencies (``jobs.n_lost``; those
    of a workload without that column all are). Of the sample of the Alibaba trace, read with
    ``unfinished="keep"``, these are 1,278.

    Raises
    ------
    InputError
        If there are fewer than two.
    """
    graphs = Graphs.of(workload)
    good = graphs.job_n_stages >= least_stages
    if "n_lost" in workload.jobs.column_names:
        good &= workload.jobs["n_lost"].to_numpy() == 0
    if good.sum() < 2:
        raise InputError(
            f"{good.sum()} whole jobs have {least_stages} stages and more; a comparison needs 2"
        )
    return graphs.take(good)


def compare_static(
    real: Graphs,
    tables: Tables | None = None,
    generators: tuple[str, ...] = GENERATORS,
    halvings: int = 50,
    per_dag: int = 20,
    seed: int = 0,
    fit: Fit = "histograms",
) -> pa.Table:
    """Judge generators by DAGs they have not seen.

    Parameters
    ----------
    real : Graphs
        Whole DAGs, of two stages and more.
    tables : Tables, optional
        Algorithm 2's tables; left out, the shipped ones. Their `links` are not used: the edge step
        is fitted to the known half, always.
    generators : tuple of str
        Of `GENERATORS`. The ideal one picks, for each DAG, among those of as many stages (or the
        nearest number there is) in the known half.
    halvings : int
        How often to halve.
    per_dag : int
        DAGs for each real one of the judging half, of as many stages.
    seed : int
        Seed of halvings and generators.
    fit : {"histograms", "half"}
        Where path lengths and levels come from: `tables`, which were counted from the whole trace,
        or the known half.

    Returns
    -------
    pyarrow.Table
        ``generator``, ``property``, ``halving``, ``distance``: a row each.

    Raises
    ------
    InputError
        On an unknown generator or fit.
    """
    from sim.synth.alibaba2018.fit import fit_structure
    from sim.synth.alibaba2018.structure import synthesize_dags
    from sim.synth.alibaba2018.tables_file import read_tables

    for name in generators:
        if name not in GENERATORS:
            raise InputError(unknown("generator", name, GENERATORS))
    if fit not in ("histograms", "half"):
        raise InputError(unknown("fit", fit, ("histograms", "half")))
    known = tables or read_tables()
    of_real = properties(real)
    rows: list[dict[str, object]] = []
    for halving, (fitted, judged) in enumerate(_halves(real.n_jobs, halvings, seed)):
        half = fit_structure(real.take(fitted), known, own=fit == "half")
        sizes = np.repeat(real.job_n_stages[judged], per_dag)
        draw = int(stream(seed, "static", "draw", halving).integers(2**31))
        truth = _picked(real, of_real, judged)
        for name in generators:
            if name == "ideal":
                made = _picked(real, of_real, _same_size(real, fitted, sizes, draw))
            elif name == "random":
                made = properties(uniform_dags(sizes, draw))
            else:
                made = properties(synthesize_dags(half, sizes, draw, name).graph)
            for what, off in distances(made, truth).items():
                rows.append(
                    {"generator": name, "property": what, "halving": halving, "distance": off}
                )
    return pa.Table.from_pylist(rows)


def summarise_static(table: pa.Table) -> pa.Table:
    """Average over halvings.

    Parameters
    ----------
    table : pyarrow.Table
        Of `compare_static`.

    Returns
    -------
    pyarrow.Table
        ``generator``, ``property``, ``mean``; ``low`` and ``high``, between which 95 % of the
        halvings are; ``above_ideal``, the mean less that of the ideal generator (null without it).
    """
    found: dict[tuple[str, str], F8] = {}
    kind, what = table["generator"].to_pylist(), table["property"].to_pylist()
    off = table["distance"].to_numpy()
    for key in dict.fromkeys(zip(kind, what, strict=True)):
        here = [pair == key for pair in zip(kind, what, strict=True)]
        found[key] = off[np.array(here)]
    rows = []
    for (name, prop), values in found.items():
        ideal = found.get(("ideal", prop))
        low, high = np.quantile(values, [0.025, 0.975])
        rows.append(
            {
                "generator": name,
                "property": prop,
                "mean": float(values.mean()),
                "low": float(low),
                "high": float(high),
                "above_ideal": None if ideal is None else float(values.mean() - ideal.mean()),
            }
        )
    return pa.Table.from_pylist(rows)


def _halves(n: int, halvings: int, seed: int) -> Iterator[tuple[I8, I8]]:
    for halving in range(halvings):
        order = stream(seed, "static", "halving", halving).permutation(n)
        yield np.sort(order[: n // 2]), np.sort(order[n // 2 :])


def _same_size(real: Graphs, fitted: I8, sizes: I8, seed: int) -> I8:
    """Pick a DAG of the known half for each size, at random among those of the nearest size."""
    by_size = fitted[np.argsort(real.job_n_stages[fitted], kind="stable")]
    there, begin, count = np.unique(
        real.job_n_stages[by_size], return_index=True, return_counts=True
    )
    after = np.minimum(np.searchsorted(there, sizes), len(there) - 1)
    before = np.maximum(after - 1, 0)
    nearest = np.where(sizes - there[before] <= there[after] - sizes, before, after)
    uniform = stream(seed, "static", "ideal").random(len(sizes))
    picked: I8 = by_size[begin[nearest] + (uniform * count[nearest]).astype(np.int64)]
    return picked


def _picked(real: Graphs, of_real: dict[str, F8], jobs: I8) -> dict[str, F8]:
    """Return the properties of some of the real DAGs, without measuring them again."""
    from sim.columns import ranges

    stages = ranges(real.job_stage0[jobs], real.job_stage0[jobs + 1])
    return {name: of_real[name][stages if name in OF_STAGES else jobs] for name in PROPERTIES}
