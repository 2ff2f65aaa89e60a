"""Plan of a candidate as a message, and its decisions put into the plan of the run, checked.

What the kernel takes unseen, because policies of this project are trusted, is checked here: shapes,
types and ranges. A wrong value is an error of the candidate, never a fault of the run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.errors import PolicyError
from sim.engine.plan import (
    Choice,
    Depth,
    Device,
    Event,
    Fit,
    Learning,
    Machine,
    Mix,
    Packing,
    Plan,
    Preemption,
    Queues,
    Replan,
    Right,
    Victims,
)

MAX_QUEUES = 4096
NUMBERS = ("fit", "share", "by_share", "held_machines", "reservations", "first_ended")
RECORDS = ("queues", "packing", "choice", "preemption", "learning", "replan")
TASKS = ("task_order", "task_priority", "task_prefers")
MOVING = ("timer_s", "deferred")
"""Attributes that a callback may change, beside columns."""
_CLASSES = {
    cls.__name__: cls for cls in (Queues, Packing, Choice, Mix, Preemption, Learning, Replan, Depth)
}
_ENUMS: Mapping[str, Callable[[int], Any]] = {
    "by": Right, "victims": Victims, "machine": Machine, "device": Device,
}  # fmt: skip
_RECORD = "\0record"


class NotedPlan(Plan):
    """A plan that notes each change of a column, to be sent."""

    def __init__(self, n_jobs: int, n_stages: int, n_tasks: int) -> None:
        super().__init__(n_jobs, n_stages, n_tasks)
        self.calls: list[list[Any]] = []

    def set_jobs(self, rows: Any = None, /, **columns: Any) -> None:
        """Set columns of jobs, and note it."""
        super().set_jobs(rows, **columns)
        self.calls.append(["jobs", _rows(rows, len(self.jobs["key"])), _arrays(columns)])

    def note_jobs(self, rows: Any) -> None:
        """Note columns that the caller has written."""
        super().note_jobs(rows)
        where = np.atleast_1d(np.asarray(rows))
        skip = {"run_limit"} if self.weighs_jobs else {"run_limit", "worth", "beyond"}
        skip |= set() if self.selects_classes else {"runs_on"}
        columns = {name: self.jobs[name][where] for name in self.jobs if name not in skip}
        self.calls.append(["jobs", where, columns])

    def set_stages(self, rows: Any = None, /, *, jobs: Any = (), **columns: Any) -> None:
        """Set columns of stages, and note it."""
        super().set_stages(rows, jobs=jobs, **columns)
        where = _rows(rows, len(self.stages["key"]))
        job_rows = np.atleast_1d(np.asarray(jobs, dtype=np.int64))
        self.calls.append(["stages", where, _arrays(columns), job_rows])

    def set_tasks(self, rows: Any, /, **columns: Any) -> None:
        """Set columns of tasks, and note it."""
        super().set_tasks(rows, **columns)
        self.calls.append(["tasks", _rows(rows, self.n_tasks), _arrays(columns)])

    def take_calls(self) -> list[list[Any]]:
        """Return the changes since the last call."""
        self.take_changed(), self.take_limited(), self.take_changed_tasks()
        calls, self.calls = self.calls, []
        return calls


def _rows(rows: Any, n: int) -> Any:
    if rows is None:
        return None
    if isinstance(rows, slice):
        return np.arange(n)[rows]
    array = np.atleast_1d(np.asarray(rows))
    return np.flatnonzero(array) if array.dtype.kind == "b" else array.astype(np.int64)


def _arrays(columns: Mapping[str, Any]) -> dict[str, Any]:
    return {name: np.atleast_1d(np.asarray(value)) for name, value in columns.items()}


def describe(plan: NotedPlan) -> dict[str, Any]:
    """Return what a plan has beyond the defaults, before the run."""
    fresh = Plan(len(plan.jobs["key"]), len(plan.stages["key"]), 0)
    jobs = {k: v for k, v in plan.jobs.items() if not _same(v, fresh.jobs[k])}
    if plan.weighs_jobs:
        jobs |= {name: plan.jobs[name] for name in ("worth", "beyond")}
    if plan.selects_classes:
        jobs["runs_on"] = plan.jobs["runs_on"]
    stages = {k: v for k, v in plan.stages.items() if not _same(v, fresh.stages[k])}
    content: dict[str, Any] = {"jobs": jobs, "stages": stages, "events": int(plan.events)}
    content |= {name: _number(getattr(plan, name)) for name in NUMBERS}
    content |= {name: record_content(getattr(plan, name)) for name in RECORDS}
    content |= {name: getattr(plan, name) for name in TASKS}
    content |= moving(plan)
    content["fit_resources"] = list(plan.fit_resources)
    content["estimate_s"] = plan.estimate_s
    plan.take_calls()
    return content


def moving(plan: Plan) -> dict[str, Any]:
    """Return the attributes that a callback may change."""
    return {"timer_s": float(plan.timer_s), "deferred": int(plan.deferred)}


def _same(a: NDArray[Any], b: NDArray[Any]) -> bool:
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))


def _number(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


def record_content(value: Any) -> Any:
    """Return a record of a plan as plain content."""
    if is_dataclass(value) and not isinstance(value, type):
        content = {f.name: record_content(getattr(value, f.name)) for f in fields(value)}
        return {_RECORD: type(value).__name__, "fields": content}
    if isinstance(value, tuple):
        return [record_content(item) for item in value]
    return _number(value)


def fill(plan: Plan, content: Mapping[str, Any]) -> None:
    """Fill the plan of a run with what a candidate has sent.

    Raises
    ------
    PolicyError
        If a value is out of its range, or of the wrong kind.
    """
    try:
        _fill(plan, content)
    except PolicyError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise PolicyError(f"its plan is malformed: {type(error).__name__}: {error}") from None


def _fill(plan: Plan, content: Mapping[str, Any]) -> None:
    n_jobs, n_stages = len(plan.jobs["key"]), len(plan.stages["key"])
    plan.fit, plan.share = Fit(content["fit"]), int(content["share"])
    plan.by_share, plan.first_ended = bool(content["by_share"]), bool(content["first_ended"])
    plan.held_machines = _count(content, "held_machines")
    plan.reservations = _count(content, "reservations")
    plan.fit_resources = tuple(str(name) for name in content["fit_resources"])
    plan.events, plan.deferred = Event(content["events"]), Event(content["deferred"])
    plan.timer_s = _time(content["timer_s"])
    plan.queues = _queues(content["queues"])
    plan.packing = _record(content["packing"], Packing)
    plan.choice = _record(content["choice"], Choice)
    plan.preemption = _optional(content["preemption"], Preemption)
    plan.replan = _optional(content["replan"], Replan)
    plan.learning = _optional(content["learning"], Learning)
    if plan.learning is not None:
        _check_learning(plan.learning, n_stages)
    _set_estimates(plan, content["estimate_s"])
    for name, dtype in (("order", np.int32), ("priority", np.float64), ("prefers", np.int32)):
        column = content[f"task_{name}"]
        if column is not None:
            setattr(plan, f"task_{name}", _column(column, (plan.n_tasks,), dtype))
    if content["jobs"]:
        plan.set_jobs(**{k: _column(v, (n_jobs,)) for k, v in content["jobs"].items()})
    if content["stages"]:
        by_name = content["stages"].items()
        if "expected_s" in content["stages"]:  # NaN is its default: all or none
            expected_s = _column(content["stages"]["expected_s"], (n_stages,), np.float64)
            plan.stages["expected_s"][:] = expected_s
            by_name = [(k, v) for k, v in by_name if k != "expected_s"]
        plan.set_stages(**{k: _column(v, (n_stages,)) for k, v in by_name})


def change(plan: Plan, content: Mapping[str, Any]) -> None:
    """Put what a candidate has changed in a callback into the plan of a run; see `fill`."""
    try:
        for kind, rows, columns, *more in content["calls"]:
            where = None if rows is None else _column(rows, None, np.int64)
            if kind == "jobs":
                plan.set_jobs(where, **columns)
            elif kind == "stages":
                plan.set_stages(where, jobs=_stage_jobs(plan, more[0]), **columns)
            elif kind == "tasks":
                assert where is not None
                plan.set_tasks(where, **columns)
            else:
                raise PolicyError(f"its plan changes {kind!r}, which no plan has")
        plan.timer_s = _time(content["timer_s"])
        plan.deferred = Event(content["deferred"])
        if content["estimate_s"] is not None:
            _set_estimates(plan, content["estimate_s"])
    except PolicyError:
        raise
    except (
        *(KeyError, TypeError, ValueError, IndexError, AttributeError),
        *(OverflowError, AssertionError),
    ) as error:
        raise PolicyError(f"its changes are malformed: {type(error).__name__}: {error}") from None


def _stage_jobs(plan: Plan, jobs: Any) -> NDArray[Any]:
    rows = _column(jobs, None, np.int64)
    n_jobs = len(plan.jobs["key"])
    if len(rows) and not (rows.min() >= 0 and rows.max() < n_jobs):
        raise PolicyError(f"set_stages: a job that does not exist; there are {n_jobs}")
    return rows


def _set_estimates(plan: Plan, content: Any) -> None:
    plan.estimate_s[:] = _column(content, plan.estimate_s.shape, np.float64)


def _count(content: Mapping[str, Any], name: str) -> int:
    value = content[name]
    if type(value) is not int or not 0 <= value < 2**31:
        raise PolicyError(f"plan.{name} must be a whole number of 0 or more, not {value!r}")
    return value


def _time(value: Any) -> float:
    if type(value) not in (int, float) or math.isnan(value):
        raise PolicyError(f"timer_s must be a number, not {value!r}")
    return float(value)


def _column(value: Any, shape: tuple[int, ...] | None, dtype: Any = None) -> NDArray[Any]:
    """Return an array of its own, of a shape and type."""
    if not isinstance(value, np.ndarray) or (value.ndim != 1 and shape is None):
        raise PolicyError(f"a column is {type(value).__name__} where an array is needed")
    if shape is not None and value.shape != shape:
        raise PolicyError(f"a column has the shape {value.shape}; expected {shape}")
    return np.array(value, dtype=dtype, order="C")


def _optional(content: Any, kind: type) -> Any:
    return None if content is None else _record(content, kind)


def _record(content: Any, kind: type) -> Any:
    """Build a record of a plan; its class checks its numbers."""
    if not isinstance(content, dict) or content.get(_RECORD) != kind.__name__:
        raise PolicyError(f"plan: {kind.__name__} expected")
    values = {}
    for name, value in content["fields"].items():
        if isinstance(value, dict) and _RECORD in value:
            values[name] = _record(value, _CLASSES[value[_RECORD]])
        elif isinstance(value, list):
            values[name] = tuple(_record(item, Depth) for item in value)
        elif isinstance(value, np.ndarray):
            values[name] = np.array(value, order="C")
        elif name in _ENUMS:
            values[name] = _ENUMS[name](value)
        elif value is None or isinstance(value, bool | int | float):
            values[name] = value
        else:
            raise PolicyError(f"plan: {kind.__name__}.{name} is {value!r}")
    record = kind(**values)
    if isinstance(record, Mix):
        _check_mix(record)
    return record


def _queues(content: Any) -> Queues:
    columns = content["fields"]
    n = len(columns["weight"])
    if n > MAX_QUEUES:
        raise PolicyError(f"plan: {n:,} queues; at most {MAX_QUEUES:,}")
    return Queues.make(n, **{name: _column(value, (n,)) for name, value in columns.items()})


def _check_mix(mix: Mix) -> None:
    n = len(mix.weight)
    shapes = mix.demand.ndim == 2 and len(mix.demand) == n == len(mix.allowed)
    kinds = mix.demand.dtype == np.int64 and mix.allowed.dtype == np.int64
    weights = mix.weight.dtype == np.float64 and math.isclose(float(mix.weight.sum()), 1.0)
    if not (shapes and kinds and weights and mix.weight.ndim == mix.allowed.ndim == 1):
        raise PolicyError("plan: a mix needs demands (K, R), classes (K,) and weights of sum 1")


def _check_learning(learning: Learning, n_stages: int) -> None:
    n = len(learning.mean_s)
    columns = (learning.mean_s, learning.work_s, learning.n_tasks)
    group, runs = learning.group, learning.runs
    is_right = all(c.shape == (n,) and c.dtype == np.float64 for c in columns)
    is_right &= runs.ndim == 1 and runs.dtype == np.int64
    is_right &= group.ndim == 2 and group.shape[1] == n_stages and group.dtype == np.int32
    numbers = (learning.guess_s, learning.prior_tasks, learning.refresh_s)
    is_right &= all(type(v) in (int, float) and not math.isnan(v) for v in numbers)
    if is_right and group.size:
        is_right = group.min() >= -1 and group.max() < n and group[0].max() < len(runs)
    if not is_right:
        raise PolicyError("plan: learning needs groups (L, G) of -1 to C - 1, and columns (C,)")
