"""Exact compact levels: the dual of a minimum-cost flow, job by job.

Levels l go from 1 to the job's critical path length, every child above its parents, with the
minimal sum of l(child) − l(parent) over the edges, which is the sum of l(s) times (parents −
children) of s. Feasible levels are closed under componentwise minimum and maximum, so there is one
least optimum.

Begin with the least feasible levels (longest paths) and, while the sum decreases, raise a set X of
stages by one level. X may be raised if it holds no stage on the topmost level and, with a stage,
all its children just one level above ("closed"); raising it saves the sum over X of (children −
parents), its gain. Take the closed set of the largest gain and, of those, the smallest. Then

1. Levels never pass the least optimum l*. Let l ≤ l* and Z be the part of X where l = l*. The
   componentwise maximum of l + X and l* is l* + Z, their minimum l + (X − Z); both are feasible,
   and the sums of the two pairs are equal. As l* + Z is no better than l*, X − Z gains as much as
   X. X was the smallest, so Z is empty.
2. When no closed set gains, l = l*. The sets {s : l*(s) − l(s) ≥ i}, i = 1, 2, ... are closed, as
   a child just one level above its parent in l must rise at least as far; the saving of l* over l
   is the sum of their gains, none of them positive.
3. X stays the set to raise until an edge that leaves it becomes tight or one of its stages reaches
   the top, so it is raised that far at once. Any Y closed after one step gains no more than X
   did: X and Y raised in turn raise X ∪ Y and X ∩ Y, both closed before, so gain(X) + gain(Y) is at
   most twice the largest gain, gain(X). And a part of X that is closed after the step was so
   before.

The closed set is found by maximum flow from stages with more children than parents to those with
fewer (and to stages on the topmost level, without limit), through edges that span one level. X is
the set that the sources still reach in the residual graph. No flow enters X from outside, so it
stays a flow on edges of one level when X rises, and the next search continues from it: the total
number of augmentations is at most the number of edges.
"""

from __future__ import annotations

import numpy as np

from sim.base.arrays import I4, I8
from sim.base.jit import jit


@jit
def compact(
    job_stage0: I8,
    length: I4,
    edge0: I8,
    edge_child: I4,
    edge_parent: I4,
    in0: I8,
    in_edge: I8,
    state_level: I4,
) -> None:
    """Raise the least feasible levels to the least optimal ones."""
    n_stages = len(edge0) - 1
    supply = np.empty(n_stages, np.int64)
    for s in range(n_stages):
        supply[s] = (edge0[s + 1] - edge0[s]) - (in0[s + 1] - in0[s])
    flow = np.zeros(len(edge_child), np.int64)
    via = np.empty(n_stages, np.int64)  # 2e: forward on edge e; 2e + 1: backward; -1: the root
    seen = np.zeros(n_stages, np.int64)
    blocked = np.zeros(n_stages, np.int64)
    queue = np.empty(n_stages, np.int64)
    search = 0
    phase = 0
    for j in range(len(length)):
        begin, end = job_stage0[j], job_stage0[j + 1]
        top = length[j]
        rising = True
        while rising:
            phase += 1
            rising = False
            for root in range(begin, end):
                while supply[root] > 0 and blocked[root] != phase:
                    search += 1
                    seen[root] = search
                    via[root] = -1
                    queue[0] = root
                    head, tail, goal = 0, 1, -1
                    while head < tail and goal < 0:
                        s = queue[head]
                        head += 1
                        if supply[s] < 0 or state_level[s] == top:
                            goal = s
                            continue
                        for e in range(edge0[s], edge0[s + 1]):
                            c = edge_child[e]
                            if (
                                state_level[c] == state_level[s] + 1
                                and seen[c] != search
                                and blocked[c] != phase
                            ):
                                seen[c] = search
                                via[c] = 2 * e
                                queue[tail] = c
                                tail += 1
                        for i in range(in0[s], in0[s + 1]):
                            e = in_edge[i]
                            p = edge_parent[e]
                            if flow[e] > 0 and seen[p] != search and blocked[p] != phase:
                                seen[p] = search
                                via[p] = 2 * e + 1
                                queue[tail] = p
                                tail += 1
                    if goal >= 0:
                        _augment(
                            goal,
                            state_level[goal] == top,
                            edge_child,
                            edge_parent,
                            via,
                            flow,
                            supply,
                        )
                    else:
                        rising = True
                        for i in range(tail):
                            blocked[queue[i]] = phase
            if rising:
                _raise(begin, end, top, phase, edge0, edge_child, blocked, state_level)


@jit
def _augment(goal, unlimited, edge_child, edge_parent, via, state_flow, state_supply):
    # Send the maximum amount along the path from the root of the search to the goal.
    amount = np.iinfo(np.int64).max if unlimited else -state_supply[goal]
    s = goal
    while via[s] >= 0:
        e = via[s] // 2
        if via[s] % 2:
            amount = min(amount, state_flow[e])
            s = edge_child[e]
        else:
            s = edge_parent[e]
    amount = min(amount, state_supply[s])
    state_supply[s] -= amount
    if not unlimited:
        state_supply[goal] += amount
    s = goal
    while via[s] >= 0:
        e = via[s] // 2
        if via[s] % 2:
            state_flow[e] -= amount
            s = edge_child[e]
        else:
            state_flow[e] += amount
            s = edge_parent[e]


@jit
def _raise(begin, end, top, phase, edge0, edge_child, blocked, state_level):
    # Raise the blocked stages until an edge out of them spans one level or one reaches the top.
    step = top
    for s in range(begin, end):
        if blocked[s] == phase:
            step = min(step, top - state_level[s])
            for e in range(edge0[s], edge0[s + 1]):
                c = edge_child[e]
                if blocked[c] != phase:
                    step = min(step, state_level[c] - state_level[s] - 1)
    for s in range(begin, end):
        if blocked[s] == phase:
            state_level[s] += step
