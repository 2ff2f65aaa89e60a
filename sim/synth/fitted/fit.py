"""Fit probability tables to any workload."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base import maths
from sim.base.arrays import F8
from sim.base.errors import InputError
from sim.dags import Graphs
from sim.synth.fitted.arrivals import fit_arrivals
from sim.synth.fitted.draw_joint import longest_over_mean
from sim.synth.fitted.fit_links import ObservedDags, fit_links
from sim.synth.fitted.fit_sizes import fit_by_size
from sim.synth.fitted.histograms import Histogram, pooled_conditional
from sim.synth.fitted.tables import Tables
from sim.workload.workload import Workload

MAX_VALUES = 16_384
"""Maximum number of distinct values of a table; beyond it values are rounded to three digits."""
EQUAL_RATIO = 1.0 + 1e-9
"""Ratio of the longest task to the mean up to which the tasks of a stage count as equally long."""


def fit_structure(graphs: Graphs, tables: Tables, sizes: bool = True) -> Tables:
    """Fit only the tables of DAGs: links and, with `sizes`, those of stages, lengths and levels."""
    dags = ObservedDags.observe(graphs)
    if sizes:
        pooled: list[str] = []
        tables = replace(
            tables,
            n_stages=Histogram.count(graphs.job_n_stages),
            **_conditionals(dags, pooled),
            provenance={**tables.provenance, "pooled": pooled},
        )
    return replace(tables, links=fit_links(dags, tables))


def fit_workload(workload: Workload, joint: bool = True) -> Tables:
    """Fit tables to a workload; a stage's duration is the mean over its tasks.

    Fitting the joint distribution takes most of the time; without it attributes are independent.
    """
    if workload.n_jobs < 2:
        raise InputError(
            f"a fit needs at least 2 jobs (for one interval between them), not {workload.n_jobs}"
        )
    graphs = Graphs.from_workload(workload)
    dags = ObservedDags.observe(graphs)
    metrics = stage_attributes(workload)
    pooled: list[str] = []
    changed: dict[str, str] = {}

    def counted(name: str, values: NDArray[Any]) -> Histogram:
        histogram = Histogram.count(values)
        if len(histogram.values) > MAX_VALUES:
            changed[name] = f"{len(histogram.values)} values rounded to three significant digits"
            histogram = Histogram.count(_three_digits(histogram.values), histogram.counts)
        return histogram

    submit_s = workload.jobs["submit_s"].to_numpy()
    tables = Tables(
        n_stages=Histogram.count(graphs.job_n_stages),
        **_conditionals(dags, pooled),
        n_tasks=counted("n_tasks", metrics["n_tasks"]),
        duration_s=counted("duration_s", metrics["duration_s"]),
        interval_s=counted("interval_s", np.diff(submit_s)),
        demand={
            name: counted(f"demand {name}", metrics[f"demand {name}"])
            for name in workload.resources
        },
        longest=counted("longest", metrics["longest"]) if "longest" in metrics else None,
        arrivals=fit_arrivals(submit_s),
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
    tables.check()
    by_size = fit_by_size(graphs, metrics, counted) if joint else None
    return replace(tables, links=fit_links(dags, tables), by_size=by_size)


def _conditionals(dags: ObservedDags, pooled: list[str]) -> dict[str, Any]:
    """Count the tables of lengths and levels."""
    n_stages, owner = dags.graphs.job_n_stages, dags.graphs.stage_job
    return {
        "length": pooled_conditional("length", n_stages, dags.lengths, pooled, "jobs"),
        "level": pooled_conditional("level", dags.lengths, dags.levels, pooled, "jobs", owner),
    }


def stage_attributes(workload: Workload) -> dict[str, F8]:
    """Return the attributes of each stage, in the order of `Tables.attributes`."""
    stages = workload.stages
    longest = {}
    if workload.stage_duration_s is None:
        ratio = longest_over_mean(workload.tasks["duration_s"].to_numpy(), workload.stage_task0)
        longest = {"longest": ratio} if (ratio > EQUAL_RATIO).any() else {}
    return {
        "duration_s": _stage_duration_s(workload),
        "n_tasks": stages["n_tasks"].to_numpy().astype(np.float64),
        **{f"demand {name}": stages[f"demand_{name}"].to_numpy() for name in workload.resources},
        **longest,
    }


def _stage_duration_s(workload: Workload) -> F8:
    if workload.stage_duration_s is not None:
        return workload.stage_duration_s
    task0 = workload.stage_task0
    work = np.add.reduceat(workload.tasks["duration_s"].to_numpy(), task0[:-1])
    return work / np.diff(task0)


LOG_10 = 2.302585092994046


def _three_digits(values: F8) -> F8:
    step = maths.power(10.0, np.floor(maths.log(np.maximum(values, 1e-12)) / LOG_10 + 1e-12) - 2)
    rounded: F8 = np.round(values / step) * step
    return np.round(rounded, 12)
