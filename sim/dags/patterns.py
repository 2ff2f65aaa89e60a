"""Scatter and gather patterns, and isomorphism classes (Tian et al., SoCC 2019, §4.1 and §6.1)."""

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
    """Flag the jobs of more than two stages, each with at most one parent, (J,) bool."""
    return (graphs.job_n_stages > 2) & (_max_degree(graphs, graphs.n_parents) <= 1)


def is_gather(graphs: Graphs) -> Mask:
    """Flag the jobs of more than two stages, each with at most one child, (J,) bool.

    A chain is both a scatter and a gather job, as is a job without edges.
    """
    return (graphs.job_n_stages > 2) & (_max_degree(graphs, graphs.n_children) <= 1)


def is_complex(graphs: Graphs) -> Mask:
    """Flag the jobs of more than two stages that are neither scatter nor gather, (J,) bool."""
    return (graphs.job_n_stages > 2) & ~is_scatter(graphs) & ~is_gather(graphs)


@dataclass(frozen=True, eq=False)
class Decomposition:
    """Scatter and gather components of J jobs with G stages in total."""

    scatter: Mask  # stages in the job's scatter component
    gather: Mask  # stages in the job's gather component
    overlap: F8  # share of the job's stages in both
    coverage: F8  # share of the job's stages in at least one


def decompose(graphs: Graphs, max_parents: int = 2, min_children: int = 2) -> Decomposition:
    """Find the scatter and gather components of jobs (Algorithm 1).

    The scatter component is the rest after pruning the stages of more than `max_parents` parents,
    then those without parents and with less than `min_children` children, until nothing changes;
    the gather component is defined likewise by children. Stages are pruned one by one in the order
    of their rows (the paper's footnote 4).

    The defaults are printed. The prose has `max_parents` = 1. With `min_children` = 1 only isolated
    stages are pruned, so that a chain is not erased from its head (decision 30).

    Usually called with ``g.take(is_complex(g))``; InputError if `max_parents` is less than 1.
    """
    if max_parents < 1:
        raise InputError(f"max_parents is at least 1, not {max_parents}")
    scatter = _scatter(graphs, max_parents, min_children)
    gather = _scatter(graphs.reversed, max_parents, min_children)
    return Decomposition(
        scatter, gather, _share(graphs, scatter & gather), _share(graphs, scatter | gather)
    )


def _scatter(graphs: Graphs, max_parents: int, min_children: int) -> Mask:
    from sim.dags.kernels import patterns as kernel

    scatter = np.empty(graphs.n_stages, dtype=np.bool_)
    back = graphs.reversed
    kernel.find_scatter(
        graphs.job_stage0, graphs.edge0, graphs.edge_child, back.edge0, back.edge_child,
        max_parents, min_children, scatter,
    )  # fmt: skip
    return scatter


def _max_degree(graphs: Graphs, degree: I8) -> I8:
    if not graphs.n_jobs:
        return np.zeros(0, dtype=np.int64)
    return np.maximum.reduceat(degree, graphs.job_stage0[:-1])


def _share(graphs: Graphs, chosen: Mask) -> F8:
    if not graphs.n_jobs:
        return np.zeros(0)
    counts = np.add.reduceat(chosen.astype(np.int64), graphs.job_stage0[:-1])
    return counts / graphs.job_n_stages


def classes(graphs: Graphs) -> I8:
    """Assign jobs to isomorphism classes.

    Jobs of equal edge lists are grouped first, and one of each group is split into its connected
    components. Each component gets a Weisfeiler–Leman hash, and its edges are listed under a
    numbering of its stages by colour (`sim.dags.kernels.patterns`). Components of equal lists are
    isomorphic, by that numbering. If several lists share a hash, VF2 (networkx) compares them with
    one member of each class so far. Jobs are isomorphic if their components are.

    Two jobs have the same number, from 0 in order of first appearance, if and only if their DAGs
    are isomorphic. The paper uses DAGs of at least six stages: small ones can be equal by chance.
    """
    if not graphs.n_jobs:
        return np.zeros(0, dtype=np.int64)
    job_group, first = _group_by_edges(graphs)
    distinct = graphs.take(first)
    components, job = _components(distinct)
    component_class = _connected_classes(components)
    sorted_classes = component_class[np.lexsort((component_class, job))]
    component0 = offsets(np.bincount(job, minlength=distinct.n_jobs))
    group_class, _ = _number(_split(sorted_classes, component0))
    return group_class[job_group]


def _connected_classes(graphs: Graphs) -> I8:
    from sim.dags.kernels import patterns as kernel

    job_group, first = _group_by_edges(graphs)
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
    group_list, first = _number(_edge_lists(distinct, codes))
    buckets: dict[int, list[int]] = {}
    list_class: I8 = np.empty(len(first), dtype=np.int64)
    n_classes = 0
    for row, job in enumerate(first.tolist()):
        bucket = buckets.setdefault(int(hashes[job]), [])
        same = next((r for r in bucket if _isomorphic(distinct, int(first[r]), job)), None)
        if same is None:
            bucket.append(row)
            list_class[row] = n_classes
            n_classes += 1
        else:
            list_class[row] = list_class[same]
    return list_class[group_list][job_group]


def _components(graphs: Graphs) -> tuple[Graphs, I8]:
    # The connected components of all jobs as separate jobs, and the original job of each.
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n = graphs.n_stages
    ones = np.ones(graphs.n_edges, dtype=np.int8)
    matrix = csr_array((ones, graphs.edge_child, graphs.edge0), shape=(n, n))
    _, label = connected_components(matrix, directed=False)
    order = np.lexsort((label, graphs.stage_job))
    position = inverse(order)
    begin = np.flatnonzero(np.diff(label[order], prepend=-1))
    sizes = np.diff(begin, append=n)
    parent, child = position[graphs.edge_parent], position[graphs.edge_child]
    return Graphs.from_edges(sizes, parent, child), graphs.stage_job[order[begin]].astype(np.int64)


def _group_by_edges(graphs: Graphs) -> tuple[I8, I8]:
    # The number of each job's edge list, and the first job of each list.
    begin = np.repeat(graphs.job_stage0[:-1], graphs.job_n_edges)
    n = np.repeat(graphs.job_n_stages, graphs.job_n_edges)
    codes = (graphs.edge_parent - begin) * n + graphs.edge_child - begin
    return _number(_edge_lists(graphs, codes))


def _edge_lists(graphs: Graphs, codes: I8) -> Iterator[tuple[int, bytes]]:
    # Each job's number of stages and the codes of its edges.
    lists = _split(codes, graphs.edge0[graphs.job_stage0])
    return zip(graphs.job_n_stages.tolist(), lists, strict=True)


def _split(values: I8, begin: I8) -> Iterator[bytes]:
    data = values.tobytes()
    ends = (begin * values.itemsize).tolist()
    return (data[a:b] for a, b in pairwise(ends))


def _number(values: Iterable[Hashable]) -> tuple[I8, I8]:
    # Numbers of distinct values in order of first appearance, and the first position of each.
    known: dict[Hashable, int] = {}
    numbers = np.array([known.setdefault(value, len(known)) for value in values], dtype=np.int64)
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
