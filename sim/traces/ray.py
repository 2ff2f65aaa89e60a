"""Reader of Ray's tasks, as ``ray list tasks`` and the dashboard list them.

Source: Ray, *State API* (``ray.util.state.common``: TaskState, ListApiResponse), and
``src/ray/protobuf/common.proto`` (states of tasks).
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sim.base.errors import InputError
from sim.base.parameters import checked
from sim.base.reading import (
    BadLineError,
    OnBadRow,
    handle_bad_line,
    json_field,
    json_files,
    json_records,
    parse_time,
)
from sim.workload.attempts import MAX_SHARE, Attempt, AttemptLog, LoggedJob, rule_of
from sim.workload.workload import Workload

__all__ = ["read"]

COMMAND: Final = "ray list tasks --detail --format json --limit 10000"
# resources that are read: their names and units here
_RESOURCES: Final = {"CPU": ("cpu", 1.0), "GPU": ("gpu", 1.0), "memory": ("mem", 2.0**30)}
_GROUP = re.compile(r"^(\w+?)_group_(?:\d+_)?[0-9a-f]{32,}$")  # of a placement group
_PLACE = re.compile(r"^(bundle|node:.*|accelerator_type:.*|object_store_memory)$")
_TEXTS: Final = (
    "task_id", "state", "func_or_class_name", "type", "job_id", "actor_id", "parent_task_id",
    "node_id",
)  # fmt: skip
_OVER: Final = ("FINISHED", "FAILED")
_ACTOR: Final = ("ACTOR_CREATION_TASK", "ACTOR_TASK")
_MIN_MS: Final = 1e11  # seconds since 1970 are less
_LIMITS: Final = {100: "without --limit", 10_000: "at most"}  # of ray list


@dataclass(slots=True)
class _Task:
    """An attempt at a task; times are ms since 1970."""

    task_id: str
    number: float
    name: str
    state: str
    kind: str
    job: str
    actor: str
    parent: str
    node: str
    demand: dict[str, float]
    created: float
    start: float
    end: float

    @property
    def turn(self) -> tuple[bool, float, float]:
        """Order among listings of the same attempt."""
        return self.state in _OVER, _known(self.end, 0.0), _known(self.start, 0.0)


@checked
def read(path: str | os.PathLike[str], *, on_bad_row: OnBadRow = "error") -> Workload:
    """Read tasks: each is a job of one task, submitted when it was created.

    The last attempt at a task counts; earlier ones are lost work. A task that another created
    (``parent_task_id``) depends on it by its creation, not by data: there is no edge. While a
    parent waits for what it created, Ray gives its CPUs to others, but its run time has the wait: a
    warning says how much of the work is of parents.

    An actor is one job, with the resources of its creation: from the start of that to the end of
    the last of its methods that is listed. Methods run on the actor's resources.

    A task demands ``cpu``, ``gpu`` and ``mem`` (GiB), also those of a placement group. The template
    is the function or class, the queue Ray's job.

    Parameters
    ----------
    path : path-like
        JSON, plain or compressed, or a folder of such files: the list that
        ``ray list tasks --detail --format json`` prints, or the answer of the dashboard
        (``/api/v0/tasks?detail=1``). Times are ms since 1970, or dates and times without a zone
        (as the command prints them), taken as UTC.
    on_bad_row : {"error", "skip"}
        Tasks with missing or invalid fields: raise, or drop and count.

    Returns
    -------
    Workload
        ``recorded_start_s`` and ``recorded_finish_s``, ``node_list`` of ``stages``. In the account
        of ``meta["report"]`` (`sim.base.reading.account`) attempts are tasks.

    Raises
    ------
    InputError
        With file, line and rule: "missing file", "not JSON", "wrong line", "wrong type",
        "missing value", "wrong time", "number out of range", "no detail", "no job left".
    """
    log = AttemptLog(path, per_s=1000.0)
    listed: dict[tuple[str, float], _Task] = {}
    for file in json_files(path):
        records = list(json_records(file, ("data", "result"), f"{COMMAND}; a CSV: trace=table"))
        for line, record, _ in records:
            with handle_bad_line(file, line, on_bad_row, log.bad):
                task = _parse(record, log.notice)
                earlier = listed.get((task.task_id, task.number))
                if earlier is not None:
                    log.notice("attempts listed again: their latest state")
                if earlier is None or task.turn > earlier.turn:
                    listed[task.task_id, task.number] = task
        total = records[-1][2].get("total") if records else None
        log.warnings += _truncated(total, len(records))
    ordered = sorted(listed.values(), key=lambda task: (task.task_id, task.number))
    if ordered and all(math.isnan(task.created) for task in ordered):
        text = f"no task has a creation time; list them with {COMMAND}"
        raise InputError(text, file=path, line=1, rule="no detail")
    by_job: dict[str, list[_Task]] = {}
    for task in ordered:
        by_job.setdefault(task.actor if task.kind in _ACTOR else task.task_id, []).append(task)
    for key, parts in by_job.items():
        _add_job(log, key, parts)
    _tell_parents(log, ordered)
    return log.workload("ray", {"cpu": 1e-4, "gpu": 1e-4, "mem": 2.0**-10})


def _parse(record: Any, notice: Callable[[str], None]) -> _Task:
    task, state, name, kind, job, actor, parent, node = (
        json_field(record, key, str) for key in _TEXTS
    )
    if not task or not state:
        text = f"the task {task} has no state" if task else f"it has no task_id; give {COMMAND}"
        raise BadLineError("missing value", text)
    number = _known(json_field(record, "attempt_number", float), 0.0)
    times = [_time_ms(record, f"{key}_time_ms") for key in ("creation", "start", "end")]
    name, actor = name or json_field(record, "name", str), actor or task
    demand = _demand(record, notice)
    return _Task(task, number, name, state, kind, job, actor, parent, node, demand, *times)


def _time_ms(record: Any, name: str) -> float:
    """Return a time, ms since 1970; the command prints dates, the dashboard gives numbers."""
    value = record.get(name)
    if isinstance(value, str):
        return round(1000 * parse_time(name, value), 3)
    time_ms = json_field(record, name, float)
    if 0 < time_ms < _MIN_MS:
        text = f"{name} is {time_ms:.15g}; it must be in ms since 1970, after 1973"
        raise BadLineError("wrong time", text)
    return time_ms


def _demand(record: Any, notice: Callable[[str], None]) -> dict[str, float]:
    """Return the demand of a task; of CPUs, NaN if its resources are not listed."""
    if record.get("required_resources") is None:
        return {"cpu": math.nan}
    demand = {"cpu": 0.0}
    for name, value in json_field(record, "required_resources", dict).items():
        amount = json_field({"amount": value}, "amount", float)
        if not amount >= 0:
            text = f"required_resources.{name} is {amount:g}; it must be at least 0"
            raise BadLineError("number out of range", text)
        group = _GROUP.match(name)
        plain = name if group is None else group[1]
        if plain in _RESOURCES:  # a placement group's may be listed twice
            resource, unit = _RESOURCES[plain]
            demand[resource] = max(demand.get(resource, 0.0), amount / unit)
        elif not _PLACE.match(plain):
            notice(f"requests of {plain}: left out")
    return demand


def _add_job(log: AttemptLog, key: str, parts: Sequence[_Task]) -> None:
    """Add a task with its attempts, or an actor with its methods."""
    attempts = [_actor(parts, log)] if parts[0].kind in _ACTOR else parts
    times = [_known(task.created, task.start) for task in parts]
    log.jobs[key] = LoggedJob(
        job_id=key,
        submit=min(filter(math.isfinite, times), default=math.nan),
        template=attempts[0].name,
        queue=parts[0].job or "default",
    )
    for task in attempts:
        is_lost = task is not attempts[-1]
        is_over = is_lost or task.state in _OVER
        rule = rule_of(not math.isnan(task.start), is_over, is_lost)
        log.attempts.append(
            Attempt(key, task.name, task.start, task.end, task.demand, rule, 1, task.node)
        )


def _actor(parts: Sequence[_Task], log: AttemptLog) -> _Task:
    """Return an actor as a task: the time in which it held its resources, as far as it is seen."""
    creations = [task for task in parts if task.kind == _ACTOR[0]]
    log.notice("methods of actors: in their actors' time", len(parts) - len(creations))
    first = (creations or parts)[-1]
    ends = [task.end for task in parts if not math.isnan(task.end)]
    going_on = [task.state for task in parts if task.state not in _OVER]
    if not creations:
        log.notice("actors whose creation is not listed: resources unknown")
    return replace(
        first,
        name=first.name.removesuffix(".__init__"),
        state=going_on[0] if going_on else first.state,
        node=next((task.node for task in parts if task.node), ""),
        start=min(filter(math.isfinite, (task.start for task in parts)), default=math.nan),
        end=math.nan if going_on else max(ends, default=math.nan),
        demand=first.demand if creations else {"cpu": math.nan},
    )


def _tell_parents(log: AttemptLog, listed: Sequence[_Task]) -> None:
    """Warn of the work of tasks that created others, and may have waited for them."""
    created = {task.parent for task in listed}
    tasks = [task for task in listed if task.kind not in _ACTOR]
    cpu_s = [max(_known(task.demand["cpu"] * (task.end - task.start), 0.0), 0.0) for task in tasks]
    theirs = sum(work for task, work in zip(tasks, cpu_s, strict=True) if task.task_id in created)
    n_parents = len({task.task_id for task in tasks} & created)
    log.notice("tasks that created others: no dependency of data", n_parents)
    if theirs > MAX_SHARE * sum(cpu_s):
        log.warnings.append(
            f"{100 * theirs / sum(cpu_s):.1f} % of the CPU time is of tasks that created others "
            f"({n_parents:,}), with their waits for these, in which Ray gives their CPUs away"
        )


def _truncated(total: Any, n_listed: int) -> Iterator[str]:
    """Say that a list does not have all tasks."""
    if isinstance(total, int) and total > n_listed:
        yield (
            f"{n_listed:,} of {total:,} tasks are listed; Ray lists 10,000 at most, and forgets "
            "the oldest: list them more often, or by job (--filter job_id=...)"
        )
    elif total is None and n_listed in _LIMITS:
        yield f"only {n_listed:,} tasks are listed, as many as Ray lists {_LIMITS[n_listed]}"


def _known(number: float, default: float) -> float:
    return default if math.isnan(number) else number
