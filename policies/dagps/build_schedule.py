"""BuildSchedule, the offline half of DAGPS (§4, Figs. 5 to 7): a compact schedule for one DAG.

CandidateTroublesomeTasks (§4.1) and its scores come first. Beyond the paper, list scheduling adds
more schedules (`policies.dagps.lists`).

Symbols of the paper: T, O, P and C are the troublesome tasks, the others, the ancestors and the
descendants; (l, f) is a pair of thresholds on LongScore and FragScore.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from policies.dagps.dag import (
    Dag,
    check_demand,
    demand_quanta,
    one_job,
    ordered_parts,
    stage_profile,
    sub_dag,
    upward_rank,
    usable_machines,
)
from policies.dagps.lists import ListSearch, shortest_placement, without_demands
from policies.dagps.placer import Placement, Placer, Space, to_placement
from policies.dagps.span_bounds import exact_bound_s, span_lower_bound, stage_load
from sim.base.arrays import F8, I4, I8, Mask
from sim.base.errors import InputError
from sim.cluster.cluster import Cluster
from sim.workload.workload import Workload

Candidates = Literal["paper", "more"]
"""Candidate schedules: those of §4 alone, or also list schedules and shared fungible resources."""

T, O, P, C = range(4)  # noqa: E741  # the paper's names
"""Labels of tasks: troublesome, others, ancestors, descendants."""


def time_alone(placer: Placer) -> F8:
    """Measure the time that a greedy packer needs for each stage alone, (G,) s."""
    stage = placer.dag.task_stage
    stages = range(len(placer.dag.order))
    spans = [placer.place(stage, g, False, placer.empty, 0, np.inf) for g in stages]
    return np.array([0.0 if space is None else space.span_s for space in spans])


def frag_score(dag: Dag, capacity: I8, alone: F8) -> F8:
    """Score how well each stage packs: its work over the time it takes alone (§4.1)."""
    score = np.ones(len(alone))
    np.divide(stage_load(dag, capacity).max(axis=1), alone, out=score, where=alone > 0)
    return score


def candidate_labels(
    duration: F8, frag_score: F8, forward_dag: Any, reversed_dag: Any, max_candidates: int | None
) -> list[I4]:
    """Label a DAG's tasks once for each discriminative pair of thresholds (l, f).

    A task is troublesome if it is at least as long as l times the longest task, or has a FragScore
    of at most f, or lies on a path between two such tasks. l runs through all LongScores, the
    largest first. For each l, f starts below every FragScore and then runs through all of them,
    the smallest first. A set that occurred before is left out.
    """
    labels: dict[bytes, I4] = {}
    seen: set[bytes] = set()
    for picked in _threshold_sets(duration, frag_score, max_candidates):
        key = np.packbits(picked).tobytes()
        if key in seen:
            continue
        seen.add(key)
        label = label_tasks(picked, forward_dag, reversed_dag)
        labels.setdefault((label == T).tobytes(), label)
    return _spread(list(labels.values()), max_candidates)


def label_tasks(picked: Mask, forward_dag: Any, reversed_dag: Any) -> I4:
    """Label the tasks of a DAG, given those `picked` as troublesome."""
    from policies.dagps.kernels.dagrecord import mark_descendants  # compiled: slow to import

    below, above = np.empty_like(picked), np.empty_like(picked)
    mark_descendants(forward_dag, picked, below)
    mark_descendants(reversed_dag, picked, above)
    label = np.full(len(picked), O, dtype=np.int32)
    label[above] = P
    label[below] = C
    label[picked | (above & below)] = T
    return label


def _threshold_sets(duration: F8, frag_score: F8, max_candidates: int | None) -> Iterator[Mask]:
    long_scores, frag_scores = np.unique(duration)[::-1], np.unique(frag_score)
    if max_candidates is not None:
        frag_scores = np.array(_spread(list(frag_scores), 2 * max_candidates))
        long_scores = np.array(
            _spread(list(long_scores), max(1, 4 * max_candidates // (1 + len(frag_scores))))
        )
    poor_packing = [np.zeros(len(duration), dtype=np.bool_)] + [
        frag_score <= f for f in frag_scores
    ]
    for shortest in long_scores:
        long = duration >= shortest
        for packs_poorly in poor_packing:
            yield long | packs_poorly


def _spread(items: list[Any], n_max: int | None) -> list[Any]:
    """Return at most `n_max` of the items, evenly spread, the first included."""
    if n_max is None or len(items) <= n_max:
        return items
    return [items[i * len(items) // n_max] for i in range(n_max)]


MAX_CANDIDATES = 128
"""Default limit on the sets of troublesome tasks that are tried for each part of a DAG.

``python -m benchmarks.dagps`` measures the loss with fewer sets. Few random DAGs of 1,000 tasks
with one profile a stage have more sets, and trying all of them found nothing better.
"""


@dataclass(frozen=True, eq=False)
class Schedule:
    """A schedule of T tasks."""

    begin_s: F8  # begin of each task; the first begins at 0
    end_s: F8
    machine: I4
    order: I8  # tasks by begin, ties by row
    makespan_s: float  # end of the last task


def build_schedule(
    workload: Workload,
    cluster: Cluster,
    job: int = 0,
    *,
    profile: Literal["task", "stage"] = "task",
    max_candidates: int | None = MAX_CANDIDATES,
    candidates: Candidates = "more",
) -> Schedule:
    """Build the schedule of one job alone on a cluster: BuildSchedule (§4, Figs. 5 to 7).

    With `candidates` "paper" the result is the paper's. With "more" it is the best of the paper's
    and of list schedules that share fungible resources, which goes beyond the paper
    (`improve_with_lists`).
    """
    columns = workload.columns
    if not 0 <= job < len(columns.job_submit):
        raise InputError(f"there is no job {job}; valid: 0 to {len(columns.job_submit) - 1}")
    demand, capacity = demand_quanta(columns, cluster)
    duration = columns.task_duration if profile == "task" else stage_profile(columns)
    shared = shared_resources(cluster, candidates)
    return schedule(one_job(columns, demand, job, duration), capacity, max_candidates, shared)


def shared_resources(cluster: Cluster, candidates: Candidates) -> Mask | None:
    """Return a mask of a cluster's fungible resources, (R,); None for the paper's candidates."""
    if candidates not in get_args(Candidates):
        raise InputError(f"candidates must be 'paper' or 'more', not {candidates!r}")
    return None if candidates == "paper" else np.isin(cluster.resources, cluster.fungible)


def schedule(
    dag: Dag, capacity: I8, max_candidates: int | None = MAX_CANDIDATES, shared: Mask | None = None
) -> Schedule:
    """Build the schedule of a DAG, one totally ordered part after the other (§4.4)."""
    if max_candidates is not None and max_candidates < 1:
        raise InputError(f"max_candidates must be at least 1, or None for all: {max_candidates}")
    check_demand(dag.demand, capacity)
    n = len(dag.duration)
    begin, end, machine = np.zeros(n), np.zeros(n), np.zeros(n, dtype=np.int32)
    now = 0.0
    for stages in ordered_parts(dag):
        part, tasks = sub_dag(dag, stages)
        if is_uniform(part, shared):
            compact = place_in_order(part, capacity)
        else:
            compact = most_compact(part, capacity, max_candidates)
            if shared is not None:
                compact = improve_with_lists(part, capacity, max_candidates, shared, compact)
        shift = now - compact.begin.min()
        begin[tasks], end[tasks] = compact.begin + shift, compact.end + shift
        machine[tasks] = compact.machine
        now = float(end[tasks].max())
    return Schedule(begin, end, machine, np.argsort(begin, kind="stable"), now)


def is_uniform(dag: Dag, shared: Mask | None) -> bool:
    """Tell whether a DAG is one stage of equal tasks that never share an overbooked resource.

    No schedule of equal tasks ends before the greedy one in the order of rows, and no schedule that
    BuildSchedule or list scheduling builds differs from that one by as much as a rounding error.
    """
    if len(dag.order) > 1 or (dag.duration != dag.duration[0]).any():
        return False
    return shared is None or len(dag.duration) == 1 or not dag.demand[0, shared].any()


def place_in_order(dag: Dag, capacity: I8, priority: F8 | None = None) -> Placement:
    """Schedule a DAG alone, greedily: of the ready tasks the one of highest priority goes next."""
    placer = Placer(dag, usable_machines(capacity, len(dag.duration)), priority)
    whole = np.zeros(len(dag.duration), dtype=np.int32)
    space = placer.place(whole, 0, False, placer.empty, 0, np.inf)
    assert space is not None  # there is no limit
    return to_placement(space)


def most_compact(dag: Dag, capacity: I8, max_candidates: int | None) -> Placement:
    """Build the most compact schedule over all choices of troublesome tasks (Fig. 5)."""
    placer = Placer(dag, usable_machines(capacity, len(dag.duration)))
    alone = time_alone(placer)
    best: Placement | None = None
    bound_s = max(span_lower_bound(dag, capacity, alone), exact_bound_s(dag, capacity, alone))
    score = frag_score(dag, capacity, alone)[dag.task_stage]
    for label in candidate_labels(
        dag.duration, score, placer.forward_dag, placer.reversed_dag, max_candidates
    ):
        for better in subset_orders(placer, label, np.inf if best is None else best.span_s):
            best = better
        if best is not None and best.span_s <= bound_s:
            break
    assert best is not None  # the first set is placed without a limit; no order has dead ends
    return best


def improve_with_lists(
    dag: Dag, capacity: I8, max_candidates: int | None, shared: Mask, best: Placement
) -> Placement:
    """Return a list schedule shorter than `best`, if there is one; beyond the paper.

    The virtual space can't show that an overbooked fungible resource is shared and slows down its
    users. So BuildSchedule runs once more without the fungible demands. The resulting order, the
    order of `best` and the lists of list scheduling are then run as the simulator would run them
    (`policies.dagps.lists`): once with all demands held to capacity, and once with the fungible
    ones overbooked.
    """
    bounds_s = _list_bounds_s(dag, capacity, best.span_s)
    demanded = _demanded(dag, shared)
    if best.span_s <= bounds_s[int(demanded.any())]:
        return best
    machines = usable_machines(capacity, len(dag.duration))
    seed_keys = _seed_keys(dag, capacity, max_candidates, demanded, best)
    return shortest_placement(dag, machines, demanded, seed_keys, best, bounds_s)


def _list_bounds_s(dag: Dag, capacity: I8, span_s: float = np.inf) -> tuple[float, float]:
    """Bound the span of lists from below, s: with all demands held to capacity, and with none.

    A `span_s` at the second bound needs no better first one.
    """
    bound_s = span_lower_bound(dag, capacity, np.zeros(len(dag.order)))
    if span_s <= bound_s:
        return bound_s, bound_s
    alone = time_alone(Placer(dag, usable_machines(capacity, len(dag.duration))))
    return max(bound_s, exact_bound_s(dag, capacity, alone)), bound_s


def _demanded(dag: Dag, shared: Mask) -> Mask:
    demanded: Mask = shared & (dag.demand > 0).any(axis=0)
    return demanded


def _seed_keys(
    dag: Dag, capacity: I8, max_candidates: int | None, demanded: Mask, best: Placement
) -> list[F8]:
    """Return the begins of tasks with and without the `demanded` shared resources."""
    seed_keys = [best.begin]
    if demanded.any():
        seed_keys.append(
            most_compact(without_demands(dag, demanded), capacity, max_candidates).begin
        )
    return seed_keys


def best_list(
    dag: Dag, capacity: I8, max_candidates: int | None, shared: Mask
) -> tuple[I8, Mask, float]:
    """Find the list that ends a DAG alone on its machines first, if the run follows it throughout.

    The candidates are the lists that `improve_with_lists` tries, part by part.

    Returns
    -------
    position : (T,) int64
        Position of each task in the list.
    checked : (R,) bool
        The resources that a task must fit; all others are shared.
    span_s : float
        Makespan of the list.
    """
    check_demand(dag.demand, capacity)
    machines = usable_machines(capacity, len(dag.duration))
    part_lists: list[tuple[I8, list[tuple[float, NDArray[Any]]]]] = []
    for part, tasks in (sub_dag(dag, stages) for stages in ordered_parts(dag)):
        compact = most_compact(part, capacity, max_candidates)
        demanded = _demanded(part, shared)
        seed_keys = _seed_keys(part, capacity, max_candidates, demanded, compact)
        search, bounds_s = ListSearch(part, machines, demanded), _list_bounds_s(part, capacity)
        part_lists.append(
            (
                tasks,
                [
                    search.shortest_list(seed_keys, checked, bound_s)
                    for checked, bound_s in zip(search.checked_choices(), bounds_s, strict=False)
                ],
            )
        )
    all_fit, overbooked = (sum(lists[choice][0] for _, lists in part_lists) for choice in (0, -1))
    choice = 0 if all_fit <= overbooked else -1
    position = np.empty(len(dag.duration), dtype=np.int64)
    n_before = 0
    for tasks, lists in part_lists:
        by_key = np.argsort(lists[choice][1], kind="stable")
        position[tasks[by_key]] = n_before + np.arange(len(tasks))
        n_before += len(tasks)
    checked = ~shared if choice else np.ones_like(shared)
    return position, checked, min(all_fit, overbooked)


def subset_orders(placer: Placer, label: I4, limit: float) -> Iterator[Placement]:
    """Try the four orders of subsets without dead ends (§4.3, Fig. 7); yield improvements."""
    trouble = placer.place_more_compact(label, T, placer.empty, (0, 1), limit)
    if trouble is None:
        return
    others_placed = placer.place_more_compact(label, O, trouble, (2, 3), limit)
    sequences: list[tuple[Space | None, tuple[tuple[int, bool], ...]]]
    sequences = [(others_placed, ((C, False), (P, True))), (others_placed, ((P, True), (C, False)))]
    if (label == O).any():  # without others, these orders repeat the first two
        sequences += [
            (trouble, ((C, False), (O, True), (P, True))),
            (trouble, ((P, True), (O, False), (C, False))),
        ]
    for start, steps in sequences:
        space = start
        for i, (subset, backward) in enumerate(steps):
            if space is not None:
                space = placer.place(label, subset, backward, space, 4 + i % 2, limit)
        if space is not None:
            limit = space.span_s
            yield to_placement(space)


def heft_schedule(dag: Dag, capacity: I8) -> Placement:
    """Schedule a DAG alone on some machines by HEFT, the reference for BuildSchedule."""
    return place_in_order(dag, capacity, upward_rank(dag))
