"""The workloads that are replayed, by a rule fixed before any was run.

Cuts of KTH-SP2: of the log's jobs of one minute to one hour and at most 32 CPUs, in the order of
submission, `N_JOBS` in a row from a drawn one on. Shorter jobs are left out because the fast clock
multiplies what a start costs, longer ones because a replay takes minutes. Synthesized: as many
jobs with drawn widths, run times and limits, and exponential gaps. Then for both: as many nodes as
do the work in three hours, at least 32 and at most 64; and all gaps between submissions are
multiplied by one factor, so that the work that arrives is what the nodes can do meanwhile (an
offered load of 1). A limit is in whole minutes and at least a minute above the run time, so that
no job is killed. A quarter of the jobs, drawn, go to a second partition where priorities are
multifactor.
"""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sim.base.random import Stream, stream

SEED = 38
N_JOBS = 120
MAX_CPUS = 32
MIN_NODES, MAX_NODES = 32, 64
SPAN_S = 3 * 3600.0
WIDTHS = (1, 2, 4, 8, 16, 32)
WIDTHS_WEIGHTS = (6, 4, 4, 3, 2, 1)
JUDGES = ("kth2", "kth3", "synth2")
"""Workloads on which no model is developed."""
LATER_JUDGES = ("kth4", "synth3", "seconds2")
"""Those on which is judged what was mended after the first judgement."""
LAST_JUDGES = ("kth5", "synth4", "synth5", "seconds3")
"""And what was mended after those had been judged."""
NAMES = ("kth1", "synth1", "seconds1", *JUDGES, *LATER_JUDGES, *LAST_JUDGES)
_FIELDS = ("job", "submit_s", "cpus", "run_s", "limit_s", "queue")


@dataclass(frozen=True)
class Job:
    """A submission: seconds from the first one, CPUs, what it sleeps, its limit, its partition."""

    submit_s: float
    cpus: int
    run_s: float
    limit_s: int
    queue: str = "p"


@dataclass(frozen=True)
class Replayed:
    """A workload, the cluster that it is made for, and the factor of its gaps."""

    name: str
    jobs: tuple[Job, ...]
    n_nodes: int
    speed: int
    gaps: float


def build(name: str, log: Path | None) -> Replayed:
    """Return a workload by its name; cuts are taken from the SWF file `log`.

    Raises
    ------
    ValueError
        If there is no such workload, or no log for a cut.
    """
    if name not in NAMES:
        raise ValueError(f"workload {name!r}: one of {', '.join(NAMES)}")
    kind, number = name[:-1], int(name[-1])
    draws = stream(SEED, kind, number)
    if kind == "kth":
        if log is None:
            raise ValueError(f"workload {name!r} is a cut of KTH-SP2: name its SWF file")
        return scaled(name, cut(read_swf(log), draws), draws, speed=60)
    if kind == "synth":
        return scaled(name, synthesized(draws, 120.0, 3600.0, 300), draws, speed=60)
    return scaled(name, synthesized(draws, 2.0, 60.0, 60), draws, speed=1)


def read_swf(log: Path) -> list[Job]:
    """Return the jobs of a log in the Standard Workload Format that a replay can take."""
    jobs = []
    with (gzip.open if log.suffix == ".gz" else open)(log, "rt") as lines:
        for line in lines:
            if line.strip() and not line.startswith(";"):
                fields = line.split()
                submit_s, run_s, cpus, asked_s = (float(fields[i]) for i in (1, 3, 4, 8))
                if 60 <= run_s <= 3600 and 1 <= cpus <= MAX_CPUS:
                    jobs.append(Job(submit_s, int(cpus), run_s, limit_s(run_s, asked_s, 60)))
    return sorted(jobs, key=lambda job: job.submit_s)


def limit_s(run_s: float, asked_s: float, step_s: int) -> int:
    """Return a limit in whole steps, at least what was asked, and a minute above the run time."""
    return step_s * math.ceil(max(asked_s, run_s + 60.0) / step_s)


def cut(jobs: Sequence[Job], draws: Stream) -> list[Job]:
    """Return `N_JOBS` jobs in a row, from a drawn one on."""
    first = int(draws.integers(0, len(jobs) - N_JOBS))
    return list(jobs[first : first + N_JOBS])


def synthesized(draws: Stream, least_s: float, most_s: float, step_s: int) -> list[Job]:
    """Return jobs of log-uniform run times, with limits one to five times as long."""
    weights = [weight / sum(WIDTHS_WEIGHTS) for weight in WIDTHS_WEIGHTS]
    jobs, now_s = [], 0.0
    for _ in range(N_JOBS):
        run_s = round(least_s * math.exp(draws.random() * math.log(most_s / least_s)), 1)
        cpus = WIDTHS[int(draws.choice(len(WIDTHS), p=weights))]
        asked_s = run_s * (1.0 + 4.0 * draws.random())
        jobs.append(Job(now_s, cpus, run_s, limit_s(run_s, asked_s, step_s)))
        now_s -= math.log(1.0 - draws.random())
    return jobs


def scaled(name: str, jobs: Sequence[Job], draws: Stream, speed: int) -> Replayed:
    """Choose the number of nodes, stretch the gaps, and draw the partitions."""
    work_s = sum(job.cpus * job.run_s for job in jobs)
    n_nodes = min(max(round(work_s / SPAN_S), MIN_NODES), MAX_NODES)
    first_s = jobs[0].submit_s
    gaps = work_s / n_nodes / (jobs[-1].submit_s - first_s)
    moved = [
        replace(
            job,
            submit_s=round((job.submit_s - first_s) * gaps, 3),
            queue="express" if draws.random() < 0.25 else "p",
        )
        for job in jobs
    ]
    return Replayed(name, tuple(moved), n_nodes, speed, gaps)


def write(replayed: Replayed, path: Path) -> None:
    """Write the submissions as CSV."""
    with path.open("w", newline="") as target:
        rows = csv.writer(target)
        rows.writerow(_FIELDS)
        for number, job in enumerate(replayed.jobs):
            rows.writerow(
                [number, job.submit_s, job.cpus, f"{job.run_s:g}", job.limit_s, job.queue]
            )
