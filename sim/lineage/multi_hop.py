"""Wing's Algorithm 1 (§4.4): multi-hop analysis, row by row and in bounded memory.

The paper doubles the paths that it knows, as joins of whole tables; `tests.paper.wing_algorithm1`
is this, literally, and what `rows` is compared with. Weights distribute over paths, so the row of a
job solves b = w ⊕ b ⊗ W with w its own edges (⊗ joins two tables where paths meet and combines
weights by ``e_op``, ⊕ puts tables together and groups equal pairs by ``p_op``), and on a DAG this
has one solution, which one pass in topological order finds. With the window ω a source's row ends
at the number from which on no job is submitted by its cut-off; so what is left out could not have
counted, and the filter on the final pairs, downstream submit ≤ upstream completion + ω, does the
rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from sim.base.arrays import F8, I4, I8, Mask, ranges
from sim.base.errors import InputError
from sim.lineage.analyses import Functions, Pairs, check
from sim.lineage.dependencies import Dependencies, Graph, Window, graph

BLOCK_PAIRS: Final = 8_000_000
"""Pairs of a block, about: 12 bytes each."""
BLOCK_SOURCES: Final = 65_536
"""Most sources of a block."""
_ROW_BUDGET: Final = 2_000  # visits of a search; a lane costs less beyond

SEMIRINGS: Final = {
    (np.multiply, np.add): 0, (np.add, np.maximum): 1, (np.multiply, np.maximum): 2,
    (np.add, np.minimum): 3, (np.minimum, np.maximum): 4,
}  # fmt: skip
"""Codes in `sim.lineage.kernels.closure` of the pairs (e_op, p_op) that are compiled."""


def multi_hop(
    edges: Dependencies,
    functions: Functions,
    *,
    within: Window | None = None,
    rounds: int | None = None,
) -> F8:
    """Return ``ds_op`` of every job: what it aggregates over all that is downstream."""
    out = np.full(edges.n_jobs, np.nan)
    for block in rows(edges, functions, within=within, rounds=rounds):
        out[block.upstream] = functions.ds_op(block)
    return out


def rows(
    edges: Dependencies,
    functions: Functions,
    *,
    within: Window | None = None,
    rounds: int | None = None,
    sources: I4 | None = None,
    numbered: Graph | None = None,
    block_pairs: int = BLOCK_PAIRS,
) -> Iterator[Pairs]:
    """Yield the closure in blocks of sources; parameters as for `multi_hop`.

    Every source comes in one block, with all its pairs. A block is a pure function of its sources:
    blocks may be computed anywhere, in any order.
    """
    if rounds is not None and rounds < 0:
        raise InputError(f"rounds must be at least 0, not {rounds}")
    g = graph(edges) if numbered is None else numbered
    code = SEMIRINGS.get((functions.e_op, functions.p_op))
    if code is None:
        check(functions)
    wanted = np.arange(edges.n_jobs, dtype=np.int32) if sources is None else sources
    if within is not None:
        wanted = wanted[within.valid[wanted]]
    wanted = g.row[np.sort(g.number[wanted])]
    if rounds == 0 or not len(edges):
        yield Pairs(wanted, np.zeros(len(wanted) + 1, np.int64), wanted[:0], np.empty(0))
        return
    if code is None:
        yield from _by_joins(edges, functions, within, rounds, wanted, block_pairs)
        return
    walk = _Walk(g, np.asarray(functions.wt_fn(edges), np.float64), code, within)
    for at in range(0, len(wanted), BLOCK_SOURCES):
        yield from walk.blocks(wanted[at : at + BLOCK_SOURCES], rounds, block_pairs)


class _Walk:
    """The compiled walks over one graph."""

    def __init__(self, g: Graph, weight: F8, code: int, within: Window | None) -> None:
        from sim.lineage.kernels.closure import LANES  # loads numba

        self.g, self.code = g, code
        self.weight = weight[g.edge]
        n = len(g.row)
        self.submit_s = np.zeros(n) if within is None else within.submit_s[g.row]
        self.cut_s = np.zeros(n) if within is None else within.cut_s
        self.end = (
            np.full(n, n, np.int32) if within is None else g.end(within.submit_s, within.cut_s)
        )
        self.incoming: tuple[I8, I4, F8] | None = None
        self.total = np.empty((0, LANES))
        self.reached = np.empty(0, np.uint8)

    def blocks(self, source: I4, rounds: int | None, block_pairs: int) -> Iterator[Pairs]:
        from sim.lineage.kernels.closure import hop_rows, reach_rows  # loads numba

        g, n = self.g, len(self.g.row)
        budget = min(n, _ROW_BUDGET)
        room = max(block_pairs, budget if rounds is None else n)
        down, wt = np.empty(room, np.int32), np.empty(room)
        node, end, cut_s = g.number[source], self.end[source], self.cut_s[source]
        row0 = np.zeros(len(source) + 1, np.int64)
        over = np.zeros(len(source), bool)
        begin = 0
        while begin < len(source):
            row0[begin] = 0
            given = (
                g.out0, g.child, self.weight, self.code, node, begin, end, self.submit_s, cut_s,
                row0, down, wt,
            )  # fmt: skip
            if rounds is None:
                stop = reach_rows(*given, budget, over)
            else:
                stop = hop_rows(*given, 2 ** min(rounds, 31))
            n_pairs = int(row0[stop])
            yield self._pairs(
                source[begin:stop], row0[begin : stop + 1], down, wt, n_pairs, over[begin:stop]
            )
            begin = stop
        large = source[over]
        for at in range(0, len(large), 8):
            yield self._lanes(large[at : at + 8])

    def _pairs(self, source: I4, row0: I8, down: I4, wt: F8, n: int, over: Mask) -> Pairs:
        """Copy rows out of the buffers, leaving out the empty ones of sources over budget."""
        keep = ~over
        ends = np.append(0, row0[1:][keep])
        return Pairs(source[keep], ends, self.g.row[down[:n]], wt[:n].copy())

    def _lanes(self, source: I4) -> Pairs:
        from sim.lineage.kernels.closure import lane_counts, lane_rows, lane_totals  # loads numba
        from sim.workload.kernels.paths import by_child

        g, n = self.g, len(self.g.row)
        if self.incoming is None:
            in0, order = by_child(n, g.child)
            parent = np.repeat(np.arange(n, dtype=np.int32), np.diff(g.out0))
            self.incoming = in0, parent[order], self.weight[order]
            self.total = np.empty((n, self.total.shape[1]))
            self.reached = np.zeros(n, np.uint8)
        node, cut_s = g.number[source], self.cut_s[source]
        end = int(self.end[source].max())
        lane_totals(*self.incoming[:3], self.code, node, end, self.total, self.reached)
        row0 = lane_counts(node, end, self.submit_s, cut_s, self.reached)
        down, wt = np.empty(row0[-1], np.int32), np.empty(row0[-1])
        lane_rows(node, end, self.submit_s, cut_s, self.total, self.reached, row0, down, wt)
        return Pairs(source, row0, g.row[down], wt)


_Table = tuple[I4, I4, F8]  # pairs: upstream, downstream, weight


def _by_joins(
    edges: Dependencies,
    functions: Functions,
    within: Window | None,
    rounds: int | None,
    wanted: I4,
    block_pairs: int,
) -> Iterator[Pairs]:
    """Yield rows for operations that are not compiled: hop after hop, as joins."""
    n = edges.n_jobs
    step = edges.upstream, edges.downstream, np.asarray(functions.wt_fn(edges), np.float64)
    n_sources = max(1, min(BLOCK_SOURCES, block_pairs // max(n, 1)))
    for at in range(0, len(wanted), n_sources):
        source = wanted[at : at + n_sources]
        place = np.full(n, -1, np.int64)
        place[source] = np.arange(len(source))
        mine = place[step[0]] >= 0
        frontier = (step[0][mine], step[1][mine], step[2][mine])
        base, hops = frontier, 1
        while len(frontier[0]) and (rounds is None or hops < 2**rounds):
            frontier = _grouped(n, [_joined(frontier, step, functions.e_op)], functions.p_op)
            base = _grouped(n, [base, frontier], functions.p_op)
            hops += 1
        up, down, wt = base
        if within is not None:
            ok = within.submit_s[down] <= within.cut_s[up]
            up, down, wt = up[ok], down[ok], wt[ok]
        order = np.argsort(place[up], kind="stable")
        row0 = np.searchsorted(place[up][order], np.arange(len(source) + 1))
        yield Pairs(source, row0, down[order], wt[order])


def _joined(left: _Table, right: _Table, e_op: Any) -> _Table:
    """Join paths that meet: ``left.downstream == right.upstream``."""
    order = np.argsort(right[0], kind="stable")
    keys = right[0][order]
    first = np.searchsorted(keys, left[1], side="left")
    count = np.searchsorted(keys, left[1], side="right") - first
    a = np.repeat(np.arange(len(left[0])), count)
    b = order[ranges(first, first + count)]
    return left[0][a], right[1][b], np.asarray(e_op(left[2][a], right[2][b]), np.float64)


def _grouped(n: int, tables: list[_Table], p_op: Any) -> _Table:
    """Put tables together and group equal pairs by p_op."""
    up, down, wt = (np.concatenate([t[i] for t in tables]) for i in range(3))
    if not len(up):
        return up, down, wt
    key = up.astype(np.int64) * n + down
    order = np.argsort(key, kind="stable")
    key = key[order]
    first = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
    weight = np.asarray(p_op.reduceat(wt[order], first), np.float64)
    return up[order][first], down[order][first], weight
