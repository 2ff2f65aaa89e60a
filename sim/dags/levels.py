"""Levels of the stages of DAGs (Tian et al., SoCC 2019, §7.1), many DAGs at once.

A level assignment gives every child a larger number than its parents. The *compact* assignment,
which Algorithm 2's tables are counted from, minimizes the sum of l(child) − l(parent) over the
edges.
"""

from __future__ import annotations

import numpy as np

from sim.base.arrays import I4, I8
from sim.dags.graphs import Graphs


def longest_path_levels(graphs: Graphs) -> I4:
    """Count the stages on the longest path that ends in each stage, (G,) int32; no cycles."""
    from sim.workload.kernels import paths

    return paths.depths(graphs.order, graphs.edge0, graphs.edge_child) + np.int32(1)


def critical_path_length(graphs: Graphs) -> I4:
    """Count the stages on the longest path of each job, (J,) int32; InputError on a cycle."""
    return path_lengths(graphs, longest_path_levels(graphs))


def compact_levels(graphs: Graphs) -> I4:
    """Assign levels so that the total span of a job's edges is minimal.

    The exact minimum of the sum of l(child) − l(parent), subject to l(child) ≥ l(parent) + 1 and
    1 ≤ l ≤ critical path length; of the optimal assignments, the smallest in every stage (it
    exists, as they are closed under the componentwise minimum). See `sim.dags.kernels.compact` for
    the method and its proof. InputError on a cycle.
    """
    from sim.dags.kernels import compact

    levels = longest_path_levels(graphs)
    in0, in_edge = graphs.by_child
    compact.compact(
        graphs.job_stage0,
        path_lengths(graphs, levels),
        graphs.edge0,
        graphs.edge_child,
        graphs.edge_parent,
        in0,
        in_edge,
        levels,
    )
    return levels


def path_lengths(graphs: Graphs, levels: I4) -> I4:
    """Return the critical path length of each job in stages, (J,) int32, from its levels."""
    if not len(levels):
        return np.zeros(0, dtype=np.int32)
    return np.maximum.reduceat(levels, graphs.job_stage0[:-1])


def edge_spans(graphs: Graphs, levels: I4) -> I4:
    """Return the level difference of each edge, (E,) int32; 1 for neighbouring levels (§7.1)."""
    return levels[graphs.edge_child] - levels[graphs.edge_parent]


def level_counts(graphs: Graphs, levels: I4) -> I8:
    """Count the stages on each level by the length of the job's critical path (Fig. 10).

    (L + 1, L + 1) int64, ``counts[length, level]``, with L the longest path of all.
    """
    lengths = path_lengths(graphs, levels)
    side = int(lengths.max(initial=0)) + 1
    cell = np.repeat(lengths, graphs.job_n_stages).astype(np.int64) * side + levels
    counts: I8 = np.bincount(cell, minlength=side * side)
    return counts.reshape(side, side)
