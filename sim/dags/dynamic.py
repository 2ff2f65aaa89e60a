"""Scheduling with real and with synthesized dependencies (Tian et al., SoCC 2019, §7.3, Fig. 13).

Policies are given, not named: this package knows none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.dags.compare import distance
from sim.errors import InputError
from sim.random import stream

if TYPE_CHECKING:
    from sim.cluster import Cluster
    from sim.synth.alibaba2018.tables import Tables
    from sim.workload import Workload

F8 = NDArray[np.float64]

HOUR_S, DAY_S = 3600.0, 86_400.0

JOBS_AN_HOUR = 14_900
"""Jobs an hour of the whole trace: 2.86 million in 8 days, by its published histograms."""

MACHINE = {"cpu": 96.0, "mem": 100.0}
"""What one of Alibaba's machines has (§7.3)."""

LOAD = 0.8
"""Offered load of the bottleneck resource (§7.3)."""


def hour_of(
    workload: Workload,
    n_jobs: int | None = JOBS_AN_HOUR,
    seed: int = 0,
    longest_s: float = DAY_S,
) -> Workload:
    """Build an hour of jobs out of a sample of many hours.

    A sample of a trace has too few jobs in any one hour to load a cluster. So the jobs of all its
    hours come in one: each at its time within its own hour, which keeps the bursts within hours
    and averages the day out. To make up for the thinning, jobs are repeated until there are as
    many as in an hour of the whole trace, each as often as any other, one more or less; a
    repetition comes at a random time of the hour.

    Parameters
    ----------
    workload : Workload
        Jobs of whatever time.
    n_jobs : int, optional
        How many come in the hour; left out, each job once.
    seed : int
        Seed of which are repeated once more, and of when repetitions come.
    longest_s : float
        Jobs with a longer critical path are left out. Of the Alibaba sample that is one, whose
        three last stages are recorded to have run for 16.6 hours each, one after the other, though
        the job took 16.6 hours in all; it alone would be a quarter of the mean JCT.

    Raises
    ------
    InputError
        If no job is left, or jobs depend on each other.
    """
    from sim.knobs.repeat import repeat_jobs, sample_jobs
    from sim.paths import critical_path_s
    from sim.tables import values

    if workload.job_edges.num_rows or workload.downloads.num_rows:
        raise InputError("an hour can't be built of jobs that depend on each other")
    kept = workload.take(critical_path_s(workload.columns) <= longest_s)
    rows, copy = sample_jobs(kept.n_jobs, kept.n_jobs if n_jobs is None else n_jobs, seed)
    at = values(kept.jobs, "submit_s")[rows] % HOUR_S
    at[copy] = HOUR_S * stream(seed, "hour").random(int(copy.sum()))
    order = np.argsort(at, kind="stable")
    knob: dict[str, object] = {"hour of": kept.n_jobs, "jobs": len(rows), "seed": int(seed)}
    return repeat_jobs(kept, rows[order], copy[order], at[order], knob)


def compare_dynamic(
    hour: Workload,
    policies: Mapping[str, Any],
    capacities: Iterable[float] = (1.0,),
    seeds: Iterable[int] = range(10),
    variant: str = "improved",
    tables: Tables | None = None,
    machine: Mapping[str, float] | None = None,
    load: float = LOAD,
) -> pa.Table:
    """Simulate jobs with their own and with synthesized dependencies.

    Parameters
    ----------
    hour : Workload
        What comes; of a sample, see `hour_of`.
    policies : dict of str to Policy
        By name, for instance ``{name: policies.build(name) for name in ("fifo", "sjf")}``.
    capacities : iterable of float
        Fractions of the cluster that brings the bottleneck to `load`.
    seeds : iterable of int
        Seeds of the synthesized dependencies (`rewire`) and of both simulations.
    variant : {"improved", "paper"}
        How dependencies are synthesized.
    tables : Tables, optional
        What from; left out, the shipped tables.
    machine : dict of str to float, optional
        What one machine has; left out, `MACHINE`.
    load : float
        See `capacities`.

    Returns
    -------
    pyarrow.Table
        A row for each policy, capacity and seed: ``policy``, ``capacity``, ``seed``, ``ks`` (the
        distance of the two distributions of JCT), ``jct_mean_s`` and ``jct_mean_synth_s``.
    """
    from sim.sizing import size_cluster
    from sim.synth.alibaba2018.rewire import rewire

    shape = MACHINE if machine is None else machine
    clusters = {at: size_cluster(hour, shape, load, at) for at in capacities}
    rows = []
    for seed in seeds:
        other = rewire(hour, tables, seed, variant)
        for capacity, cluster in clusters.items():
            for name, policy in policies.items():
                real = _jct_s(hour, cluster, policy, seed)
                synth = _jct_s(other, cluster, policy, seed)
                rows.append(
                    {
                        "policy": name,
                        "capacity": float(capacity),
                        "seed": int(seed),
                        "ks": distance(real, synth),
                        "jct_mean_s": float(real.mean()),
                        "jct_mean_synth_s": float(synth.mean()),
                    }
                )
    return pa.Table.from_pylist(rows)


def summarise_dynamic(table: pa.Table) -> pa.Table:
    """Average over seeds.

    Returns
    -------
    pyarrow.Table
        A row for each policy and capacity: ``ks`` and ``ratio`` (mean JCT with synthesized over
        that with real dependencies), each with the 95 % Student t interval of its mean, ``_low``
        and ``_high`` (NaN for one seed).
    """
    frame = table.to_pandas()
    frame["ratio"] = frame["jct_mean_synth_s"] / frame["jct_mean_s"]
    rows = []
    for (policy, capacity), group in frame.groupby(["policy", "capacity"], sort=False):
        row: dict[str, Any] = {"policy": policy, "capacity": capacity, "seeds": len(group)}
        for name in ("ks", "ratio"):
            row |= _interval(name, group[name].to_numpy())
        rows.append(row)
    return pa.Table.from_pylist(rows)


def rank_agreement(table: pa.Table) -> pa.Table:
    """Return how alike policies rank by mean JCT with real and with synthesized dependencies.

    Parameters
    ----------
    table : pyarrow.Table
        Of `compare_dynamic`, with two policies or more.

    Returns
    -------
    pyarrow.Table
        A row for each capacity: ``tau``, Kendall's τ-b averaged over seeds, with the 95 % Student
        t interval of its mean, ``tau_low`` and ``tau_high``.
    """
    from scipy.stats import kendalltau

    rows = []
    for capacity, group in table.to_pandas().groupby("capacity", sort=False):
        tau = [
            float(kendalltau(of["jct_mean_s"], of["jct_mean_synth_s"]).statistic)
            for _, of in group.groupby("seed", sort=False)
        ]
        row = {"capacity": capacity, "policies": group["policy"].nunique(), "seeds": len(tau)}
        rows.append(row | _interval("tau", np.array(tau)))
    return pa.Table.from_pylist(rows)


def _jct_s(workload: Workload, cluster: Cluster, policy: Any, seed: int) -> F8:
    from sim.engine import simulate
    from sim.tables import values

    result = simulate(workload, cluster, policy, seed=seed)
    jct: F8 = result.job_finish - values(workload.jobs, "submit_s")
    return jct[~np.isnan(jct)]


def _interval(name: str, values: F8) -> dict[str, float]:
    from scipy.stats import t

    half = np.nan
    if len(values) > 1:
        half = t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    mean = float(values.mean())
    return {name: mean, f"{name}_low": float(mean - half), f"{name}_high": float(mean + half)}
