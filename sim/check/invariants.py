"""Invariants of runs under any policy; each check raises BrokenRuleError with what it saw.

The checks use the records of tasks alone (`sim.check.record`), not the kernel's own state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import F8, Mask
from sim.bounds import bound_arrays
from sim.check.broken import BrokenRuleError, refuse
from sim.check.domains import check_domains
from sim.check.elastic import check_elastic
from sim.check.makespan import makespan_bound
from sim.check.record import SLACK, Record
from sim.result import Result


def check(result: Result, fit: str) -> None:
    """Run every check on a result with task records, under a policy with that `fit`.

    Raises
    ------
    BrokenRuleError
        At the first invariant that does not hold.
    """
    record = Record(result)
    check_every_job_ends(record)
    check_tasks_run_their_duration(record)
    check_pace(record)
    check_inputs_come_first(record)
    check_capacity(record)
    check_hard_shares(record)
    check_bounds(record)
    check_classes(record)
    check_domains(result)
    if result.cluster.devices:
        check_devices(record)
    if result.stopped is not None and len(result.stopped.task):
        check_attempts(record)
        return
    check_gangs(record)
    if not record.gang.any() and getattr(type(result.policy), "conserves_work", True):
        check_work_is_conserved(record, fit)


def check_every_job_ends(record: Record) -> None:
    """Check that no job fails or waits for ever, and that its times are those of its tasks."""
    result, c = record.result, record.c
    refuse(result.job_failed, lambda j: f"{_job(record, j)} fails")
    refuse(~np.isfinite(record.finish), lambda t: f"{_task(record, t)} never ends")
    task0 = c.stage_task0[c.job_stage0[:-1]]
    start = record.start.copy()
    if result.stopped is not None:
        np.minimum.at(start, result.stopped.task, result.stopped.start_s)
    first, last = np.minimum.reduceat(start, task0), np.maximum.reduceat(record.finish, task0)
    refuse(
        result.job_start != first,
        lambda j: (
            f"{_job(record, j)} starts at {result.job_start[j]:g} s, its first task at {first[j]:g}"
        ),
    )
    refuse(
        result.job_finish != last,
        lambda j: (
            f"{_job(record, j)} ends at {result.job_finish[j]:g} s, its last task at {last[j]:g}"
        ),
    )


def check_tasks_run_their_duration(record: Record) -> None:
    """Check that a task runs for its duration, or longer where its machine is overbooked.

    That is divided by the speed on the class of its machine. Elastic jobs go by their widths. Of a
    task that was stopped, the last attempt and what was kept before do its work, or more.
    """
    duration, by_width = record.duration, record.c.job_width_min[record.task_job] > 0
    if by_width.any():
        check_elastic(record.result)
    if record.overbooked.any():
        wrong = record.finish - record.start < duration * (1 - SLACK) - SLACK
    else:
        wrong = record.finish != record.start + duration
    stopped = record.result.stopped
    if stopped is not None:
        restarts = record.c.job_restart[record.task_job[stopped.task]] > 0
        again = stopped.task[(stopped.kept_s > 0) | restarts]
        wrong[again] = record.work_done[again] < record.c.task_duration[again] * (1 - SLACK) - SLACK
    refuse(
        wrong & ~by_width,
        lambda t: (
            f"{_task(record, t)} lasts {duration[t]:g} s, and runs from {record.start[t]:g} to "
            f"{record.finish[t]:g} s"
        ),
    )


def check_pace(record: Record) -> None:
    """Check that a task's speed is the least capacity over total demand of its resources."""
    if not record.overbooked.any() or record.gang.any():
        return
    rate = np.ones(record.running.shape)
    for machine, capacity in enumerate(record.capacity):
        on_machine = record.machine == machine
        share = np.minimum(1, np.maximum(capacity, 1) / np.maximum(record.used(on_machine), 1))
        for r in np.flatnonzero(record.overbooked):
            demanding = on_machine & (record.demand[:, r] > 0)
            rate[:, demanding] = np.minimum(rate[:, demanding], share[:, r, None])
    lasts = np.diff(record.instants[:, 0], append=record.instants[-1, 0])
    work = (rate * record.running * lasts[:, None]).sum(axis=0)
    refuse(
        ~np.isclose(work, record.duration, rtol=1e-6, atol=1e-6),
        lambda t: (
            f"{_task(record, t)} lasts {record.duration[t]:g} s at full speed, and got "
            f"{work[t]:g} s of it"
        ),
    )


def check_inputs_come_first(record: Record) -> None:
    """Check that no task starts before its job's submission, or before its inputs are made."""
    refuse(
        record.start < record.ready,
        lambda t: (
            f"{_task(record, t)} starts at {record.start[t]:g} s, and is ready at "
            f"{record.ready[t]:g} s"
        ),
    )


def check_capacity(record: Record) -> None:
    """Check that the tasks on a machine never demand more than it has."""
    n = len(record.capacity)
    refuse(
        (record.machine < 0) | (record.machine >= n),
        lambda t: f"{_task(record, t)} runs on machine {record.machine[t]} of {n}",
    )
    for machine, capacity in enumerate(record.capacity):
        over = record.used(record.machine == machine) > capacity
        _refuse_use(record, over, f"machine {machine} holds more than it has")


def check_attempts(record: Record) -> None:
    """Check the attempts that were stopped: each task runs once at a time, and within capacity."""
    stopped = record.result.stopped
    assert stopped is not None
    task = np.concatenate([np.arange(len(record.start)), stopped.task])
    start = np.concatenate([record.start, stopped.start_s])
    end = np.concatenate([record.finish, stopped.stop_s])
    machine = np.concatenate([record.machine, stopped.machine])
    order = np.lexsort((start, task))
    again = task[order][1:] == task[order][:-1]
    twice = again & (end[order][:-1] > start[order][1:])
    refuse(twice, lambda i: f"{_task(record, int(task[order][i]))} runs twice at a time")
    instants = np.unique(np.concatenate([start, end]))[:, None]
    for m, capacity in enumerate(record.capacity):
        rows = machine == m
        runs = (start[rows] <= instants) & (instants < end[rows])
        used = (runs[:, :, None] * record.demand[task[rows]]).sum(axis=1)
        over = (used > capacity) & ~record.overbooked
        refuse(
            over.any(axis=1),
            lambda i, m=m: (  # type: ignore[misc]
                f"machine {m} holds more than it has, with attempts that were stopped, at "
                f"{instants[i, 0]:g} s"
            ),
        )


def check_classes(record: Record) -> None:
    """Check that a task runs on a machine of a class that it may run on."""
    for machine in range(len(record.capacity)):
        refuse(
            (record.machine == machine) & ~record.allowed_tasks(machine),
            lambda t: f"{_task(record, t)} may not run on the class of machine {record.machine[t]}",
        )


def check_devices(record: Record) -> None:
    """Check that each task holds its devices, and that no device is overcommitted."""
    devices = record.result.task_devices
    assert devices is not None  # of a cluster that has some
    n_held = np.array([int(bits).bit_count() for bits in devices])
    n_demanded = record.device_demand[0]
    refuse(
        n_held != n_demanded,
        lambda t: f"{_task(record, t)} asks for {n_demanded[t]} devices, and has {n_held[t]}",
    )
    for machine in range(len(record.capacity)):
        if (record.devices_used(machine) > 1 + SLACK).any():
            raise BrokenRuleError(f"a device of machine {machine} is held more than once")


def check_hard_shares(record: Record) -> None:
    """Check that no queue uses more than its hard share, or than quotas allow."""
    for q in range(len(record.c.queue_names)):
        over = record.queue_room[:, q] < 0
        _refuse_use(record, over, f"queue {record.c.queue_names[q]!r} uses more than its share")


def check_gangs(record: Record) -> None:
    """Check that a gang's first tasks start together, and that it holds its slots to its end."""
    c, result = record.c, record.result
    if not record.gang.any():
        return
    waits = c.stage_n_barrier + c.stage_n_o2o
    source = (waits == 0)[record.task_stage]
    at_start = record.start == result.job_start[record.task_job]
    needs = record.gang_needs
    reserved = np.zeros((len(record.instants), record.demand.shape[1]))
    for j in np.flatnonzero(record.gang).tolist():
        tasks = record.task_job == j
        together = int((at_start & tasks).sum())
        if together < min(c.job_min_tasks[j], (source & tasks).sum()):
            raise BrokenRuleError(
                f"{_job(record, j)} is a gang of {c.job_min_tasks[j]} tasks, of which {together} "
                "start together"
            )
        alive = (result.job_start[j] <= record.instants) & (record.instants < result.job_finish[j])
        reserved += alive * needs[j]
    used = record.used(~record.gang[record.task_job])
    over = reserved + used > record.capacity.sum(axis=0)
    _refuse_use(record, over, "gangs and other tasks hold more than the cluster has")


def check_bounds(record: Record) -> None:
    """Check that no job, and no makespan, beats its lower bound."""
    result, c = record.result, record.c
    jct = result.job_finish - c.job_submit
    for name, bound in bound_arrays(c, result.cluster, tight=True).items():
        refuse(jct < bound - SLACK * (1 + result.job_finish), _beats(record, jct, bound, name))
    makespan = float(result.job_finish.max() - c.job_submit[0])
    shortest = makespan_bound(result.workload, result.cluster)
    if makespan < shortest * (1 - SLACK):
        raise BrokenRuleError(
            f"the makespan is {makespan:g} s, and no schedule takes less than {shortest:g} s"
        )


def check_work_is_conserved(record: Record, fit: str) -> None:
    """Check that no resources are idle while a task that fits waits.

    If tasks that do not fit are skipped: no waiting task fits anywhere. In strict order: if tasks
    of a queue wait, one of them (its head) fits nowhere. With bounded unfairness or held machines:
    a machine that a waiting task fits may be reserved for one that it does not fit.
    """
    c = record.c
    n_queues, shared = len(c.queue_names), record.result.cluster.queue_mode == "global"
    queue = np.zeros(len(c.job_queue), int) if shared else c.job_queue
    fits = _fitting(record, queue, shared)
    if fit != "strict":
        idle = record.waiting & fits
        if idle.any():
            instant, task = np.argwhere(idle)[0].tolist()
            raise BrokenRuleError(
                f"{_task(record, task)} waits at {record.instants[instant, 0]:g} s, though it "
                "fits: a policy that may leave room idle says conserves_work = False"
            )
        return
    for q in range(1 if shared else n_queues):
        waits = record.waiting & (queue[record.task_job] == q)
        stuck = (waits & ~fits).any(axis=1)
        idle = ~stuck & waits.any(axis=1)
        refuse(
            idle,
            lambda i: (
                f"all tasks that wait at {record.instants[i, 0]:g} s would fit: a policy that may "
                "leave room idle says conserves_work = False"
            ),
        )


def _fitting(record: Record, queue: NDArray[np.integer[Any]], shared: bool) -> Mask:
    """Return whether each task would fit somewhere at each instant, (I, T)."""
    free = [cap - record.used(record.machine == m) for m, cap in enumerate(record.capacity)]
    fits_on = [(record.demand[None] <= np.maximum(room, 0)[:, None]).all(axis=2) for room in free]
    if record.result.cluster.devices:
        fits_on = [
            fits_machine & record.allowed_tasks(m) & record.device_room(m)
            for m, fits_machine in enumerate(fits_on)
        ]
    if record.holds_back:
        fits_on = [
            fits_machine & ~(record.waiting & ~fits_machine).any(axis=1)[:, None]
            for fits_machine in fits_on
        ]
    if not shared:
        room = record.queue_room[:, queue[record.task_job]]
        demand = record.demand[None]
        fits_on = [
            fits_machine & ((demand <= room[:, :, record.column_on(m)]) | (demand == 0)).all(axis=2)
            for m, fits_machine in enumerate(fits_on)
        ]
    fits: Mask = np.any(fits_on, axis=0)
    return fits


def same_bits(a: Result, b: Result) -> None:
    """Check that two runs are equal, as far as both have records.

    Raises
    ------
    BrokenRuleError
        If a bit differs.
    """
    names = ["job_start", "job_finish"]
    if a.task_start is not None and b.task_start is not None:
        names += ["task_start", "task_machine"]
        if a.metrics.keys() != b.metrics.keys():
            raise BrokenRuleError("two runs with the same seed have different metrics")
        for name, value in a.metrics.items():
            if not np.array_equal(value, b.metrics[name], equal_nan=True):
                raise BrokenRuleError(f"two runs with the same seed differ in {name}")
    for name in names:
        if not np.array_equal(getattr(a, name), getattr(b, name), equal_nan=True):
            raise BrokenRuleError(f"two runs with the same seed differ in {name}")


def _refuse_use(record: Record, over: Mask, sentence: str) -> None:
    """Refuse use (I, R) beyond a limit of a resource that is not overbooked."""
    names = record.result.cluster.resources
    wrong = np.argwhere(over & ~record.overbooked)
    if len(wrong):
        instant, r = wrong[0].tolist()
        raise BrokenRuleError(f"{sentence}: {names[r]}, at {record.instants[instant, 0]:g} s")


def _beats(record: Record, jct: F8, bound: F8, name: str) -> Callable[[int], str]:
    return lambda j: (
        f"{_job(record, j)} takes {jct[j]:g} s, less than its lower bound {name} of {bound[j]:g} s"
    )


def _job(record: Record, j: int) -> str:
    return f"job {record.result.workload.jobs['job_id'][j].as_py()!r}"


def _task(record: Record, t: int) -> str:
    stage = int(record.task_stage[t])
    index = t - int(record.c.stage_task0[stage])
    name = record.result.workload.stages["name"][stage].as_py()
    return f"task {index} of stage {name!r} of {_job(record, int(record.task_job[t]))}"
