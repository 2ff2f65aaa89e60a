"""A lower bound tighter than NewLB: gaps between stages, closed by work and by packing.

Everything here bounds one totally ordered part (`sim.bounds.kernels.bounds.part_starts`) from
below: the parts follow each other, so a schedule of the job is one of each, and their bounds add
up. Each piece with the reason why it holds, for any schedule that does not interrupt tasks:

- *A stage run whole* takes at least its work over the capacity, its longest task, and, as at most
  K of its tasks run at once, what its tasks take on K slots
  (`sim.bounds.kernels.bounds.stage_waves`).
- *Gaps and leads* (`sim.bounds.kernels.gaps`). R(s) of the recursion over barriers, the time before
  which no task of s begins, is the gap from the begin to s. Over a barrier from p to s it is at
  least R(p) + the time p takes whole, as all of s waits for all of p. Over a one-to-one edge it is
  at least R(p) + p's shortest task, if no task of s lacks a partner (n_s ≤ n_p). All of s ends
  no earlier than all of p and the shortest task of s, if no task of p lacks one (n_s ≥ n_p). The
  same holds from any stage on, and backwards from the end, so that every pair of stages of which
  one waits for all of the other has a least gap, and heads R and tails Q are two rows of a table.
- *Energetic reasoning*. Let A be stages that all wait for all of t, and for all of which s waits.
  They run after the end of t + their least gap from t, and before s less their least gap to s;
  so their work fits between. What is left between t and s is at least the two and that work over
  what can be done at once; the greatest over A. With t the begin and s the end, A is the tasks of
  a time window given by a head and a tail. Gaps that it raises raise those around them.
- *What can be done at once*. Resource by resource, the capacity. Beyond that, *packing weights*:
  if no set of tasks that one machine can run at once weighs more than 1, then all M machines run
  a weight of M at most at any instant, and Σ weight × duration / M bounds the time. A set that a
  machine can run holds within its capacity in all resources together, and no task in it waits for
  another. Weights are made by lifting: the first stage weighs 1 over how many of its tasks fit;
  the next one as much as the heaviest set beside j of its tasks leaves, over j, the least over j
  (`sim.bounds.kernels.bounds.lift`). With one task a machine they are cliques of tasks that
  exclude each other; with chains they are paths.

Packing and waves count only resources that can't be overbooked (`sim.cluster.cluster.Cluster`).
Over a fungible one only the capacity counts: however much its tasks are stretched, they do not get
more of it at any instant, and while they are stretched they hold the rest no shorter.
"""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I8
from sim.cluster.cluster import Cluster
from sim.workload.columns import Columns, capacity_quanta

_INT32_MAX = np.iinfo(np.int32).max


def tight_part_bounds(
    columns: Columns, cluster: Cluster, order: I8, part0: I8, load: F8, share: F8
) -> F8:
    """Bound the duration of each totally ordered part, (P,) s; 0 for one that is too large.

    `order` has the stages, parents first, and `part0` the first of each part among them; `load` is
    `sim.bounds.stage_load_s`, and `share` the part of the cluster that each job may use.
    """
    from sim.bounds.kernels import bounds as kernels
    from sim.bounds.kernels import gaps

    demand, shapes, count = quantized(columns, cluster)
    n_tasks = np.diff(columns.stage_task0)
    slots = _slots(demand, shapes, count, share[columns.stage_job], n_tasks)
    whole = kernels.stage_waves(columns.stage_run0, columns.run_task0, columns.run_duration, slots)
    whole = np.maximum(whole, load.max(axis=1))
    return gaps.part_bounds(
        order,
        np.append(part0, len(order)),
        columns.edge0,
        columns.edge_child,
        columns.edge_kind,
        columns.stage_task0,
        columns.stage_min_s,
        whole,
        columns.stage_work,
        load,
        demand,
        shapes,
        count,
    )


def quantized(columns: Columns, cluster: Cluster) -> tuple[I8, I8, I8]:
    """Return demands (G, R), kinds of machines (H, R), the largest first, and their counts (H,).

    R counts the resources that can't be overbooked.
    """
    if cluster.unit:
        shapes = cluster.capacity.astype(np.int64)
        return np.ones((len(columns.stage_job), 1), np.int64), shapes, np.ones(1, np.int64)
    if set(cluster.fungible) == set(cluster.resources):
        none = np.zeros((1, 0), np.int64)
        return none[[0] * len(columns.stage_job)], none, np.array([cluster.n_machines])
    rigid = set(cluster.resources) - set(cluster.fungible)
    used = [r for r, name in enumerate(columns.resources) if name in rigid]
    columns_of_cluster = [cluster.resources.index(columns.resources[r]) for r in used]
    capacity = capacity_quanta(cluster.capacity[:, columns_of_cluster], columns.quantum[used])
    shapes, count = np.unique(capacity, axis=0, return_counts=True)
    shapes, count = shapes[::-1], count[::-1]
    if (shapes[0] < shapes).any():  # none is the largest in everything: make one that is
        shapes, count = shapes.max(axis=0)[None], np.array([count.sum()])
    return (
        np.ascontiguousarray(columns.stage_demand[:, used]),
        np.ascontiguousarray(shapes),
        np.ascontiguousarray(count, dtype=np.int64),
    )


def _slots(demand: I8, shapes: I8, count: I8, share: F8, n_tasks: I8) -> I8:
    """Count the tasks of each stage that can run at once, at least 1, (G,)."""
    slots = np.zeros(len(demand), np.int64)
    with np.errstate(divide="ignore", invalid="ignore"):
        for shape, n in zip(shapes, count, strict=True):
            fit = np.where(demand > 0, shape // demand, n_tasks[:, None])
            slots += n * fit.min(axis=1, initial=_INT32_MAX)
        total = np.floor(
            share[:, None] * (count[:, None] * shapes).sum(axis=0) * (1 + 1e-12) + 1e-9
        )
        fit = np.where(demand > 0, total // demand, n_tasks[:, None])
        within = fit.min(axis=1, initial=_INT32_MAX)
    n_slots: I8 = np.clip(np.minimum(slots, within), 1, n_tasks).astype(np.int64)
    return n_slots
