"""Vocabulary between policies and the kernel: the plan that a policy fills, the world it reads.

The kernel moves time; a policy fills *columns*. Before the run it gets a `World` to read and a
`Plan` to fill; at the moments it subscribed to it gets a `Batch` of events of one instant, before
anything is placed at that instant, and may change the plan for the jobs it names. `World` and
`Batch` are in `world`, queues and packing in `queues`, machine choice in `choice`, columns here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sim.base.arrays import F8, I4
from sim.base.errors import PolicyError, unknown
from sim.engine.plan.choice import Choice, Device, Machine, Mix
from sim.engine.plan.columns import JOB_COLUMNS, NO_LIMIT, STAGE_COLUMNS, TASK_COLUMNS, defaults
from sim.engine.plan.learning import Learning
from sim.engine.plan.preemption import Preemption, Right, Victims, WhenPreempted
from sim.engine.plan.queues import Fit, Order, Packing, Queues, Share
from sim.engine.plan.replan import Depth, Replan
from sim.engine.plan.rows import are_plain, misfit, rows_of
from sim.engine.plan.state import State
from sim.engine.plan.world import Batch, Ended, Event, World

__all__ = [
    "NO_LIMIT",
    "Batch",
    "Choice",
    "Depth",
    "Device",
    "Ended",
    "Event",
    "Fit",
    "Learning",
    "Machine",
    "Mix",
    "Order",
    "Packing",
    "Plan",
    "Preemption",
    "Queues",
    "Replan",
    "Right",
    "Scheduler",
    "Share",
    "State",
    "Victims",
    "WhenPreempted",
    "World",
    "seen_by",
]


_EVICTION = Preemption(Right.LIMIT, Victims.LAST_STARTED)
_NO_ROWS = np.empty(0, dtype=np.int32)


class Plan:
    """The columns that a policy fills; the defaults are first come, first served.

    Change job columns with `set_jobs`, stage columns with `set_stages` and task columns with
    `set_tasks`; the kernel re-reads only the rows named there. Everything else except `timer_s`,
    `deferred` and `estimate_s` is read once, before the run.

    Attributes
    ----------
    queues : Queues
        One queue in key order by default.
    fit : Fit
        STRICT by default: machines are pools, by class and size, on which the same tasks can run,
        and what waits blocks those that it could take.
    fit_resources : tuple of str
        The resources that decide what fits, on machines and in hard shares; empty for all. Only
        a fungible resource (`sim.cluster.cluster.Cluster`) may be left out.
    share : int
        Resource whose use counts between queues: an index, or `Share.DOMINANT`.
    by_share : bool
        Where the cluster's queues have quotas, those that borrow equally far are served by least
        use over weight; if False, by the order of their first jobs. True by default. Read once.
    packing : Packing
        Weights of Fit.PACK; by default alignment alone: how well a task fills a machine.
    choice : Choice
        Machine and device of a task, among those with room (`sim.engine.plan.choice`): the first,
        by default.
    task_order : (T,) int32 or None
        Start order of tasks: for each stage a permutation of its tasks (index within the stage).
        `set_tasks` changes this and the next two for jobs that have not started.
    task_priority : (T,) float64 or None
        Factor of the worth of each task in Fit.PACK, 0 or more; 1 by default
        (`sim.engine.plan.queues.Packing.order` and ``rebased``).
    task_prefers : (T,) int32 or None
        The machine that each task prefers, -1 for none. If the tasks of a stage are ready at once,
        that is, none waits for a single task of a parent, a machine takes the first that prefers
        it, if any; Fit.PACK also weighs the preference between stages
        (`sim.engine.plan.queues.Packing.remote`). Where tasks may have to start again (faults,
        preemption), the first in order goes first.
    evict : bool
        A job that runs fewer tasks than its ``run_limit`` gets the room of tasks that others run
        beyond theirs, the last started first: short for a `preemption` by Right.LIMIT. False by
        default.
    held_machines : int
        With Fit.SKIP on machines, number of machines that are held for the first stage in order
        that does not fit, at most one for each of its tasks that have not started: those where a
        task lacks the least room, of the resource of which it lacks most, over the largest amount
        on a machine. Stages with a demand after it start on other machines, so that large tasks
        don't starve, as they may with 0, the default. Not with gangs, hard shares, devices or
        classes. Read once.
    first_ended : bool
        The first ``notify_at`` tasks of a job are the first to end; if False, the first to start.
    reservations : int
        Number of jobs, the first in order that do not fit, for which room is reserved, by the
        ``expected_s`` of all; jobs after them may start where they delay none of these. 0 for
        none, `NO_LIMIT` for all: then each keeps its start unless freed room lets it begin earlier,
        as long as all starts can be kept. A smaller number are planned anew at each
        instant. It takes the place of `fit`. Only for rigid jobs, all of whose tasks start
        together, in one queue of the plan; the cluster's queues with hard shares have as many
        each. On machines each task has one, by `choice`: first, best fit or least dot. A job that
        runs longer than expected goes on, and is assumed to end at any moment. Read once.
    replan : Replan or None
        Rigid jobs are started by a main loop and a planning thread, as Slurm has them
        (`sim.engine.plan.replan`), by ``expected_s`` of all. It takes the place of `fit`. Read
        once.
    pinned : State or None
        The state in which the run begins (`sim.engine.plan.state`), as `sim.simulate` was given
        it. Read once.
    preemption : Preemption or None
        Running jobs are stopped for waiting ones that may preempt them
        (`sim.engine.plan.preemption`), by ``preempt_level`` and ``preempts_below``. In strict order
        that is tried for the first that does not fit; else, after placement, for each job that
        waits, in order, whatever is reserved for others. Read once.
    learning : Learning or None
        The run learns ``expected_s`` of stages (`sim.engine.plan.learning`). Read once.
    events : Event
        The events that are sent, of those that the policy subscribes to; all by default. Read once.
    deferred : Event
        Events that wait for the next batch with another one: for policies that only learn from
        them. Those since the last batch are not sent. None by default. If some are deferred before
        the run, a callback may change it.
    timer_s : float
        Time of the next TIMER event, s; inf for none. A tick sets it to inf: set it again then.
    estimate_s : (J,) float64
        The policy's estimate of the sum of the job's task durations, s; NaN for none. It changes
        nothing in the run: it is compared with the truth afterwards. Fill it at any time.
    """

    JOB_COLUMNS = JOB_COLUMNS
    STAGE_COLUMNS = STAGE_COLUMNS
    TASK_COLUMNS = TASK_COLUMNS

    def __init__(self, n_jobs: int, n_stages: int, n_tasks: int) -> None:
        self.queues = Queues.make(1)
        self.fit = Fit.STRICT
        self.fit_resources: tuple[str, ...] = ()
        self.packing = Packing()
        self.choice = Choice()
        self.share: int = Share.DOMINANT
        self.by_share = True
        self.task_order: I4 | None = None
        self.task_priority: F8 | None = None
        self.task_prefers: I4 | None = None
        self.held_machines = 0
        self.reservations = 0
        self.replan: Replan | None = None
        self.pinned: State | None = None
        self.preemption: Preemption | None = None
        self.first_ended = False
        self.weighs_jobs = False  # True if `worth` or `beyond` was set before the run
        self.selects_classes = False  # True if `runs_on` was
        self.learning: Learning | None = None
        self.events, self.deferred = ~Event.NONE, Event.NONE
        self.timer_s = np.inf
        self.n_tasks = n_tasks
        self.estimate_s = np.full(n_jobs, np.nan)
        self.jobs = defaults(self.JOB_COLUMNS, n_jobs)
        self.stages = defaults(self.STAGE_COLUMNS, n_stages)
        self.jobs["key"][:] = np.arange(n_jobs)
        self._changed: list[NDArray[Any] | int] | None = None
        self._one_row = np.zeros(1, dtype=np.int32)
        self._limited: list[NDArray[Any]] = []
        self._own_tasks: dict[str, NDArray[Any]] = {}  # copies of what the policy had set
        self._changed_tasks: list[NDArray[Any]] = []

    @property
    def evict(self) -> bool:
        """Tell whether tasks beyond the run limits of their jobs are evicted."""
        return self.preemption == _EVICTION

    @evict.setter
    def evict(self, value: bool) -> None:
        self.preemption = _EVICTION if value else None

    def set_jobs(self, rows: ArrayLike | slice | None = None, /, **columns: ArrayLike) -> None:
        """Set columns of the jobs `rows` (None: all of them).

        Parameters
        ----------
        rows : array of int, int, slice or None
            Rows of jobs.
        **columns
            key : float64, smallest first;
            queue : int32, one of the plan's queues;
            run_limit : int32, how many of the job's tasks may run at once; with an overflow queue,
            how many are guaranteed to;
            start_gate : int32, how many of its tasks may start in all (raise it in a callback);
            overflow_queue : int32, the queue in which a job at its limit or gate waits, there free
            of both (a queue of a higher tier, so that it gets only surplus room); -1 for none;
            notify_at : int32, k for a TASKS_DONE event when the first k started tasks have ended;
            service_at : float64, attained task seconds at which to send a SERVICE event;
            expected_s : float64, expected run time of the job from its start on, s, by which
            reservations are planned: finite, for all jobs, if there are `reservations`; one of 0
            keeps the room of its job at its begin;
            fill_key : float64, smallest first (then as in the queue): the order in which jobs
            without a reservation are tried;
            preempt_level : float64, how much a job is to be spared from preemption;
            preempts_below : float64, it may preempt jobs of a ``preempt_level`` below this and its
            own; -inf (the default) for none;
            when_preempted : int32, `WhenPreempted`: what becomes of it when it is preempted;
            width : int32, places that an elastic job is to have, within its own least and greatest
            width: when it starts, and from now on if it runs, as far as there is room now; tried
            again each time the job is named here. All that shrink do so before any grows, in the
            order in which they are named, and before anything starts;
            runs_on : int64, classes of machines on which it may start now, as bits: that of
            ``cluster.classes[i]`` is ``1 << i``, on a pool of slots and on equal machines 1 is the
            only one; at 0 it does not wait. It narrows what the workload asks for. What runs goes
            on, without `Right.RUNS_ON`. To change it in a callback, set it before the run. Not with
            `reservations` or `replan`;
            worth, beyond : float64, above 0, and 0 or more: remaining work plus ``beyond``, over
            ``worth``, orders queues (`Order.REMAINING`) and lowers packing scores. To change them
            in a callback, set one before the run, at any values.

        Raises
        ------
        PolicyError
            On an unknown column, a NaN, a wrong number of values, a row that does not exist, or a
            queue, limit or gate out of its range.
        """
        where: Any = slice(None) if rows is None else rows
        for name, value in columns.items():
            checked = self._checked_job(name, value)
            try:
                self.jobs[name][where] = checked
            except (ValueError, IndexError) as error:
                raise misfit("job", name, self.jobs[name], where, checked) from error
        if "run_limit" in columns:
            self._limited.append(rows_of(where, len(self.jobs["key"])))
        if self._changed is not None:
            is_one = isinstance(where, int)
            self._changed.append(where if is_one else rows_of(where, len(self.jobs["key"])))

    def note_jobs(self, rows: I4 | int) -> None:
        """Let the kernel re-read the jobs `rows`, whose columns in `jobs` the caller has written.

        Nothing is checked: for callbacks so frequent that checks would take most of their time.
        Run limits are set by `set_jobs`, which records them.
        """
        if self._changed is not None:
            self._changed.append(rows)

    def set_stages(
        self,
        rows: ArrayLike | slice | None = None,
        /,
        *,
        jobs: ArrayLike = (),
        **columns: ArrayLike,
    ) -> None:
        """Set columns of the stages `rows` (None: all of them).

        Parameters
        ----------
        rows : array of int, int, slice or None
            Rows of stages.
        jobs : array of int
            The jobs those stages belong to; needed in a callback, so that the kernel re-reads them.
        **columns
            key : float64, smallest first, among the stages of jobs of equal key;
            weight : float64, how much a second of its tasks counts in remaining work (read once);
            cost : float64, cost of starting one task, in the fairness between queues
            (`sim.engine.plan.queues`; read once);
            expected_s : float64, expected duration of each of its tasks, s, in remaining work and
            overbooking; if set before the run, for all stages, it may be refined at any time.

        Raises
        ------
        PolicyError
            On an unknown column, a NaN, a wrong number of values or a row that does not exist.
        """
        where: Any = slice(None) if rows is None else rows
        for name, value in columns.items():
            if name not in self.STAGE_COLUMNS:
                raise PolicyError(unknown("stage column", name, self.STAGE_COLUMNS))
            array = np.asarray(value, dtype=np.float64)
            if np.isnan(array).any():
                raise PolicyError(f"stage column {name!r} holds a NaN")
            try:
                self.stages[name][where] = array
            except (ValueError, IndexError) as error:
                raise misfit("stage", name, self.stages[name], where, array) from error
        if self._changed is not None:
            self._changed.append(np.atleast_1d(np.asarray(jobs, dtype=np.int64)))

    def set_tasks(self, rows: ArrayLike | slice, /, **columns: ArrayLike) -> None:
        """Set columns of the tasks `rows`, whose jobs have not started any task yet.

        So a policy orders a job's tasks when the job arrives, from what it knows then. The columns
        are those of `task_order`, `task_priority` and `task_prefers`; one must have been set for
        all tasks before the run, at any values.

        Parameters
        ----------
        rows : array of int, or slice
            Rows of tasks.
        **columns
            order : int32, index within the stage: for each stage a permutation of its tasks;
            priority : float64, 0 or more;
            prefers : int32, a machine, or -1 for none.

        Raises
        ------
        PolicyError
            On an unknown column or one without values before the run, a wrong number of values, or
            a row that does not exist; after the callback, if a job has started or a value is out
            of its range.
        """
        where: Any = rows
        for name, value in columns.items():
            if name not in self.TASK_COLUMNS:
                raise PolicyError(unknown("task column", name, self.TASK_COLUMNS))
            column = self._own_task_column(name)
            array = np.asarray(value)
            try:
                column[where] = array
            except (ValueError, IndexError) as error:
                raise misfit("task", name, column, where, array) from error
        if self._changed is not None:
            self._changed_tasks.append(rows_of(where, self.n_tasks) % self.n_tasks)

    def take_changed_tasks(self) -> list[NDArray[Any]]:
        """Return the rows of the tasks changed since the last call, one array a change."""
        changed, self._changed_tasks = self._changed_tasks, []
        return changed

    def _own_task_column(self, name: str) -> NDArray[Any]:
        """Return a task column to write to: a copy of what the policy set before."""
        column: NDArray[Any] | None = getattr(self, f"task_{name}")
        if column is None:
            raise PolicyError(
                f"set_tasks changes {name!r}, and plan.task_{name} had no values before the run; "
                "set it for all tasks in prepare"
            )
        if self._own_tasks.get(name) is not column:
            column = np.array(column, dtype=self.TASK_COLUMNS[name])
            self._own_tasks[name] = column
            setattr(self, f"task_{name}", column)
        return column

    def take_changed(self) -> I4:
        """Return the jobs changed since the last call, for the kernel; none at the first call.

        The array is valid until the next call.
        """
        changed, self._changed = self._changed, []
        if not changed:
            return _NO_ROWS
        if len(changed) == 1:
            rows = changed[0]
            if isinstance(rows, int):
                self._one_row[0] = rows
                return self._one_row
            if are_plain(rows):
                return rows
        if all(isinstance(rows, int) for rows in changed):
            return np.array(changed, dtype=np.int32)
        several = np.concatenate([np.atleast_1d(rows_or_row) for rows_or_row in changed])
        return several.astype(np.int32, copy=False)

    def take_limited(self) -> tuple[I4, I4] | None:
        """Return the jobs whose run limit was set since the last call, by row, and the limits.

        None if there are none.
        """
        if not self._limited:
            return None
        rows = np.unique(np.concatenate(self._limited)).astype(np.int32)
        self._limited = []
        limits: I4 = self.jobs["run_limit"][rows]
        return rows, limits

    def _checked_job(self, name: str, value: Any) -> NDArray[Any] | float:
        if name not in self.JOB_COLUMNS:
            raise PolicyError(unknown("job column", name, self.JOB_COLUMNS))
        if name in ("worth", "beyond") and not self.weighs_jobs:
            self._check_before_run(name)
            self.weighs_jobs = True
        if name == "runs_on" and not self.selects_classes:
            self._check_before_run(name)
            self.selects_classes = True
        low, high = self._range(name)
        # what callbacks do, a job at a time
        if isinstance(value, int) and low <= value <= high:
            return value
        dtype = self.JOB_COLUMNS[name][0]
        if type(value) is float and dtype is np.float64 and low <= value <= high:
            return value
        array = np.asarray(value)
        if array.dtype.kind not in "iufb":
            raise PolicyError(f"job column {name!r} must be numeric, not {array.dtype}")
        if array.dtype.kind == "f" and np.isnan(array).any():
            raise PolicyError(f"job column {name!r} holds a NaN")
        if array.size and (array.min() < low or array.max() > high):
            bad = array.min() if array.min() < low else array.max()
            raise PolicyError(f"job column {name!r} holds {bad.item()!r}; valid: {low} to {high}")
        return array.astype(dtype, copy=False)

    def _check_before_run(self, name: str) -> None:
        if self._changed is not None:
            raise PolicyError(f"set {name!r} in prepare, too, at any values")

    def _range(self, name: str) -> tuple[float, float]:
        if name == "queue":
            return 0, len(self.queues.weight) - 1
        if name == "overflow_queue":
            return -1, len(self.queues.weight) - 1
        if name in ("run_limit", "start_gate", "notify_at"):
            return 0, NO_LIMIT
        if name == "width":
            return 1, NO_LIMIT
        if name == "runs_on":
            return -(2**63), 2**63 - 1
        if name in ("worth", "beyond"):
            return 1e-100 if name == "worth" else 0.0, 1e100
        if name == "when_preempted":
            return 0, len(WhenPreempted) - 1
        if name == "expected_s":
            return 0, float(np.finfo(np.float64).max)
        return -np.inf, np.inf


class Scheduler(Protocol):
    """Protocol of a policy for `sim.simulate`; `policies.Policy` implements it."""

    @property
    def name(self) -> str:
        """Name in the registry."""

    @property
    def events(self) -> Event:
        """Events that it subscribes to."""

    def begin(self, world: World, plan: Plan) -> object:
        """Fill `plan` before the run; return a memory for `react`."""

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        """Change `plan` at one instant, after a batch of events."""


def seen_by(policy: Scheduler, world: World) -> World:
    """Return the world as a scheduler sees it: what its ``restrict`` makes of it, if it has one."""
    restrict: Callable[[World], World] | None = getattr(policy, "restrict", None)
    return world if restrict is None else restrict(world)
