"""Changes of an instance: one job, stage, arrival or edge at a time, within bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sim.base import maths
from sim.base.random import Stream
from sim.cluster.cluster import Cluster
from sim.workload.schema import EDGE_KINDS
from sweep.questions.adversary.instances import (
    Jobs,
    fit_gang,
    is_rigid,
    shifted,
    stages_of,
    with_job,
    with_stage,
    without_stage,
)

SPREAD = 1000.0
"""Factor between the middle duration and the shortest and longest ones that are tried."""
STEP = 1.0
"""Spread of the logarithm of a change of duration."""


@dataclass(frozen=True)
class Bounds:
    """Bounds of the instances that are tried.

    Attributes
    ----------
    n_jobs, n_tasks : int
        Largest numbers of jobs, and of tasks of a stage.
    low_s, high_s : float
        Shortest and longest duration of a task, s.
    span_s : float
        Longest time from the first submission to the last, s.
    largest : dict of str to float
        Largest demand for each resource: that of a machine, or 1 of a pool.
    """

    n_jobs: int
    n_tasks: int
    low_s: float
    high_s: float
    span_s: float
    largest: dict[str, float]


def bounds_of(jobs: Jobs, cluster: Cluster, n_jobs: int, n_tasks: int) -> Bounds:
    """Return the bounds around a first instance."""
    lengths = [s for stage in stages_of(jobs) for s in stage["durations_s"] if s > 0] or [1.0]
    middle = float(np.median(lengths))
    total = sum(lengths)
    largest = (
        {}
        if cluster.unit
        else dict(zip(cluster.resources, cluster.capacity.max(axis=0).tolist(), strict=True))
    )
    return Bounds(n_jobs, n_tasks, middle / SPREAD, middle * SPREAD, total, largest)


def change(jobs: Jobs, bounds: Bounds, rng: Stream) -> Jobs:
    """Return jobs with one random change, or the same if it can't be made."""
    kinds = _POOL if not bounds.largest else _MACHINES
    return kinds[_pick(rng, len(kinds))](jobs, bounds, rng)


def _pick(rng: Stream, n: int) -> int:
    return min(int(rng.uniform() * n), n - 1)


def _factor(rng: Stream, spread: float = STEP) -> float:
    return float(maths.exp(np.array([spread * rng.normal()]))[0])


def _stage(jobs: Jobs, rng: Stream) -> tuple[int, int]:
    i = _pick(rng, len(jobs))
    return i, _pick(rng, len(jobs[i]["stages"]))


def _scaled(durations: list[float], factor: float, bounds: Bounds) -> list[float]:
    return [min(max(s * factor, bounds.low_s), bounds.high_s) for s in durations]


def _longer(jobs: Jobs, bounds: Bounds, rng: Stream) -> Jobs:
    """Scale the durations of a stage; a limit of its job with them."""
    i, s = _stage(jobs, rng)
    before = jobs[i]["stages"][s]["durations_s"]
    # now and then to the shortest one, which costs next to nothing
    factor = _factor(rng) if rng.uniform() < 0.7 else bounds.low_s / max(before[0], bounds.low_s)
    changed = with_stage(jobs, i, s, durations_s=_scaled(before, factor, bounds))
    limit_s = jobs[i].get("requested_s")
    if limit_s:
        changed = with_job(changed, i, requested_s=limit_s * factor)
    return changed


def _like(jobs: Jobs, bounds: Bounds, rng: Stream) -> Jobs:
    """Give a stage the duration of another one."""
    i, s = _stage(jobs, rng)
    j, t = _stage(jobs, rng)
    other = jobs[j]["stages"][t]["durations_s"][0]
    n = len(jobs[i]["stages"][s]["durations_s"])
    changed = with_stage(jobs, i, s, durations_s=[other] * n)
    if jobs[i].get("requested_s") and jobs[j].get("requested_s"):
        changed = with_job(changed, i, requested_s=jobs[j]["requested_s"])
    return changed


def _limit(jobs: Jobs, bounds: Bounds, rng: Stream) -> Jobs:
    """Scale the limit of a job, at least to its durations."""
    i = _pick(rng, len(jobs))
    limit_s = jobs[i].get("requested_s")
    if not limit_s:
        return _longer(jobs, bounds, rng)
    longest = max(s for stage in jobs[i]["stages"] for s in stage["durations_s"])
    return with_job(jobs, i, requested_s=max(limit_s * _factor(rng), longest))


def _wider(jobs: Jobs, bounds: Bounds, rng: Stream) -> Jobs:
    """Draw another number of tasks for a stage, all like its first."""
    i, s = _stage(jobs, rng)
    n = 1 + _pick(rng, bounds.n_tasks)
    first = jobs[i]["stages"][s]["durations_s"][0]
    changed = with_stage(jobs, i, s, durations_s=[first] * n)
    job = changed[i]
    if is_rigid(job):
        return with_job(changed, i, min_tasks=n)
    return with_job(changed, i, **fit_gang(job))


def _arrive(jobs: Jobs, bounds: Bounds, rng: Stream) -> Jobs:
    """Move a submission: anywhere, beside that of another job, or just after it."""
    i, j = _pick(rng, len(jobs)), _pick(rng, len(jobs))
    ways = (
        rng.uniform() * bounds.span_s,
        jobs[j]["submit_s"],
        jobs[j]["submit_s"] + bounds.low_s,
    )
    return shifted(with_job(jobs, i, submit_s=ways[_pick(rng, len(ways))]))


def _squeeze(jobs: Jobs, bounds: Bounds, rng: Stream) -> Jobs:
    """Scale all times of submission."""
    factor = _factor(rng)
    return [{**job, "submit_s": min(job["submit_s"] * factor, bounds.span_s)} for job in jobs]


def _copy(jobs: Jobs, bounds: Bounds, rng: Stream) -> Jobs:
    """Add a copy of a job, or several."""
    room = bounds.n_jobs - len(jobs)
    if room < 1:
        return _drop(jobs, bounds, rng)
    taken = {job["job_id"] for job in jobs}
    free = (name for k in range(2 * bounds.n_jobs) if (name := f"job-{k}") not in taken)
    job = jobs[_pick(rng, len(jobs))]
    n = 1 if rng.uniform() < 0.7 else 1 + _pick(rng, room)
    return shifted([*jobs, *({**job, "job_id": next(free)} for _ in range(n))])


def _drop(jobs: Jobs, bounds: Bounds, rng: Stream) -> Jobs:
    """Leave a job out."""
    if len(jobs) < 2:
        return jobs
    i = _pick(rng, len(jobs))
    return shifted([job for k, job in enumerate(jobs) if k != i])


def _demand(jobs: Jobs, bounds: Bounds, rng: Stream) -> Jobs:
    """Draw another demand of a stage for a resource, or the demands of another stage."""
    i, s = _stage(jobs, rng)
    demand = dict(jobs[i]["stages"][s]["demand"])
    if rng.uniform() < 0.2:
        j, t = _stage(jobs, rng)
        return with_stage(jobs, i, s, demand=jobs[j]["stages"][t]["demand"])
    names = [name for name in bounds.largest if name in demand]
    if not names:
        return jobs
    name = names[_pick(rng, len(names))]
    largest = bounds.largest[name]
    demand[name] = round(largest * _share(rng, 0.0 if len(names) > 1 else 1.0), 4)
    if not any(demand.values()):
        return jobs
    return _each_alike(jobs, i, s, rng, demand=demand)


def _edge(jobs: Jobs, bounds: Bounds, rng: Stream) -> Jobs:
    """Add or remove an edge between two stages of a job."""
    i, s = _stage(jobs, rng)
    if not s or is_rigid(jobs[i]):
        return _longer(jobs, bounds, rng)
    stages = jobs[i]["stages"]
    name = stages[_pick(rng, s)]["name"]
    parents = dict(stages[s]["parents"])
    if parents.pop(name, None) is None:
        parents[name] = EDGE_KINDS[0]
    return with_stage(jobs, i, s, parents=parents)


def _split(jobs: Jobs, bounds: Bounds, rng: Stream) -> Jobs:
    """Add a copy of a stage behind it, or leave a stage out."""
    i, s = _stage(jobs, rng)
    stages = jobs[i]["stages"]
    if is_rigid(jobs[i]) or (len(stages) > 1 and rng.uniform() < 0.5):
        return jobs if len(stages) < 2 else without_stage(jobs, i, s)
    if len(stages) >= MAX_STAGES:
        return jobs
    names = {stage["name"] for stage in stages}
    name = next(f"s{k}" for k in range(len(stages) + 1) if f"s{k}" not in names)
    copy: dict[str, Any] = {**stages[s], "name": name}
    if rng.uniform() < 0.5:
        copy["parents"] = {stages[s]["name"]: EDGE_KINDS[0]}
    return with_job(jobs, i, stages=[*stages, copy])


def _share(rng: Stream, none: float) -> float:
    """Draw a share of a machine: any, so that some number fits at once or just not, or `none`."""
    part = 1 / (2 + _pick(rng, MAX_PARTS - 1))
    shares = (rng.uniform(), 1.0, none, part, part + HAIR, 1 - part, 1 - part + HAIR)
    return shares[_pick(rng, len(shares))]


def _each_alike(jobs: Jobs, i: int, s: int, rng: Stream, **changed: Any) -> Jobs:
    """Change a stage, and in half of the cases all of its job with the same demand."""
    stages = jobs[i]["stages"]
    demand = stages[s]["demand"]
    if rng.uniform() < 0.5:
        return with_stage(jobs, i, s, **changed)
    like = [{**stage, **changed} if stage["demand"] == demand else stage for stage in stages]
    return with_job(jobs, i, stages=like)


def _repeat(jobs: Jobs, bounds: Bounds, rng: Stream) -> Jobs:
    """Add copies of a part of a job: a stage, or it and its children, with the edges inside."""
    i, s = _stage(jobs, rng)
    stages = jobs[i]["stages"]
    part = [stages[s]]
    if rng.uniform() < 0.7:
        part += [stage for stage in stages if stages[s]["name"] in stage["parents"]]
    if is_rigid(jobs[i]):
        return jobs
    return with_job(jobs, i, stages=stages + _copies(stages, part, bounds, rng))


def _double(jobs: Jobs, bounds: Bounds, rng: Stream) -> Jobs:
    """Add a copy of all stages of a job, with demands of which twice as many fit at once."""
    i, _ = _stage(jobs, rng)
    stages = jobs[i]["stages"]
    if is_rigid(jobs[i]):
        return jobs
    halved = [{**stage, "demand": _halved(stage["demand"], bounds)} for stage in stages]
    return with_job(jobs, i, stages=halved + _copies(halved, halved, bounds, rng))


def _halved(demand: dict[str, float], bounds: Bounds) -> dict[str, float]:
    """Return a demand with half of each amount of which several fit on a machine."""
    return {
        name: round(value / 2, 4) if value <= bounds.largest.get(name, 0.0) / 2 else value
        for name, value in demand.items()
    }


def _copies(
    stages: list[dict[str, Any]], part: list[dict[str, Any]], bounds: Bounds, rng: Stream
) -> list[dict[str, Any]]:
    """Return copies of a part of a job's stages, as many as are drawn.

    The first stage of a copy waits for what the part's first waits for, or for a stage of the copy
    before. Each copy may be a little shorter than the one before, and its demands those of the next
    resources.
    """
    n_most = (MAX_STAGES - len(stages)) // len(part)
    if not n_most:
        return []
    n_copies = 1 + _pick(rng, n_most)
    behind = _pick(rng, 1 + len(part)) - 1  # the stage of the copy before to wait for, -1 for none
    taper = TAPERS[_pick(rng, len(TAPERS))]
    is_turned = rng.uniform() < 0.3
    taken = {stage["name"] for stage in stages}
    free = (name for k in range(2 * MAX_STAGES) if (name := f"s{k}") not in taken)
    copies: list[dict[str, Any]] = []
    for _ in range(n_copies):
        names = {stage["name"]: next(free) for stage in part}
        copy = []
        for k, stage in enumerate(part):
            parents = {names.get(p, p): kind for p, kind in stage["parents"].items()}
            if k == 0 and behind >= 0:
                parents = {part[behind]["name"]: EDGE_KINDS[0]}
            shorter = _scaled(stage["durations_s"], taper, bounds)
            demand = _turned(stage["demand"], bounds) if is_turned else stage["demand"]
            own = {"name": names[stage["name"]], "parents": parents, "demand": demand}
            copy.append({**stage, **own, "durations_s": shorter})
        copies += copy
        part = copy
    return copies


def _turned(demand: dict[str, float], bounds: Bounds) -> dict[str, float]:
    """Return a demand with each share of a resource at the next one."""
    names = [name for name in bounds.largest if name in demand]
    shares = [demand[name] / bounds.largest[name] if bounds.largest[name] else 0 for name in names]
    turned = zip(names, shares[-1:] + shares[:-1], strict=True)
    return demand | {name: round(share * bounds.largest[name], 4) for name, share in turned}


def periodic(jobs: Jobs, bounds: Bounds, rng: Stream) -> Jobs:
    """Return jobs of which one is copies of a part of one to three stages.

    A construction that is bad by a multiple repeats a part which is not bad alone, so that no
    change of a single stage leads there. Tasks are long or short, and demands such that some number
    of tasks fits at once, or just not.
    """
    i, s = _stage(jobs, rng)
    if is_rigid(jobs[i]):
        return jobs
    part: list[dict[str, Any]] = []
    long_s = bounds.low_s * SPREAD
    for k in range(1 + _pick(rng, 3)):
        parents = {part[-1]["name"]: EDGE_KINDS[0]} if part and rng.uniform() < 0.75 else {}
        n = 1 if rng.uniform() < 0.75 else 1 + _pick(rng, bounds.n_tasks)
        length_s = (long_s, long_s, 2 * bounds.low_s)[_pick(rng, 3)]
        stage = {**jobs[i]["stages"][s], "name": f"s{k}", "parents": parents}
        stage["durations_s"] = [length_s] * n
        used = [name for name in bounds.largest if name in stage["demand"]]
        if used:
            shares = {name: _share(rng, 0.0) if rng.uniform() < 0.7 else 0.0 for name in used}
            if not any(shares.values()):
                shares[used[_pick(rng, len(used))]] = _share(rng, 1.0)
            drawn = {name: round(bounds.largest[name] * shares[name], 4) for name in used}
            stage["demand"] = stage["demand"] | drawn
        part.append(stage)
    job = {**jobs[i], "stages": part + _copies(part, part, bounds, rng)}
    own = fit_gang(job)
    return shifted([own]) if rng.uniform() < 0.5 else with_job(jobs, i, **own)


MAX_STAGES = 24
"""Largest number of stages of a job."""
MAX_PARTS = 12
"""Largest number of tasks that a demand lets run at once."""
HAIR = 0.01
"""Share of a machine by which a demand that should not fit is too large."""
TAPERS = (1.0, 0.99, 1 / 0.99)
"""Lengths of a copy, over that of the part that is copied."""
Change = Callable[[Jobs, Bounds, Stream], Jobs]
_POOL: tuple[Change, ...] = (
    *(_longer, _longer, _like, _limit, _wider, _arrive, _arrive, _squeeze),
    *(_copy, _drop, _edge, _split, _repeat, _repeat),
)
_MACHINES: tuple[Change, ...] = (*_POOL, _demand, _demand, _demand, _double)
