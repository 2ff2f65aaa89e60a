"""Before anything runs: every cell's key, what is cached, and whether the rest can run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sweep.grid import clusters
from sweep.grid.grid import Cell, Grid
from sweep.grid.masking import mask_tree
from sweep.run.cell import CellSpec, canonical, key_of
from sweep.run.inputs import Inputs
from sweep.store import closure, sources
from sweep.store.cache import Cache


@dataclass(frozen=True)
class Planned:
    """A cell with its key.

    Attributes
    ----------
    row : int
        Its place in the grid.
    cell : Cell
        Its configuration.
    key : str
        See `sweep.run.cell.key_of`.
    input : str
        Name of its workload in `Inputs`.
    """

    row: int
    cell: Cell
    key: str
    input: str


@dataclass
class Prepared:
    """A grid that is ready to run.

    Attributes
    ----------
    grid : Grid
        What was asked for.
    sweep : str
        Id: the experiment's name and a digest of everything that the results follow from.
    planned : list of Planned
        A cell each, in the order of the rows.
    metrics : dict of str to dict
        Metrics of the cells that are cached, by key.
    inputs : Inputs
        Workloads.
    cache : Cache
        Results.
    """

    grid: Grid
    sweep: str
    planned: list[Planned]
    inputs: Inputs
    cache: Cache
    metrics: dict[str, dict[str, float]] = field(default_factory=dict)

    def todo(self) -> list[Planned]:
        """Cells that are not cached, one for each key."""
        waiting = {one.key: one for one in self.planned if one.key not in self.metrics}
        return list(waiting.values())


def prepare(grid: Grid) -> Prepared:
    """Find every cell's key and look it up in the cache.

    Workloads are loaded only where nothing is known of them.

    Raises
    ------
    InputError
        If a workload can't be loaded.
    """
    results = grid.request.settings.results
    inputs, cache = Inputs(results), Cache(results)
    planned = []
    for row, cell in enumerate(grid.cells):
        name = inputs.id_of(cell)
        workload = inputs.describe(name)["digest"]
        source = source_of(cell)
        about = (cell.policy, cell.cluster, cell.measure, cell.capacity, cell.seed)
        key = key_of(*about, workload, source)
        planned.append(Planned(row, cell, key, name))
    prepared = Prepared(grid, sweep_id(grid, [one.key for one in planned]), planned, inputs, cache)
    for key in dict.fromkeys(one.key for one in planned):
        found = cache.metrics(key)
        if found is not None:
            prepared.metrics[key] = found
    return prepared


def source_of(cell: Cell) -> str:
    """Digest of the sources that a cell's numbers come from."""
    return sources.of_cell(cell.policy, cell.measure)


def table_of(cell: Cell) -> closure.Table:
    """Digests of those sources by module."""
    return sources.table_of_cell(cell.policy, cell.measure)


def sweep_id(grid: Grid, keys: list[str]) -> str:
    """Name a sweep by its cells, their labels, the baseline and what its tables show."""
    request = grid.request
    rows = [[cell.labels, key] for cell, key in zip(grid.cells, keys, strict=True)]
    content = {"rows": rows, "baseline": request.baseline, "metrics": request.metrics}
    digest = hashlib.sha256(canonical(content).encode()).hexdigest()
    name = (request.experiment or "sweep").replace("/", "-")
    return f"{name}-{digest[:8]}"


def specs(prepared: Prepared) -> Iterator[tuple[Planned, CellSpec]]:
    """Size the cluster of every cell that has to run, and check that its workload fits.

    Raises
    ------
    InputError
        If a job's demand or gang does not fit, naming the job.
    """
    sized: dict[str, Mapping[str, Any]] = {}
    todo = prepared.todo()
    order = {name: at for at, name in enumerate(dict.fromkeys(one.input for one in todo))}
    for one in sorted(todo, key=lambda one: order[one.input]):
        cell = one.cell
        world = canonical([one.input, cell.cluster, cell.capacity])
        if world not in sized:
            workload = prepared.inputs.workload(one.input)
            sized[world] = clusters.size(workload, cell.cluster, cell.capacity)
        source = source_of(cell)
        about = (cell.policy, sized[world], cell.measure, cell.seed, source)
        yield one, CellSpec(one.key, *about)


def kept_config(prepared: Prepared, one: Planned) -> dict[str, Any]:
    """Everything that a cell's key was made of, and its trace, to be kept beside its result."""
    return {
        **mask_tree(one.cell.config),
        "workload": prepared.inputs.describe(one.input)["digest"],
        "sources": source_of(one.cell),
    }
