"""Random worlds of all mechanisms at once: plain JSON, drawn from a seed, and built from it.

A world is a dictionary of jobs, failures of attempts, a cluster and the parameters of a policy. Its
mechanisms are drawn independently of each other, so that any may meet any; the engine refuses those
that exclude each other, by an error.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

import sim
from policies.base import Policy
from sim import transforms
from sim.cluster.faults import Outages, Slowdowns
from sim.engine.plan import (
    NO_LIMIT,
    Choice,
    Device,
    Machine,
    Mix,
    Order,
    Plan,
    Preemption,
    Right,
    State,
    Victims,
)
from tests.sim.engine.random_elastic import make_elastic, with_widths
from tests.sim.engine.random_selected import with_classes
from tests.sim.engine.strategies import AnyPlan
from tests.sim.engine.test_batches import AnyQueues
from tests.sim.engine.test_places import AnyPlaces
from tests.sim.engine.test_replan import AnyReplan

MECHANISMS = (
    *("pool", "batches", "gangs", "inputs", "failures", "remote", "outages", "slow periods"),
    *("launch lags", "stage lags", "hard queues", "weighted queues", "fungible", "classes"),
    *("devices", "callbacks", "evictions", "learning", "holds", "choice", "reservations"),
    *("dependencies", "begin times", "singletons"),
    *("planning", "skip", "pack", "like tasks", "per class", "barriers", "equal demands"),
    *("speeds", "limits", "partitions", "caps", "preemption", "checkpoints"),
    *("tiers", "admission", "exclusive", "drains", "known outages", "reserved machines"),
    *("quotas", "pins", "unequal slots", "one per node", "elastic", "requests"),
    *("selected classes", "topology", "flavors", "strategies"),
)
RARE = {
    *("caps", "dependencies", "begin times", "singletons", "speeds", "limits"),
    *("preemption", "checkpoints", "tiers", "admission", "known outages", "reserved machines"),
    *("quotas", "pins", "one per node", "elastic", "selected classes"),
    *("topology", "flavors", "strategies"),
}
"""Mechanisms that no wide variant has."""
LEAN = (
    ("pool", "like tasks", "barriers"),
    ("pool", "like tasks", "hard queues"),
    ("pool", "reservations"),
    ("pool", "planning"),
    ("reservations", "callbacks"),
    ("planning", "callbacks"),
    ("skip", "gangs"),
    ("pack", "like tasks"),
    ("pack", "like tasks", "equal demands"),
    ("pack", "like tasks", "callbacks"),
    ("pack", "fungible"),
    ("skip", "like tasks"),
    ("skip", "like tasks", "weighted queues"),
    ("planning", "classes"),
    ("planning", "partitions", "outages"),
    ("per class", "like tasks"),
    ("per class", "classes"),
    ("speeds", "like tasks"),
    ("speeds", "pack", "like tasks"),
    ("speeds", "choice"),
    ("limits", "inputs", "gangs"),
    ("limits", "reservations"),
    ("limits", "planning"),
    ("limits", "learning", "failures", "callbacks"),
    ("limits", "launch lags", "outages"),
    ("speeds", "failures", "learning", "callbacks"),
    ("devices", "choice"),
    ("holds", "barriers"),
    ("skip", "callbacks", "equal demands"),
    ("pack", "callbacks", "equal demands"),
    ("dependencies", "callbacks"),
    ("dependencies", "inputs", "singletons", "begin times"),
    ("singletons", "like tasks"),
    ("caps", "pool"),
    ("caps", "reservations"),
    ("caps", "planning"),
    ("caps", "evictions"),
    ("caps", "skip", "gangs"),
    ("caps", "pack", "hard queues"),
    ("caps", "per class", "gangs"),
    ("caps", "like tasks", "skip"),
    ("caps", "inputs", "weighted queues"),
    ("caps", "failures", "outages"),
    ("preemption", "gangs"),
    ("preemption", "gangs", "skip"),
    ("preemption", "gangs", "pack", "checkpoints"),
    ("preemption", "reservations", "checkpoints"),
    ("preemption", "planning", "checkpoints"),
    ("preemption", "failures", "gangs"),
    ("preemption", "failures", "reservations"),
    ("preemption", "failures", "planning"),
    ("preemption", "admission", "per class", "weighted queues"),
    ("preemption", "pool", "weighted queues"),
    ("preemption", "devices", "gangs", "skip"),
    ("preemption", "classes", "caps"),
    ("preemption", "hard queues", "callbacks"),
    ("checkpoints", "outages", "gangs"),
    ("checkpoints", "evictions", "failures", "speeds"),
    ("tiers", "weighted queues"),
    ("tiers", "hard queues", "skip"),
    ("tiers", "pack", "callbacks"),
    ("tiers", "evictions"),
    ("tiers", "gangs", "holds"),
    ("tiers", "reservations", "weighted queues"),
    ("tiers", "planning", "gangs"),
    ("exclusive", "like tasks", "skip"),
    ("exclusive", "hard queues", "gangs"),
    ("exclusive", "pack", "fungible"),
    ("exclusive", "reservations", "partitions"),
    ("exclusive", "planning", "devices"),
    ("exclusive", "planning", "caps", "gangs"),
    ("exclusive", "choice", "devices", "holds"),
    ("admission", "limits", "inputs"),
    ("admission", "caps", "reservations"),
    ("admission", "tiers", "per class", "gangs"),
    ("reserved machines", "reservations"),
    ("reserved machines", "reservations", "pool"),
    ("reserved machines", "planning"),
    ("reserved machines", "planning", "known outages"),
    ("reserved machines", "barriers"),
    ("reserved machines", "per class", "classes", "gangs"),
    ("reserved machines", "per class", "limits"),
    ("reserved machines", "skip", "gangs"),
    ("reserved machines", "holds"),
    ("reserved machines", "pack", "fungible"),
    ("reserved machines", "evictions"),
    ("reserved machines", "pool", "outages"),
    ("known outages", "reservations"),
    ("known outages", "reservations", "pool"),
    ("known outages", "planning"),
    ("known outages", "planning", "pool"),
    ("known outages", "drains", "reservations", "outages"),
    ("known outages", "drains", "planning", "outages"),
    ("known outages", "limits", "skip", "gangs"),
    ("known outages", "limits", "pool", "skip"),
    ("known outages", "limits", "pack", "fungible"),
    ("known outages", "limits", "per class", "classes"),
    ("known outages", "limits", "holds"),
    ("known outages", "limits", "evictions"),
    ("known outages", "limits", "launch lags", "skip"),
    ("quotas", "pool"),
    ("quotas", "preemption", "gangs"),
    ("quotas", "preemption", "skip"),
    ("quotas", "exclusive", "tiers"),
    ("quotas", "like tasks"),
    ("quotas", "skip", "gangs"),
    ("quotas", "skip", "like tasks"),
    ("quotas", "pack"),
    ("quotas", "pack", "gangs"),
    ("quotas", "per class", "gangs", "devices"),
    ("quotas", "reservations"),
    ("quotas", "reservations", "pool"),
    ("quotas", "planning"),
    ("quotas", "evictions"),
    ("quotas", "holds", "caps"),
    ("quotas", "failures", "outages", "callbacks"),
    ("pins", "pool"),
    ("pins", "gangs"),
    ("pins", "planning"),
    ("pins", "planning", "pool"),
    ("pins", "planning", "caps", "classes"),
    ("pins", "planning", "dependencies", "exclusive"),
    ("pins", "reservations"),
    ("pins", "reservations", "pool"),
    ("pins", "reservations", "launch lags"),
    ("pins", "skip", "gangs", "devices"),
    ("pins", "pack", "callbacks"),
    ("pins", "per class", "classes", "gangs"),
    ("pins", "preemption", "gangs"),
    ("pins", "outages", "hard queues"),
    ("pins", "elastic"),
    ("pins", "elastic", "pool", "callbacks"),
    ("pins", "elastic", "callbacks", "skip"),
    ("pins", "elastic", "devices", "one per node"),
    ("pins", "elastic", "topology", "callbacks"),
    ("pins", "elastic", "failures", "outages"),
    ("caps", "holds", "gangs"),
    ("hard queues", "reservations"),
    ("unequal slots", "planning", "preemption"),
    ("unequal slots", "planning", "devices", "gangs"),
    ("unequal slots", "planning", "preemption", "classes"),
    ("tiers", "reservations"),
    ("tiers", "planning"),
    ("learning", "reservations"),
    ("learning", "reservations", "callbacks"),
    ("learning", "planning"),
    ("learning", "callbacks"),
    ("pins", "quotas"),
    ("pins", "quotas", "skip", "gangs"),
    ("unequal slots", "skip", "devices", "choice"),
    ("unequal slots", "pack", "classes"),
    ("unequal slots", "per class", "classes"),
    ("unequal slots", "reservations"),
    ("unequal slots", "reservations", "devices", "choice"),
    ("unequal slots", "planning"),
    ("unequal slots", "planning", "devices", "classes"),
    ("unequal slots", "preemption", "skip"),
    ("unequal slots", "pins", "devices"),
    ("one per node", "gangs"),
    ("one per node", "gangs", "choice", "devices"),
    ("one per node", "gangs", "skip", "holds"),
    ("one per node", "gangs", "pack"),
    ("one per node", "gangs", "per class", "classes"),
    ("one per node", "gangs", "preemption"),
    ("one per node", "reservations"),
    ("one per node", "reservations", "choice", "outages"),
    ("one per node", "planning"),
    ("one per node", "planning", "preemption"),
    ("one per node", "pins", "gangs"),
    ("one per node", "unequal slots", "choice"),
    ("one per node", "unequal slots", "reservations"),
    ("one per node", "unequal slots", "planning", "devices"),
    ("one per node", "unequal slots", "preemption", "pins"),
    ("unequal slots", "planning", "preemption", "partitions"),
    ("unequal slots", "reservations", "preemption", "known outages"),
    ("unequal slots", "planning", "preemption", "reserved machines"),
    ("reservations", "preemption", "reserved machines"),
    ("elastic", "gangs"),
    ("elastic", "pool"),
    ("elastic", "callbacks"),
    ("elastic", "skip", "gangs"),
    ("elastic", "pack", "gangs"),
    ("elastic", "per class", "classes"),
    ("elastic", "outages"),
    ("elastic", "devices", "choice"),
    ("elastic", "hard queues", "skip"),
    ("elastic", "quotas"),
    ("elastic", "caps", "callbacks"),
    ("elastic", "limits", "launch lags"),
    ("elastic", "slow periods", "callbacks"),
    ("elastic", "one per node", "choice"),
    ("elastic", "checkpoints", "outages"),
    ("elastic", "exclusive", "callbacks"),
    ("elastic", "fungible", "callbacks"),
    ("elastic", "pack", "fungible", "callbacks"),
    ("elastic", "pack", "fungible", "gangs"),
    ("elastic", "fungible", "speeds", "slow periods", "callbacks"),
    ("elastic", "remote", "callbacks"),
    ("elastic", "remote", "speeds", "topology", "callbacks"),
    ("elastic", "remote", "failures", "checkpoints"),
    ("elastic", "exclusive", "callbacks", "caps", "partitions"),
    ("elastic", "exclusive", "pack", "callbacks"),
    ("elastic", "failures", "callbacks"),
    ("elastic", "failures", "checkpoints", "outages"),
    ("elastic", "unequal slots", "gangs"),
    ("elastic", "speeds", "choice"),
    ("requests", "gangs"),
    ("requests", "pack", "fungible"),
    ("requests", "fungible"),
    ("requests", "skip", "hard queues"),
    ("requests", "devices", "choice"),
    ("requests", "caps", "quotas"),
    ("requests", "planning", "classes"),
    ("requests", "reservations"),
    ("requests", "preemption", "unequal slots"),
    ("selected classes", "pool"),
    ("selected classes", "classes"),
    ("selected classes", "per class", "classes", "gangs"),
    ("selected classes", "skip", "classes", "gangs"),
    ("selected classes", "pack", "classes"),
    ("selected classes", "speeds", "checkpoints"),
    ("selected classes", "speeds", "like tasks"),
    ("selected classes", "holds", "gangs"),
    ("selected classes", "preemption", "classes"),
    ("selected classes", "unequal slots", "classes", "checkpoints"),
    ("selected classes", "elastic", "classes", "speeds"),
    ("selected classes", "reserved machines", "classes"),
    ("selected classes", "pins", "classes", "gangs"),
    ("selected classes", "caps", "classes", "gangs"),
    ("selected classes", "callbacks", "classes", "failures"),
    ("flavors",),
    ("flavors", "classes"),
    ("flavors", "gangs"),
    ("flavors", "gangs", "skip", "devices"),
    ("flavors", "per class", "classes", "gangs"),
    ("flavors", "skip", "like tasks"),
    ("flavors", "like tasks", "pack"),
    ("flavors", "pack", "gangs"),
    ("flavors", "pack", "fungible"),
    ("flavors", "gangs", "fungible"),
    ("flavors", "holds"),
    ("flavors", "holds", "gangs", "caps"),
    ("flavors", "choice", "devices"),
    ("flavors", "unequal slots"),
    ("flavors", "preemption"),
    ("flavors", "preemption", "gangs"),
    ("flavors", "preemption", "skip", "classes"),
    ("flavors", "preemption", "pack"),
    ("flavors", "preemption", "reservations"),
    ("flavors", "reservations"),
    ("flavors", "reservations", "devices", "choice"),
    ("flavors", "reservations", "unequal slots"),
    ("flavors", "reservations", "pins"),
    ("flavors", "planning"),
    ("flavors", "planning", "gangs", "caps"),
    ("flavors", "planning", "classes", "devices"),
    ("flavors", "planning", "unequal slots"),
    ("flavors", "planning", "topology"),
    ("flavors", "planning", "preemption"),
    ("flavors", "planning", "preemption", "pins"),
    ("flavors", "planning", "exclusive", "partitions", "caps"),
    ("flavors", "planning", "reserved machines", "known outages"),
    ("flavors", "elastic", "callbacks"),
    ("flavors", "topology", "gangs"),
    ("flavors", "topology", "reservations"),
    ("flavors", "pins", "gangs"),
    ("flavors", "outages", "failures", "callbacks"),
    ("flavors", "exclusive", "partitions"),
    ("flavors", "selected classes", "classes"),
    ("flavors", "evictions"),
    ("flavors", "requests", "one per node", "gangs"),
    ("flavors", "strategies"),
    ("flavors", "strategies", "gangs", "preemption"),
    ("strategies",),
    ("strategies", "skip"),
    ("strategies", "gangs"),
    ("strategies", "gangs", "pool"),
    ("strategies", "like tasks"),
    ("strategies", "classes", "devices"),
    ("strategies", "per class", "caps", "gangs"),
    ("strategies", "preemption", "gangs"),
    ("strategies", "failures", "outages", "callbacks"),
    ("strategies", "tiers"),
    ("topology", "gangs"),
    ("topology", "gangs", "skip"),
    ("topology", "gangs", "pack", "choice"),
    ("topology", "gangs", "per class", "classes"),
    ("topology", "gangs", "like tasks"),
    ("topology", "gangs", "failures", "checkpoints"),
    ("topology", "gangs", "outages", "callbacks"),
    ("topology", "gangs", "preemption"),
    ("topology", "gangs", "holds", "skip"),
    ("topology", "gangs", "devices", "choice"),
    ("topology", "gangs", "one per node"),
    ("topology", "gangs", "exclusive", "partitions"),
    ("topology", "gangs", "speeds", "choice"),
    ("topology", "gangs", "quotas"),
    ("topology", "gangs", "elastic"),
    ("topology", "elastic", "callbacks"),
    ("topology", "elastic", "callbacks", "skip"),
    ("topology", "elastic", "choice", "devices"),
    ("topology", "elastic", "one per node", "callbacks"),
    ("topology", "elastic", "preemption"),
    ("topology", "elastic", "caps", "speeds"),
    ("topology", "gangs", "pins"),
    ("topology", "reservations"),
    ("topology", "reservations", "choice", "devices"),
    ("topology", "reservations", "known outages"),
    ("topology", "planning"),
    ("topology", "planning", "preemption", "checkpoints"),
    ("topology", "planning", "classes"),
    ("topology", "planning", "devices"),
    ("topology", "planning", "one per node"),
    ("topology", "unequal slots"),
    ("topology", "unequal slots", "planning"),
    ("topology", "unequal slots", "reservations"),
    ("topology", "unequal slots", "skip", "devices", "choice"),
)
"""Mechanisms of kernels that do not run, or do little, where others are there, too."""

PARTITIONED = {"partitions", "tiers", "admission"}
"""Mechanisms of partitions."""
QUEUES = ("q0", "q1", "q2")
KINDS = (
    {"class": "a", "count": 2, "cpu": 6, "mem": 3, "devices": {"gpu": 4}},
    {"class": "b", "cpu": 8, "mem": 4, "devices": {"gpu": 2}},
    {"cpu": 4, "mem": 6},
)
QUANTUM = 1e-6
"""The least demand: a quantum of each resource."""
SMALL = {"count": 2, "cpu": 2, "mem": 2}
"""Machines for some tasks only, so that there are several pools."""

World = dict[str, Any]


def draw(rng: np.random.Generator, without: Collection[str] = ()) -> World:
    """Draw a world: first which mechanisms it has, few or many, then everything else.

    :param without: Mechanisms that it does not have, drawn or not.
    """
    return draw_with(rng, _mechanisms(rng).difference(without))


def draw_with(rng: np.random.Generator, on: set[str]) -> World:
    """Draw a world that has the mechanisms `on`."""
    rigid = bool(on & {"reservations", "planning"})
    jobs = _jobs(rng, on, rigid)
    world: World = {
        "mechanisms": sorted(on),
        "jobs": jobs,
        "cluster": _cluster(rng, on, rigid),
        "policy": _policy(rng, on),
    }
    if "failures" in on:
        world["failures"] = _failures(rng, jobs)
    if "pins" in on:
        world["state"] = _state(rng, jobs, world["cluster"])
    if "remote" in on:
        world["remote"] = {
            "factor": float(rng.choice([1.0, 1.5])), "seed": int(rng.integers(99))
        }  # fmt: skip
    return world


def _state(rng: np.random.Generator, jobs: list[World], cluster: World) -> World:
    """Draw when the scheduler begins, and pins of some of the jobs that may have some."""
    n_machines = len(cluster.get("kinds", ())) or cluster.get("machines", {}).get("count", 1)
    placed_s: list[float | None] = []
    machine: list[int] = []
    for job in jobs:
        n_tasks = sum(len(stage["durations_s"]) for stage in job["stages"])
        some = rng.integers(0, n_machines, n_tasks)
        some[1:][rng.random(n_tasks - 1) < 0.3] = -1  # on any of the others
        machine += some.tolist()
        is_rigid = job.get("min_tasks", 0) == n_tasks or n_tasks == 1 or "width_min" in job
        is_pinned = is_rigid and rng.random() < 0.6
        placed_s.append(job["submit_s"] + float(rng.choice([0, 0, 1.5])) if is_pinned else None)
    begins_s = float(rng.choice([0.0, 1.0, 3.0, 4.25]))
    return {"begins_s": begins_s, "placed_s": placed_s, "machine": machine}


def _mechanisms(rng: np.random.Generator) -> set[str]:
    chance = rng.random()
    if chance < 0.35:
        on = set(LEAN[rng.integers(len(LEAN))])
    elif chance < 0.6:  # a pair by itself, whose every value then counts
        on = {str(name) for name in rng.choice(MECHANISMS, 2, replace=False)}
    else:
        share = rng.choice([0.06, 0.12, 0.2, 0.35])
        on = {name for name in MECHANISMS if rng.random() < share}
        if rng.random() < 0.3:  # few meet by chance
            on |= {str(name) for name in rng.choice(MECHANISMS, 2, replace=False)}
    return on | {"batches"} if "like tasks" in on else on


def _seconds(rng: np.random.Generator, on: set[str], max_tasks: int) -> list[float]:
    """Draw durations of a stage: any, or (batches) many tasks of a few durations."""
    if "batches" not in on:
        n = rng.integers(1, max_tasks + 1)
        some = rng.choice([0.0, 0.5, 1.0, 2.0, 3.0], n)
        return np.where(rng.random(n) < 0.5, some, rng.uniform(0.01, 7, n).round(3)).tolist()
    whole = rng.random() < 0.3
    values = rng.integers(0, 4, 3).astype(float) if whole else rng.uniform(0.1, 4, 3).round(3)
    seconds = rng.choice(values[: rng.integers(1, 4)], rng.integers(1, 4 * max_tasks)).tolist()
    return sorted(seconds) if rng.random() < 0.7 else seconds


def _jobs(rng: np.random.Generator, on: set[str], rigid: bool) -> list[World]:
    jobs: list[World] = []
    clock = 0.0
    pauses = [[0.0, 0.0, 1.0, 2.5], [0.0, 0.5], [0.0, 0.3, 6.0], [0.0, 0.0, 0.0, 2.0], [0.0]]
    pauses = pauses[rng.integers(5)]
    n_jobs = int(rng.integers(1, 15 if rigid else 9))
    # in which a plan has many steps; with learning the naive simulator would take half a minute
    is_backlog = rigid and "learning" not in on and rng.random() < 0.3
    if is_backlog:
        n_jobs, pauses = int(rng.integers(12, 22)), [0.0, 0.0, 0.5]
    order = rng.permutation(n_jobs)
    for i in range(n_jobs):
        clock += float(rng.choice(pauses))
        stages = [_stage(rng, on, rigid, s) for s in range(int(rng.choice([1, 1, 2, 3, 4])))]
        job = {
            "job_id": f"j{i}",
            "submit_s": clock,
            "queue": str(rng.choice(QUEUES)),
            "user": str(rng.choice(["u0", "u1"])),
            "priority": int(rng.integers(3)),
            "stages": stages,
        }
        n_tasks = sum(len(stage["durations_s"]) for stage in stages)
        if "limits" in on and rng.random() < 0.8:
            job["requested_s"] = float(rng.choice([0.5, 1.0, 1.5, 3.0, 4.5, 10.0]))
        if "inputs" in on and rng.random() < 0.7:
            job["input_mode"] = str(rng.choice(["none", "blind", "poll", "poll"]))
            job["poll_lag_s"] = float(rng.choice([0.0, 0.0, 1.5]))
            read = [u for u in range(n_jobs) if order[u] < order[i] and rng.random() < 0.35]
            job["inputs"] = {f"j{u}": str(rng.choice(["hard", "hard", "soft"])) for u in read}
        if "checkpoints" in on:
            job["checkpoint_s"] = [None, 0.0, 0.5, 1.0, 0.75][int(rng.integers(5))]
            job["restart_s"] = float(rng.choice([0.0, 0.0, 0.25, 1.0]))
        if "preemption" in on and rng.random() < 0.2:
            job["preempts"] = False
        if on & PARTITIONED:
            job["partition"] = str(rng.choice(["", "", "p", "q", "p|q", "q|elsewhere"]))
        if "exclusive" in on and rng.random() < 0.3:
            job["exclusive"] = True
        if "one per node" in on and rng.random() < 0.6:
            job["one_per_node"] = True
        if "topology" in on:
            job["topology_required"] = str(rng.choice(["", "", "block", "rack"]))
            job["topology_preferred"] = str(rng.choice(["", "block", "rack", "rack"]))
        if "admission" in on:
            job["n_nodes"] = int(rng.choice([0, 0, 1, 2, 3, 5]))
            if rng.random() < 0.5:
                job["requested_s"] = float(rng.choice([1.0, 3.0, 10.0]))
        if {"classes", "planning"} <= on and rng.random() < 0.3:
            job["plans_on"] = str(rng.choice(["a", "a|b", "b|elsewhere"]))
        if "reserved machines" in on:
            job["reservation"] = str(rng.choice(["", "", "x", "y"]))
        job |= _release(rng, on, clock, [f"j{u}" for u in range(n_jobs) if order[u] < order[i]])
        if "after" in job:
            job["after"] = _without_inputs(job)
        if "unequal slots" in on and len(stages) > 1 and rng.random() < 0.7:
            job["min_tasks"] = _start_together(rng, stages, rigid)
        elif rigid:
            job["min_tasks"] = n_tasks if n_tasks > 1 or rng.random() < 0.5 else 0
        elif "gangs" in on and rng.random() < 0.4:
            job["min_tasks"] = int(rng.integers(1, min(3, n_tasks) + 1))
        is_equal = "unequal slots" not in on or rng.random() < 0.5
        if job.get("min_tasks") and "runs_on" in stages[0] and is_equal:
            for stage in stages:  # a slot takes a task of any stage
                stage["runs_on"] = stages[0]["runs_on"]
        if "elastic" in on and rng.random() < 0.6:
            make_elastic(rng, job)
        jobs.append(job)
    if "caps" in on:
        is_long = not on & {"planning", "limits"} and rng.random() < 0.3
        _add_keys(rng, jobs)
        _lengthen(jobs, 100.0 if is_long else 1.0)
    _lengthen(jobs, 4.0 if is_backlog else 1.0)
    if "equal demands" in on:
        for job in jobs:
            for stage in job["stages"]:
                stage["demand"] = jobs[0]["stages"][0]["demand"]
                if "requests" in on:
                    stage["request"] = jobs[0]["stages"][0]["request"]
    return jobs


def _start_together(rng: np.random.Generator, stages: list[World], rigid: bool) -> int:
    """Let the first stages, or all of them, start together; return the number of their tasks."""
    n = len(stages) if rigid else int(rng.integers(2, len(stages) + 1))
    for s, stage in enumerate(stages):
        if s < n:
            stage["parents"] = {}
        elif not stage["parents"]:
            stage["parents"] = {stages[int(rng.integers(n))]["name"]: "barrier"}
    return sum(len(stage["durations_s"]) for stage in stages[:n])


def _release(rng: np.random.Generator, on: set[str], clock: float, upstream: list[str]) -> World:
    """Draw when a job is eligible: its begin, the upstream that it waits for, and its name."""
    release: World = {}
    if "begin times" in on and rng.random() < 0.4:
        release["begin_s"] = max(0.0, clock + float(rng.choice([-1.0, 0.0, 0.5, 3.0])))
    if "singletons" in on:
        release |= {"job_name": str(rng.choice(["x", "y"])), "singleton": bool(rng.random() < 0.6)}
    if "dependencies" not in on:
        return release
    after: World = {}
    for name in upstream:
        if rng.random() < 0.4:
            kind = str(rng.choice(["after", "afterok", "afterok", "afternotok", "afterany"]))
            after.setdefault(kind, {})[name] = float(rng.choice([0.0, 0.0, 0.0, 0.5, 2.0]))
    return release | {"after": after, "after_needs": str(rng.choice(["all", "any"]))}


def _without_inputs(job: World) -> World:
    """Return the dependencies of a job but those on jobs whose output it reads."""
    return {
        kind: {name: delay for name, delay in delays.items() if name not in job.get("inputs", ())}
        for kind, delays in job["after"].items()
    }


def _lengthen(jobs: list[World], factor: float) -> None:
    for job in jobs:
        for stage in job["stages"]:
            stage["durations_s"] = [factor * duration_s for duration_s in stage["durations_s"]]


def _add_keys(rng: np.random.Generator, jobs: list[World]) -> None:
    """Give jobs what caps count by, and limits."""
    for job in jobs:
        job["account"] = str(rng.choice(["", "a", "a1", "a2", "b"]))
        job["qos"] = str(rng.choice(["normal", "high"]))
        job.setdefault("n_nodes", int(rng.choice([0, 0, 1, 2, 3])))
        job["array"] = str(rng.choice(["", "x", "y"]))
        job["throttle"] = int(rng.choice([0, 1, 2, 2]))
        job["licenses"] = {"x": int(rng.choice([0, 0, 1, 2]))}
        job.setdefault("requested_s", float(rng.choice([30.0, 100.5, 400.0, 700.0])))


def _limits(rng: np.random.Generator, resources: list[str], in_partitions: bool) -> World:
    """Draw caps on some of what they can count, by some keys."""
    counters = [
        ("running_jobs", [1, 2, 3]),
        ("running_jobs", [1, 2, 3]),
        ("submitted_jobs", [1, 2, 4]),
        ("nodes", [2, 3]),
        ("nodes", [3, 5, 6]),
        ("license_x", [2, 3]),
        *((name, [3, 4, 6, 6.5, 9]) for name in resources),
        *((f"{name}_minutes", [15, 40, 60.5]) for name in resources[:1]),
    ]
    keys = [[], ["user"], ["account"], ["qos"], ["queue"], ["user", "qos"], ["array"]]
    keys += [["partition"], ["partition", "user"]] * in_partitions
    rows = []
    for _ in range(int(rng.integers(1, 4))):
        counted, numbers = counters[rng.integers(len(counters))]
        row: World = {"of": counted, "by": keys[rng.integers(len(keys))]}
        at_most: Any = rng.choice(numbers).item()
        if row["by"] and rng.random() < 0.4:
            at_most = {
                value: rng.choice(numbers).item()
                for value in ("u0", "a", "b", "high", "x", "q1", "p", "*")
                if rng.random() < 0.6
            }
        row["at_most"] = at_most or 3
        if rng.random() < 0.3:
            times = np.cumsum(rng.integers(1, 12, rng.integers(1, 4))).tolist()
            row["changes"] = [[at_s, rng.choice([0, *numbers]).item()] for at_s in times]
            row["changes"].append([times[-1] + 5, max(numbers)])
        if rng.random() < 0.25:
            row["where"] = {"qos": "normal"}
        if rng.random() < 0.3 and counted != "submitted_jobs":
            row["blocks"] = True
        if rng.random() < 0.3:
            row["spares"] = [{"qos": ["high"]}, {"user": "u0", "queue": ["q1"]}][rng.integers(2)]
        rows.append(row)
    return {"rows": rows, "accounts": {"a1": "a", "a2": "a"}}


def _stage(rng: np.random.Generator, on: set[str], rigid: bool, s: int) -> World:
    max_tasks = 2 if rigid else 5
    demand: World = {
        "cpu": int(rng.choice([0, 1, 2, 2] if rigid else [0, 1, 2, 3])),
        "mem": float(rng.choice([0, 1, 2] if rigid else [0, QUANTUM, 0.1, 1, 3])),
    }
    if "devices" in on:
        demand["gpu"] = float(rng.choice([0, 0, 0.25, 0.3, 0.5, 0.75, 1, 2]))
    stage: World = {
        "name": f"s{s}", "durations_s": _seconds(rng, on, max_tasks), "demand": demand
    }  # fmt: skip
    if "requests" in on:
        stage["request"] = _request(rng, demand)
    if rigid and "batches" in on:
        stage["durations_s"] = stage["durations_s"][:3]
    edges = ["barrier"] if "barriers" in on else ["barrier", "one_to_one"]
    parents = {f"s{p}": str(rng.choice(edges)) for p in range(s)}
    stage["parents"] = {name: kind for name, kind in parents.items() if rng.random() < 0.35}
    if "classes" in on:
        stage["runs_on"] = str(rng.choice(["", "", "a", "b", "b|a", "a|elsewhere"]))
    if "speeds" in on and rng.random() < 0.8:
        kinds = rng.choice(["a", "b", "elsewhere"], rng.integers(1, 4), replace=False)
        stage["speed"] = {str(kind): float(rng.choice([0.3, 1.0, 2.0, 3.0])) for kind in kinds}
    if "stage lags" in on:
        stage["lag_s"] = float(rng.choice([0.0, 0.0, 0.0, 0.5, 3.0]))
    return stage


def _request(rng: np.random.Generator, demand: World) -> World:
    """Draw what a task asks for of some resources: its demand, or more."""
    more = {"cpu": demand["cpu"] + int(rng.choice([0, 1, 2]))}
    more["mem"] = max(demand["mem"], float(rng.choice([0.5, 1, 2, 3])))
    if "gpu" in demand:
        more["gpu"] = max(demand["gpu"], float(rng.choice([0.5, 1, 1, 2])))
    return {name: amount for name, amount in more.items() if rng.random() < 0.7}


def _failures(rng: np.random.Generator, jobs: list[World]) -> World:
    """Let some attempts fail, some of them for want of an output of a parent stage."""
    rows: World = {"task": [], "after_s": [], "lost": []}
    task0 = 0
    for job in jobs:
        first = {}
        for stage in job["stages"]:
            seconds = stage["durations_s"]
            first[stage["name"]] = range(task0, task0 + len(seconds))
            for i, duration_s in enumerate(seconds):
                read = [-1]
                for parent, kind in stage["parents"].items():
                    read += first[parent] if kind == "barrier" else first[parent][i : i + 1]
                for _ in range(int(rng.choice([0, 0, 0, 1, 1, 2]))):
                    rows["task"].append(task0 + i)
                    rows["after_s"].append(float(rng.choice([0.0, 0.5, 1.0])) * duration_s)
                    rows["lost"].append(int(rng.choice(read)))
            task0 += len(seconds)
    return rows


def _cluster(rng: np.random.Generator, on: set[str], rigid: bool) -> World:
    queues = on & {"hard queues", "weighted queues"}
    hard = "hard queues" in on
    many = 3 if rigid or hard or on & {"gangs", "unequal slots"} else 1
    if rigid and not hard:  # some so few that most jobs wait, and more of them do not fit
        many = int(rng.choice([1, 1, 2, 3])) + ("flavors" in on)  # a job has those of one flavor
    cluster: World = {}
    if on & {"classes", "devices", "per class", "speeds", "flavors", *PARTITIONED}:
        kinds = [KINDS[i] for i in rng.permutation(3)] + [SMALL] * ("per class" in on)
        cluster["kinds"] = [
            {name: value for name, value in kind.items() if name != "devices" or name in on}
            for kind in kinds * many
        ]
        if "planning" in on and rng.random() < 0.5:
            for kind in cluster["kinds"]:
                kind["weight"] = int(rng.choice([0, 1, 1, 5]))
        if on & PARTITIONED:
            mark = "*" if rng.random() < 0.5 else ""
            sets = [("p" + mark,), ("p" + mark, "q"), ("q",), ("q", "p" + mark)]
            for i, kind in enumerate(cluster["kinds"]):
                kind["partitions"] = list(sets[i % len(sets)])
            cluster["partitions"] = _rules(rng, on)
    elif "pool" in on:
        low, high = (24, 40) if hard else (8, 13) if rigid else (3, 13)
        cluster["slots"] = int(rng.integers(low, high))
    else:
        count = int(rng.integers(2, 6)) * (6 if many > 1 else 1)
        if rigid and not hard:
            count = int(rng.integers(2, 10))
        cluster["machines"] = {
            "count": count, "cpu": int(rng.integers(3, 7)), "mem": float(rng.choice([3, 4]))
        }  # fmt: skip
    if "fungible" in on and "pool" not in on:
        cluster["fungible"] = [["mem"], ["cpu"], ["cpu", "mem"]][rng.integers(3)]
    if queues:
        cluster["queues"] = {
            "mode": sorted(queues)[0].partition(" ")[0], "shares": dict.fromkeys(QUEUES, 1 / 3)
        }  # fmt: skip
    if on & {"quotas", "flavors", "strategies"} and not queues:
        gpus = ["gpu"] if "devices" in on else []
        resources = ["slot"] if "slots" in cluster else ["cpu", "mem", *gpus]
        cluster["quotas"] = quotas = _quotas(rng, resources)
        if "flavors" in on:
            is_ample = "planning" in on and rng.random() < 0.6  # plans in several flavors
            _divide_by_flavor(rng, quotas["tree"], resources, is_ample)
        if "strategies" in on:
            for name in QUEUES:
                some = ["strict", "skip"] if name == "q0" else ["", "strict", "skip"]
                quotas["tree"][name]["strategy"] = str(rng.choice(some))
    if "limits" in on:
        cluster["enforce_limits"] = True
    if "dependencies" in on:
        cluster["unmet"] = str(rng.choice(["wait", "fail"]))
    if "caps" in on:
        gpus = ["gpu"] if "devices" in on else []
        resources = ["slot"] if "slots" in cluster else ["cpu", "mem", *gpus]
        cluster["limits"] = _limits(rng, resources, bool(on & PARTITIONED))
    if "topology" in on and "slots" not in cluster:
        cluster["topology"] = _topology(rng)
    return cluster | _times(rng, on, 4 if "kinds" in cluster else 2)


def _topology(rng: np.random.Generator) -> World:
    """Draw one or two levels of domains, which may slow gangs that cross them."""
    rack = int(rng.choice([1, 2, 2, 3, 4]))
    levels: World = {"block": {"size": rack * int(rng.choice([2, 3]))}, "rack": {"size": rack}}
    for level in levels.values():
        if rng.random() < 0.6:
            level["factor"] = float(rng.choice([1.5, 2.0, 1.1]))
    if rng.random() < 0.05:
        levels = {"rack": levels["rack"]}
    return {"levels": levels, "preferred": str(rng.choice(["", "rack"]))}


def _rules(rng: np.random.Generator, on: set[str]) -> World:
    """Draw rules of partitions."""
    rules: World = {"p": {}, "q": {}}
    for rule in rules.values():
        if "tiers" in on:
            rule["tier"] = int(rng.integers(0, 4))
        if "exclusive" in on:
            rule["exclusive"] = bool(rng.random() < 0.3)
        if "admission" in on:
            rule["max_time_s"] = [None, 2.0, 5.0, 500.0][rng.integers(4)]
            rule["default_time_s"] = [None, None, 1.0, 2.0][rng.integers(4)]
            rule["min_nodes"] = [None, 1, 2][rng.integers(3)]
            rule["max_nodes"] = [None, 2, 4][rng.integers(3)]
    return rules


def _quotas(rng: np.random.Generator, resources: list[str]) -> World:
    """Draw a tree of the queues: alone, below one cohort, or below two of which one is below."""
    shares = ["0%", "10%", "25%", "33.4%", "60%", "60%", "100%", 4, 9.5]
    named = [name for name in resources if rng.random() < 0.8]

    def amounts(chance: float) -> Any:
        if rng.random() < 0.15:
            return str(rng.choice(shares[:6]))
        return {name: shares[rng.integers(len(shares))] for name in named if rng.random() < chance}

    shape = int(rng.choice([0, 1, 1, 1, 2, 2, 3]))
    parents: list[str] = [["", "", ""], ["all"] * 3, ["x", "x", "y"], ["x", "y", "all"]][shape]
    above = {"x": "all", "y": "x"} if shape == 2 else {"x": "all", "y": "all"}
    tree: World = {name: {"parent": parent} for name, parent in zip(QUEUES, parents, strict=True)}
    tree |= {name: {"parent": above.get(name, "")} for name in {*parents} - {""}}
    tree |= {"x": {"parent": "all"}} if shape == 2 else {}
    isolated = rng.random() < 0.15
    for row in tree.values():
        row["nominal"] = amounts(0.8)
        row["weight"] = float(rng.choice([0.5, 1.0, 1.0, 2.0]))
        if row["parent"]:
            row["borrow"] = "0%" if isolated else amounts(0.3) if rng.random() < 0.6 else {}
            row["lend"] = amounts(0.4) if rng.random() < 0.7 else {}
    if rng.random() < 0.5:  # what it lends hides that the others have used up theirs
        tree["idle"] = {"parent": "all" if shape else "", "nominal": amounts(0.7)}
    return {"tree": tree, "by_share": bool(rng.random() < 0.6)}


def _divide_by_flavor(
    rng: np.random.Generator, tree: World, resources: list[str], is_ample: bool
) -> None:
    """Give most amounts of some resources by flavor, or as shares of each; and choices.

    Of ample ones each queue has much, in several flavors.
    """
    shares = ["60%", "100%", 40] if is_ample else ["0%", "25%", "60%", "100%", "100%", 4, 9.5, 40]
    for name in QUEUES if is_ample else ():
        tree[name]["nominal"] = dict.fromkeys(resources, "100%")
    if not isinstance(tree["q0"]["nominal"], dict):
        tree["q0"]["nominal"] = {}
    tree["q0"]["nominal"].setdefault(resources[0], "60%")
    for resource in resources:
        if resource != resources[0] and rng.random() < 0.3:
            continue
        flavors = [["a", "b"], ["b", "a"], ["a"], ["a|b"], ["b"]][
            rng.integers(2 if is_ample else 5)
        ]
        for row in tree.values():
            for key in ("nominal", "borrow", "lend"):
                table = row.get(key)
                if not isinstance(table, dict):
                    continue
                if resource in table or (key == "nominal" and rng.random() < 0.5):
                    n_own = len(flavors) if is_ample else int(rng.integers(1, len(flavors) + 1))
                    own = rng.permutation(flavors)[:n_own]
                    table[resource] = {str(f): shares[rng.integers(len(shares))] for f in own}
                    if rng.random() < 0.2 and row is not tree["q0"]:
                        table[resource] = shares[rng.integers(2 if is_ample else 5)]
    for name in QUEUES:
        if rng.random() < 0.4:
            tree[name]["flavor_choice"] = "least_borrowing"


def _times(rng: np.random.Generator, on: set[str], n_machines: int) -> World:
    """Draw what happens to a cluster: outages, slow periods, lags."""
    times: World = {}
    if on & {"outages", "drains", "known outages"}:
        times["outages"] = _outages(rng, on, 1 if "pool" in on else n_machines)
    if "reserved machines" in on:
        times["reservations"] = _reservations(rng, 1 if "pool" in on else n_machines)
    if "slow periods" in on:
        n_bounds = int(rng.integers(2, 5))
        bounds = sorted(rng.choice([0.0, 0.75, 2.0, 3.5, 6.0], n_bounds, replace=False).tolist())
        speeds = rng.choice([0.3, 0.5, 2.0], n_bounds - 1).tolist()
        times["slowdowns"] = [bounds[:-1], bounds[1:], speeds]
    lags = [0.0, 0.25, 0.5, 1.0, 2.5]
    if "launch lags" in on:
        low, high = sorted(rng.choice(lags, 2).tolist())
        some = rng.choice(lags, rng.integers(1, 5)).tolist()
        launch = [high, some, {"low": low, "high": high}][rng.integers(3)]
        times["launch"] = {"launch_s": launch, "seed": int(rng.integers(100))}
    if "stage lags" in on:
        times["stage_lag_s"] = float(rng.choice(lags[1:]))
    return times


def _reservations(rng: np.random.Generator, n_machines: int) -> list[World]:
    """Draw windows of two reservations, of which one may be used by a user's jobs."""
    rows = []
    for name in ("x", "y"):
        for _ in range(int(rng.integers(1, 3))):
            from_s = float(rng.choice([0.0, 0.5, 1.0, 2.0, 4.0]))
            machines = rng.choice(n_machines, rng.integers(1, n_machines + 1), replace=False)
            row: World = {"name": name, "machine": machines.tolist(), "from_s": from_s}
            row["until_s"] = from_s + float(rng.choice([1.0, 2.5, 4.0, 9.0]))
            if rng.random() < 0.2:
                row["users"] = ["u0"]
            if rng.random() < 0.4:
                row["announced_s"] = from_s * float(rng.choice([0.5, 1.0]))
            rows.append(row)
    return rows


def _outages(rng: np.random.Generator, on: set[str], n_machines: int) -> list[list[Any]]:
    """Draw the columns of outages: machine, begin and end, and whether it is known, and a drain."""
    rows = []
    kinds = [(False, False)] * ("outages" in on) + [(False, True)] * ("drains" in on)
    kinds += [(True, False)] * ("known outages" in on)
    kinds += [(True, True)] * (on >= {"drains", "known outages"})
    for machine in range(n_machines):
        for known, drain in kinds:
            clock = 0.0
            for _ in range(int(rng.integers(0, 3))):
                down_s = clock + float(rng.choice([0.0, 0.5, 1.0, 2.5, 3.0]))
                clock = down_s + float(rng.choice([0.5, 1.0, 1.5, 3.0]))
                rows.append([machine, down_s, clock, known, drain])
    return [list(column) for column in zip(*rows, strict=True)] or [[], [], []]


def _policy(rng: np.random.Generator, on: set[str]) -> World:
    fit = "pack" if "pack" in on else "skip" if on & {"skip", "holds"} else "strict"
    fit = "per_class" if "per class" in on else fit
    preempts = "preemption" in on
    policy: World = {
        "kind": "plan",
        "fit": fit,
        "plan_seed": int(rng.integers(2**32)),
        "callbacks": "callbacks" in on,
        "learns": "learning" in on,
        "preempts": preempts,
    }
    if preempts and rng.random() < 0.5:  # so long that a victim stops by itself, and begins again
        policy["grace_s"] = float(rng.choice([1.25, 3.0, 8.0]))
    if "requests" in on:
        policy["demands"] = str(rng.choice(["declared", "declared", "true"]))
    if "reservations" in on:
        depth = int(rng.choice([1, 1, 2, 3, NO_LIMIT, NO_LIMIT]))
        return policy | {"kind": "reserves", "reservations": depth}
    if "planning" in on:
        return policy | {"kind": "replans", "depth": int(rng.choice([0, 0, 4, 6, 9, 13]))}
    if "like tasks" in on:
        order, packs = int(rng.integers(len(Order))), "pack" in on and rng.random() < 0.7
        rest = {name: value for name, value in policy.items() if name != "learns"}
        return rest | {"kind": "queues", "order": order, "packs": packs}
    n_held = int(rng.choice([1, 2, 99])) if "holds" in on else 0
    more = {"evicts": "evictions" in on, "n_held": n_held, "chooses": "choice" in on}
    return policy | more


def fill_preemption(policy: Any, world: Any, plan: Plan) -> None:
    """Fill rights, levels and victims at random, if the policy preempts."""
    if not policy.preempts:
        return
    has_quotas = bool(world.cluster.quotas)
    rng, n = np.random.default_rng([policy.plan_seed, 6]), len(plan.jobs["key"])
    quotas = [16, 16, 20] if has_quotas else []
    right = Right(int(rng.choice([1, 1, 1, 2, 2, 4, 6, *quotas])))
    grace_s = float(rng.choice([0.0, 0.0, 0.5, 1.25]))
    grace_s = grace_s if policy.grace_s is None else policy.grace_s
    plan.preemption = Preemption(right, Victims(int(rng.integers(len(Victims)))), grace_s)
    level = rng.integers(0, 4, n).astype(float)
    below = np.where(rng.random(n) < 0.7, level, rng.integers(-1, 6, n))
    rare = rng.random() < 0.5
    when = rng.choice([0, 0, 1, 2], n) if rare else rng.integers(0, 3)
    plan.set_jobs(preempt_level=level, preempts_below=below, when_preempted=when)


@dataclass(frozen=True)
class AnyMechanism(AnyPlan):
    """Fills every column; may also learn durations, hold machines and choose among them."""

    learns: float = 0.0
    n_held: int = 0
    chooses: bool = False
    preempts: bool = False
    grace_s: float | None = None

    def prepare(self, world, plan):
        memory = super().prepare(world, plan)
        fill_preemption(self, world, plan)
        plan.held_machines = self.n_held
        if self.chooses:
            rng = np.random.default_rng([self.plan_seed, 3])
            machine = Machine.FIRST if self.fit == "pack" else Machine(int(rng.integers(6)))
            mix = Mix.from_columns(world.whole, world.cluster)
            plan.choice = Choice(machine, Device(int(rng.integers(3))), mix)
        return memory


@dataclass(frozen=True)
class PreemptingQueues(AnyQueues):
    preempts: bool = False
    grace_s: float | None = None

    def prepare(self, world, plan):
        memory = super().prepare(world, plan)
        fill_preemption(self, world, plan)
        return memory


class _Learns(Policy):
    """Fills expected durations that are learnt, and preemption; for policies of rigid jobs."""

    learns: float
    plan_seed: int
    preempts: bool
    grace_s: float | None

    def prepare(self, world, plan):
        memory = super().prepare(world, plan)
        fill_preemption(self, world, plan)
        if self.learns:
            n_stages = len(world.columns.stage_job)
            rng = np.random.default_rng([self.plan_seed, 5])
            plan.set_stages(expected_s=rng.choice([0.0, 1.0, 4.0], n_stages))
            AnyPlan.fill_learning(self, n_stages, plan)
        return memory


@dataclass(frozen=True)
class Reserves(_Learns, AnyPlaces):
    learns: float = 0.0
    preempts: bool = False
    grace_s: float | None = None
    name: ClassVar[str] = "any-reservations"


@dataclass(frozen=True)
class Replans(_Learns, AnyReplan):
    """May also have a table of reservations that fills up: of `depth` steps, if that is not 0."""

    learns: float = 0.0
    preempts: bool = False
    grace_s: float | None = None
    depth: int = 0
    name: ClassVar[str] = "any-replan"

    def prepare(self, world, plan):
        super().prepare(world, plan)
        if self.depth:
            plan.replan = replace(plan.replan, depth=self.depth)


POLICIES = {
    "plan": AnyMechanism,
    "queues": PreemptingQueues,
    "reserves": Reserves,
    "replans": Replans,
}


def build(world: World) -> tuple[sim.Workload, sim.Cluster, Policy]:
    """Build the workload, the cluster and the policy of a world.

    Raises
    ------
    InputError
        If the parts do not go together.
    """
    workload = sim.Workload.from_jobs(world["jobs"])
    remote, failures = world.get("remote"), world.get("failures")
    if remote:
        workload = transforms.place_inputs(
            workload, remote_factor=remote["factor"], seed=remote["seed"]
        )
    if failures and failures["task"]:
        workload = workload.with_failures(failures)
    options = dict(world["policy"])
    policy = POLICIES[options.pop("kind")](**options)
    if not world["cluster"].get("quotas", {}).get("by_share", True):
        policy = _by_first_job(policy)
    if "elastic" in world["mechanisms"]:
        policy = with_widths(policy, world["policy"]["plan_seed"])
    if "selected classes" in world["mechanisms"]:
        policy = with_classes(policy, world["policy"]["plan_seed"])
    if "state" in world:
        policy = _in_state(policy, world["state"])
    return workload, _build_cluster(world["cluster"], workload), policy


def _by_first_job(policy: Policy) -> Policy:
    """Return the policy, under which queues with quotas are served by their first jobs."""

    class ByFirstJob(type(policy)):  # type: ignore[misc]  # any of POLICIES
        def prepare(self, world, plan):
            plan.by_share = False
            return super().prepare(world, plan)

    return ByFirstJob(**vars(policy))


def _in_state(policy: Policy, spec: World) -> Policy:
    """Return the policy, whose runs begin in a state."""
    placed_s = np.array(spec["placed_s"], np.float64)
    state = State(spec["begins_s"], placed_s, np.array(spec["machine"], np.int32))

    class InState(type(policy)):  # type: ignore[misc]  # any of POLICIES
        def prepare(self, world, plan):
            memory = super().prepare(world, plan)
            plan.pinned = state
            return memory

    return InState(**vars(policy))


def _build_cluster(spec: World, workload: sim.Workload) -> sim.Cluster:
    fungible = spec.get("fungible", ())
    if "slots" in spec:
        cluster = sim.Cluster.slots(spec["slots"])
    elif "machines" in spec:
        cluster = sim.Cluster.machines(**spec["machines"], fungible=fungible)
    else:
        cluster = sim.Cluster.mixed(spec["kinds"], fungible=fungible)
    if spec.get("reservations"):
        cluster = cluster.with_reservations(spec["reservations"])
    if "outages" in spec:
        cluster = cluster.with_outages(Outages.from_columns(*spec["outages"]))
    if "slowdowns" in spec:
        cluster = cluster.with_slowdowns(Slowdowns.from_columns(*spec["slowdowns"]))
    if "launch" in spec:
        cluster = cluster.with_launch(**spec["launch"])
    cluster = cluster.with_stage_lag(spec.get("stage_lag_s", 0.0))
    cluster = cluster.with_enforced_limits(spec.get("enforce_limits", False))
    cluster = cluster.with_unmet_dependencies(spec.get("unmet", "wait"))
    if "queues" in spec:
        names = set(workload.columns.queue_names)
        shares = {n: s for n, s in spec["queues"]["shares"].items() if n in names}
        cluster = cluster.with_queues(spec["queues"]["mode"], shares)
    if "partitions" in spec:
        cluster = cluster.with_partitions(spec["partitions"])
    if "topology" in spec:
        cluster = cluster.with_topology(spec["topology"])
    if "quotas" in spec:
        cluster = cluster.with_quotas(spec["quotas"]["tree"])
    if "limits" in spec:
        cluster = cluster.with_limits(spec["limits"]["rows"], spec["limits"]["accounts"])
    return cluster
