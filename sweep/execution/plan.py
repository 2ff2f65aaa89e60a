"""A grid that is ready to run: the key of every cell, and which cells are cached."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from sim.base.masking import mask_tree
from sim.base.sources import Table
from sweep.execution.cell_metrics import CellMetrics, Flags, Rows
from sweep.execution.inputs import Inputs
from sweep.execution.keys import cell_key, policy_text
from sweep.execution.sweep_id import SweepId
from sweep.grid.config_tree import canonical
from sweep.grid.grid import Cell, Grid
from sweep.grid.lazy import LazySequence
from sweep.store import sources
from sweep.store.cache import Cache
from sweep.store.cell import CellSpec
from sweep.store.index import Keys, Positions, as_keys


class IdentityCache:
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


class PlannedCell(NamedTuple):
    """A cell with its key."""

    row: int  # its place in the grid
    cell: Cell
    key: str  # see `sweep.execution.keys.cell_key`; hex
    input: str  # name of its workload in `Inputs`

    @property
    def name(self) -> str:
        """Name of the cell for people: its labels, without secrets."""
        masked = mask_tree(self.cell.labels).items()
        return " ".join(
            str(value) if key in ("policy", "trace") else f"{key}={value}"
            for key, value in masked
            if value is not None
        )

    @property
    def spec(self) -> CellSpec:
        """Task payload of the cell."""
        cell = self.cell
        world = cell.cluster, cell.capacity
        return CellSpec(
            self.key, cell.policy, *world, cell.evaluator, cell.seed, sources_digest(cell)
        )


@dataclass
class PreparedGrid:
    """A grid that is ready to run."""

    grid: Grid
    sweep: str  # its id; see `sweep.execution.sweep_id`
    inputs: Inputs
    cache: Cache
    keys: Keys  # of each row
    of_input: Positions  # of each row which workload, by a number
    firsts: Sequence[int]  # rows of `first`
    metrics: CellMetrics  # of cells that are kept, by key
    masked: IdentityCache = field(
        default_factory=lambda: IdentityCache(mask_tree)
    )  # parts of cells, no secrets

    @property
    def planned(self) -> LazySequence[PlannedCell]:
        """A cell each, in the order of the rows."""
        return LazySequence(len(self.keys), self._row)

    def _row(self, row: int) -> PlannedCell:
        cell = self.grid.cells[row]
        key = self.keys[row : row + 1].tobytes().hex()
        return PlannedCell(row, cell, key, self.inputs.id_of(cell))

    @property
    def first(self) -> list[PlannedCell]:
        """Those cells in which more than a capacity or a seed comes for the first time."""
        return [self._row(row) for row in self.firsts]

    def shown(self, cell: Cell) -> dict[str, Any]:
        """Return all of a cell's configuration, without secrets."""
        return {
            "policy": self.masked(cell.policy),
            "trace": self.masked(cell.trace),
            "cluster": self.masked(cell.cluster),
            "evaluator": self.masked(cell.evaluator),
            "capacity": cell.capacity,
            "seed": cell.seed,
        }

    def is_known(self) -> Flags:
        """Tell of each row whether its cell is kept."""
        return self.metrics.are_known(self.keys)

    def rows_to_do(self, but: Collection[str] = ()) -> Rows:
        """Rows that are not kept, one for each key, without the keys in `but`."""
        left = np.flatnonzero(~self.is_known())
        if but:
            left = left[~np.isin(self.keys[left], as_keys(bytes.fromhex("".join(but))))]
        if self.metrics.n_keys == len(self.keys):  # each row has a key of its own
            return left
        return left[np.sort(np.unique(self.keys[left], return_index=True)[1])]

    def in_order(self, rows: Rows) -> Iterator[PlannedCell]:
        """Yield the cells of rows, workload by workload as the first of each comes."""
        _, first, of = np.unique(self.of_input[rows], return_index=True, return_inverse=True)
        return map(self._row, map(int, rows[np.argsort(first[of], kind="stable")]))


def prepare(
    grid: Grid, inputs: Inputs | None = None, cache: Cache | None = None, sweep: str = ""
) -> PreparedGrid:
    """Find every cell's key and look it up in the cache; no workload is made or loaded.

    A `cache` that was opened before looks for what came since. The id of the `sweep` is made of its
    cells unless it is given.
    """
    results = grid.request.settings.results
    opened, cache = cache, cache or Cache(results)
    inputs = Inputs(results) if inputs is None else inputs
    # a policy, a cluster, an evaluator is one object to all cells that share it
    policies, texts, numbers = (
        IdentityCache(policy_text),
        IdentityCache(canonical),
        lru_cache(canonical),
    )
    digests: dict[tuple[int, int], str] = {}
    content = bytearray()
    number_of: dict[str, int] = {}
    of_input = array("i")
    sweep_id = SweepId(grid.request)
    firsts: dict[tuple[object, ...], int] = {}
    for row, cell in enumerate(grid.cells):
        workload = inputs.id_of(cell)
        number = number_of.setdefault(workload, len(number_of))
        of_input.append(number)
        what = cell.labels["policy"], cell.labels["trace"], number, id(cell.evaluator)
        firsts.setdefault(what, row)
        source = digests.get((id(cell.policy), id(cell.evaluator)), "")
        if not source:
            source = digests[id(cell.policy), id(cell.evaluator)] = sources_digest(cell)
        parts = (policies(cell.policy), texts(cell.cluster), texts(cell.evaluator))
        key = cell_key(*parts, numbers(cell.capacity), str(cell.seed), workload, source)
        content += key
        sweep_id.add(cell.labels, key)
    keys = as_keys(bytes(content))
    kept = cache.are_cached(keys) if opened is None else cache.refresh(keys)
    metrics = CellMetrics(keys, kept, cache.columns)
    rows = np.frombuffer(of_input, np.int32), [*firsts.values()]
    return PreparedGrid(grid, sweep or sweep_id.end(), inputs, cache, keys, *rows, metrics)


def sources_digest(cell: Cell) -> str:
    """Digest of the sources that a cell's numbers come from."""
    return sources.cell_digest(cell.policy, cell.evaluator)


def source_tables(prepared: PreparedGrid, planned: PlannedCell) -> dict[str, Table]:
    """Digests of the modules that a cell and its workload come from, by the digests of all."""
    cell, workload = planned.cell, prepared.inputs.made_from(planned.input)
    return {
        sources_digest(cell): sources.cell_table(cell.policy, cell.evaluator),
        workload["sources"]: sources.workload_table(cell.trace),
    }


def stored_config(prepared: PreparedGrid, planned: PlannedCell) -> dict[str, Any]:
    """Everything that a cell's key was made of, and its trace, to be kept beside its result."""
    return next(stored_configs(prepared, [planned]))


def stored_configs(prepared: PreparedGrid, some: Iterable[PlannedCell]) -> Iterator[dict[str, Any]]:
    """Give the same of many cells, most of which differ in capacity and seed alone."""
    shared: dict[tuple[object, ...], dict[str, Any]] = {}
    for planned in some:
        cell = planned.cell
        which = planned.input, id(cell.policy), id(cell.cluster), id(cell.evaluator)
        if which not in shared:
            workload, source = prepared.inputs.made_from(planned.input), sources_digest(cell)
            shared[which] = {**prepared.shown(cell), "workload": workload, "sources": source}
        yield {**shared[which], "capacity": cell.capacity, "seed": cell.seed}
