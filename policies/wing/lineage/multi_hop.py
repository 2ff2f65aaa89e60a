"""Wing's Algorithm 1 (§4.4): multi-hop analysis, row by row and in bounded memory.

The paper doubles path lengths by joins of whole tables. `tests.paper.wing_algorithm1` does so
literally, and tests compare `rows` with it. Weights distribute over paths, so the row of a job
solves b = w ⊕ b ⊗ W with w its own edges (⊗ joins two tables where paths meet and combines weights
by ``e_op``, ⊕ concatenates tables and groups equal pairs by ``p_op``). On a DAG this has one
solution, which one pass in topological order computes. With the window ω a source's row ends at the
number from which on no job is submitted by its cut-off. The skipped jobs could not have counted;
the filter on the final pairs, downstream submit ≤ upstream completion + ω, does the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from policies.wing.lineage.analyses import Functions, Pairs, check_laws
from policies.wing.lineage.dependencies import Dependencies, Graph, Window, graph
from sim.base.arrays import F8, I4, I8, Mask, ranges
from sim.base.errors import InputError

BLOCK_PAIRS: Final = 8_000_000
"""Approximate number of pairs in a block, 12 bytes each."""
BLOCK_SOURCES: Final = 65_536
"""Maximum number of sources in a block."""
_ROW_BUDGET: Final = 2_000  # jobs a search may visit; beyond it, a lane costs less

SEMIRINGS: Final = {
    (np.multiply, np.add): 0, (np.add, np.maximum): 1, (np.multiply, np.maximum): 2,
    (np.add, np.minimum): 3, (np.minimum, np.maximum): 4,
}  # fmt: skip
"""Codes in `policies.wing.lineage.kernels.closure` of the compiled pairs (e_op, p_op)."""


def multi_hop(
    edges: Dependencies,
    functions: Functions,
    *,
    within: Window | None = None,
    rounds: int | None = None,
) -> F8:
    """Compute ``ds_op`` of every job: the aggregate over all of its downstream jobs."""
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
    dag: Graph | None = None,
    block_pairs: int = BLOCK_PAIRS,
) -> Iterator[Pairs]:
    """Yield the closure in blocks of sources; parameters as for `multi_hop`.

    Every source is in one block, with all its pairs. A block is a pure function of its sources, so
    blocks may be computed in any process and any order.
    """
    if rounds is not None and rounds < 0:
        raise InputError(f"rounds must be at least 0, not {rounds}")
    dag = graph(edges) if dag is None else dag
    code = SEMIRINGS.get((functions.e_op, functions.p_op))
    if code is None:
        check_laws(functions)
    jobs = np.arange(edges.n_jobs, dtype=np.int32) if sources is None else sources
    if within is not None:
        jobs = jobs[within.valid[jobs]]
    jobs = dag.row[np.sort(dag.number[jobs])]
    if rounds == 0 or not len(edges):
        yield Pairs(jobs, np.zeros(len(jobs) + 1, np.int64), jobs[:0], np.empty(0))
        return
    if code is None:
        yield from _by_joins(edges, functions, within, rounds, jobs, block_pairs)
        return
    solver = _RowSolver(dag, np.asarray(functions.wt_fn(edges), np.float64), code, within)
    for first in range(0, len(jobs), BLOCK_SOURCES):
        yield from solver.blocks(jobs[first : first + BLOCK_SOURCES], rounds, block_pairs)


class _RowSolver:
    """Computes closure rows over one graph with compiled kernels."""

    def __init__(self, dag: Graph, weight: F8, code: int, within: Window | None) -> None:
        from policies.wing.lineage.kernels.closure import LANES  # loads numba

        self.g, self.code = dag, code
        self.weight = weight[dag.edge]
        n = len(dag.row)
        self.submit_s = np.zeros(n) if within is None else within.submit_s[dag.row]
        self.cut_s = np.zeros(n) if within is None else within.cut_s
        self.end = (
            np.full(n, n, np.int32) if within is None else dag.end(within.submit_s, within.cut_s)
        )
        self.incoming: tuple[I8, I4, F8] | None = None
        self.total = np.empty((0, LANES))
        self.reached = np.empty(0, np.uint8)

    def blocks(self, source: I4, rounds: int | None, block_pairs: int) -> Iterator[Pairs]:
        from policies.wing.lineage.kernels.closure import hop_rows, reach_rows  # loads numba

        dag, n = self.g, len(self.g.row)
        budget = min(n, _ROW_BUDGET)
        room = max(block_pairs, budget if rounds is None else n)
        out_node, out_weight = np.empty(room, np.int32), np.empty(room)
        node, end, cut_s = dag.number[source], self.end[source], self.cut_s[source]
        row0 = np.zeros(len(source) + 1, np.int64)
        over_budget = np.zeros(len(source), bool)
        begin = 0
        while begin < len(source):
            row0[begin] = 0
            arguments = (
                dag.out0, dag.child, self.weight, self.code, node, begin, end, self.submit_s, cut_s,
                row0, out_node, out_weight,
            )  # fmt: skip
            if rounds is None:
                stop = reach_rows(*arguments, budget, over_budget)
            else:
                stop = hop_rows(*arguments, 2 ** min(rounds, 31))
            n_pairs = int(row0[stop])
            yield self._pairs(
                source[begin:stop],
                row0[begin : stop + 1],
                out_node,
                out_weight,
                n_pairs,
                over_budget[begin:stop],
            )
            begin = stop
        over_budget_sources = source[over_budget]
        for first in range(0, len(over_budget_sources), 8):
            yield self._lanes(over_budget_sources[first : first + 8])

    def _pairs(
        self, source: I4, row0: I8, out_node: I4, out_weight: F8, n: int, over_budget: Mask
    ) -> Pairs:
        """Copy rows out of the buffers, without the empty rows of sources over budget."""
        solved = ~over_budget
        ends = np.append(0, row0[1:][solved])
        return Pairs(source[solved], ends, self.g.row[out_node[:n]], out_weight[:n].copy())

    def _lanes(self, source: I4) -> Pairs:
        from policies.wing.lineage.kernels.closure import (  # loads numba
            lane_counts,
            lane_rows,
            lane_totals,
        )
        from sim.workload.kernels.paths import by_child

        dag, n = self.g, len(self.g.row)
        if self.incoming is None:
            in0, order = by_child(n, dag.child)
            parent = np.repeat(np.arange(n, dtype=np.int32), np.diff(dag.out0))
            self.incoming = in0, parent[order], self.weight[order]
            self.total = np.empty((n, self.total.shape[1]))
            self.reached = np.zeros(n, np.uint8)
        node, cut_s = dag.number[source], self.cut_s[source]
        end = int(self.end[source].max())
        lane_totals(*self.incoming[:3], self.code, node, end, self.total, self.reached)
        row0 = lane_counts(node, end, self.submit_s, cut_s, self.reached)
        out_node, out_weight = np.empty(row0[-1], np.int32), np.empty(row0[-1])
        lane_rows(
            node, end, self.submit_s, cut_s, self.total, self.reached, row0, out_node, out_weight
        )
        return Pairs(source, row0, dag.row[out_node], out_weight)


_Table = tuple[I4, I4, F8]  # pairs: upstream, downstream, weight


def _by_joins(
    edges: Dependencies,
    functions: Functions,
    within: Window | None,
    rounds: int | None,
    jobs: I4,
    block_pairs: int,
) -> Iterator[Pairs]:
    """Yield rows for operations that are not compiled, hop by hop, by joins."""
    n = edges.n_jobs
    step = edges.upstream, edges.downstream, np.asarray(functions.wt_fn(edges), np.float64)
    n_sources = max(1, min(BLOCK_SOURCES, block_pairs // max(n, 1)))
    for start in range(0, len(jobs), n_sources):
        source = jobs[start : start + n_sources]
        source_index = np.full(n, -1, np.int64)
        source_index[source] = np.arange(len(source))
        from_source = source_index[step[0]] >= 0
        frontier = (step[0][from_source], step[1][from_source], step[2][from_source])
        paths, hops = frontier, 1
        while len(frontier[0]) and (rounds is None or hops < 2**rounds):
            frontier = _group_pairs(
                n, [_join_paths(frontier, step, functions.e_op)], functions.p_op
            )
            paths = _group_pairs(n, [paths, frontier], functions.p_op)
            hops += 1
        up, down, weight = paths
        if within is not None:
            in_window = within.submit_s[down] <= within.cut_s[up]
            up, down, weight = up[in_window], down[in_window], weight[in_window]
        order = np.argsort(source_index[up], kind="stable")
        row0 = np.searchsorted(source_index[up][order], np.arange(len(source) + 1))
        yield Pairs(source, row0, down[order], weight[order])


def _join_paths(left: _Table, right: _Table, e_op: Any) -> _Table:
    """Join paths that meet: ``left.downstream == right.upstream``."""
    order = np.argsort(right[0], kind="stable")
    keys = right[0][order]
    first = np.searchsorted(keys, left[1], side="left")
    count = np.searchsorted(keys, left[1], side="right") - first
    left_row = np.repeat(np.arange(len(left[0])), count)
    right_row = order[ranges(first, first + count)]
    return (
        left[0][left_row],
        right[1][right_row],
        np.asarray(e_op(left[2][left_row], right[2][right_row]), np.float64),
    )


def _group_pairs(n: int, tables: list[_Table], p_op: Any) -> _Table:
    """Concatenate tables and combine equal pairs by p_op."""
    up, down, path_weight = (np.concatenate([t[i] for t in tables]) for i in range(3))
    if not len(up):
        return up, down, path_weight
    key = up.astype(np.int64) * n + down
    order = np.argsort(key, kind="stable")
    key = key[order]
    first = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
    weight = np.asarray(p_op.reduceat(path_weight[order], first), np.float64)
    return up[order][first], down[order][first], weight
