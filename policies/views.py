"""Views of the world: the columns of a workload without those that a policy does not know.

`restrict` makes the view of a run, once. In it a column that the policy does not declare to know
raises an error that says what to declare. A candidate (`sweep.questions.evaluate`) gets one that is
`cut` off: the truth is not in its process at all.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NoReturn
from weakref import WeakKeyDictionary

import pyarrow as pa
from numpy.typing import NDArray

from policies.knows import Knows
from sim.base.arrays import F8
from sim.base.errors import PolicyError
from sim.engine.plan import World
from sim.workload.columns import Columns
from sim.workload.history import Features, Training
from sim.workload.releases import Releases

TRUTHS = (
    *("job_work", "stage_work", "stage_max_s", "stage_min_s", "stage_run0", "run_task0"),
    *("run_duration", "task_duration", "attempt0", "attempt_s", "attempt_lost"),
)
"""Columns that follow from true durations, or from failures to come."""
DECLARED = {
    "job_requested": "durations",
    "job_priority": "values",
    "job_deadline": "deadlines",
    "job_new_deadline": "deadlines",
    "job_new_deadline_at": "deadlines",
}
"""Columns of what users declare, by quantity."""
LEARNT = ("true", "learnt")
SECONDS = ("mean_task_s", "compute_s", "agg_compute_s")
"""Columns of jobs, and of past jobs, with durations."""


class UndeclaredError(PolicyError):
    """A policy reads a column that it does not declare to know."""


@dataclass(frozen=True)
class Reader:
    """A policy as its view knows it.

    Attributes
    ----------
    name : str
        Name of the policy.
    knows : Knows
        What it declares.
    unlock : str
        How it may read all, a sentence; "" if it may not.
    """

    name: str
    knows: Knows
    unlock: str = ""

    def refuse(self, column: str, quantity: str, source: str) -> NoReturn:
        """Raise UndeclaredError for a column of a quantity of `Knows`, known from a source."""
        raise UndeclaredError(
            f"policy {self.name} reads {column} and does not say so: it declares to know "
            f"{self.knows}. knows = Knows({quantity}={source!r}) declares it"
            + ("; then it is an oracle, which nobody can run" if source == "true" else "")
            + f". {self.unlock}".rstrip(". ")
        )


def hidden(knows: Knows) -> dict[str, tuple[str, str]]:
    """Return the columns that a policy does not know, with quantity and source of each."""
    columns: dict[str, tuple[str, str]] = {}
    if knows.durations != "true":
        columns |= dict.fromkeys(TRUTHS, ("durations", "true"))
    if knows.durations not in LEARNT:
        columns["training"] = "durations", "learnt"
    for name, quantity in DECLARED.items():
        if getattr(knows, quantity) == "nothing":
            columns[name] = quantity, "declared"
    return columns


def restrict(world: World, reader: Reader, more: Collection[str] = ()) -> World:
    """Return the world as a policy knows it; itself if it has been restricted.

    `more` are columns of jobs that it sees beside those of its declaration.
    """
    columns = world.columns
    if isinstance(columns, View):
        return world
    known = {f.name: getattr(columns, f.name) for f in fields(columns)}
    known |= _tables(columns, reader, more)
    return replace(world, columns=View(known, reader, columns), truth=columns)


def cut(columns: Columns, knows: Knows) -> dict[str, Any]:
    """Return the columns that a policy knows, by name."""
    leave_out = hidden(knows)
    known = {f.name: getattr(columns, f.name) for f in fields(columns)}
    known |= _tables(columns, Reader("", knows), ())
    known |= {"task_duration": columns.task_duration} if knows.durations == "true" else {}
    return {name: value for name, value in known.items() if name not in leave_out}


_Key = tuple[Reader, frozenset[str]]
_tables_of: WeakKeyDictionary[Columns, dict[_Key, dict[str, Any]]] = WeakKeyDictionary()


def _tables(columns: Columns, reader: Reader, more: Collection[str]) -> dict[str, Any]:
    """Return the columns that are tables, as far as they are known; the same ones for each run."""
    tables = _tables_of.setdefault(columns, {})
    key = reader, frozenset(more)
    if key not in tables:
        knows = reader.knows
        jobs = _jobs(columns.features.jobs, knows, more)
        tables[key] = {
            "features": _features(columns.features, jobs, reader),
            "training": Training(jobs, columns.training.table),
            "releases": _releases(columns.releases, knows, more),
        }
    return tables[key]


def _features(features: Features, jobs: pa.Table, reader: Reader) -> Features:
    names, knows = set(HISTORY), reader.knows
    if knows.durations in LEARNT:
        names |= {*SECONDS, "finish_s"}
    if knows.values in LEARNT:
        names |= {name for name in features.history.column_names if name not in SECONDS}
    return Seen(jobs, _only(features.stages, STAGES), _only(features.history, names), reader)


def _releases(releases: Releases, knows: Knows, more: Collection[str]) -> Releases:
    return replace(releases, jobs=_jobs(releases.jobs, knows, more))


def _jobs(table: pa.Table, knows: Knows, more: Collection[str]) -> pa.Table:
    """Return the columns of jobs that a policy knows."""
    names = {*JOBS, *more}
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
    *("width_min", "speedup", "reconfigure_s"),
    *("exclusive", "one_per_node", "n_nodes", "poll_lag_s", "begin_s", "after_needs", "singleton"),
)
STAGES = ("job", "name", "n_tasks", "runs_on", "input_home", "remote_factor", *_FEATURES)
"""Columns that every policy sees, beside those with one of these prefixes."""
_PREFIXES = ("demand_", "speed_", "license_")


def _only(table: pa.Table, names: Collection[str]) -> pa.Table:
    return table.select(
        [name for name in table.column_names if name in names or name.startswith(_PREFIXES)]
    )


@dataclass(frozen=True)
class Seen(Features):
    """Features, and the columns of the history that a policy knows."""

    reader: Reader

    def history_column(self, column: str) -> NDArray[Any]:
        """Return a numeric column of the history, if it is known."""
        if column in (*SECONDS, "finish_s") and self.reader.knows.durations not in LEARNT:
            self.reader.refuse(f"the history's {column}", "durations", "learnt")
        return super().history_column(column)


class View(Columns):
    """Columns of a workload as far as a policy knows them.

    Parameters
    ----------
    known : mapping of str to array
        Columns by name; those that the reader does not know are left out.
    reader : Reader
        The policy.
    whole : Columns or None
        The columns of which it is the view, if they are in this process.
    """

    def __init__(self, known: dict[str, Any], reader: Reader, whole: Columns | None = None) -> None:
        unknown = hidden(reader.knows)
        own = {name: value for name, value in known.items() if name not in unknown}
        vars(self).update(own, _unknown=unknown, _reader=reader, _whole=whole)

    @cached_property
    def task_duration(self) -> F8:
        """Durations of tasks, if the policy knows them."""
        whole: Columns | None = vars(self)["_whole"]
        if whole is None or "task_duration" in vars(self)["_unknown"]:
            self._refuse("task_duration")
        return whole.task_duration

    def __getattr__(self, name: str) -> Any:
        self._refuse(name)

    def _refuse(self, name: str) -> NoReturn:
        unknown = vars(self).get("_unknown", {})
        if name not in unknown:
            raise AttributeError(f"the world has no column {name!r}")
        reader: Reader = vars(self)["_reader"]
        reader.refuse(f"world.columns.{name}", *unknown[name])
