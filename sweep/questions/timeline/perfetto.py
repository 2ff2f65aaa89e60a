"""A timeline in Chrome's trace event format, which Perfetto (ui.perfetto.dev) opens.

The format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from sim.base import files
from sim.base.arrays import F8
from sim.base.text import printable
from sim.engine.stops import REASONS
from sweep.questions.timeline.columns import DONE, Timeline, stage_times

MICROSECONDS = 1e6
MAX_FLOWS = 100_000
"""Largest number of dependencies that are drawn as arrows."""
JOBS, CLUSTER = 1, 2
"""Process numbers of the rows of jobs and of counters; machine m is process ``m + FIRST``."""
FIRST = 10


def write(timeline: Timeline, path: Path) -> None:
    """Write a trace: a slice a task (or batch), a track a lane, counters; gzip if it ends in .gz.

    Times are microseconds since the trace's zero. Machines are processes, lanes are threads. The
    process "jobs" has an asynchronous slice for each job, from submission to end. Arrows lead from
    the last task of a parent stage to the first of its child. Attempts that were stopped are of the
    category "stopped"; pilots of "pilot", other tasks of "task".
    """
    with files.atomic_write(path) as out:
        if path.suffix == ".gz":
            with gzip.GzipFile("", "wb", 6, out, mtime=0) as packed:
                _write(timeline, packed)
        else:
            _write(timeline, out)


def _write(timeline: Timeline, out: IO[bytes] | gzip.GzipFile) -> None:
    out.write(b'{"displayTimeUnit": "ms", "traceEvents": [\n')
    for number, event in enumerate(events(timeline)):
        separator = ",\n" if number else ""
        out.write((separator + json.dumps(event, separators=(",", ":"))).encode())
    out.write(b"\n]}\n")


def events(timeline: Timeline) -> Iterator[dict[str, Any]]:
    """Yield the events of a trace."""
    yield from _names(timeline)
    yield from _jobs(timeline)
    yield from _tasks(timeline)
    yield from _counters(timeline)
    yield from _flows(timeline)


def _names(timeline: Timeline) -> Iterator[dict[str, Any]]:
    title = printable(timeline.title)
    for process, name in ((JOBS, f"jobs: {title}"), (CLUSTER, f"cluster: {title}")):
        yield _name("process_name", process, 0, name)
    machines = timeline.lane_machine.tolist()
    for lane, machine in enumerate(machines):
        if not lane or machines[lane - 1] != machine:
            name = _machine_name(timeline, machine)
            yield _name("process_name", FIRST + machine, 0, name)
        yield _name("thread_name", FIRST + machine, lane, f"lane {lane}")


def _machine_name(timeline: Timeline, machine: int) -> str:
    cluster = timeline.result.cluster
    if cluster.unit:
        return "slots"
    named = cluster.names[machine] if cluster.names else ""
    return f"{printable(named)} (machine {machine})" if named else f"machine {machine}"


def _name(kind: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}


def _jobs(timeline: Timeline) -> Iterator[dict[str, Any]]:
    result, columns = timeline.result, timeline.result.workload.columns
    names = [printable(name) for name in result.workload.jobs["job_id"].to_pylist()]
    users, queues = columns.user_names, columns.queue_names
    stopped = columns.stage_job[timeline.stage[timeline.reason != DONE]]
    n_stops = np.bincount(stopped, minlength=len(names)).tolist()
    for job in np.flatnonzero(np.isfinite(result.job_finish)).tolist():
        begin, end = float(result.job_submit[job]), float(result.job_finish[job])
        deadline = float(timeline.deadline_s[job])
        details = {"start_s": float(result.job_start[job]), "failed": bool(result.job_failed[job])}
        details |= {"stopped_attempts": n_stops[job]} if n_stops[job] else {}
        labels = {
            "user": printable(users[columns.job_user[job]]) if users else "",
            "queue": printable(queues[columns.job_queue[job]]) if queues else "",
        }
        due = {"deadline_s": deadline, "late": end > deadline} if np.isfinite(deadline) else {}
        finite = {k: v for k, v in details.items() if not (type(v) is float and np.isnan(v))}
        event = {"cat": "job", "name": names[job], "pid": JOBS, "tid": 0, "id": job}
        yield {**event, "ph": "b", "ts": _us(begin), "args": {**finite, **labels, **due}}
        yield {**event, "ph": "e", "ts": _us(end)}


def _tasks(timeline: Timeline) -> Iterator[dict[str, Any]]:
    result, columns = timeline.result, timeline.result.workload.columns
    jobs = [printable(name) for name in result.workload.jobs["job_id"].to_pylist()]
    stages = [printable(str(name)) for name in result.workload.stages["name"].to_pylist()]
    stage_job, task0 = columns.stage_job.tolist(), columns.stage_task0
    machine = timeline.lane_machine[timeline.lane]
    step = 2**16
    for first in range(0, len(timeline.task), step):
        rows = slice(first, first + step)
        for task, count, lane, start, finish, ready, pilot, reason, stage, place in zip(
            (timeline.task[rows] - task0[timeline.stage[rows]]).tolist(),
            timeline.count[rows].tolist(),
            timeline.lane[rows].tolist(),
            timeline.start_s[rows].tolist(),
            timeline.finish_s[rows].tolist(),
            timeline.ready_s[rows].tolist(),
            timeline.is_pilot[rows].tolist(),
            timeline.reason[rows].tolist(),
            timeline.stage[rows].tolist(),
            machine[rows].tolist(),
            strict=True,
        ):
            args: dict[str, Any] = {"stage": stages[stage], "task": task, "waited_s": start - ready}
            args |= {"pilot": True} if pilot else {}
            args |= {"tasks": count} if count > 1 else {}
            name, category = f"{jobs[stage_job[stage]]} / {stages[stage]}", "task"
            if reason != DONE:
                args["stopped"] = REASONS[reason]
                name, category = f"{name} ({REASONS[reason]})", "stopped"
            elif pilot:
                category = "pilot"
            yield {
                "ph": "X",
                "cat": category,
                "name": name,
                "pid": FIRST + place,
                "tid": lane,
                "ts": _us(start),
                "dur": _us(finish) - _us(start),
                "args": args,
            }


def _us(seconds: float) -> float:
    return round(seconds * MICROSECONDS, 3)


def _counters(timeline: Timeline) -> Iterator[dict[str, Any]]:
    result, cluster = timeline.result, timeline.result.cluster
    started = np.isfinite(result.job_start)
    series = [("jobs waiting", result.job_submit[started], result.job_start[started], 1.0)]
    waits = timeline.start_s > timeline.ready_s
    series.append(("tasks waiting", timeline.ready_s[waits], timeline.start_s[waits], 1.0))
    for name, begin, end, _ in series:
        yield from _steps(name, *step_series(begin, end, np.ones(len(begin))))
    for r, resource in enumerate(cluster.resources):
        amount = timeline.demand[timeline.stage, r] * timeline.count
        times, values = step_series(timeline.start_s, timeline.finish_s, amount)
        yield from _steps(f"{resource} used, %", times, 100 * values / cluster.total[r])


def step_series(begin_s: F8, end_s: F8, amount: F8) -> tuple[F8, F8]:
    """Sum amounts that last from `begin_s` to `end_s`: times of change, and the sum from each on.

    Returns
    -------
    times, values : (K,) float64
        Ascending; rounded to 9 digits, so that what ends leaves 0.
    """
    times = np.concatenate([begin_s, end_s])
    change = np.concatenate([amount, -amount])
    order = np.argsort(times, kind="stable")
    times, sums = times[order], np.cumsum(change[order])
    if not len(times):
        return times, sums
    last = np.append(np.flatnonzero(np.diff(times)), len(times) - 1)
    return times[last], np.round(sums[last], 9)


def _steps(name: str, times: F8, values: F8) -> Iterator[dict[str, Any]]:
    for time, value in zip(times.tolist(), values.tolist(), strict=True):
        counter = {"ph": "C", "name": name, "pid": CLUSTER, "tid": 0}
        yield {**counter, "ts": _us(time), "args": {"value": value}}


def _flows(timeline: Timeline) -> Iterator[dict[str, Any]]:
    """Yield an arrow for each dependency between stages, up to `MAX_FLOWS`."""
    columns = timeline.result.workload.columns
    parent = np.repeat(np.arange(len(timeline.demand)), np.diff(columns.edge0))[:MAX_FLOWS]
    if not len(parent):
        return
    times = stage_times(timeline)
    first, last = _ends(timeline)
    child = columns.edge_child[:MAX_FLOWS]
    for number, (p, c) in enumerate(zip(parent.tolist(), child.tolist(), strict=True)):
        if first[c] < 0 or last[p] < 0:
            continue
        for phase, row, time in (("s", last[p], times["finish"][p]), ("f", first[c], None)):
            lane = int(timeline.lane[row])
            place = {"pid": FIRST + int(timeline.lane_machine[lane]), "tid": lane}
            time_s = float(timeline.start_s[row]) if time is None else float(time)
            arrow: dict[str, Any] = {"cat": "dag", "name": "input", "id": number, "ph": phase}
            inside_s = time_s - 1e-6 if phase == "s" else time_s
            yield {**arrow, **place, "ts": _us(inside_s), **({"bp": "e"} if phase == "f" else {})}


def _ends(timeline: Timeline) -> tuple[Any, Any]:
    """Return the bar of each stage that starts first, and the one that ends last; -1 for none."""
    first, last = np.full(len(timeline.demand), -1), np.full(len(timeline.demand), -1)
    order = np.argsort(timeline.start_s, kind="stable")[::-1]
    first[timeline.stage[order]] = order
    order = np.argsort(timeline.finish_s, kind="stable")
    last[timeline.stage[order]] = order
    return first, last
