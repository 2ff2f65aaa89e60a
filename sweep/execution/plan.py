"""Before anything runs: every cell's key, what is cached, and whether the rest can run."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sim.base.masking import mask_tree
from sweep.execution.inputs import Inputs
from sweep.execution.made import unsized
from sweep.grid import clusters
from sweep.grid.config_tree import canonical
from sweep.grid.grid import Cell, Grid
from sweep.store import sources
from sweep.store.cache import Cache
from sweep.store.cell import CellSpec
from sweep.store.sources.closure import Table


class Memo:
    """What a function makes of an object, made once for each object (not for each equal one)."""

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self._make = make
        self._made: dict[int, tuple[object, Any]] = {}  # an object that is kept keeps its id

    def __call__(self, part: object) -> Any:
        """Return what was made of an object, made now if it was not before."""
        found = self._made.get(id(part))
        if found is None:
            found = self._made[id(part)] = (part, self._make(part))
        return found[1]


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
    late: set[str] = field(default_factory=set)  # workloads whose cells' keys are of recipes
    masked: Memo = field(default_factory=lambda: Memo(mask_tree))  # parts of cells, no secrets
    policies: Memo = field(default_factory=lambda: Memo(named))  # as they stand in keys
    texts: Memo = field(default_factory=lambda: Memo(canonical))

    def todo(self) -> list[Planned]:
        """Cells that are not cached, one for each key."""
        waiting = {cell.key: cell for cell in self.planned if cell.key not in self.metrics}
        return list(waiting.values())


def named(policy: Mapping[str, Any]) -> str:
    """Write what of a policy stands in a key: not where its module lies."""
    return canonical({"name": policy["name"], "params": policy["params"]})


def key_of(
    policy: str,
    cluster: str,
    measure: str,
    capacity: float,
    seed: int,
    workload: str,
    sources: str,
) -> str:
    """SHA-256 of all that a cell's numbers follow from: its configuration and two digests.

    Parts come as canonical texts and stand in the order of names.
    """
    content = (
        f'{{"capacity":{canonical(capacity)},"cluster":{cluster},"measure":{measure},'
        f'"policy":{policy},"seed":{canonical(seed)},"sources":{canonical(sources)},'
        f'"workload":{canonical(workload)}}}'
    )
    return hashlib.sha256(content.encode()).hexdigest()


def prepare(grid: Grid, inputs: Inputs | None = None) -> Prepared:
    """Find every cell's key and look it up in the cache.

    Workloads are loaded only where nothing is known of them; those of `inputs`, if they are given,
    are there already. Where those defer, the key of a cell whose workload was never made is of its
    recipe until it is `settled`.
    """
    results = grid.request.settings.results
    cache = Cache(results)
    inputs = Inputs(results) if inputs is None else inputs
    # a policy, a cluster, a measure is one object to all cells that share it
    policies, texts = Memo(named), Memo(canonical)
    digests: dict[tuple[int, int], str] = {}
    planned, names, late = [], [], set()
    for row, cell in enumerate(grid.cells):
        name = inputs.id_of(cell)
        workload = inputs.content(name)
        source = digests.get((id(cell.policy), id(cell.measure)), "")
        if not source:
            source = digests[id(cell.policy), id(cell.measure)] = source_of(cell)
        parts = (policies(cell.policy), texts(cell.cluster), texts(cell.measure))
        key = key_of(*parts, cell.capacity, cell.seed, workload, source)
        if workload == name:
            late.add(name)
        called = inputs.named(name)
        of_id = (
            key if called == workload else key_of(*parts, cell.capacity, cell.seed, called, source)
        )
        names.append(of_id)
        planned.append(Planned(row, cell, key, name))
    sweep = sweep_id(grid, names)
    prepared = Prepared(grid, sweep, planned, inputs, cache, late=late)
    for key in cache.among(dict.fromkeys(each.key for each in planned)):
        metrics = cache.metrics(key)
        if metrics is not None:
            prepared.metrics[key] = metrics
    return prepared


def settled(prepared: Prepared, planned: Planned) -> Planned:
    """Return a cell with the key of its content, where its workload is known by now; keep it so."""
    about = prepared.inputs.known(planned.input) if planned.input in prepared.late else None
    if about is None:
        return prepared.planned[planned.row]
    cell, texts = planned.cell, prepared.texts
    parts = (prepared.policies(cell.policy), texts(cell.cluster), texts(cell.measure))
    key = key_of(*parts, cell.capacity, cell.seed, about["digest"], source_of(cell))
    prepared.planned[planned.row] = found = replace(planned, key=key)
    return found


def settle(prepared: Prepared) -> None:
    """Give every cell the key of its content, where its workload is known by now."""
    for planned in [each for each in prepared.planned if each.input in prepared.late]:
        settled(prepared, planned)
    prepared.late -= {name for name in prepared.late if prepared.inputs.known(name) is not None}


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
    content: dict[str, Any] = {
        "rows": rows,
        "baseline": request.baseline,
        "metrics": request.metrics,
    }
    if request.verdict_metric is not None:
        content["verdict"] = request.verdict_metric
    digest = hashlib.sha256(canonical(content).encode()).hexdigest()
    name = (request.name or request.experiment or "sweep").replace("/", "-")
    return f"{name}-{digest[:8]}"


def specs(prepared: Prepared) -> Iterator[tuple[Planned, CellSpec]]:
    """Size the cluster of every cell that has to run, and check that its workload fits.

    For a workload of a recipe whoever makes it does so; see `sweep.execution.made`.
    """
    sized: dict[str, Mapping[str, Any]] = {}
    inputs = prepared.inputs
    todo = prepared.todo()
    order = {name: at for at, name in enumerate(dict.fromkeys(planned.input for planned in todo))}
    for planned in sorted(todo, key=lambda planned: order[planned.input]):
        cell = planned.cell
        world = canonical([planned.input, cell.cluster, cell.capacity])
        if world not in sized and inputs.recipe(planned.input) is not None:
            sized[world] = unsized(cell.cluster, cell.capacity)
        elif world not in sized:
            workload = inputs.workload(planned.input)
            sized[world] = clusters.size(workload, cell.cluster, cell.capacity)
        source = source_of(cell)
        about = (cell.policy, sized[world], cell.measure, cell.seed, source)
        yield planned, CellSpec(planned.key, *about)


def kept_config(prepared: Prepared, planned: Planned) -> dict[str, Any]:
    """Everything that a cell's key was made of, and its trace, to be kept beside its result."""
    masked, parts = prepared.masked, planned.cell.config
    return {
        **{key: masked(part) if isinstance(part, dict) else part for key, part in parts.items()},
        "workload": prepared.inputs.content(planned.input),
        "sources": source_of(planned.cell),
    }
