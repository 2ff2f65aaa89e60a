"""Metrics against a baseline, recomputed from cached cells; nothing is simulated."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa

from sim.base import columns
from sim.base.arrays import F8
from sim.metrics import METRICS, speedups
from sweep.stats.arrange import arrange, by_capacity, check_baseline
from sweep.stats.cell_columns import cell_key
from sweep.stats.contrasts import pairs
from sweep.store.cache import Cache

AGAINST_BASELINE = tuple(name for name, metric in METRICS.items() if metric.against_baseline)


def recompute(
    cells: pa.Table, swept: Sequence[str], baseline: str | None, cache: Cache
) -> pa.Table:
    """Return ``cells.parquet`` with its metrics against a baseline, recomputed from the cache.

    They are NaN where the cell or its baseline cell failed or is not cached any more.
    """
    names = [name for name in AGAINST_BASELINE if name in cells.column_names]
    if not names:
        return cells
    values = {name: np.full(cells.num_rows, math.nan) for name in AGAINST_BASELINE}

    @lru_cache(maxsize=64)
    def cached_jct_s(key: str) -> F8 | None:
        result = cache.get(key)
        return None if result is None else result.jct_s()

    for row, base_row in baseline_rows(cells, swept, baseline):
        base_jct_s = cached_jct_s(cell_key(cells, base_row))
        jct_s = None if base_jct_s is None else cached_jct_s(cell_key(cells, row))
        if jct_s is not None and base_jct_s is not None:
            for name, value in speedups(jct_s, base_jct_s).items():
                values[name][row] = value
    for name in names:
        column = cells.column_names.index(name)
        cells = cells.set_column(column, name, columns.from_numpy(values[name]))
    return cells


def baseline_rows(
    cells: pa.Table, swept: Sequence[str], baseline: str | None
) -> Iterator[tuple[int, int]]:
    """Yield each row that did not fail with its baseline row, capacity by capacity."""
    if baseline is None:
        return
    arranged = arrange(cells, swept, baseline)
    check_baseline(arranged.columns, baseline)
    bases = [k for k, column in enumerate(arranged.columns.values()) if column.is_baseline]
    blocks = arranged.blocks.values()
    for world in (w for members in blocks for w in by_capacity(arranged, members)):
        base_rows = world.rows[np.isin(arranged.column_index[world.rows], bases)]
        matched = [pair for _, _, pair in pairs(arranged, world.rows)]
        rows = np.concatenate([base_rows, *(pair.policy_rows for pair in matched)])
        base = np.concatenate([base_rows, *(pair.baseline_rows for pair in matched)])
        for k in np.argsort(base, kind="stable"):  # so that each baseline cell is read once
            if not (arranged.failed[rows[k]] or arranged.failed[base[k]]):
                yield int(rows[k]), int(base[k])
