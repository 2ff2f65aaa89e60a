"""Plan of a grid: the key of every cell, and the cells that are cached."""

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
from sweep.execution.keys import cell_key, cluster_text, policy_text
from sweep.execution.sweep_id import SweepId
from sweep.grid.config_tree import canonical
from sweep.grid.grid import Cell, Grid
from sweep.grid.lazy import LazySequence
from sweep.store import sources
from sweep.store.cache import Cache
from sweep.store.cell import CellSpec
from sweep.store.index import Keys, Positions, as_keys


class IdentityCache:
    """Cache of a function's results by the identity of its argument (not by equality)."""

    def __init__(self, compute: Callable[[Any], Any]) -> None:
        self._compute = compute
        self._values: dict[int, tuple[object, Any]] = {}  # a stored object keeps its id

    def __call__(self, argument: object) -> Any:
        """Return the function's result for this object, computed on the first call."""
        entry = self._values.get(id(argument))
        if entry is None:
            entry = self._values[id(argument)] = (argument, self._compute(argument))
        return entry[1]


class PlannedCell(NamedTuple):
    """A cell with its key."""

    row: int  # in the grid
    cell: Cell
    key: str  # see `sweep.execution.keys.cell_key`; hex
    workload: str  # name of its workload in `Inputs`

    @property
    def name(self) -> str:
        """Name of the cell for people: its labels, without secrets."""
        mask_part = mask_tree(self.cell.labels).items()
        return " ".join(
            str(value) if key in ("policy", "trace") else f"{key}={value}"
            for key, value in mask_part
            if value is not None
        )

    @property
    def spec(self) -> CellSpec:
        """Specification of the cell for a worker."""
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
    workload_numbers: Positions  # number of each row's workload
    representative_rows: Sequence[int]  # rows of `first`
    metrics: CellMetrics  # of cached cells, by key
    # masks the secrets of a part of a cell's configuration
    mask_part: IdentityCache = field(default_factory=lambda: IdentityCache(mask_tree))

    @property
    def planned(self) -> LazySequence[PlannedCell]:
        """All planned cells, in the order of the rows, each made when it is asked for."""
        return LazySequence(len(self.keys), self._planned_cell)

    def _planned_cell(self, row: int) -> PlannedCell:
        cell = self.grid.cells[row]
        key = self.keys[row : row + 1].tobytes().hex()
        return PlannedCell(row, cell, key, self.inputs.workload_id(cell))

    @property
    def representatives(self) -> list[PlannedCell]:
        """The first cell of each combination other than of capacity and seed."""
        return [self._planned_cell(row) for row in self.representative_rows]

    def masked_config(self, cell: Cell) -> dict[str, Any]:
        """Return a cell's whole configuration, secrets masked."""
        return {
            "policy": self.mask_part(cell.policy),
            "trace": self.mask_part(cell.trace),
            "cluster": self.mask_part(cell.cluster),
            "evaluator": self.mask_part(cell.evaluator),
            "capacity": cell.capacity,
            "seed": cell.seed,
        }

    def is_cached(self) -> Flags:
        """Flag the rows whose cells are cached."""
        return self.metrics.are_known(self.keys)

    def missing_rows(self, exclude: Collection[str] = ()) -> Rows:
        """Rows of cells that are not cached, one for each key, without the keys in `exclude`."""
        rows = np.flatnonzero(~self.is_cached())
        if exclude:
            rows = rows[~np.isin(self.keys[rows], as_keys(bytes.fromhex("".join(exclude))))]
        if self.metrics.n_keys == len(self.keys):  # no key repeats
            return rows
        return rows[np.sort(np.unique(self.keys[rows], return_index=True)[1])]

    def by_workload(self, rows: Rows) -> Iterator[PlannedCell]:
        """Yield the cells of rows grouped by workload, in the order of first occurrence."""
        _, first_positions, group = np.unique(
            self.workload_numbers[rows], return_index=True, return_inverse=True
        )
        return map(
            self._planned_cell, map(int, rows[np.argsort(first_positions[group], kind="stable")])
        )


def prepare(
    grid: Grid, inputs: Inputs | None = None, cache: Cache | None = None, sweep: str = ""
) -> PreparedGrid:
    """Compute every cell's key and look it up in the cache; no workload is made or loaded.

    A `cache` that was opened before is refreshed. The id of the `sweep` is computed from its cells
    unless it is given.
    """
    results = grid.request.settings.results
    given_cache, cache = cache, cache or Cache(results)
    inputs = Inputs(results) if inputs is None else inputs
    # cells that share a policy, a cluster or an evaluator share one object
    policy_texts, canonical_text, number_text = (
        IdentityCache(policy_text),
        IdentityCache(canonical),
        lru_cache(canonical),
    )
    cluster_texts = IdentityCache(cluster_text)
    digests: dict[tuple[int, int], str] = {}
    content = bytearray()
    numbers: dict[str, int] = {}
    workload_numbers = array("i")
    sweep_id = SweepId(grid.request)
    representative_rows: dict[tuple[object, ...], int] = {}
    for row, cell in enumerate(grid.cells):
        workload = inputs.workload_id(cell)
        number = numbers.setdefault(workload, len(numbers))
        workload_numbers.append(number)
        combination = cell.labels["policy"], cell.labels["trace"], number, id(cell.evaluator)
        representative_rows.setdefault(combination, row)
        source = digests.get((id(cell.policy), id(cell.evaluator)), "")
        if not source:
            source = digests[id(cell.policy), id(cell.evaluator)] = sources_digest(cell)
        parts = (
            policy_texts(cell.policy),
            cluster_texts(cell.cluster),
            canonical_text(cell.evaluator),
        )
        key = cell_key(*parts, number_text(cell.capacity), str(cell.seed), workload, source)
        content += key
        sweep_id.add(cell.labels, key)
    keys = as_keys(bytes(content))
    is_cached = cache.are_cached(keys) if given_cache is None else cache.refresh(keys)
    metrics = CellMetrics(keys, is_cached, cache.columns)
    rows = np.frombuffer(workload_numbers, np.int32), [*representative_rows.values()]
    return PreparedGrid(grid, sweep or sweep_id.end(), inputs, cache, keys, *rows, metrics)


def sources_digest(cell: Cell) -> str:
    """Digest of the sources that a cell's numbers come from."""
    return sources.cell_digest(cell.policy, cell.evaluator)


def source_tables(prepared: PreparedGrid, planned: PlannedCell) -> dict[str, Table]:
    """Digests of the modules that a cell and its workload come from, by the digest of all."""
    cell, workload = planned.cell, prepared.inputs.origin_digests(planned.workload)
    return {
        sources_digest(cell): sources.cell_table(cell.policy, cell.evaluator),
        workload["sources"]: sources.workload_table(cell.trace),
    }


def stored_config(prepared: PreparedGrid, planned: PlannedCell) -> dict[str, Any]:
    """Return all parts of a cell's key, and its trace, to be stored beside its result."""
    return next(stored_configs(prepared, [planned]))


def stored_configs(
    prepared: PreparedGrid, cells: Iterable[PlannedCell]
) -> Iterator[dict[str, Any]]:
    """Yield `stored_config` of many cells, most of which differ in capacity and seed alone."""
    shared: dict[tuple[object, ...], dict[str, Any]] = {}
    for planned in cells:
        cell = planned.cell
        combination = planned.workload, id(cell.policy), id(cell.cluster), id(cell.evaluator)
        if combination not in shared:
            workload, source = (
                prepared.inputs.origin_digests(planned.workload),
                sources_digest(cell),
            )
            shared[combination] = {
                **prepared.masked_config(cell),
                "workload": workload,
                "sources": source,
            }
        yield {**shared[combination], "capacity": cell.capacity, "seed": cell.seed}
