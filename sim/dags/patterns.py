"""Scatter and gather (§4.1), and classes of isomorphic DAGs (§6.1 of Tian et al., SoCC 2019)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from sim.base.arrays import F8, I8, Mask, inverse, offsets
from sim.base.errors import InputError
from sim.dags.graphs import Graphs

if TYPE_CHECKING:
    import networkx as nx


def is_scatter(graphs: Graphs) -> Mask:
    """Tell which jobs have more than two stages, each with at most one parent, (J,) bool."""
    return (graphs.job_n_stages > 2) & (_most(graphs, graphs.n_parents) <= 1)


def is_gather(graphs: Graphs) -> Mask:
    """Tell which jobs have more than two stages, each with at most one child, (J,) bool.

    A chain is both a scatter and a gather job, as is a job without edges.
    """
    return (graphs.job_n_stages > 2) & (_most(graphs, graphs.n_children) <= 1)


def is_complex(graphs: Graphs) -> Mask:
    """Tell which jobs have more than two stages and are neither scatter nor gather, (J,) bool."""
    return (graphs.job_n_stages > 2) & ~is_scatter(graphs) & ~is_gather(graphs)


@dataclass(frozen=True, eq=False)
class Decomposition:
    """The scatter and the gather component of each of J jobs with G stages in all."""

    scatter: Mask  # whether a stage is in its job's scatter and gather component
    gather: Mask
    overlap: F8  # share of the job's stages that are in both
    coverage: F8  # share of the job's stages that are in one or both


def decompose(graphs: Graphs, k: int = 1) -> Decomposition:
    """Find the scatter and gather components of jobs (Algorithm 1).

    The scatter component is what is left when stages of more than `k` parents are pruned, then
    those that stand alone, until there are none; the gather component likewise with children.
    Stages are pruned one by one in the order of their rows (the paper's footnote 4).

    The paper says `k` = 1 in its prose and prints 2. Its printed second rule, which prunes what
    has no parent and less than two children, would eat every chain from its head; but chains are
    scatter and gather jobs by the paper's own words. So a head of a chain stays here, as it does
    if the printed 2 is off by one in that rule as well.

    Usually of ``g.take(is_complex(g))``; InputError if `k` is less than 1.
    """
    if k < 1:
        raise InputError(f"k is the most parents a stage may keep, at least 1, not {k}")
    scatter = _scatter(graphs, k)
    gather = _scatter(graphs.reversed, k)
    return Decomposition(
        scatter, gather, _share(graphs, scatter & gather), _share(graphs, scatter | gather)
    )


def _scatter(graphs: Graphs, k: int) -> Mask:
    from sim.dags.kernels import patterns as kernel

    kept = np.empty(graphs.n_stages, dtype=np.bool_)
    back = graphs.reversed
    kernel.find_scatter(
        graphs.job_stage0, graphs.edge0, graphs.edge_child, back.edge0, back.edge_child, k, kept
    )
    return kept


def _most(graphs: Graphs, degree: I8) -> I8:
    if not graphs.n_jobs:
        return np.zeros(0, dtype=np.int64)
    return np.maximum.reduceat(degree, graphs.job_stage0[:-1])


def _share(graphs: Graphs, chosen: Mask) -> F8:
    if not graphs.n_jobs:
        return np.zeros(0)
    counts = np.add.reduceat(chosen.astype(np.int64), graphs.job_stage0[:-1])
    return counts / graphs.job_n_stages


def classes(graphs: Graphs) -> I8:
    """Sort jobs into isomorphism classes.

    Jobs of equal edge lists are put together first, and the others are cut into their connected
    pieces. Each piece gets a Weisfeiler–Leman hash and is written anew under a numbering of its
    stages by colour (`sim.dags.kernels.patterns`). Equal lists are isomorphic by that very
    numbering. Where a hash comes with several lists, VF2 (networkx) compares them with one of
    each class found so far. Jobs are isomorphic if their pieces are.

    Two jobs have the same number, from 0 in order of first appearance, if and only if their DAGs
    are isomorphic. The paper takes those of six stages and more: small ones may be alike by chance.
    """
    if not graphs.n_jobs:
        return np.zeros(0, dtype=np.int64)
    of_job, first = _by_edges(graphs)
    distinct = graphs.take(first)
    pieces, job = _pieces(distinct)
    of_piece = _connected_classes(pieces)
    sorted_pieces = of_piece[np.lexsort((of_piece, job))]
    piece0 = offsets(np.bincount(job, minlength=distinct.n_jobs))
    number, _ = _numbered(_cut(sorted_pieces, piece0))
    return number[of_job]


def _connected_classes(graphs: Graphs) -> I8:
    from sim.dags.kernels import patterns as kernel

    of_job, first = _by_edges(graphs)
    distinct = graphs.take(first)
    back = distinct.reversed
    hashes = np.empty(distinct.n_jobs, dtype=np.int64)
    codes = np.empty(distinct.n_edges, dtype=np.int64)
    kernel.canonical_edges(
        distinct.job_stage0,
        distinct.edge0,
        distinct.edge_child,
        back.edge0,
        back.edge_child,
        hashes,
        codes,
    )
    of_list, first = _numbered(_lists(distinct, codes))
    buckets: dict[int, list[int]] = {}
    class_of_list: I8 = np.empty(len(first), dtype=np.int64)
    n_classes = 0
    for row, job in enumerate(first.tolist()):
        bucket = buckets.setdefault(int(hashes[job]), [])
        same = next((r for r in bucket if _isomorphic(distinct, int(first[r]), job)), None)
        if same is None:
            bucket.append(row)
            class_of_list[row] = n_classes
            n_classes += 1
        else:
            class_of_list[row] = class_of_list[same]
    return class_of_list[of_list][of_job]


def _pieces(graphs: Graphs) -> tuple[Graphs, I8]:
    # The connected pieces of all jobs as jobs of their own, and the job of each, ascending.
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n = graphs.n_stages
    ones = np.ones(graphs.n_edges, dtype=np.int8)
    matrix = csr_array((ones, graphs.edge_child, graphs.edge0), shape=(n, n))
    _, label = connected_components(matrix, directed=False)
    order = np.lexsort((label, graphs.stage_job))
    place = inverse(order)
    begin = np.flatnonzero(np.diff(label[order], prepend=-1))
    sizes = np.diff(begin, append=n)
    pieces = Graphs.from_edges(sizes, place[graphs.edge_parent], place[graphs.edge_child])
    return pieces, graphs.stage_job[order[begin]].astype(np.int64)


def _by_edges(graphs: Graphs) -> tuple[I8, I8]:
    # For each job the number of its edge list, and the first job of each list.
    begin = np.repeat(graphs.job_stage0[:-1], graphs.job_n_edges)
    n = np.repeat(graphs.job_n_stages, graphs.job_n_edges)
    return _numbered(_lists(graphs, (graphs.edge_parent - begin) * n + graphs.edge_child - begin))


def _lists(graphs: Graphs, codes: I8) -> Iterator[tuple[int, bytes]]:
    # Each job's number of stages and the codes of its edges.
    return zip(
        graphs.job_n_stages.tolist(), _cut(codes, graphs.edge0[graphs.job_stage0]), strict=True
    )


def _cut(values: I8, begin: I8) -> Iterator[bytes]:
    data = values.tobytes()
    ends = (begin * values.itemsize).tolist()
    return (data[a:b] for a, b in pairwise(ends))


def _numbered(things: Iterable[Hashable]) -> tuple[I8, I8]:
    # Numbers equal things alike, in order of first appearance; and where each comes first.
    known: dict[Hashable, int] = {}
    numbers = np.array([known.setdefault(thing, len(known)) for thing in things], dtype=np.int64)
    first: I8 = np.unique(numbers, return_index=True)[1].astype(np.int64)
    return numbers, first


def _isomorphic(graphs: Graphs, a: int, b: int) -> bool:
    from networkx.algorithms.isomorphism import DiGraphMatcher

    same: bool = DiGraphMatcher(_digraph(graphs, a), _digraph(graphs, b)).is_isomorphic()
    return same


def _digraph(graphs: Graphs, job: int) -> nx.DiGraph:
    import networkx as nx

    begin, end = graphs.job_stage0[job : job + 2]
    edges = slice(graphs.edge0[begin], graphs.edge0[end])
    dag = nx.DiGraph()
    dag.add_nodes_from(range(begin, end))
    dag.add_edges_from(
        zip(graphs.edge_parent[edges].tolist(), graphs.edge_child[edges].tolist(), strict=True)
    )
    return dag
