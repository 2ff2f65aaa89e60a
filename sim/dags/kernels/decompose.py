"""Algorithm 1 of Tian et al. (SoCC 2019): what is left of a DAG when a pattern is pruned out."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import I4, I8, Mask
from sim.base.jit import jit


@jit
def find_scatter(
    job_stage0: I8, edge0: I8, edge_child: I4, in0: I8, parent: I4, most: int, out_kept: Mask
) -> None:
    """Keep the stages of each job's scatter component.

    Stages are pruned one at a time in the order of their rows, and counts of parents and children
    are those of the stages not yet pruned: first all of more than `most` parents, then all that
    have neither parent nor child, and so on until no stage is.
    """
    n_parents = np.empty(len(out_kept), np.int64)  # by a loop: np.diff takes seconds to compile
    n_children = np.empty(len(out_kept), np.int64)
    for s in range(len(out_kept)):
        n_parents[s] = in0[s + 1] - in0[s]
        n_children[s] = edge0[s + 1] - edge0[s]
        out_kept[s] = True
    for j in range(len(job_stage0) - 1):
        pruned = True
        while pruned:
            pruned = False
            for rule in range(2):
                for s in range(job_stage0[j], job_stage0[j + 1]):
                    if not out_kept[s]:
                        continue
                    if rule == 0 and n_parents[s] <= most:
                        continue
                    if rule == 1 and n_parents[s] + n_children[s] > 0:
                        continue
                    pruned = True
                    out_kept[s] = False
                    for e in range(edge0[s], edge0[s + 1]):
                        n_parents[edge_child[e]] -= 1
                    for i in range(in0[s], in0[s + 1]):
                        n_children[parent[i]] -= 1
