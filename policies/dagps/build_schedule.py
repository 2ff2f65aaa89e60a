"""BuildSchedule, the offline half of DAGPS (§4, Figs. 5 to 7): a compact schedule for one DAG.

Its candidates, CandidateTroublesomeTasks (§4.1), and their scores stand first. Beyond the paper,
more schedules come from lists (`policies.dagps.lists`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from policies.dagps.board import Board, Placed, Space, placed
from policies.dagps.dag import (
    Dag,
    check_demand,
    demand_quanta,
    enough,
    one_job,
    parts,
    path_s,
    read_only,
    stage_profile,
    take,
    upward_rank,
)
from policies.dagps.lists import Ways, improved, without
from sim.base.arrays import F8, I4, I8, Mask
from sim.base.errors import InputError
from sim.cluster.cluster import Cluster
from sim.workload.workload import Workload

Candidates = Literal["paper", "more"]
"""Which candidates are tried: those of §4 alone, or those of lists and of sharing as well."""

T, O, P, C = range(4)  # noqa: E741  # the paper's names
"""Labels: troublesome tasks, others, ancestors, descendants."""


def time_alone(board: Board) -> F8:
    """Measure how long a greedy packer takes for each stage alone, (G,) s."""
    stage = board.dag.task_stage
    stages = range(len(board.dag.order))
    spans = [board.place(stage, g, False, board.empty, 0, np.inf) for g in stages]
    return np.array([0.0 if space is None else space.span_s for space in spans])


def stage_load(dag: Dag, capacity: I8) -> F8:
    """Measure each stage's work against the capacity of all machines, (G, R) s."""
    work = np.add.reduceat(dag.duration, dag.task0[:-1])
    load: F8 = work[:, None] * (dag.demand / np.maximum(capacity.sum(axis=0), 1))
    return load


def frag_score(dag: Dag, capacity: I8, alone: F8) -> F8:
    """Score how well each stage packs: its work over the time it takes alone (§4.1)."""
    score = np.ones(len(alone))
    np.divide(stage_load(dag, capacity).max(axis=1), alone, out=score, where=alone > 0)
    return score


def candidates(
    duration: F8, frag_score: F8, ahead: Any, back: Any, max_candidates: int | None
) -> list[I4]:
    """Divide a DAG's tasks in every way that a discriminative pair of thresholds (l, f) gives.

    Troublesome are the tasks at least as long as l times the longest or of a FragScore of at most
    f, and whatever lies on a path between two of them. l takes every LongScore there is, the
    largest first, and for each of them f first a value below every FragScore, then each of them,
    the smallest first. A set that was seen before is left out.
    """
    labels: dict[bytes, I4] = {}
    seen: set[bytes] = set()
    for picked in _picked(duration, frag_score, max_candidates):
        key = np.packbits(picked).tobytes()
        if key in seen:
            continue
        seen.add(key)
        label = divide(picked, ahead, back)
        labels.setdefault((label == T).tobytes(), label)
    return _spread(list(labels.values()), max_candidates)


def divide(picked: Mask, ahead: Any, back: Any) -> I4:
    """Label the tasks, given those that were `picked` as troublesome."""
    from policies.dagps.kernels.dagrecord import reach  # compiled: slow to import

    below, above = np.empty_like(picked), np.empty_like(picked)
    reach(ahead, picked, below)
    reach(back, picked, above)
    label = np.full(len(picked), O, dtype=np.int32)
    label[above] = P
    label[below] = C
    label[picked | (above & below)] = T
    return label


def _picked(duration: F8, frag_score: F8, max_candidates: int | None) -> Iterator[Mask]:
    longs, frags = np.unique(duration)[::-1], np.unique(frag_score)
    if max_candidates is not None:
        frags = np.array(_spread(list(frags), 2 * max_candidates))
        longs = np.array(_spread(list(longs), max(1, 4 * max_candidates // (1 + len(frags)))))
    hard = [np.zeros(len(duration), dtype=np.bool_)] + [frag_score <= f for f in frags]
    for shortest in longs:
        long = duration >= shortest
        for packs_badly in hard:
            yield long | packs_badly


def _spread(items: list[Any], n: int | None) -> list[Any]:
    """Return `n` of the items, evenly spread, the first included."""
    if n is None or len(items) <= n:
        return items
    return [items[i * len(items) // n] for i in range(n)]


MAX_CANDIDATES = 128
"""Default of how many sets of troublesome tasks are tried for each part of a DAG.

``python -m benchmarks.dagps`` measures what fewer lose. Of drawn DAGs of 1,000 tasks with a
profile a stage, few have more sets than that, and trying all of them found nothing better.
"""

SLACK = 1e-12
"""A span within this of a lower bound, relative to it, is as good as the bound."""


@dataclass(frozen=True, eq=False)
class Schedule:
    """A schedule of T tasks."""

    begin_s: F8  # when each task runs; the first begins at 0
    end_s: F8
    machine: I4  # where
    order: I8  # tasks by begin, ties by row
    makespan_s: float  # when the last ends


def build_schedule(
    workload: Workload,
    cluster: Cluster,
    job: int = 0,
    *,
    profile: Literal["task", "stage"] = "task",
    max_candidates: int | None = MAX_CANDIDATES,
    candidates: Candidates = "more",
) -> Schedule:
    """Build the schedule of one job that has all of a cluster: BuildSchedule (§4, Figs. 5 to 7).

    With `candidates` "paper" it is the paper's; with "more" the best of that and of schedules that
    share fungible resources and follow lists, which is beyond the paper (`most_compact`).
    """
    columns = workload.columns
    if not 0 <= job < len(columns.job_submit):
        raise InputError(f"there is no job {job}; valid: 0 to {len(columns.job_submit) - 1}")
    demand, capacity = demand_quanta(columns, cluster)
    duration = columns.task_duration if profile == "task" else stage_profile(columns)
    shared = shared_resources(cluster, candidates)
    return schedule(one_job(columns, demand, job, duration), capacity, max_candidates, shared)


def shared_resources(cluster: Cluster, candidates: Candidates) -> Mask | None:
    """Tell which resources of a cluster are fungible, (R,); None for the paper's own candidates."""
    if candidates not in get_args(Candidates):
        raise InputError(f"candidates must be 'paper' or 'more', not {candidates!r}")
    return None if candidates == "paper" else np.isin(cluster.resources, cluster.fungible)


def schedule(
    dag: Dag, capacity: I8, max_candidates: int | None = MAX_CANDIDATES, shared: Mask | None = None
) -> Schedule:
    """Build the schedule of a DAG, totally ordered part by part (§4.4)."""
    if max_candidates is not None and max_candidates < 1:
        raise InputError(f"max_candidates must be at least 1, or None for all: {max_candidates}")
    check_demand(dag.demand, capacity)
    n = len(dag.duration)
    begin, end, machine = np.zeros(n), np.zeros(n), np.zeros(n, dtype=np.int32)
    now = 0.0
    for stages in parts(dag):
        part, tasks = take(dag, stages)
        compact = most_compact(part, capacity, max_candidates)
        if shared is not None:
            compact = shorter(part, capacity, max_candidates, shared, compact)
        shift = now - compact.begin.min()
        begin[tasks], end[tasks] = compact.begin + shift, compact.end + shift
        machine[tasks] = compact.machine
        now = float(end[tasks].max())
    return Schedule(begin, end, machine, np.argsort(begin, kind="stable"), now)


def most_compact(dag: Dag, capacity: I8, max_candidates: int | None) -> Placed:
    """Build the most compact schedule that some choice of troublesome tasks leads to (Fig. 5)."""
    board = Board(dag, enough(capacity, len(dag.duration)))
    alone = time_alone(board)
    best: Placed | None = None
    least = least_span(dag, capacity, alone) * (1 + SLACK)
    score = frag_score(dag, capacity, alone)[dag.task_stage]
    for label in candidates(dag.duration, score, board.ahead, board.back, max_candidates):
        for better in orders(board, label, np.inf if best is None else best.span_s):
            best = better
        if best is not None and best.span_s <= least:
            break
    assert best is not None  # the first set is placed without a limit, and no order has dead ends
    return best


def shorter(
    dag: Dag, capacity: I8, max_candidates: int | None, shared: Mask, best: Placed
) -> Placed:
    """Look beyond the paper for a schedule that is shorter than the `best` of its own candidates.

    What the virtual space can't show: that a fungible resource of which too much is demanded is
    shared, and slows down who demands it. So the search is made once more without those demands;
    its order, that of `best` and those of list scheduling are run as the simulator would run them
    (`policies.dagps.lists`): such that every demand must fit, and such that those must that can't
    be shared.
    """
    least = _least_of_all(dag, capacity)
    if best.span_s <= least:
        return best
    machines = enough(capacity, len(dag.duration))
    return improved(
        dag, machines, *_begun(dag, capacity, max_candidates, shared, best), best, least
    )


def _least_of_all(dag: Dag, capacity: I8) -> float:
    return least_span(dag, capacity, np.zeros(len(dag.order))) * (1 + SLACK)


def _begun(
    dag: Dag, capacity: I8, max_candidates: int | None, shared: Mask, best: Placed
) -> tuple[Mask, list[F8]]:
    """Return which shared resources are demanded, and when tasks begin with and without those."""
    demanded = shared & (dag.demand > 0).any(axis=0)
    begun = [best.begin]
    if demanded.any():
        begun.append(most_compact(without(dag, demanded), capacity, max_candidates).begin)
    return demanded, begun


def followed(
    dag: Dag, capacity: I8, max_candidates: int | None, shared: Mask
) -> tuple[I8, Mask, float]:
    """Find the list by which a DAG that has all machines ends first, if it is followed throughout.

    Of the lists that `shorter` tries, part by part.

    Returns
    -------
    place : (T,) int64
        Of each task in the list.
    looks : (R,) bool
        The resources of which there must be enough for a task to begin; all others are shared.
    span_s : float
        How long it takes.
    """
    check_demand(dag.demand, capacity)
    machines = enough(capacity, len(dag.duration))
    tried: list[tuple[I8, list[tuple[float, NDArray[Any]]]]] = []
    for part, tasks in (take(dag, stages) for stages in parts(dag)):
        compact = most_compact(part, capacity, max_candidates)
        demanded, begun = _begun(part, capacity, max_candidates, shared, compact)
        ways, least = Ways(part, machines, demanded), _least_of_all(part, capacity)
        tried.append((tasks, [ways.shortest(begun, looks, least) for looks in ways.looks()]))
    all_fit, shares = (sum(found[way][0] for _, found in tried) for way in (0, -1))
    way = 0 if all_fit <= shares else -1
    place = np.empty(len(dag.duration), dtype=np.int64)
    n_before = 0
    for tasks, found in tried:
        by_key = np.argsort(found[way][1], kind="stable")
        place[tasks[by_key]] = n_before + np.arange(len(tasks))
        n_before += len(tasks)
    looks = ~shared if way else np.ones_like(shared)
    return place, looks, min(all_fit, shares)


def orders(board: Board, label: I4, limit: float) -> Iterator[Placed]:
    """Try the four orders of subsets without dead ends (§4.3, Fig. 7); yield what is better."""
    trouble = board.either_way(label, T, board.empty, (0, 1), limit)
    if trouble is None:
        return
    others = board.either_way(label, O, trouble, (2, 3), limit)
    sequences: list[tuple[Space | None, tuple[tuple[int, bool], ...]]]
    sequences = [(others, ((C, False), (P, True))), (others, ((P, True), (C, False)))]
    if (label == O).any():  # else they are the same again
        sequences += [
            (trouble, ((C, False), (O, True), (P, True))),
            (trouble, ((P, True), (O, False), (C, False))),
        ]
    for start, steps in sequences:
        space = start
        for i, (subset, backward) in enumerate(steps):
            if space is not None:
                space = board.place(label, subset, backward, space, 4 + i % 2, limit)
        if space is not None:
            limit = space.span_s
            yield placed(space)


def least_span(dag: Dag, capacity: I8, alone: F8) -> float:
    """Bound the span of any schedule from below, s.

    The greatest of CPLen, TWork and ModCP (§6); a stage whose tasks are alike can't take less than
    it takes alone, as never more of them run at once than the greedy packer runs.
    """
    from sim.bounds.kernels.bounds import whole_stage_paths  # compiled: slow to import

    first = dag.task0[:-1]
    longest = np.maximum.reduceat(dag.duration, first)
    shortest = np.minimum.reduceat(dag.duration, first)
    load = stage_load(dag, capacity)
    whole = np.maximum(load.max(axis=1), longest)
    whole = np.where(longest == shortest, np.maximum(whole, alone), whole)
    group = np.zeros(len(first), dtype=np.int64)
    shape: list[NDArray[Any]] = [dag.order, group, dag.edge0, dag.edge_child, dag.edge_kind]
    path = whole_stage_paths(*[read_only(a) for a in (*shape, dag.task0, shortest, whole)])
    return float(max(path_s(dag).max(), path.max(), load.sum(axis=0).max()))


def heft_schedule(dag: Dag, capacity: I8) -> Placed:
    """Schedule a DAG on machines of its own by HEFT, which BuildSchedule is compared with."""
    board = Board(dag, capacity, upward_rank(dag))
    whole = np.zeros(len(dag.duration), dtype=np.int32)
    space = board.place(whole, 0, False, board.empty, 0, np.inf)
    assert space is not None  # there is no limit
    return placed(space)
