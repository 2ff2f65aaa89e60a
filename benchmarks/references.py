"""Reference implementations of first come, first served on a pool of slots.

Seconds are of CPU.
"""

from __future__ import annotations

import collections
import collections.abc
import ctypes
import json
import logging
import resource
import shutil
import subprocess
import time
from collections.abc import Callable
from datetime import datetime
from heapq import heappop, heappush, heapreplace
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from sim import Workload

EPOCH = datetime(1970, 1, 1)
FREE_SLOTS = Path(__file__).with_name("free_slots.cpp")
Timed = tuple[float, float]


def event_loop(workload: Workload, slots: int) -> Timed:
    """Return (seconds, mean JCT) of a bare event loop on ``heapq``, written for speed.

    A heap of ends, a queue of jobs, and where one task ends and another waits, one replacement
    at the top of the heap. It supports no dependencies, no other order, and keeps no records.
    """
    columns = workload.columns
    durations = columns.task_duration.tolist()
    submits = columns.job_submit.tolist()
    cut = columns.stage_task0.tolist()
    begin = time.thread_time()
    left = [b - a for a, b in pairwise(cut)]
    ends: list[tuple[float, int]] = []
    total, free, task, head, arrived = 0.0, slots, 0, 0, 0
    n_jobs, n_tasks = len(submits), len(durations)
    arrival = submits[0]
    while ends or arrived < n_jobs:
        if ends and ends[0][0] <= arrival:
            now, job = ends[0]
            left[job] -= 1
            if not left[job]:
                total += now - submits[job]
            if task < cut[arrived]:
                while task == cut[head + 1]:
                    head += 1
                heapreplace(ends, (now + durations[task], head))
                task += 1
            else:
                heappop(ends)
                free += 1
        else:
            now = arrival
            arrived += 1
            arrival = submits[arrived] if arrived < n_jobs else inf
            while free and task < cut[arrived]:
                while task == cut[head + 1]:
                    head += 1
                heappush(ends, (now + durations[task], head))
                task += 1
                free -= 1
    if task != n_tasks:
        raise AssertionError(f"{n_tasks - task} tasks never started")
    return time.thread_time() - begin, total / n_jobs


def free_slots(workload: Workload, slots: int) -> Timed:
    """Return (seconds, mean JCT) without any events: each task takes the slot that is free first.

    First come, first served needs no more where nothing depends on anything. It is no simulator,
    but no loop in Python is faster.
    """
    columns = workload.columns
    durations = columns.task_duration.tolist()
    submits = columns.job_submit.tolist()
    lasts = columns.stage_task0[1:].tolist()
    begin = time.thread_time()
    free = [0.0] * slots
    total, task = 0.0, 0
    for submit, last in zip(submits, lasts, strict=True):
        finish = submit
        for duration in durations[task:last]:
            start = free[0]
            done = (start if start > submit else submit) + duration
            heapreplace(free, done)
            if done > finish:
                finish = done
        task = last
        total += finish - submit
    return time.thread_time() - begin, total / len(submits)


def build_free_slots(folder: Path) -> Callable[[Workload, int], Timed] | None:
    """Compile `free_slots` in C++ with ``g++ -O2``; None without a compiler."""
    compiler = shutil.which("g++")
    if compiler is None:
        return None
    library = folder / "free_slots.so"
    command = [compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(FREE_SLOTS)]
    subprocess.run(command, check=True)
    function = ctypes.CDLL(str(library)).free_slots
    function.restype = ctypes.c_double
    f8, i8 = np.ctypeslib.ndpointer(np.float64), np.ctypeslib.ndpointer(np.int64)
    function.argtypes = [f8, i8, ctypes.c_int64, f8, ctypes.c_int64]

    def timed(workload: Workload, slots: int) -> Timed:
        columns = workload.columns
        submits = columns.job_submit
        begin = time.thread_time()
        mean = function(submits, columns.stage_task0, len(submits), columns.task_duration, slots)
        return time.thread_time() - begin, mean

    return timed


def with_simpy(workload: Workload, slots: int) -> Timed:
    """Return (seconds, mean JCT) of SimPy: a process a job, a process a task, one resource."""
    import simpy

    columns = workload.columns
    durations, cut = columns.task_duration.tolist(), columns.stage_task0.tolist()
    jct: list[float] = []
    begin = time.thread_time()
    env = simpy.Environment()
    pool = simpy.Resource(env, capacity=slots)

    def task(duration: float) -> Any:
        with pool.request() as slot:
            yield slot
            yield env.timeout(duration)

    def job(submit: float, row: int) -> Any:
        yield env.timeout(submit)
        yield env.all_of([env.process(task(d)) for d in durations[cut[row] : cut[row + 1]]])
        jct.append(env.now - submit)

    for row, submit in enumerate(columns.job_submit.tolist()):
        env.process(job(submit, row))
    env.run()
    return time.thread_time() - begin, float(np.mean(jct))


def with_accasim(workload: Workload, slots: int, folder: Path) -> tuple[float, float, float]:
    """Return (seconds, mean JCT, seconds of simulating) of AccaSim's FIFO and first fit.

    It supports whole seconds only. All its slots are one node, which it searches fastest. It writes
    its schedule, its default, in separate processes; the first number counts them, the last one
    does not.
    """
    for name in ("Mapping", "MutableMapping", "Sequence", "Iterable", "Callable", "Hashable"):
        setattr(collections, name, getattr(collections.abc, name))  # gone since Python 3.10
    from accasim.base.allocator_class import FirstFit
    from accasim.base.scheduler_class import FirstInFirstOut
    from accasim.base.simulator_class import Simulator

    logging.disable(logging.CRITICAL)
    columns = workload.columns
    cut = columns.stage_task0
    submits = np.repeat(columns.job_submit, np.diff(cut)).astype(int) + 1
    lines = ["; UnixStartTime: 0", f"; MaxProcs: {slots}"]
    lines += [
        f"{i + 1} {submit} -1 {d} 1 -1 -1 1 {d} -1 1 1 1 1 1 -1 -1 -1"
        for i, (submit, d) in enumerate(
            zip(submits.tolist(), columns.task_duration.astype(int).tolist(), strict=True)
        )
    ]
    trace, system = folder / "tasks.swf", folder / "system.json"
    trace.write_text("\n".join(lines) + "\n")
    system.write_text(
        json.dumps(
            {
                "groups": {"all": {"core": slots, "mem": 1}},
                "resources": {"all": 1},
                "equivalence": {"processor": {"core": 1}},
                "start_time": 0,
            }
        )
    )
    begin = _cpu_with_children()
    simulating = time.thread_time()
    simulator = Simulator(
        str(trace),
        str(system),
        FirstInFirstOut(FirstFit()),
        RESULTS_FOLDER_NAME=str(folder / "out"),
        save_parameters=None,
        scheduling_output=True,
        pprint_output=False,
        benchmark_output=False,
        statistics_output=False,
        show_statistics=False,
    )
    simulator.start_simulation(system_status=False, system_utilization=False)
    simulating = time.thread_time() - simulating
    seconds = _cpu_with_children() - begin
    ends = np.zeros(len(submits))
    for path in (folder / "out").glob("sched-*"):
        for line in path.read_text().splitlines():
            # job;user;assignment;start;end;..., where an assignment holds a semicolon itself
            name, stamp = line.split(";")[0], line.split("#__")[1].split(";")[1]
            ends[int(name) - 1] = (datetime.fromisoformat(stamp) - EPOCH).total_seconds()
    ends -= 1  # the clock of its workloads starts at 1
    finish = np.maximum.reduceat(ends, cut[:-1])
    return seconds, float(np.mean(finish - columns.job_submit)), simulating


def _cpu_with_children() -> float:
    """Return the CPU seconds of this process and of its children that have ended."""
    used = [
        resource.getrusage(target) for target in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    ]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)
