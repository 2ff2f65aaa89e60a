"""Before anything runs: every cell's key, what is cached, and whether the rest can run."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from sim.base.masking import mask_tree
from sweep.execution.inputs import Inputs
from sweep.execution.keys import digest_of, key_of, named
from sweep.execution.known import Flags, Metrics, Rows
from sweep.execution.made import unsized
from sweep.grid import clusters
from sweep.grid.cells import Lazy
from sweep.grid.config_tree import canonical
from sweep.grid.grid import Cell, Grid
from sweep.store import sources
from sweep.store.cache import Cache
from sweep.store.cell import CellSpec
from sweep.store.index import Keys, Places, as_keys
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


class Planned(NamedTuple):
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
    inputs: Inputs
    cache: Cache
    keys: Keys  # of each row
    of_input: Places  # of each row which workload, by a number
    firsts: Sequence[int]  # rows of `first`
    metrics: Metrics  # of cells that are kept, by key
    late: set[str] = field(default_factory=set)  # workloads whose cells' keys are of recipes
    masked: Memo = field(default_factory=lambda: Memo(mask_tree))  # parts of cells, no secrets
    policies: Memo = field(default_factory=lambda: Memo(named))  # as they stand in keys
    texts: Memo = field(default_factory=lambda: Memo(canonical))

    @property
    def planned(self) -> Lazy[Planned]:
        """A cell each, in the order of the rows."""
        return Lazy(len(self.keys), self._row)

    def _row(self, row: int) -> Planned:
        cell = self.grid.cells[row]
        key = self.keys[row : row + 1].tobytes().hex()
        return Planned(row, cell, key, self.inputs.id_of(cell))

    @property
    def first(self) -> list[Planned]:
        """Those cells in which more than a capacity or a seed comes for the first time."""
        return [self._row(row) for row in self.firsts]

    def shown(self, cell: Cell) -> dict[str, Any]:
        """Return all of a cell's configuration, without secrets."""
        return {
            "policy": self.masked(cell.policy),
            "trace": self.masked(cell.trace),
            "cluster": self.masked(cell.cluster),
            "measure": self.masked(cell.measure),
            "capacity": cell.capacity,
            "seed": cell.seed,
        }

    def is_known(self) -> Flags:
        """Tell of each row whether its cell is kept."""
        return self.metrics.are_known(self.keys)

    def rows_to_do(self) -> Rows:
        """Rows that are not kept, one for each key."""
        left = np.flatnonzero(~self.is_known())
        if self.metrics.n_keys == len(self.keys):  # each row has a key of its own
            return left
        return left[np.sort(np.unique(self.keys[left], return_index=True)[1])]

    def todo(self) -> Sequence[Planned]:
        """Cells that are not kept, one for each key."""
        rows = self.rows_to_do()
        return Lazy(len(rows), lambda at: self._row(int(rows[at])))


def prepare(grid: Grid, inputs: Inputs | None = None, cache: Cache | None = None) -> Prepared:
    """Find every cell's key and look it up in the cache.

    Workloads are loaded only where nothing is known of them; those of `inputs`, if they are given,
    are there already. Where those defer, the key of a cell whose workload was never made is of its
    recipe until it is `settled`. A `cache` that was opened before looks for what came since.
    """
    results = grid.request.settings.results
    opened, cache = cache, cache or Cache(results)
    inputs = Inputs(results) if inputs is None else inputs
    # a policy, a cluster, a measure is one object to all cells that share it
    policies, texts, numbers = Memo(named), Memo(canonical), lru_cache(canonical)
    digests: dict[tuple[int, int], str] = {}
    content = bytearray()
    known: dict[str, tuple[str, str, int]] = {}
    of_input = array("i")
    named_by = _Name(grid)
    firsts: dict[tuple[object, ...], int] = {}
    for row, cell in enumerate(grid.cells):
        name = inputs.id_of(cell)
        if name not in known:
            known[name] = inputs.content(name), inputs.named(name), len(known)
        workload, called, number = known[name]
        of_input.append(number)
        what = cell.labels["policy"], cell.labels["trace"], number, id(cell.measure)
        firsts.setdefault(what, row)
        source = digests.get((id(cell.policy), id(cell.measure)), "")
        if not source:
            source = digests[id(cell.policy), id(cell.measure)] = source_of(cell)
        parts = (policies(cell.policy), texts(cell.cluster), texts(cell.measure))
        capacity, seed = numbers(cell.capacity), str(cell.seed)
        key = digest_of(*parts, capacity, seed, workload, source)
        content += key.digest()
        of_id = key if called == workload else digest_of(*parts, capacity, seed, called, source)
        named_by.add(cell.labels, of_id.hexdigest())
    keys = as_keys(content)
    late = {name for name, (workload, *_) in known.items() if workload == name}
    kept = cache.are_kept(keys) if opened is None else cache.look_again(keys)
    metrics = Metrics(keys.copy() if late else keys, kept, cache.columns)
    rows = np.frombuffer(of_input, np.int32), [*firsts.values()]
    return Prepared(grid, named_by.sweep(), inputs, cache, keys, *rows, metrics, late)


def claimed_as(prepared: Prepared, planned: Planned) -> bytes:
    """Return by what a cell is claimed: the same before and after its workload is made."""
    inputs = prepared.inputs
    if inputs.is_read(planned.input):
        return bytes.fromhex(planned.key)
    cell, texts = planned.cell, prepared.texts
    parts = (prepared.policies(cell.policy), texts(cell.cluster), texts(cell.measure))
    workload = inputs.named(planned.input)
    key = key_of(*parts, cell.capacity, cell.seed, workload, source_of(cell))
    return bytes.fromhex(key)


def settled(prepared: Prepared, planned: Planned) -> Planned:
    """Return a cell with the key of its content, where its workload is known by now; keep it so."""
    about = prepared.inputs.known(planned.input) if planned.input in prepared.late else None
    if about is None:
        return prepared.planned[planned.row]
    cell, texts = planned.cell, prepared.texts
    parts = (prepared.policies(cell.policy), texts(cell.cluster), texts(cell.measure))
    key = key_of(*parts, cell.capacity, cell.seed, about["digest"], source_of(cell))
    prepared.keys[planned.row : planned.row + 1] = as_keys(bytes.fromhex(key))
    return planned._replace(key=key)


def settle(prepared: Prepared) -> None:
    """Give every cell the key of its content, where its workload is known by now."""
    made = {name for name in prepared.late if prepared.inputs.known(name) is not None}
    if not made:
        return
    numbers = [prepared.of_input[cell.row] for cell in prepared.first if cell.input in made]
    for row in np.flatnonzero(np.isin(prepared.of_input, numbers)).tolist():
        settled(prepared, prepared.planned[row])
    prepared.late -= made
    keys = prepared.keys.copy() if prepared.late else prepared.keys
    prepared.metrics = prepared.metrics.among(keys)


def source_of(cell: Cell) -> str:
    """Digest of the sources that a cell's numbers come from."""
    return sources.of_cell(cell.policy, cell.measure)


def table_of(cell: Cell) -> Table:
    """Digests of those sources by module."""
    return sources.table_of_cell(cell.policy, cell.measure)


class _Name:
    """Names a sweep by its cells, their labels, the baseline and what its tables show.

    That is the digest of a canonical text, row by row.
    """

    def __init__(self, grid: Grid) -> None:
        request = self._request = grid.request
        about = {"baseline": request.baseline, "metrics": request.metrics}
        self._digest = hashlib.sha256(f'{canonical(about)[:-1]},"rows":['.encode())
        self._before = ""

    def add(self, labels: Mapping[str, Any], key: str) -> None:
        """Add a row."""
        self._digest.update(f'{self._before}[{canonical(labels)},"{key}"]'.encode())
        self._before = ","

    def sweep(self) -> str:
        """Return the id."""
        request = self._request
        metric = request.verdict_metric
        end = "" if metric is None else f',"verdict":{canonical(metric)}'
        self._digest.update(f"]{end}}}".encode())
        name = (request.name or request.experiment or "sweep").replace("/", "-")
        return f"{name}-{self._digest.hexdigest()[:8]}"


def specs(prepared: Prepared) -> Iterator[tuple[Planned, CellSpec]]:
    """Size the cluster of every cell that has to run, and check that its workload fits.

    For one that is made where its cells run, whoever makes it does so (`sweep.execution.made`).
    """
    sized: dict[tuple[str, int, float], Mapping[str, Any]] = {}
    inputs, grid = prepared.inputs, prepared.planned
    todo = prepared.rows_to_do()
    # workload by workload, in the order in which the first of their cells comes
    _, first, of = np.unique(prepared.of_input[todo], return_index=True, return_inverse=True)
    todo = todo[np.argsort(first[of], kind="stable")]
    for row in map(int, todo):
        planned = grid[row]
        cell = planned.cell
        world = planned.input, id(cell.cluster), cell.capacity
        if world not in sized and inputs.is_elsewhere(planned.input):
            sized[world] = unsized(cell.cluster, cell.capacity)
        elif world not in sized:
            workload = inputs.workload(planned.input)
            sized[world] = clusters.size(workload, cell.cluster, cell.capacity)
        source = source_of(cell)
        about = (cell.policy, sized[world], cell.measure, cell.seed, source)
        yield planned, CellSpec(planned.key, *about)


def kept_config(prepared: Prepared, planned: Planned) -> dict[str, Any]:
    """Everything that a cell's key was made of, and its trace, to be kept beside its result."""
    return next(kept_configs(prepared, [planned]))


def kept_configs(prepared: Prepared, some: Iterable[Planned]) -> Iterator[dict[str, Any]]:
    """Give the same of many cells, most of which differ in capacity and seed alone."""
    shared: dict[tuple[object, ...], dict[str, Any]] = {}
    for planned in some:
        cell = planned.cell
        which = planned.input, id(cell.policy), id(cell.cluster), id(cell.measure)
        if which not in shared:
            workload, source = prepared.inputs.content(planned.input), source_of(cell)
            shared[which] = {**prepared.shown(cell), "workload": workload, "sources": source}
        yield {**shared[which], "capacity": cell.capacity, "seed": cell.seed}
