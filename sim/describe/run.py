"""Measuring everything, of every dataset, beside what Tian et al., SoCC 2019, report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np
import pyarrow as pa

from sim import dags
from sim.base.errors import InputError
from sim.describe import flow, hourly, overview, recurrence, structure
from sim.describe import variability as vary
from sim.describe.dataset import Dataset
from sim.describe.fidelity import fidelity, to_table
from sim.describe.statistics import Description, Statistic
from sim.published import numbers

TRACE = "alibaba2018"
"""``meta["name"]`` of the workloads that the numbers are shown beside."""


def of_paper(data: Dataset) -> dict[tuple[str, str], float]:
    """Return the paper's numbers to show beside a dataset: all, or none."""
    if data.workload is None or data.workload.meta.get("name") != TRACE:
        return {}
    return _numbers()


@cache
def _numbers() -> dict[tuple[str, str], float]:
    paper = numbers("alibaba")
    found = {(section, key): v for section, of in paper["trace"].items() for key, v in of.items()}
    for kind in ("jobs", "stages", "tasks"):
        part = found["overview", f"{kind}_with"] / found["overview", kind]
        found["dependencies", f"any_{kind}"] = part
    for key, value in paper["durations"].items():
        of, _, what = key.partition("_")
        for metric in ("duration", "span"):
            found["variability", f"{of}_{metric}_{what}"] = value
    return found


def describe(data: Dataset, beside: Iterable[Dataset] = (), *, half: bool = False) -> Description:
    """Measure a dataset, and others to stand beside it.

    Everything is exact; nothing is sampled.

    Parameters
    ----------
    data : Dataset
        What is described.
    beside : iterable of Dataset
        Comparators, under names of their own.
    half : bool
        Whether the table ``fidelity`` holds those that are workloads against the second half of
        the one described (`sim.describe.fidelity`).

    Raises
    ------
    InputError
        If two datasets have the same name.
    """
    datasets = [data, *beside]
    names = [d.name for d in datasets]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two datasets are called {name!r}; give one of them another name")
    measures: dict[str, Sequence[Statistic]] = {}
    parts: dict[str, list[pa.Table]] = {}
    for dataset in datasets:
        measures[dataset.name], tables = _measured(dataset)
        for name, table in tables.items():
            column = pa.array([dataset.name] * table.num_rows, pa.string())
            parts.setdefault(name, []).append(table.add_column(0, "dataset", column))
    tables = {
        name: pa.concat_tables(pieces, promote_options="default").combine_chunks()
        for name, pieces in parts.items()
    }
    others = [other for other in datasets[1:] if other.workload is not None]
    if half and not others:
        raise InputError("there is no workload beside that could be alike", rule="wrong option")
    if half:
        tables["fidelity"] = to_table([(o.name, v) for o in others for v in fidelity(data, o)])
    return Description(tuple(names), measures, {**tables, "jobs": _jobs(data)}, of_paper(data))


def random_beside(data: Dataset, seed: int = 0) -> Dataset:
    """Draw a uniformly random DAG for each large job of `data`, of its number of stages (§4.2)."""
    return Dataset("random", dags.uniform_dags(data.large.job_n_stages, seed))


def _measured(data: Dataset) -> tuple[list[Statistic], dict[str, pa.Table]]:
    """Measure one dataset: numbers, and tables by name."""
    numbers = [*overview.reading(data), *overview.overview(data), *overview.shares(data)]
    tables = {}
    if data.workload is not None:
        for section in (flow.arrivals, flow.sizes, flow.load, flow.users):
            numbers += section(data)
        tables["hourly"] = hourly.hourly(data)
        numbers += hourly.peak_to_trough(data, tables["hourly"])
    numbers += structure.shapes(data)
    shape = structure.shape(data.large)
    numbers += structure.structure(data.large, shape)
    tables["quantiles"] = structure.quantiles(shape)
    tables["degrees"] = structure.degrees(data.large)
    tables["by_size"] = structure.by_size(shape)
    if data.workload is not None:
        varied = vary.variations(data)
        numbers += vary.measures("variability", varied)
        tables["variability"] = vary.distributions(varied)
    kind = dags.classes(data.large)
    numbers += recurrence.class_measures(kind)
    tables["classes"] = recurrence.class_table(kind)
    if data.workload is not None:
        periodic = recurrence.periodic_table(data, kind)
        numbers += recurrence.periodic_measures(data, periodic)
        recurring = recurrence.recurring_variations(data, periodic)
        numbers += vary.measures("recurrence", recurring, "recurring")
        tables["periodic"] = periodic
        tables["recurring"] = vary.distributions(recurring)
    level_measures, tables["levels"] = structure.levels(data)
    return numbers + level_measures, tables


def _jobs(data: Dataset) -> pa.Table:
    """Return what is known of each job: a row a job, in the dataset's order."""
    graphs = data.every
    columns = {
        "whole": data.whole,
        "n_stages": graphs.job_n_stages,
        "n_edges": graphs.job_n_edges,
        "edge_density": dags.edge_density(graphs),
        "chain_ratio": dags.chain_ratio(graphs),
        "width": dags.width(graphs),
        "critical_path_length": dags.critical_path_length(graphs),
        "is_scatter": dags.is_scatter(graphs),
        "is_gather": dags.is_gather(graphs),
        "isomorphism_class": dags.classes(graphs),
    }
    if data.workload is not None:
        return pa.table({"job_id": data.workload.jobs["job_id"], **columns})
    return pa.table({"job_id": np.arange(graphs.n_jobs).astype(str), **columns})
