"""Candidates of a loop evaluated a minute: three workloads, five seeds, 200 lines each.

Run as ``python -m benchmarks.evaluate [--candidates N] [--processes N]``. Every other candidate
decides before the run alone; the others learn at each arrival and end of a job. The target is that
400 take ten minutes on two cores, each of which has an evaluator: 3 s of CPU each, the simulations,
the checks and the reasons included. ``--candidates 400 --processes 2`` runs them all, and takes the
wall time.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.common import parse_arguments, row, scratch, show
from sweep.questions.evaluate.evaluator import Evaluator

WORKLOADS = (
    "trace=alibaba_synth trace.jobs=200 capacity=0.8",
    "trace=training trace.jobs=200 capacity=1.0",
    "trace=production_dags trace.jobs=60 trace.median_tasks=50 capacity=0.8",
)
N_LINES = 200
CORES, MINUTES = 2, 10.0
HEAD = '''"""Candidate {i}."""

from dataclasses import dataclass

import numpy as np

from policies import Knows, Policy, register
from sim.plan import Event


@register("candidate_{i}")
@dataclass(frozen=True)
class Candidate(Policy):
    events = {events}
    knows = Knows(durations="learnt")

    def prepare(self, world, plan):
        plan.set_jobs(key=score({i}, world.columns.job_n_tasks, world.columns.job_submit))
        return np.array([[60.0, 1.0]] * len(world.columns.template_names))

    def react(self, memory, batch, world, plan):
        template = world.columns.job_template
        for job in batch.rows(Event.JOB_DONE):
            memory[template[job]] += (world.view["done_work"][job], 1)
        arrived = batch.rows(Event.JOB_ARRIVED)
        work, jobs = memory[template[arrived]].T
        plan.set_jobs(arrived, key=work / jobs * (1 + {i} % 7))


def score(i, width, submit):
    total = width * 1.0
'''
EVENTS = ("Event.NONE", "Event.JOB_ARRIVED | Event.JOB_DONE")


def write_candidate(folder: Path, i: int) -> Path:
    """Write a candidate of `N_LINES` lines."""
    lines = HEAD.format(i=i, events=EVENTS[i % 2]).splitlines()
    lines += [
        f"    total = total + np.sin(submit * {k}) * {i % 5} / {k + 1}" for k in range(1, 400)
    ]
    file = folder / f"candidate_{i}.py"
    file.write_text("\n".join([*lines[: N_LINES - 1], "    return total"]) + "\n")
    return file


@dataclass
class Measured:
    """Times of one evaluator and its candidates, s."""

    first_s: float
    wall_s: float
    cpu_s: float  # of the evaluator
    own_s: float  # of candidates' processes
    waits_s: float
    kinds_s: tuple[list[float], list[float]]


def measure(folder: Path, n: int) -> Measured:
    """Score `n` candidates with an evaluator of this process's own."""
    folder.mkdir(exist_ok=True)
    os.chdir(folder)
    evaluator = Evaluator(WORKLOADS, range(5), budget_s=60.0)
    begin = time.perf_counter()
    evaluator.warm()
    for i in (0, 1):
        _score(evaluator, write_candidate(folder, i))
    first_s = time.perf_counter() - begin
    cpu, wall, waits = _cpu_s(), time.perf_counter(), 0.0
    kinds: tuple[list[float], list[float]] = ([], [])
    for i in range(n):
        once = time.perf_counter()
        waits += _score(evaluator, write_candidate(folder, i))
        kinds[i % 2].append(time.perf_counter() - once)
    wall_s, cpu_s = time.perf_counter() - wall, _cpu_s() - cpu
    evaluator.close()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    own_s = (children.ru_utime + children.ru_stime) * n / (n + 2)
    return Measured(first_s, wall_s, cpu_s, own_s, waits, kinds)


def main() -> int:
    """Measure, print; return 1 if the target is missed."""
    options = parse_arguments(__doc__ or "", candidates=40, processes=1)
    n_processes = int(options.processes)
    n = int(options.candidates) // n_processes
    spawn = multiprocessing.get_context("spawn")
    with scratch() as name, ProcessPoolExecutor(n_processes, mp_context=spawn) as pool:
        begin = time.perf_counter()
        folders = [Path(name) / f"evaluator_{k}" for k in range(n_processes)]
        done = [*pool.map(measure, folders, [n] * n_processes)]
        all_s = time.perf_counter() - begin
    n_all = n * n_processes
    cpu_s, own_s, waits, wall = (
        sum(getattr(times, key) for times in done) / n_all
        for key in ("cpu_s", "own_s", "waits_s", "wall_s")
    )
    minutes = 400 * (cpu_s + own_s) / CORES / 60
    is_real = n_all >= 400 and n_processes == CORES
    early, late = ([t for times in done for t in times.kinds_s[k]] for k in range(2))
    rows = [
        row("workloads, baseline and first two candidates", done[0].first_s, "s"),
        row(f"{n_all} candidates and these, wall time of all", all_s / 60, "min",
            **({"at_most": MINUTES} if is_real else {})),
        row("a candidate, CPU of all its processes", cpu_s + own_s, "s"),
        row("400 candidates on two cores, by CPU", minutes, "min", at_most=MINUTES),
        row("a candidate, wall time", wall, "s"),
        row("of a candidate: CPU of the evaluator", cpu_s, "s"),
        row("of a candidate: waiting for its processes", waits, "s"),
        row("decides before the run", early, "s"),
        row("learns at each arrival and end", late or early, "s"),
        row("of a candidate: CPU of its processes", own_s, "s"),
    ]  # fmt: skip
    return show("evaluate", rows)


def _score(evaluator: Evaluator, file: Path) -> float:
    evaluation = evaluator.evaluate(file)
    if evaluation.errors:
        raise SystemExit("\n".join(evaluation.errors))
    return evaluation.candidate_s


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
