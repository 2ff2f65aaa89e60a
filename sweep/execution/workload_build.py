"""Workloads made where they are used: from a recipe, looked at, and clusters built for them.

A trace that is read is parsed once, and converted to Parquet that is read from then on. Runs in a
worker, or in the driver where there are none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.base.errors import InputError
from sim.base.masking import mask
from sweep.grid import clusters, remote, traces
from sweep.grid.clusters import Built
from sweep.grid.config_tree import canonical
from sweep.store import converted_workloads
from sweep.store.file_digests import Stamp, stamp

if TYPE_CHECKING:
    from sim.workload.workload import Workload

FEW_JOBS = 3
ANSWER = "answer"

World = tuple[Mapping[str, Any], float]
"""Configuration of a cluster, and a capacity."""


class Clusters:
    """The clusters of one workload, each built once."""

    def __init__(self) -> None:
        self._built: dict[tuple[str, float], Built] = {}

    def get_or_build(self, workload: Workload, config: Mapping[str, Any], capacity: float) -> Built:
        """Return the cluster of a capacity, built for the workload unless it was before.

        Raises InputError where a job does not fit it.
        """
        world = canonical(config), capacity
        if world not in self._built:
            self._built[world] = clusters.build_for(workload, config, capacity)
        return self._built[world]

    def find(self, config: Mapping[str, Any], capacity: float) -> Built | None:
        """Return the cluster of a capacity; None if it was not built."""
        return self._built.get((canonical(config), capacity))


@dataclass(frozen=True)
class Recipe:
    """What a workload follows from, its sources apart."""

    trace: Mapping[str, Any]
    cluster: Mapping[str, Any]
    kept: Path | None = None  # where a trace that is read lies once it is converted
    digest: str = ""  # of the content, where it was made before
    n_tasks: int = 0  # the same
    stamps: Mapping[str, Stamp] = field(default_factory=dict)  # of the files, as planned with
    fetched: Mapping[str, Path] = field(default_factory=dict)  # copies from stores, by address
    question: Callable[[Workload], Any] | None = None  # to be answered where it is converted

    @property
    def is_read(self) -> bool:
        """Whether it is read from files, which other machines may not see."""
        return "synth" not in self.trace


@dataclass(frozen=True)
class BuiltWorkload:
    """What is known of a workload once it is made."""

    about: dict[str, Any]  # see `describe`
    clusters: Clusters


def make(recipe: Recipe, wanted: Iterable[World]) -> tuple[BuiltWorkload, Workload]:
    """Make a workload and build the wanted clusters for it.

    Raises InputError where it can't be made, or does not fit one of them.
    """
    workload = load(recipe)
    _ = workload.columns  # computed once here, shared by all
    made = BuiltWorkload(describe(workload), Clusters())
    for config, capacity in wanted:
        made.clusters.get_or_build(workload, config, capacity)
    return made, workload


def first_jobs(workload: Workload) -> Workload:
    """Return its first jobs: what kernels they need is what all need."""
    return workload.take(range(min(FEW_JOBS, workload.n_jobs)))


def convert(recipe: Recipe) -> dict[str, Any]:
    """Read a trace, keep what it comes to, and describe that, with the `ANSWER` to a question."""
    workload = load(recipe)
    answer = {} if recipe.question is None else {ANSWER: recipe.question(workload)}
    return describe(workload) | answer


def load(recipe: Recipe) -> Workload:
    """Draw a workload, or read it: from what is kept of its trace, else from the trace itself.

    What a trace comes to is kept, whoever reads it first: a plan, a sweep, a task of it.

    Raises InputError where that fails, or its content is another than it was before.
    """
    if recipe.kept is not None and recipe.digest:
        found = converted_workloads.load(recipe.kept, recipe.digest)
        if found is not None:
            return found
    try:
        workload = traces.prepare(recipe.trace, recipe.cluster)
    except InputError as error:
        for uri, copy in recipe.fetched.items():
            error = remote.blame(error, uri, copy)
        raise error from None
    path = recipe.trace.get("path")
    if recipe.is_read and any(stamp(Path(file)) != was for file, was in recipe.stamps.items()):
        raise InputError(
            "the trace has changed since the sweep began: run the same command again",
            file=mask(str(path)),
            rule="changed trace",
        )
    if recipe.digest not in ("", workload.digest):
        raise InputError(
            "the same files and sources have made another workload before, which cached cells are "
            f"of (its digest was {recipe.digest[:12]}, and is {workload.digest[:12]} now): the "
            "packages or the machine differ; give another paths.results=DIR",
            file=None if path is None else mask(str(path)),
            rule="changed workload",
        )
    if recipe.kept is not None:
        converted_workloads.store(workload, recipe.kept)
    return workload


def describe(workload: Workload) -> dict[str, Any]:
    """Describe a workload as it is remembered."""
    from sim.workload.history import available_data  # loads Arrow, which a workload has loaded

    meta = {key: value for key, value in workload.meta.items() if key != "quantum"}
    about = {
        "digest": workload.digest,
        "n_jobs": workload.n_jobs,
        "n_stages": workload.n_stages,
        "n_tasks": workload.n_tasks,
        "learnable": available_data(workload.jobs, workload.stages, workload.history),
        "meta": meta,
    }
    plain: dict[str, Any] = json.loads(canonical(about))  # as it will be read back
    return plain
