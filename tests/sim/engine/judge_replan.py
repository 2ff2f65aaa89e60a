"""A one-step judge of `reference_replan`: would the model start what a real Slurm started?

At each cycle that started jobs, the model is put into the state that the log shows (running jobs
with their nodes, waiting jobs, the controller's clock), and the jobs that it would start are
compared with those that were started. In quiet moments, between events, it should start none. So
the model is judged without the chaos of a whole run, where one early start changes all that follow.
"""

from __future__ import annotations

import csv
import datetime
import gzip
import itertools
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.real.slurm.configure import OPTIONS
from tests.sim.engine.reference_replan import (
    Job,
    Running,
    Settings,
    State,
    backfill_cycle,
    main_cycle,
)

CYCLE_S = 0.25  # starts of one cycle are closer than this, at the controller's clock
QUIET_S = 2.2  # between events that are further apart, a moment is quiet


@dataclass
class Logged:
    """One job of a log; times are s from the first submission, `clock_s` is the controller's."""

    name: int
    submit_s: float
    start_s: float
    end_s: float
    clock_s: int
    cpus: int
    limit_s: int
    by_main: bool
    nodes: list[int]


@dataclass
class Verdict:
    """Counts of cycles, of identical ones, of quiet moments, and of false starts in these."""

    cycles: int = 0
    identical: int = 0
    quiet: int = 0
    false_starts: int = 0
    different: tuple[tuple[float, list[int], list[int]], ...] = ()


def read(stem: Path) -> tuple[list[Logged], float]:
    """Read ``STEM.csv.gz`` and ``STEM.jobcomp.txt.gz``; also return the clock at time 0, s."""
    with gzip.open(f"{stem}.jobcomp.txt.gz", "rt") as lines:
        records = [dict(re.findall(r"(\w+)=(\S*)", line)) for line in lines]
    by_job = {int(record["Name"].lstrip("j")): record for record in records}
    jobs = []
    with gzip.open(f"{stem}.csv.gz", "rt") as rows:
        for row in csv.DictReader(rows):
            record = by_job[int(row["job"])]
            jobs.append(
                Logged(
                    int(row["job"]),
                    float(row["submit_s"]),
                    float(row["start_s"]),
                    float(row["end_s"]),
                    _clock(record["StartTime"]),
                    int(row["cpus"]),
                    round(float(row["limit_s"])),
                    row["started_by"] == "sched",
                    _nodes(record["NodeList"]),
                )
            )
    lowest = min(n for job in jobs for n in job.nodes)
    for job in jobs:
        job.nodes = [n - lowest for n in job.nodes]
    submitted = [_clock(by_job[job.name]["SubmitTime"]) - job.submit_s for job in jobs]
    return sorted(jobs, key=lambda job: job.name), (max(submitted) + min(submitted) + 1) / 2


def settings_of(parameters: str) -> Settings:
    """Return the settings that Slurm's ``SchedulerParameters`` name."""
    words = dict(word.split("=") for word in parameters.split(",") if word)
    options = {OPTIONS[key]: int(value) for key, value in words.items() if key in OPTIONS}
    for name in ("interval_s", "main_delay_s"):
        options.pop(name, None)  # single cycles
    return Settings(**options)


def judge(
    jobs: list[Logged],
    clock_s: float,
    shape: tuple[int, int],
    settings: Settings,
    completing_s: float = 0.0,
    speed: float = 1.0,
    backfills: bool = True,
) -> Verdict:
    """Judge the model on a log of a cluster of ``shape`` (nodes, CPUs of each).

    ``completing_s`` is how long a node completes a job; ``speed`` that of the controller's clock.
    """
    verdict = Verdict()
    for cycle in _cycles(jobs, CYCLE_S * speed):
        time = cycle[0].start_s - 1e-6
        state = _state(jobs, time, cycle[0].clock_s, shape, completing_s)
        waiting = _waiting(jobs, time)
        if cycle[0].by_main:
            started = main_cycle(state, waiting, settings, full=False)
        else:
            started = backfill_cycle(state, waiting, settings)
        expected, got = sorted(job.name for job in cycle), sorted(name for name, _ in started)
        verdict.cycles += 1
        verdict.identical += expected == got
        if expected != got:
            verdict.different += ((round(time, 2), expected, got),)
    events = sorted(t for job in jobs for t in (job.submit_s, job.start_s, job.end_s))
    for before, after in itertools.pairwise(events):
        if after - before > QUIET_S * speed:
            time = (before + after) / 2
            now = math.floor(clock_s + time)
            state = _state(jobs, time, now, shape, completing_s)
            started = main_cycle(state, _waiting(jobs, time), settings, full=True)
            if backfills:
                started += backfill_cycle(state, _waiting(jobs, time), settings)
            verdict.quiet += 1
            verdict.false_starts += bool(started)
    return verdict


def _cycles(jobs: list[Logged], gap_s: float) -> Iterable[list[Logged]]:
    """Group starts into cycles: by one loop, close in time, with no event between them."""
    events = sorted(t for job in jobs for t in (job.submit_s, job.end_s))
    cycle: list[Logged] = []
    for job in sorted(jobs, key=lambda job: job.start_s):
        if cycle:
            last = cycle[-1]
            is_apart = any(last.start_s < t < job.start_s for t in events)
            if job.by_main != last.by_main or job.start_s - last.start_s > gap_s or is_apart:
                yield cycle
                cycle = []
        cycle.append(job)
    if cycle:
        yield cycle


def _state(
    jobs: list[Logged], time: float, now: int, shape: tuple[int, int], completing_s: float
) -> State:
    n_nodes, n_cpus = shape
    state = State(now, [[n_cpus] for _ in range(n_nodes)], set())
    for job in jobs:
        if job.start_s < time < job.end_s:
            nodes = {n: job.cpus // len(job.nodes) for n in job.nodes}
            for n, cpus in nodes.items():
                state.free[n][0] -= cpus
            state.running.append(Running(job.clock_s + job.limit_s, nodes))
        elif time - completing_s < job.end_s <= time:
            state.completing.update(job.nodes)
    return state


def _waiting(jobs: list[Logged], time: float) -> list[Job]:
    return [
        Job(job.name, job.cpus, job.limit_s)
        for job in jobs
        if job.submit_s <= time + 1e-6 and job.start_s > time
    ]


def _clock(text: str) -> int:
    time = datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC)
    return round(time.timestamp())


def _nodes(text: str) -> list[int]:
    """Return the numbers of the nodes in a list such as ``n[1-3,7]``; 0 for a name without."""
    numbers = re.sub(r"^[a-z]+", "", text).strip("[]")
    nodes: list[int] = []
    for part in numbers.split(",") if numbers else ["0"]:
        first, _, last = part.partition("-")
        nodes += range(int(first), int(last or first) + 1)
    return nodes
