"""Describe datasets: compute all statistics and tables, with those of Tian et al., SoCC 2019."""

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
from sim.describe.delays import recorded_waits
from sim.describe.fidelity import fidelity, verdict_table
from sim.describe.statistics import Description, Statistic
from sim.describe.waiting import waiting
from sim.published import numbers

TRACE = "alibaba2018"
"""``meta["name"]`` of workloads that the paper's numbers are shown for."""


def paper_numbers(data: Dataset) -> dict[tuple[str, str], float]:
    """Return the paper's numbers to show for a dataset: all, or none."""
    if data.workload is None or data.workload.meta.get("name") != TRACE:
        return {}
    return _numbers()


@cache
def _numbers() -> dict[tuple[str, str], float]:
    paper = numbers("alibaba")
    out = {
        (section, key): v for section, values in paper["trace"].items() for key, v in values.items()
    }
    for key, value in paper["durations"].items():
        relation, _, statistic = key.partition("_")
        for metric in ("duration", "span"):
            out["variability", f"{relation}_{metric}_{statistic}"] = value
    return out


def describe(
    data: Dataset, comparators: Iterable[Dataset] = (), *, half: bool = False
) -> Description:
    """Describe a dataset and its tested.

    Everything is exact; nothing is sampled.

    Parameters
    ----------
    data : Dataset
        The dataset to describe.
    comparators : iterable of Dataset
        Comparators, with distinct names.
    half : bool
        Add the table ``fidelity``: compare each comparator that is a workload with the second half
        of the one described (`sim.describe.fidelity`).

    Raises
    ------
    InputError
        If two datasets have the same name.
    """
    datasets = [data, *comparators]
    names = [d.name for d in datasets]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two datasets are called {name!r}; rename one of them")
    measures: dict[str, Sequence[Statistic]] = {}
    parts: dict[str, list[pa.Table]] = {}
    for dataset in datasets:
        measures[dataset.name], tables = _measure(dataset)
        for name, table in tables.items():
            column = pa.array([dataset.name] * table.num_rows, pa.string())
            parts.setdefault(name, []).append(table.add_column(0, "dataset", column))
    tables = {
        name: pa.concat_tables(pieces, promote_options="default").combine_chunks()
        for name, pieces in parts.items()
    }
    tested = [other for other in datasets[1:] if other.workload is not None]
    if half and not tested:
        raise InputError("--half needs a workload to compare with (--beside)", rule="wrong option")
    if half:
        tables["fidelity"] = verdict_table([(o.name, v) for o in tested for v in fidelity(data, o)])
    return Description(tuple(names), measures, {**tables, "jobs": _jobs(data)}, paper_numbers(data))


def random_comparator(data: Dataset, seed: int = 0) -> Dataset:
    """Draw a uniformly random DAG for each large job of `data`, of its number of stages (§4.2)."""
    return Dataset("random", dags.uniform_dags(data.large.job_n_stages, seed))


def _measure(data: Dataset) -> tuple[list[Statistic], dict[str, pa.Table]]:
    """Compute the statistics of one dataset, and its tables by name."""
    measured = [*overview.reading(data), *overview.overview(data), *overview.shares(data)]
    tables = {}
    if data.workload is not None:
        for section in (flow.arrivals, flow.sizes, flow.load, recorded_waits, flow.users):
            measured += section(data)
        tables["hourly"] = hourly.hourly(data)
        measured += hourly.peak_to_trough(data, tables["hourly"])
        tables["waiting"] = waiting(data)
    measured += structure.shapes(data)
    shape = structure.measure_shape(data.large)
    measured += structure.structure(data.large, shape)
    tables["quantiles"] = structure.quantiles(shape)
    tables["degrees"] = structure.degrees(data.large)
    tables["by_size"] = structure.by_size(shape)
    if data.workload is not None:
        varied = vary.variations(data)
        measured += vary.measures("variability", varied)
        tables["variability"] = vary.distributions(varied)
    kind = dags.classes(data.large)
    measured += recurrence.class_measures(kind)
    tables["classes"] = recurrence.class_table(kind)
    if data.workload is not None:
        periodic = recurrence.periodic_table(data, kind)
        measured += recurrence.periodic_measures(data, periodic)
        recurring = recurrence.recurring_variations(data, periodic)
        measured += vary.measures("recurrence", recurring, "recurring")
        tables["periodic"] = periodic
        tables["recurring"] = vary.distributions(recurring)
    level_measures, tables["levels"] = structure.levels(data)
    return measured + level_measures, tables


def _jobs(data: Dataset) -> pa.Table:
    """Return a table of the jobs' DAG properties, in the dataset's order."""
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
