"""Build of workloads and their clusters, where they are used.

A trace is parsed once and converted to Parquet, which is read from then on. This runs in a worker,
or in the driver where there are none.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.base.errors import InputError
from sim.base.masking import mask
from sweep.grid import clusters, remote, traces
from sweep.grid.clusters import SizedCluster
from sweep.grid.config_tree import canonical
from sweep.store import converted_workloads
from sweep.store.file_digests import Stamp, stamp

if TYPE_CHECKING:
    from sim.workload.workload import Workload

N_FIRST_JOBS = 3
MAX_VALUES = 1000
"""Largest number of values of a key that the description of a workload lists."""
ANSWER = "answer"

ClusterConfig = tuple[Mapping[str, Any], float]
"""Configuration of a cluster, and a capacity."""


class Clusters:
    """The clusters of one workload, each built once."""

    def __init__(self) -> None:
        self._built: dict[tuple[str, float], SizedCluster] = {}

    def get_or_build(
        self, workload: Workload, config: Mapping[str, Any], capacity: float
    ) -> SizedCluster:
        """Return the cluster of a capacity; build it for the workload on the first call.

        Raises InputError where a job does not fit it.
        """
        key = canonical(config), capacity
        if key not in self._built:
            self._built[key] = clusters.build_for(workload, config, capacity)
        return self._built[key]

    def find(self, config: Mapping[str, Any], capacity: float) -> SizedCluster | None:
        """Return the cluster of a capacity; None if it was not built."""
        return self._built.get((canonical(config), capacity))


@dataclass(frozen=True)
class Recipe:
    """Recipe of a workload: everything that it follows from, except its sources."""

    trace: Mapping[str, Any]
    cluster: Mapping[str, Any]
    converted: Path | None = None  # folder of the converted trace
    digest: str = ""  # of the content, if it was built before
    n_tasks: int = 0  # the same
    stamps: Mapping[str, Stamp] = field(default_factory=dict)  # of the files, at planning time
    fetched: Mapping[str, Path] = field(default_factory=dict)  # copies from stores, by address
    query: Callable[[Workload], Any] | None = None  # evaluated where it is converted

    @property
    def is_from_files(self) -> bool:
        """True if any part is read from files, which other machines may not see."""
        return any(traces.paths(self.trace))


@dataclass(frozen=True)
class BuiltWorkload:
    """Description and clusters of a workload that was built."""

    description: dict[str, Any]  # see `describe`
    clusters: Clusters
    n_bytes: int = 0  # size of the workload on its way to another node
    seconds: float = 0.0  # that its build took
    run_bytes: int = 0  # memory of a run on the largest cluster, like tasks moved as one
    by_task_bytes: int = 0  # the same, each task moved by itself
    node: str = ""  # Ray node that built it; empty outside Ray


def make(
    recipe: Recipe, cluster_configs: Iterable[ClusterConfig]
) -> tuple[BuiltWorkload, Workload]:
    """Build a workload and its clusters.

    Raises InputError where it can't be built, or a job does not fit one of the clusters.
    """
    from sim.cluster.fits import run_bytes  # loads Arrow: planning may do without

    begin_s = time.perf_counter()
    workload = load(recipe)
    _ = workload.columns  # computed once here, shared by all
    description, seconds = describe(workload), time.perf_counter() - begin_s
    clusters = Clusters()
    sized = [clusters.get_or_build(workload, *pair).cluster for pair in cluster_configs]
    as_one = max((run_bytes(workload, cluster) for cluster in sized), default=0)
    by_task = max((run_bytes(workload, cluster, by_task=True) for cluster in sized), default=0)
    size = _n_bytes(workload), seconds, as_one, by_task
    return BuiltWorkload(description, clusters, *size), workload


def _n_bytes(workload: Workload) -> int:
    """Return the size of a workload's tables and columns, as they are sent."""

    def size(value: object) -> int:
        if isinstance(value, Mapping):
            return sum(size(part) for part in value.values())
        n_bytes: int = getattr(value, "nbytes", 0)
        return n_bytes

    return size(workload.__getstate__())


def make_again(recipe: Recipe, digest: Callable[[], str]) -> Workload | None:
    """Build a workload on one more node.

    None where this node lacks its files, or makes another content than `digest` returns.
    """
    try:
        if recipe.converted is None:
            workload: Workload | None = load(recipe)
        else:
            workload = converted_workloads.load(recipe.converted, recipe.digest)
    except Exception:  # the first node has it in any case
        return None
    if workload is None or workload.digest != digest():
        return None
    _ = workload.columns
    return workload


def first_jobs(workload: Workload) -> Workload:
    """Return the first few jobs: they need the same kernels as all."""
    return workload.take(range(min(N_FIRST_JOBS, workload.n_jobs)))


def convert(recipe: Recipe) -> dict[str, Any]:
    """Read and convert a trace; return its description and, at `ANSWER`, the query's result."""
    workload = load(recipe)
    answer = {} if recipe.query is None else {ANSWER: recipe.query(workload)}
    return describe(workload) | answer


def load(recipe: Recipe) -> Workload:
    """Synthesize a workload, or read it: from its converted copy, else from the trace itself.

    The first reader of a trace stores the converted copy, be it a plan, a sweep or a task.

    Raises InputError where that fails, or its content differs from that of before.
    """
    if recipe.converted is not None and recipe.digest:
        workload = converted_workloads.load(recipe.converted, recipe.digest)
        if workload is not None:
            return workload
    try:
        workload = traces.prepare(recipe.trace, recipe.cluster)
    except InputError as error:
        for uri, copy in recipe.fetched.items():
            error = remote.with_address(error, uri, copy)
        raise error from None
    path = recipe.trace.get("path")
    if recipe.is_from_files and any(
        stamp(Path(file)) != was for file, was in recipe.stamps.items()
    ):
        raise InputError(
            "the trace changed while the sweep ran: run the same command again",
            file=mask(str(path)),
            rule="changed trace",
        )
    if recipe.digest not in ("", workload.digest):
        raise InputError(
            "the same files and code gave another workload before, on which cached cells ran (its "
            f"digest was {recipe.digest[:12]}, and is {workload.digest[:12]} now): the packages or "
            "the machine differ; give another paths.results=DIR",
            file=None if path is None else mask(str(path)),
            rule="changed workload",
        )
    if recipe.converted is not None:
        converted_workloads.store(workload, recipe.converted)
    return workload


def describe(workload: Workload) -> dict[str, Any]:
    """Describe a workload: digest, sizes, learnable columns, metadata, peak and steady demands."""
    from sim.cluster.load import amounts_for_load  # loads Arrow, as any workload has
    from sim.transforms.time_limits import share_beyond_limits
    from sim.workload.history import available_data
    from sim.workload.peaks import MAX_STAGES, peak_demands

    meta = {key: value for key, value in workload.meta.items() if key != "quantum"}
    description = {
        "digest": workload.digest,
        "n_jobs": workload.n_jobs,
        "n_stages": workload.n_stages,
        "n_tasks": workload.n_tasks,
        "learnable": available_data(workload.jobs, workload.stages, workload.history),
        "meta": meta,
    }
    if workload.n_stages <= MAX_STAGES:
        description["peaks"] = peak_demands(workload)
        description["busy"] = amounts_for_load(workload.inflow, 1.0)
        description["beyond_limits"] = share_beyond_limits(workload)
    description["values"] = _values_of_keys(workload)
    plain: dict[str, Any] = json.loads(canonical(description))  # as it will be read back
    return plain


def _values_of_keys(workload: Workload) -> dict[str, list[str]]:
    """Return the values of jobs by key of limits, of keys with at most `MAX_VALUES`."""
    from sim.cluster.caps import KEYS  # loads Arrow, as any workload has

    columns = {key: workload.jobs[key] for key in KEYS if key in workload.jobs.column_names}
    values = {key: column.unique().to_pylist() for key, column in columns.items()}
    return {key: [*map(str, v)] for key, v in values.items() if len(v) <= MAX_VALUES}
