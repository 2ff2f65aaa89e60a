"""World that a candidate may read: the columns of a workload without what it does not know.

`cut` runs where the workload is, and leaves the truths out; `Public` is the rest, where the
candidate runs. A column that is not there raises an error that says what to declare. So the truth
is not hidden from a candidate: it is not in its process.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields, replace
from typing import Any

import pyarrow as pa

from policies.check.unknown import SECONDS
from policies.knows import Knows
from sim.base.errors import PolicyError
from sim.workload.columns import Columns
from sim.workload.history import Features, Training

ORACLE = (
    *("job_work", "stage_work", "stage_max_s", "stage_min_s", "stage_run0", "run_task0"),
    *("run_duration", "attempt0", "attempt_s", "attempt_lost"),
)
"""Columns that follow from true durations, or from failures to come."""
DERIVED = {"task_duration": "durations"}
DECLARED = {
    "job_requested": "durations",
    "job_priority": "values",
    "job_deadline": "deadlines",
    "job_new_deadline": "deadlines",
    "job_new_deadline_at": "deadlines",
}
"""Columns of what users declare, by quantity."""
LEARNT = ("true", "learnt")


def hidden(knows: Knows) -> dict[str, str]:
    """Return the columns that a policy does not know, with the quantity that each is of."""
    names: dict[str, str] = {}
    if knows.durations != "true":
        names |= {**dict.fromkeys(ORACLE, "durations"), **DERIVED}
    for name, quantity in DECLARED.items():
        if getattr(knows, quantity) == "nothing":
            names[name] = quantity
    return names


def cut(columns: Columns, knows: Knows) -> dict[str, Any]:
    """Return the columns that a policy knows, by name."""
    leave_out = hidden(knows)
    known = {f.name: getattr(columns, f.name) for f in fields(columns) if f.name not in leave_out}
    known["features"] = _features(columns.features, knows)
    known["training"] = _training(columns.training, knows)
    known["releases"] = replace(columns.releases, jobs=_jobs(columns.releases.jobs, knows))
    if knows.durations == "true":
        known["task_duration"] = columns.task_duration
    return known


def _features(features: Features, knows: Knows) -> Features:
    names = set(HISTORY)
    if knows.durations in LEARNT:
        names |= {*SECONDS, "finish_s"}
    if knows.values in LEARNT:
        names |= {name for name in features.history.column_names if name not in SECONDS}
    stages = _only(features.stages, STAGES)
    return Features(_jobs(features.jobs, knows), stages, _only(features.history, names))


def _training(training: Training, knows: Knows) -> Training:
    table = training.table
    known = table if knows.durations in LEARNT else table.slice(0, 0)
    return Training(_jobs(training.jobs, knows), known)


def _jobs(table: pa.Table, knows: Knows) -> pa.Table:
    """Return the columns of jobs that a policy knows."""
    names = set(JOBS)
    if knows.durations != "nothing":
        names |= {"requested_s"}
    if knows.values != "nothing":
        names |= {"priority"}
    if knows.deadlines != "nothing":
        names |= {"deadline_s", "new_deadline_s", "new_deadline_at_s"}
    if "true" in (knows.durations, knows.values):
        names |= {*SECONDS}
    if knows.values == "true":
        names |= {name for name in table.column_names if not name.startswith("recorded_")}
    return _only(table, names)


_FEATURES = ("application", "job_name", "requested", "day", "hour")
HISTORY = ("submit_s", "n_tasks", "user", "template", *_FEATURES)
JOBS = (
    *("job_id", "submit_s", "template", "user", "queue", "min_tasks", "input_mode", *_FEATURES),
    *("account", "qos", "reservation", "preempts", "checkpoint_s", "restart_s", "partition"),
    *("exclusive", "one_per_node", "n_nodes", "poll_lag_s", "begin_s", "after_needs", "singleton"),
)
STAGES = ("job", "name", "n_tasks", "runs_on", "input_home", "remote_factor", *_FEATURES)
"""Columns that every policy sees, beside those with one of these prefixes."""
_PREFIXES = ("demand_", "speed_", "license_")


def _only(table: pa.Table, names: Collection[str]) -> pa.Table:
    return table.select(
        [name for name in table.column_names if name in names or name.startswith(_PREFIXES)]
    )


class Public(Columns):
    """Columns of a workload as far as a policy knows them."""

    def __init__(self, known: dict[str, Any], unknown: dict[str, str]) -> None:
        for value in known.values():
            if hasattr(value, "setflags"):
                value.setflags(write=False)
        vars(self).update(known, _unknown=unknown)

    @property
    def task_duration(self) -> Any:
        """Durations of tasks, of a policy that knows them."""
        return self._read("task_duration")

    def __getattr__(self, name: str) -> Any:
        return self._read(name)

    def _read(self, name: str) -> Any:
        known = vars(self)
        if name in known:
            return known[name]
        quantity = known.get("_unknown", {}).get(name)
        if quantity is None:
            raise AttributeError(f"the world has no column {name!r}")
        source = "true" if name in ORACLE or name in DERIVED else "declared"
        raise PolicyError(
            f"it reads world.columns.{name} and does not say so: knows = "
            f"Knows({quantity}={source!r}) declares it"
            + ("; then it is an oracle, which nobody can run" if source == "true" else "")
        )
