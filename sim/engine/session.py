"""The session of one run: validate, allocate, go from instant to instant, make its record."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import I4
from sim.base.errors import AccountError, DeadlockError, InputError, PolicyError
from sim.cluster.cluster import Cluster
from sim.cluster.default_times import with_default_times
from sim.cluster.exclusive import exclusive_jobs, with_parts
from sim.cluster.fits import check_fits, check_room
from sim.engine.accounts import broken_account
from sim.engine.allocation import allocated, provisioned
from sim.engine.batches import Recorder
from sim.engine.kernels import run as kernel
from sim.engine.kernels import state as layout
from sim.engine.kernels.release import CANCELLED_JOB, REJECTED, TIMED_OUT
from sim.engine.kernels.run import bind_variant
from sim.engine.layout import lay_out
from sim.engine.layout.tasks import update_tasks
from sim.engine.plan import Batch, Event, Plan, Scheduler, State, World, seen_by
from sim.engine.record import LimitsSet, Run
from sim.workload.columns import Columns
from sim.workload.workload import Workload


class Begun(NamedTuple):
    """A run that has begun: its policy has filled the plan, and nothing has happened yet."""

    world: World
    plan: Plan
    memory: object
    arrays: dict[str, NDArray[Any]]
    features: frozenset[str]
    can_defer: bool  # some events were deferred then


class Session:
    """One run, from before its first event to its record.

    `instants` goes through it, and `finish` makes its record; between them policies, or whoever
    goes through the instants, change the plan.

    Parameters
    ----------
    workload, cluster, policy, seed, record, state
        Those of `sim.simulation.simulate`.

    Raises
    ------
    InputError
        If a demand, a gang or a queue can never fit.
    PolicyError
        If the policy fills a column with invalid values.
    """

    def __init__(
        self,
        workload: Workload,
        cluster: Cluster,
        policy: Scheduler,
        *,
        seed: int = 0,
        record: Literal["jobs", "tasks"] = "tasks",
        state: State | None = None,
    ) -> None:
        if record not in ("jobs", "tasks"):
            raise InputError(f"record must be 'jobs' or 'tasks', not {record!r}")
        cluster = provisioned(workload, cluster, policy)
        check_room(workload, cluster)
        check_fits(workload, cluster)
        self._original = workload
        self._workload = with_default_times(workload, cluster)
        self._cluster, self._policy, self._seed = cluster, policy, seed
        self._records_tasks = record == "tasks"
        self.opened = begin_run(
            self._workload, cluster, policy, seed, record_tasks=self._records_tasks, state=state
        )
        limited = self.opened.plan.take_limited()
        self._limits = [(np.nan, *limited)] if limited else []
        self._changed = self.opened.plan.take_changed()
        self._run, self.kernel_state = bind_variant(
            self.opened.features, self.opened.arrays, self._changed
        )
        self.recorder = Recorder(self.opened.arrays, self.opened.features)

    def instants(self) -> Iterator[Batch]:
        """Go to the end, from instant to instant with events for the policy.

        The changes of the plan are taken when the next batch is asked for.

        Raises
        ------
        PolicyError
            If changed columns hold invalid values.
        DeadlockError
            If jobs are left that can never go on.
        """
        arrays = self.opened.arrays
        code = yield from instants(
            self._run, self.kernel_state, self._changed, self.opened, self.recorder, self._limits
        )
        if code == kernel.WRONG:
            raise AccountError(broken_account(arrays))
        if code != kernel.DONE:
            raise DeadlockError(_stuck(self._workload, arrays))

    def finish(self) -> Run:
        """Return the record of the run, which has come to its end; the session is empty then."""
        plan, arrays = self.opened.plan, self.opened.arrays
        workload, cluster, record_tasks = self._workload, self._cluster, self._records_tasks
        if record_tasks:
            self.recorder.finish()
        jobs = {name: arrays[f"out_job_{name}"] for name in ("submit", "start", "finish", "failed")}
        devices = arrays["out_task_devices"] if record_tasks and cluster.devices else None
        placed_s = arrays["out_task_placed"] if record_tasks and cluster.launch else None
        failed = jobs["failed"].astype(np.bool_)
        eligible_s, unreleased = None, np.zeros(0, np.bool_)
        if workload.columns.releases.exist:
            eligible_s = arrays["out_job_eligible"]
            unreleased = (arrays["state_job_turn"] < 0) & ~failed
            failed |= unreleased
        estimate_s, task_order = plan.estimate_s, plan.task_order
        worth = plan.jobs["worth"] if plan.weighs_jobs else None
        preempts = plan.preemption is not None
        is_reserved = len(cluster.reservations) > 0
        ends_jobs = cluster.enforce_limits or is_reserved
        rejects = bool(cluster.limits or cluster.rules) or is_reserved
        # before records are put in order
        del self.opened, self.kernel_state, self._run, plan, arrays
        return Run(
            self._original,
            cluster,
            self._policy,
            self._seed,
            job_submit=jobs["submit"],
            job_start=jobs["start"],
            job_finish=jobs["finish"],
            job_failed=failed,
            job_timeout=jobs["failed"] == TIMED_OUT if ends_jobs else None,
            job_eligible=eligible_s,
            job_unreleased=unreleased,
            job_cancelled=jobs["failed"] == CANCELLED_JOB if preempts else None,
            job_rejected=jobs["failed"] == REJECTED if rejects else None,
            records=self.recorder.records(workload.columns, task_order) if record_tasks else None,
            stopped=self.recorder.stopped() if record_tasks else None,
            task_devices=devices,
            task_placed=placed_s,
            job_estimate=estimate_s,
            job_worth=worth,
            limits_set=self._limits,
        )


def begin_run(
    workload: Workload,
    cluster: Cluster,
    policy: Scheduler,
    seed: int,
    *,
    record_tasks: bool,
    state: State | None = None,
    shared: frozenset[str] = frozenset(),
) -> Begun:
    """Let the policy fill its plan, and allocate the kernel's state."""
    columns = with_default_times(allocated(workload, cluster, policy), cluster).columns
    plan = Plan(len(columns.job_submit), len(columns.stage_job), columns.n_tasks)
    # the live views need the kernel's arrays, which need the filled plan: views come first
    views = views_before(columns, cluster)
    whole = World(columns, cluster, seed, {k: _read_only(v) for k, v in views.items()})
    world = seen_by(policy, whole)
    plan.pinned = state
    memory = policy.begin(world, plan)
    events = policy.events & plan.events
    in_parts = with_parts(columns, cluster)
    arrays, features = lay_out(*in_parts, plan, events, views, record_tasks, shared)
    return Begun(world, plan, memory, arrays, features, bool(plan.deferred))


def instants(
    run: Callable[..., int],
    state: Any,
    changed: I4,
    opened: Begun,
    recorder: Recorder,
    limits: list[LimitsSet],
    first: int = -1,
) -> Generator[Batch, None, int]:
    """Run to the end, from batch to batch of events for the policy; return the loop's last code.

    The changes of the plan are taken, and its run limits appended to `limits`, when the next batch
    is asked for. `first` is -1, or -2 to go on at a moment (`sim.engine.kernels.run`).
    """
    world, plan, _, arrays, _, can_defer = opened
    code = run(state, changed, first)
    counts, times = arrays["state_i"], arrays["state_f"]
    kinds, rows = arrays["state_event_kind"], arrays["state_event_row"]
    event_s, deferred = arrays["state_event_time"], plan.deferred
    while code in (kernel.NEEDS_POLICY, kernel.FULL):
        if code == kernel.FULL:
            recorder.empty()
            code = run(state, changed, -1)
            continue
        n, now = counts.item(layout.N_EVENTS), times.item(layout.NOW)
        plan.timer_s = timer_s = times.item(layout.TIMER)
        yield Batch(now, kinds[:n], rows[:n], event_s[:n] if deferred else None)
        if plan.timer_s != timer_s:
            times[layout.TIMER] = _checked_timer(plan.timer_s, now)
        if plan.deferred is not deferred:
            deferred = plan.deferred
            counts[layout.DEFERRED] = _checked_deferred(deferred, can_defer)
        changed, limited = plan.take_changed(), plan.take_limited()
        for tasks in plan.take_changed_tasks():
            update_tasks(world.whole, plan, tasks, arrays)
        if limited:
            limits.append((now, *limited))
        code = run(state, changed, len(changed))
    return code


def _checked_timer(timer_s: float, now: float) -> float:
    if math.isnan(timer_s) or timer_s <= now:
        raise PolicyError(
            f"timer_s must be later than now ({now:g} s) or inf for none, not {timer_s!r}"
        )
    return float(timer_s)


def _checked_deferred(deferred: Event, can_defer: bool) -> int:
    if deferred and not can_defer:
        raise PolicyError("events can be deferred in a callback only if some are from the start")
    return int(deferred)


def views_before(columns: Columns, cluster: Cluster) -> dict[str, NDArray[Any]]:
    """Return the arrays of a world's views (`World.view`), in which nothing has happened."""
    submit, n_stages = columns.job_submit, len(columns.stage_job)
    n_jobs = len(submit)
    tasks = ("left", "running", "started", "done")
    counts = {name: np.zeros(n_jobs, dtype=np.int32) for name in tasks}
    times = {name: np.full(n_jobs, np.nan) for name in ("start", "finish")}
    times["submit"] = submit.copy()
    sums = {name: np.zeros(n_jobs) for name in ("done_work", "first_work")}
    stage_left = np.zeros(n_stages, dtype=np.int32)
    stages = {"stage_left": stage_left, "stage_done_work": np.zeros(n_stages)}
    stages["stage_started"] = np.zeros(n_stages, dtype=np.int32)
    flags = {"failed": np.zeros(n_jobs, np.int8), "turn": np.full(n_jobs, -1, np.int32)}
    takes_whole = bool(exclusive_jobs(columns, cluster).any())
    shape = (n_jobs if takes_whole else 1, len(columns.resources) + takes_whole)
    free = np.zeros((cluster.n_machines, len(cluster.resources) + takes_whole), np.int64)
    room = {"whole": np.zeros(shape, dtype=np.int64), "free": free}
    return counts | times | sums | stages | flags | room


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.setflags(write=False)
    return view


def _stuck(workload: Workload, arrays: dict[str, NDArray[Any]]) -> str:
    left = np.flatnonzero((arrays["state_job_left"] > 0) & (arrays["out_job_failed"] == 0))
    job_names = ", ".join(repr(workload.jobs["job_id"][int(j)].as_py()) for j in left[:5])
    rest = f" and {len(left) - 5} more" if len(left) > 5 else ""
    return (
        f"{len(left)} jobs can never go on after {arrays['state_f'][layout.NOW]:g} s ({job_names}"
        f"{rest}): nothing runs and no event will come; check whether a run limit or start gate of "
        "the policy stays at its limit, whether it waits for an event it did not subscribe to, "
        "whether it lets a job run on no machine, whether a job beyond a cap that blocks stands "
        "before jobs that have begun, or whether an outage, a drain or a reservation has no end"
    )
