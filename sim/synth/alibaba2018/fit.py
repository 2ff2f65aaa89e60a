"""Probability tables from any workload, so that a cluster of one's own can be synthesized."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import F8
from sim.base.errors import InputError
from sim.dags import Graphs
from sim.synth.alibaba2018.fit_counts import fit_published
from sim.synth.alibaba2018.fit_joint import fit_joint
from sim.synth.alibaba2018.fit_links import Seen, fit_links
from sim.synth.alibaba2018.tables import Histogram, Tables, check_tables, pooled_conditional
from sim.workload.workload import Workload

MOST_VALUES = 4096
"""A table of more distinct values keeps three significant digits of them."""


def fit(
    source: str | os.PathLike[str],
    sample: str | os.PathLike[str] | None = None,
    note: str | None = None,
) -> Tables:
    """Make tables from the folder of a workload, or from the file of published histograms."""
    path = Path(source)
    if path.is_dir():
        if sample is not None:
            raise InputError(
                "a sample goes with the published histograms; a workload tells everything itself",
                file=path,
            )
        return fit_workload(Workload.read(path))
    if not path.exists():
        raise InputError(
            "no such file or folder; give a workload's folder or the published histograms",
            file=path,
        )
    tables = fit_published(path)
    return tables if sample is None else fit_sample(tables, Workload.read(sample), note)


def fit_sample(tables: Tables, sample: Workload, note: str | None = None) -> Tables:
    """Add what a sample tells of edges, and of what attributes have to do with each other."""
    if set(sample.resources) != set(tables.demand):
        raise InputError(
            f"the sample demands {', '.join(sample.resources)}, the tables "
            f"{', '.join(tables.demand)}",
            rule="other resources",
        )
    graphs = Graphs.of(sample)
    attributes = _attributes(sample)
    metrics = {name: attributes[name] for name in tables.attributes}
    whole = np.ones(sample.n_jobs, dtype=bool)
    if "n_lost" in sample.jobs.column_names:
        whole = sample.jobs["n_lost"].to_numpy() == 0
    provenance = {
        "source": note or f"workload {sample.meta.get('name', '')}".strip(),
        "input_sha256": sample.digest,
    }
    links = fit_links(Seen.of(graphs.take(whole)), tables)
    joint = fit_joint(graphs, metrics)
    return replace(
        tables,
        links=replace(links, provenance={**provenance, **links.provenance}),
        joint=joint and replace(joint, provenance={**provenance, **joint.provenance}),
    )


def fit_structure(graphs: Graphs, tables: Tables, own: bool = True) -> Tables:
    """Fit what DAGs are synthesized from, and nothing else."""
    seen = Seen.of(graphs)
    if own:
        pooled: list[str] = []
        tables = replace(
            tables,
            n_stages=Histogram.of(graphs.job_n_stages),
            **_conditionals(seen, pooled),
            provenance={**tables.provenance, "pooled": pooled},
        )
    return replace(tables, links=fit_links(seen, tables))


def fit_workload(workload: Workload) -> Tables:
    """Count a workload's tables.

    The length of a job's critical path is in stages; levels are the compact ones of `sim.dags`. A
    stage whose tasks differ counts with their mean duration. Cells of conditional tables that too
    few would count are pooled, as `sim.synth.alibaba2018.fit` does; provenance says which.
    """
    if workload.n_jobs < 2:
        raise InputError(
            f"a fit needs at least 2 jobs (for one interval between them), not {workload.n_jobs}"
        )
    graphs = Graphs.of(workload)
    seen = Seen.of(graphs)
    metrics = _attributes(workload)
    pooled: list[str] = []
    changed: dict[str, str] = {}

    def counted(name: str, values: NDArray[Any]) -> Histogram:
        histogram = Histogram.of(values)
        if len(histogram.values) > MOST_VALUES:
            changed[name] = f"{len(histogram.values)} values rounded to three significant digits"
            histogram = Histogram.of(_three_digits(histogram.values), histogram.counts)
        return histogram

    tables = Tables(
        n_stages=Histogram.of(graphs.job_n_stages),
        **_conditionals(seen, pooled),
        n_tasks=counted("n_tasks", metrics["n_tasks"]),
        duration_s=counted("duration_s", metrics["duration_s"]),
        interval_s=counted("interval_s", np.diff(workload.jobs["submit_s"].to_numpy())),
        demand={
            name: counted(f"demand {name}", metrics[f"demand {name}"])
            for name in workload.resources
        },
        quantum=dict(workload.quantum),
        provenance={
            "made_by": "python -m sim fit",
            "source": f"workload {workload.meta.get('name', '')}".strip(),
            "input_sha256": workload.digest,
            "counted": {"jobs": workload.n_jobs, "stages": workload.n_stages},
            "changed": changed,
            "pooled": pooled,
        },
    )
    check_tables(tables)
    return replace(tables, links=fit_links(seen, tables), joint=fit_joint(graphs, metrics))


def _conditionals(seen: Seen, pooled: list[str]) -> dict[str, Any]:
    """Count the tables of lengths and levels."""
    n_stages, owner = seen.graphs.job_n_stages, seen.graphs.stage_job
    return {
        "length": pooled_conditional("length", n_stages, seen.lengths, pooled, "jobs"),
        "level": pooled_conditional("level", seen.lengths, seen.levels, pooled, "jobs", owner),
    }


def _attributes(workload: Workload) -> dict[str, F8]:
    """Return what each stage has, in the order of `Tables.attributes`."""
    stages = workload.stages
    return {
        "duration_s": _stage_duration_s(workload),
        "n_tasks": stages["n_tasks"].to_numpy().astype(np.float64),
        **{f"demand {name}": stages[f"demand_{name}"].to_numpy() for name in workload.resources},
    }


def _stage_duration_s(workload: Workload) -> F8:
    if workload.stage_duration_s is not None:
        return workload.stage_duration_s
    task0 = workload.stage_task0
    work = np.add.reduceat(workload.tasks["duration_s"].to_numpy(), task0[:-1])
    return work / np.diff(task0)


def _three_digits(values: F8) -> F8:
    step = 10.0 ** (np.floor(np.log10(np.maximum(values, 1e-12))) - 2)
    rounded: F8 = np.round(values / step) * step
    return np.round(rounded, 12)
