"""Preemption as an option of any policy: who may preempt whom, and what becomes of a victim."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sim.base.arrays import F8
from sim.base.errors import InputError, unknown
from sim.base.parameters import check
from sim.engine.plan import Plan, Preemption, Right, Victims, WhenPreempted, World
from sim.workload.columns import Columns

KEYS = ("by", "levels", "in_queue", "victims", "when", "grace_s")
VICTIMS = {
    "lowest_level": Victims.LOWEST_LEVEL,
    "last_started": Victims.LAST_STARTED,
    "least_lost": Victims.LEAST_LOST,
    "fewest_machines": Victims.FEWEST_MACHINES,
}
_HINTS = {"levels": Mapping[str, float], "in_queue": bool, "grace_s": float}
BETWEEN_QUEUES = {"share": Right.SHARE, "quota": Right.QUOTA}
WHEN = {name.lower(): way for name, way in WhenPreempted.__members__.items()}


def fill(world: World, plan: Plan, options: Mapping[str, Any]) -> None:
    """Fill the plan's preemption from a policy's `options`.

    Parameters
    ----------
    world, plan
        Those of `sim.engine.plan.Scheduler.begin`.
    options : mapping
        by : "priority", "share", "quota", or a column of jobs whose values `levels` orders ("qos",
        "queue", "user", "account", "partition");
        levels : mapping of str to float, the level of each value of that column (others 0): jobs
        of a higher level preempt those of a lower one;
        in_queue : bool, False by default: only jobs of the same queue; by shares and quotas also
        those of the same queue and lower priority;
        victims : "lowest_level" (default), "last_started", "least_lost" or "fewest_machines";
        when : "requeue" (default), "cancel" or "suspend", or a mapping of values of the column to
        one of these;
        grace_s : float, 0 by default.

    Raises
    ------
    InputError
        On an unknown key, a value that is unknown or of another type, or levels where none are
        asked for.
    """
    for name in options:
        if name not in KEYS:
            raise InputError(unknown("key in policy.preemption", name, KEYS))
        if name in _HINTS:
            check(f"policy.preemption.{name}", options[name], _HINTS[name])
    by = str(options.get("by", "priority"))
    levels = options.get("levels", {})
    texts = None
    if by in ("priority", *BETWEEN_QUEUES):
        if levels:
            raise InputError(
                f"policy.preemption.levels orders the values of a column, and by is {by!r}: set "
                "by to that column, or leave out levels"
            )
    else:
        texts = _texts(world.columns, by)
        if not levels:
            raise InputError(
                f"policy.preemption.by is {by!r}, and levels does not say who may preempt whom: "
                "give a level to each of its values, e.g. {high: 2, low: 0}; or set by=priority"
            )
    level = world.columns.job_priority if texts is None else _levels(levels, texts)
    plan.set_jobs(preempt_level=level, preempts_below=level)
    in_queue = bool(options.get("in_queue", False))
    right = Right.LEVEL_IN_QUEUE if in_queue else BETWEEN_QUEUES.get(by, Right.LEVEL)
    if in_queue and by in BETWEEN_QUEUES:
        right |= BETWEEN_QUEUES[by]
    plan.set_jobs(when_preempted=_when(options.get("when", "requeue"), texts, len(level)))
    victims = str(options.get("victims", "lowest_level"))
    if victims not in VICTIMS:
        raise InputError(unknown("policy.preemption.victims", victims, VICTIMS))
    plan.preemption = Preemption(right, VICTIMS[victims], float(options.get("grace_s", 0.0)))


def levels_of(columns: Columns, options: Mapping[str, Any] | None) -> F8 | None:
    """Return the level of each job, (J,), if a column has levels; else None."""
    if not options or not options.get("levels"):
        return None
    return _levels(options["levels"], _texts(columns, str(options["by"])))


def _levels(levels: Mapping[str, float], texts: list[str]) -> F8:
    return np.array([float(levels.get(text, 0.0)) for text in texts])


def _when(when: Any, texts: list[str] | None, n_jobs: int) -> F8:
    ways = list(when.values()) if isinstance(when, Mapping) else [when]
    for way in ways:
        if way not in WHEN:
            raise InputError(unknown("policy.preemption.when", str(way), WHEN))
    if not isinstance(when, Mapping):
        return np.full(n_jobs, float(WHEN[when]))
    if texts is None:
        raise InputError(
            "policy.preemption.when names values of a column, and by names none: set by to it, or "
            "when to one of " + ", ".join(WHEN)
        )
    return np.array([float(WHEN[when.get(text, "requeue")]) for text in texts])


def _texts(columns: Columns, name: str) -> list[str]:
    """Return the values of a column of jobs."""
    own = {
        "queue": (columns.queue_names, columns.job_queue),
        "user": (columns.user_names, columns.job_user),
        "partition": (columns.partitions, columns.job_partition),
    }
    if name in own:
        names, codes = own[name]
        return [names[code] for code in codes.tolist()]
    table = columns.features.jobs
    if name not in table.column_names:
        known = [*dict.fromkeys(("priority", *BETWEEN_QUEUES, *own, *table.column_names))]
        raise InputError(unknown("policy.preemption.by", name, known))
    texts: list[str] = table[name].to_pylist()
    return texts
