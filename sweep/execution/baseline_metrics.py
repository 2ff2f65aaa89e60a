"""Cells held against a baseline, the one they were run with or another; nothing is simulated."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa

from sim.base import columns
from sim.base.arrays import F8
from sim.metrics import METRICS, speedups
from sweep.stats.arrange import ArrangedCells, arrange, by_capacity, check_baseline
from sweep.stats.contrasts import pairs
from sweep.store.cache import Cache

AGAINST_BASELINE = tuple(name for name, metric in METRICS.items() if metric.against_baseline)


def recompute(
    cells: pa.Table, swept: Sequence[str], baseline: str | None, cache: Cache
) -> pa.Table:
    """Give ``cells.parquet`` with its metrics against a baseline made anew, from what is cached.

    They are NaN where a cell or the baseline's failed, or is not cached any more.
    """
    names = [name for name in AGAINST_BASELINE if name in cells.column_names]
    if not names:
        return cells
    found = {name: np.full(cells.num_rows, math.nan) for name in AGAINST_BASELINE}

    @lru_cache(maxsize=64)
    def jct_of(key: str) -> F8 | None:
        kept = cache.get(key)
        return None if kept is None else kept.jct_s()

    if baseline is not None:
        them = arrange(cells, swept, baseline)
        check_baseline(them.columns, baseline)
        for own, other in _paired(them):
            base_jct_s = jct_of(them.key(other))
            jct_s = None if base_jct_s is None else jct_of(them.key(own))
            if jct_s is not None and base_jct_s is not None:
                for name, value in speedups(jct_s, base_jct_s).items():
                    found[name][own] = value
    for name in names:
        at = cells.column_names.index(name)
        cells = cells.set_column(at, name, columns.from_numpy(found[name]))
    return cells


def _paired(them: ArrangedCells) -> Iterator[tuple[int, int]]:
    """Give each row that did not fail with the baseline's beside it, capacity by capacity."""
    bases = [at for at, column in enumerate(them.columns.values()) if column.is_baseline]
    for world in (w for members in them.blocks.values() for w in by_capacity(them, members)):
        itself = world.rows[np.isin(them.column_index[world.rows], bases)]
        found = [(pair.policy_rows, pair.baseline_rows) for _, _, pair in pairs(them, world.rows)]
        own, other = (np.concatenate(side) for side in zip((itself, itself), *found, strict=True))
        for at in np.argsort(other, kind="stable"):  # so that the baseline's is read once
            if not (them.failed[own[at]] or them.failed[other[at]]):
                yield int(own[at]), int(other[at])
