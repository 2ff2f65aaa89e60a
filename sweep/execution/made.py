"""Workloads made where they are used: from a recipe, looked at, and clusters sized for them.

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
from sweep.grid.config_tree import canonical
from sweep.store import converted

if TYPE_CHECKING:
    from sim.workload.workload import Workload
    from sweep.store.cell import CellSpec

FEW_JOBS = 3
ANSWER = "answer"
_UNSIZED = "unsized"

Sizes = Mapping[str, Mapping[str, Any]]
"""Sized clusters by what `unsized` says of them."""


@dataclass(frozen=True)
class Recipe:
    """What a workload follows from, its sources apart."""

    trace: Mapping[str, Any]
    cluster: Mapping[str, Any]
    kept: Path | None = None  # where a trace that is read lies once it is converted
    digest: str = ""  # of what is read, where that is known
    n_tasks: int = 0  # the same
    fetched: Mapping[str, Path] = field(default_factory=dict)  # copies from stores, by address
    question: Callable[[Workload], Any] | None = None  # to be answered where it is converted

    @property
    def is_read(self) -> bool:
        """Whether it is read from files, which other machines may not see."""
        return "synth" not in self.trace


@dataclass(frozen=True)
class Made:
    """What is known of a workload once it is made."""

    about: dict[str, Any]  # see `describe`
    sizes: Sizes


def make(recipe: Recipe, wanted: Iterable[str]) -> tuple[Made, Workload]:
    """Make a workload and size the wanted clusters for it.

    Raises InputError where it can't be made, or does not fit one of them.
    """
    workload = load(recipe)
    _ = workload.columns  # computed once here, shared by all
    sizes = {one: size(workload, one) for one in wanted}
    return Made(describe(workload), sizes), workload


def few_of(workload: Workload) -> Workload:
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

    Raises InputError where that fails, or its content is another than what was planned with.
    """
    if recipe.kept is not None and recipe.digest:
        found = converted.find(recipe.kept, recipe.digest)
        if found is not None:
            return found
    try:
        workload = traces.prepare(recipe.trace, recipe.cluster)
    except InputError as error:
        for uri, copy in recipe.fetched.items():
            error = remote.blame(error, uri, copy)
        raise error from None
    if recipe.digest not in ("", workload.digest):
        raise InputError(
            "the trace has changed since the sweep began: run the same command again",
            file=mask(str(recipe.trace.get("path"))),
            rule="changed trace",
        )
    if recipe.kept is not None:
        converted.keep(workload, recipe.kept)
    return workload


def describe(workload: Workload) -> dict[str, Any]:
    """Describe a workload as it is remembered."""
    from sim.workload.past import learnable  # loads Arrow, which a workload has loaded

    meta = {key: value for key, value in workload.meta.items() if key != "quantum"}
    about = {
        "digest": workload.digest,
        "n_jobs": workload.n_jobs,
        "n_stages": workload.n_stages,
        "n_tasks": workload.n_tasks,
        "learnable": learnable(workload.jobs, workload.stages, workload.history),
        "meta": meta,
    }
    plain: dict[str, Any] = json.loads(canonical(about))  # as it will be read back
    return plain


def unsized(cluster: Mapping[str, Any], capacity: float) -> dict[str, str]:
    """Stand for the cluster of a cell whose workload is not there to size it for."""
    return {_UNSIZED: canonical([cluster, capacity])}


def wanted_by(spec: CellSpec) -> str | None:
    """Say what of a cell is to be sized; None if it is."""
    found: str | None = spec.cluster.get(_UNSIZED)
    return found


def size(workload: Workload, wanted: str) -> dict[str, Any]:
    """Size a cluster that stands unsized."""
    cluster, capacity = json.loads(wanted)
    return clusters.size(workload, cluster, capacity)


def sized(spec: CellSpec, sizes: Sizes) -> CellSpec:
    """Return a cell with its cluster sized."""
    wanted = wanted_by(spec)
    return spec if wanted is None else spec._replace(cluster=sizes[wanted])


def fitted(spec: CellSpec, workload: Workload) -> CellSpec:
    """Return a cell with its cluster sized for its workload."""
    wanted = wanted_by(spec)
    return spec if wanted is None else sized(spec, {wanted: size(workload, wanted)})
