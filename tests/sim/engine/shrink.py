"""Reduction of a world that fails: leave out jobs, tasks and mechanisms that do not matter."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator

from tests.sim.engine.random_worlds import World

OPTIONAL = (
    *("after", "begin_s", "singleton", "reservation", "checkpoint_s", "restart_s", "preempts"),
    *("exclusive", "one_per_node", "plans_on", "speedup"),
)
"""Keys of a job that it may lack."""


def shrink(world: World, fails: Callable[[World], bool], seconds: float = 25.0) -> World:
    """Return the smallest world found that still fails, after at most some `seconds`."""
    end, smaller = time.monotonic() + seconds, True
    while smaller and time.monotonic() < end:
        smaller = False
        for candidate in _candidates(world):
            if time.monotonic() > end:
                break
            if fails(candidate):
                world, smaller = candidate, True
                break
    return world


def _candidates(world: World) -> Iterator[World]:
    """Yield worlds with one part less, large parts first."""
    for part in ("failures", "remote", "state"):
        if part in world:
            yield {name: value for name, value in world.items() if name != part}
    for j in range(len(world["jobs"])):
        if len(world["jobs"]) > 1:
            yield _without_job(world, j)
    for part in (
        *(
            "outages",
            "reservations",
            "slowdowns",
            "launch",
            "stage_lag_s",
            "enforce_limits",
            "limits",
            "queues",
            "fungible",
        ),
    ):
        if part in world["cluster"]:
            yield _with(world, "cluster", part)
    for j, job in enumerate(world["jobs"]):
        for name in OPTIONAL:
            if job.get(name) is not None:
                changed = copy.deepcopy(world)
                del changed["jobs"][j][name]
                yield changed
    for name, off in (("callbacks", False), ("learns", False), ("chooses", False), ("n_held", 0)):
        if world["policy"].get(name):
            yield world | {"policy": world["policy"] | {name: off}}
    for row in range(len(world.get("failures", {}).get("task", ()))):
        rows = {
            name: values[:row] + values[row + 1 :] for name, values in world["failures"].items()
        }
        yield world | {"failures": rows}
    for j, job in enumerate(world["jobs"]):
        for s, stage in enumerate(job["stages"]):
            n = len(stage["durations_s"])
            for first, end in dict.fromkeys(((n // 2, n), (0, n // 2), (n - 1, n), (0, 1))):
                if 0 < end - first < n:
                    yield _without_tasks(world, j, s, first, end)
            if stage["parents"]:
                yield _with_stage(world, j, s, parents={})
            if stage.get("runs_on"):
                yield _with_stage(world, j, s, runs_on="")
            if stage.get("speed"):
                yield _with_stage(world, j, s, speed={})


def _with(world: World, part: str, left_out: str) -> World:
    rest = {name: value for name, value in world[part].items() if name != left_out}
    return world | {part: rest}


def _with_stage(world: World, j: int, s: int, **changes: object) -> World:
    changed = copy.deepcopy(world)
    job = changed["jobs"][j]
    job["stages"][s] |= changes
    if job.get("min_tasks"):
        n_tasks = sum(len(stage["durations_s"]) for stage in job["stages"])
        job["min_tasks"] = min(job["min_tasks"], n_tasks)
    return changed


def _without_tasks(world: World, j: int, s: int, first: int, end: int) -> World:
    """Leave out tasks [first, end) of a stage, with their failures and pins."""
    seconds = world["jobs"][j]["stages"][s]["durations_s"]
    smaller = _with_stage(world, j, s, durations_s=seconds[:first] + seconds[end:])
    before = [stage for job in world["jobs"][:j] for stage in job["stages"]]
    before += world["jobs"][j]["stages"][:s]
    task0 = sum(len(stage["durations_s"]) for stage in before) + first
    return _renumbered(smaller, task0, end - first)


def _renumbered(world: World, task0: int, n: int) -> World:
    """Leave out the failures and pins of `n` tasks from `task0` on, which are gone."""
    if "state" in world:
        machine = world["state"]["machine"]
        world |= {"state": world["state"] | {"machine": machine[:task0] + machine[task0 + n :]}}
    if "failures" not in world:
        return world
    dropped = range(task0, task0 + n)
    rows = zip(*world["failures"].values(), strict=True)
    rest = [row for row in rows if row[0] not in dropped and row[2] not in dropped]

    def moved(task: int) -> int:
        return task - n if task >= task0 + n else task

    return world | {
        "failures": {
            "task": [moved(task) for task, _, _ in rest],
            "after_s": [after_s for _, after_s, _ in rest],
            "lost": [moved(lost) for _, _, lost in rest],
        }
    }


def _without_job(world: World, j: int) -> World:
    """Leave out a job, with its failures and what others read from it."""
    sizes = [sum(len(s["durations_s"]) for s in job["stages"]) for job in world["jobs"]]
    task0, n = sum(sizes[:j]), sizes[j]
    left_out = world["jobs"][j]["job_id"]
    jobs = copy.deepcopy(world["jobs"][:j] + world["jobs"][j + 1 :])
    for job in jobs:
        if "inputs" in job:
            job["inputs"] = {u: kind for u, kind in job["inputs"].items() if u != left_out}
        if "after" in job:
            job["after"] = {
                kind: {u: delay for u, delay in delays.items() if u != left_out}
                for kind, delays in job["after"].items()
            }
    smaller = world | {"jobs": jobs}
    if "state" in world:
        placed_s = world["state"]["placed_s"]
        smaller["state"] = world["state"] | {"placed_s": placed_s[:j] + placed_s[j + 1 :]}
    return _renumbered(smaller, task0, n)
