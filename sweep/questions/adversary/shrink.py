"""Smallest instance that still shows a loss: delta debugging over jobs, stages, tasks and edges.

Source: Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", IEEE
Transactions on Software Engineering 28(2), 2002: subsets of halves, quarters and so on are left out
as long as what is left still fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from sweep.questions.adversary.instances import (
    Jobs,
    fit_gang,
    is_rigid,
    shifted,
    with_job,
    with_stage,
    without_stage,
)

T = TypeVar("T")
Shows = Callable[[Jobs], bool]
"""Tells whether an instance still shows the loss."""
DIGITS = (1, 2, 3)


def shrink(jobs: Jobs, shows: Shows, is_over: Callable[[], bool]) -> Jobs:
    """Leave out jobs, stages, tasks and edges, and round numbers, as long as the loss shows."""
    while not is_over():
        before = jobs
        if len(jobs) > 1:
            needed = reduce(jobs, lambda some: bool(some) and shows(shifted([*some])), is_over)
            jobs = shifted([*needed])
        for simpler in (_fewer_stages, _fewer_tasks, _fewer_edges, _rounder):
            jobs = _first_of(jobs, simpler, shows, is_over)
        if jobs == before:
            break
    return jobs


def reduce(
    items: Sequence[T], holds: Callable[[Sequence[T]], bool], is_over: Callable[[], bool]
) -> Sequence[T]:
    """Return a subset for which `holds`, and from which no single item can be left out."""
    n_parts = 2
    while len(items) > 1 and not is_over():
        length = -(-len(items) // n_parts)
        for first in range(0, len(items), length):
            fewer = [*items[:first], *items[first + length :]]
            if holds(fewer):
                items, n_parts = fewer, max(n_parts - 1, 2)
                break
        else:
            if length == 1:
                break
            n_parts = min(2 * n_parts, len(items))
    return items


def _first_of(
    jobs: Jobs, simpler: Callable[[Jobs], Iterator[Jobs]], shows: Shows, is_over: Callable[[], bool]
) -> Jobs:
    """Take the first simpler instance that shows the loss, as long as there is one."""
    while not is_over():
        chosen = next((other for other in simpler(jobs) if other != jobs and shows(other)), None)
        if chosen is None:
            return jobs
        jobs = chosen
    return jobs


def _fewer_stages(jobs: Jobs) -> Iterator[Jobs]:
    for i, job in enumerate(jobs):
        for s in range(len(job["stages"])):
            if len(job["stages"]) > 1:
                yield without_stage(jobs, i, s)


def _fewer_tasks(jobs: Jobs) -> Iterator[Jobs]:
    for i, job in enumerate(jobs):
        for s, stage in enumerate(job["stages"]):
            n = len(stage["durations_s"])
            for fewer in dict.fromkeys((1, n // 2, n - 1)):
                if 0 < fewer < n:
                    changed = with_stage(jobs, i, s, durations_s=stage["durations_s"][:fewer])
                    if is_rigid(job):
                        yield with_job(changed, i, min_tasks=fewer)
                    else:
                        yield with_job(changed, i, **fit_gang(changed[i]))


def _fewer_edges(jobs: Jobs) -> Iterator[Jobs]:
    for i, job in enumerate(jobs):
        for s, stage in enumerate(job["stages"]):
            for name in stage["parents"]:
                parents = {k: v for k, v in stage["parents"].items() if k != name}
                yield with_stage(jobs, i, s, parents=parents)


def _rounder(jobs: Jobs) -> Iterator[Jobs]:
    """Yield instances with one kind of numbers of a job rounded, or a submission at 0."""
    for i, job in enumerate(jobs):
        for digits in DIGITS:
            if job["submit_s"]:
                for value in (0.0, _round(job["submit_s"], digits)):
                    if value < job["submit_s"] or digits == DIGITS[-1]:
                        yield shifted(with_job(jobs, i, submit_s=value))
            for s, stage in enumerate(job["stages"]):
                rounded = [_round(value, digits) for value in stage["durations_s"]]
                if _is_longer(stage["durations_s"], rounded):
                    yield with_stage(jobs, i, s, durations_s=rounded)
                demand = {name: _round(v, digits) for name, v in stage["demand"].items()}
                if _is_longer([*stage["demand"].values()], [*demand.values()]):
                    yield with_stage(jobs, i, s, demand=demand)


def _is_longer(before: Sequence[float], after: Sequence[float]) -> bool:
    """Tell whether numbers are written longer before than after."""
    return sum(len(repr(v)) for v in before) > sum(len(repr(v)) for v in after)


def _round(value: Any, digits: int) -> float:
    return float(f"{value:.{digits}g}")
