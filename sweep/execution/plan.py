"""Before anything runs: every cell's key, what is cached, and whether the rest can run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sim.base.masking import mask_tree
from sweep.execution.inputs import Inputs
from sweep.grid import clusters
from sweep.grid.config_tree import canonical
from sweep.grid.grid import Cell, Grid
from sweep.store import sources
from sweep.store.cache import Cache
from sweep.store.cell import CellSpec
from sweep.store.sources.closure import Table


@dataclass(frozen=True)
class Planned:
    """A cell with its key."""

    row: int  # its place in the grid
    cell: Cell
    key: str  # see `key_of`
    input: str  # name of its workload in `Inputs`


@dataclass
class Prepared:
    """A grid that is ready to run."""

    grid: Grid
    sweep: str  # its id; see `sweep_id`
    planned: list[Planned]  # a cell each, in the order of the rows
    inputs: Inputs
    cache: Cache
    metrics: dict[str, dict[str, float]] = field(default_factory=dict)  # of cached cells, by key

    def todo(self) -> list[Planned]:
        """Cells that are not cached, one for each key."""
        waiting = {cell.key: cell for cell in self.planned if cell.key not in self.metrics}
        return list(waiting.values())


def key_of(
    policy: Mapping[str, Any],
    cluster: Mapping[str, Any],
    measure: Mapping[str, Any],
    capacity: float,
    seed: int,
    workload: str,
    sources: str,
) -> str:
    """SHA-256 of all that a cell's numbers follow from: its configuration and two digests."""
    content = {
        "policy": {"name": policy["name"], "params": policy["params"]},
        "cluster": cluster,
        "measure": measure,
        "capacity": capacity,
        "seed": seed,
        "workload": workload,
        "sources": sources,
    }
    return hashlib.sha256(canonical(content).encode()).hexdigest()


def prepare(grid: Grid) -> Prepared:
    """Find every cell's key and look it up in the cache.

    Workloads are loaded only where nothing is known of them.
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
    sweep = sweep_id(grid, [each.key for each in planned])
    prepared = Prepared(grid, sweep, planned, inputs, cache)
    for key in dict.fromkeys(each.key for each in planned):
        metrics = cache.metrics(key)
        if metrics is not None:
            prepared.metrics[key] = metrics
    return prepared


def source_of(cell: Cell) -> str:
    """Digest of the sources that a cell's numbers come from."""
    return sources.of_cell(cell.policy, cell.measure)


def table_of(cell: Cell) -> Table:
    """Digests of those sources by module."""
    return sources.table_of_cell(cell.policy, cell.measure)


def sweep_id(grid: Grid, keys: list[str]) -> str:
    """Name a sweep by its cells, their labels, the baseline and what its tables show."""
    request = grid.request
    rows = [[cell.labels, key] for cell, key in zip(grid.cells, keys, strict=True)]
    content = {"rows": rows, "baseline": request.baseline, "metrics": request.metrics}
    digest = hashlib.sha256(canonical(content).encode()).hexdigest()
    name = (request.name or request.experiment or "sweep").replace("/", "-")
    return f"{name}-{digest[:8]}"


def specs(prepared: Prepared) -> Iterator[tuple[Planned, CellSpec]]:
    """Size the cluster of every cell that has to run, and check that its workload fits."""
    sized: dict[str, Mapping[str, Any]] = {}
    todo = prepared.todo()
    order = {name: at for at, name in enumerate(dict.fromkeys(planned.input for planned in todo))}
    for planned in sorted(todo, key=lambda planned: order[planned.input]):
        cell = planned.cell
        world = canonical([planned.input, cell.cluster, cell.capacity])
        if world not in sized:
            workload = prepared.inputs.workload(planned.input)
            sized[world] = clusters.size(workload, cell.cluster, cell.capacity)
        source = source_of(cell)
        about = (cell.policy, sized[world], cell.measure, cell.seed, source)
        yield planned, CellSpec(planned.key, *about)


def kept_config(prepared: Prepared, planned: Planned) -> dict[str, Any]:
    """Everything that a cell's key was made of, and its trace, to be kept beside its result."""
    return {
        **mask_tree(planned.cell.config),
        "workload": prepared.inputs.describe(planned.input)["digest"],
        "sources": source_of(planned.cell),
    }
