"""Workflows whose tasks are jobs: one run of each, or copies that recur for four weeks.

What is drawn of copies, as the files say of each workflow how it ran once: a copy belongs to a
user of its own (a queue), who gives it one of nine priorities. It runs once a day (of ten copies
eight), twice or four times, from a time of its own on. Its run times are the measured ones times a
factor of its own, log-normal with spread `BETWEEN`, that lets it end in half of its period, and
those of a run differ by `WITHIN`. In most copies a task is submitted as soon as its inputs are
there, `gap_s` and up to `MOST_LAG_S` more after the last; in a part of `BLIND` (Wing, OSDI 2020,
Observation 3) all tasks go by the clock, `gap_s` after the latest end of their inputs in the four
weeks, and fail without them. What nothing reads is downloaded: of Z such tasks of all copies every
run of the i-th Z / i times, rounded down, `WAIT_S` after its end on average. A core is as many of
the pool's tokens as bring the mean of requests to `BUSY` of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from sim.base import maths
from sim.base.arrays import F8, I8
from sim.base.random import stream
from sim.lineage import Logs, make_logs, workload
from sim.lineage.dependencies import single_hop
from sim.lineage.files import OPERATION_NAMES
from sim.lineage.worth import NONE, POLL, JobGraph, RecordedJobs, week_workload
from sim.traces.wfcommons.instances import Instance
from sim.workload.workload import Workload

TOKENS: Final = 100_000
BUSY: Final = 0.34
"""Of the pool, what is asked for on average: as of the synthesized Cosmos (`sim.synth.cosmos`)."""
WIDEST: Final = 0.1
"""Of the pool, what one task holds at most."""
BLIND: Final = 0.34
BETWEEN, WITHIN = 1.0, 0.2
MOST_LAG_S: Final = 300.0
RUNS_A_DAY, CHANCES = np.array([1, 2, 4]), np.array([0.8, 0.1, 0.1])
WAIT_S: Final = 10 * 3600.0
DAY_S, WEEK_S = 86_400.0, 7 * 86_400.0
WEEKS: Final = (-2, 2)


@dataclass(frozen=True, eq=False)
class Runs:
    """R runs of one workflow: when each of its T tasks was submitted and ended, (R, T) s."""

    of: Instance
    name: str  # of the copy
    priority: float
    submit_s: F8
    finish_s: F8


def once(
    instances: list[Instance],
    every_s: float,
    gap_s: float,
    rounds: int | None,
    meta: dict[str, Any],
) -> Workload:
    """Return one run of each workflow, a job a task; what reads what is found in the logs."""
    known = logs_once(instances, every_s, gap_s)
    edges = single_hop(known).dependencies
    up, down = edges.upstream.astype(np.int64), edges.downstream.astype(np.int64)
    submit_s, finish_s = known.column("submit_s"), known.column("finish_s")
    mode = np.where(edges.n_upstream() > 0, POLL, NONE)
    none = np.empty(0, np.int64)
    past = JobGraph(
        submit_s, finish_s, known.column("compute_s"), up, down, np.ones(len(up), bool),
        np.ones(len(up), bool), none, np.empty(0), none,
    )  # fmt: skip
    recorded = RecordedJobs(
        past, finish_s - submit_s, np.where(mode == POLL, gap_s, 0.0), known.column("priority"),
        known.column("requested"), mode,
        template=(known.column("template_name"), known.names("template_name")),
        user=(known.column("user"), known.names("user")),
        queue=(known.column("queue"), known.names("queue")),
        job_ids=lambda rows: known.jobs["job_id"].take(pa.array(rows)).combine_chunks(),
    )  # fmt: skip
    return week_workload(recorded, np.inf, rounds, meta)


def logs_once(instances: list[Instance], every_s: float, gap_s: float) -> Logs:
    """Return the logs of one run of each workflow."""
    runs = []
    for number, of in enumerate(instances):
        begin_s = np.array([number * every_s])
        runs.append(_run(of, of.name, 0.0, begin_s, of.duration_s[None, :], gap_s))
    return _logs(runs, 1)


def third_week(
    instances: list[Instance],
    copies: int,
    gap_s: float,
    seed: int,
    rounds: int | None,
    meta: dict[str, Any],
) -> Workload:
    """Return the third of four weeks of recurring copies, known by the logs before it."""
    runs = [
        _recurring(of, gap_s, seed, number * copies + copy)
        for number, of in enumerate(instances)
        for copy in range(copies)
    ]
    most = TOKENS * WIDEST / max(int(r.of.cores.max()) for r in runs)
    a_core = max(1, int(min(BUSY * TOKENS / max(_mean_cores(runs), 1e-9), most)))
    drawn = {"copies": copies, "gap_s": gap_s, "seed": seed, "rounds": rounds, "a_core": a_core}
    known = _logs(runs, a_core, _downloads(runs, seed))
    return workload(known, 0.0, WEEK_S, rounds=rounds, meta={**meta, "drawn": drawn})


def _mean_cores(runs: list[Runs]) -> float:
    """Return how many cores tasks of the third week ask for on average."""
    work = 0.0
    for r in runs:
        inside = (r.submit_s >= 0) & (r.submit_s < WEEK_S)
        work += float(((r.finish_s - r.submit_s) * inside * r.of.cores).sum())
    return work / WEEK_S


def _recurring(of: Instance, gap_s: float, seed: int, number: int) -> Runs:
    """Draw a copy: how often it runs, how long, and whether it waits for its inputs."""
    name = "".join(chr(97 + int(digit)) for digit in f"{number:04d}")  # digits look like dates
    rng = stream(seed, "traces", "wfcommons", "copy", number)
    a_day = int(rng.choice(RUNS_A_DAY, p=CHANCES))
    period_s = DAY_S / a_day
    n_runs = (WEEKS[1] - WEEKS[0]) * 7 * a_day
    begin_s = WEEKS[0] * WEEK_S + (rng.random() + np.arange(n_runs, dtype=np.float64)) * period_s
    priority = float(100 * (1 + rng.integers(9)))
    blind = bool(rng.random() < BLIND)
    alone = _run(of, name, priority, np.zeros(1), of.duration_s[None, :], gap_s)
    longest = 0.5 * period_s / max(float(alone.finish_s.max()), 1.0)
    factor = np.minimum(maths.exp(BETWEEN * rng.normal(size=1)), longest)
    noise = maths.exp(WITHIN * rng.normal(size=(n_runs, of.n)))
    lag_s = gap_s + (0.0 if blind else 1.0) * MOST_LAG_S * rng.random((n_runs, of.n))
    duration_s = factor * noise * of.duration_s
    return _run(of, name, priority, begin_s, duration_s, lag_s, blind=blind)


def _run(
    of: Instance,
    name: str,
    priority: float,
    begin_s: F8,
    duration_s: F8,
    lag_s: F8 | float,
    *,
    blind: bool = False,
) -> Runs:
    """Let tasks follow their parents; by the clock, once these have ended in every run."""
    since = np.zeros(duration_s.shape)
    after = np.broadcast_to(lag_s, duration_s.shape)
    for task in of.order():
        parents = of.parents(task)
        if len(parents):
            ready = (since[:, parents] + duration_s[:, parents]).max(axis=1)
            since[:, task] = (ready.max() if blind else ready) + after[:, task]
    submit_s = begin_s[:, None] + since
    return Runs(of, name, priority, submit_s, submit_s + duration_s)


def _downloads(runs: list[Runs], seed: int) -> list[tuple[F8, list[str]]]:
    """Draw when each run's files that nothing reads are downloaded."""
    rng = stream(seed, "traces", "wfcommons", "downloads")
    leaves = [
        (r, int(task), r.of.file[r.of.writes[1][r.of.writes[0] == task][0]])
        for r in runs
        for task in np.setdiff1d(r.of.writes[0], r.of.up)
    ]
    rank = rng.permutation(len(leaves)) + 1
    out = []
    for (r, task, file), n in zip(leaves, (len(leaves) // rank).tolist(), strict=True):
        n_runs = len(r.finish_s)
        wait_s = np.minimum(WAIT_S * rng.exponential(size=(n_runs, n)), WEEK_S)
        names = [f"{r.name}/{k}/{file}" for k in range(n_runs) for _ in range(n)]
        out.append(((r.finish_s[:, [task]] + wait_s).ravel(), names))
    return out


def _logs(runs: list[Runs], a_core: int, taken: list[tuple[F8, list[str]]] | None = None) -> Logs:
    """Write down who read and wrote what; each run has files of its own, but for its inputs."""
    jobs: dict[str, list[Any]] = {
        name: [] for name in ("job_id", "template_name", "user", "queue", "priority", "submit_s",
                              "finish_s", "requested")
    }  # fmt: skip
    time_s: list[F8] = []
    job: list[I8] = []
    kind: list[I8] = []
    file: list[str] = []
    first = 0
    for r in runs:
        n_runs, n = r.submit_s.shape
        made = np.zeros(len(r.of.file), bool)
        made[r.of.writes[1]] = True
        for k in range(n_runs):
            names = [f"{r.name}/{k}/{f}" if m else f for f, m in zip(r.of.file, made, strict=True)]
            for code, (task, f), at in ((0, r.of.reads, r.submit_s), (1, r.of.writes, r.finish_s)):
                time_s.append(at[k, task])
                job.append(first + task.astype(np.int64))
                kind.append(np.full(len(task), code))
                file += [names[place] for place in f.tolist()]
            jobs["job_id"] += [f"{r.name}/{k}/{task_id}" for task_id in r.of.task_id]
            first += n
        jobs["template_name"] += [f"{r.name}/{program}" for program in r.of.program] * n_runs
        jobs["user"] += [f"user-{r.name}"] * (n * n_runs)
        jobs["queue"] += [f"queue-{r.name}"] * (n * n_runs)
        for name, column in (
            ("priority", np.full(n * n_runs, r.priority)),
            ("submit_s", r.submit_s.ravel()), ("finish_s", r.finish_s.ravel()),
            ("requested", np.tile(r.of.cores.astype(np.float64) * a_core, n_runs)),
        ):  # fmt: skip
            jobs[name].append(column)
    for at, names in taken or []:
        time_s.append(at)
        job.append(np.full(len(at), first))
        kind.append(np.full(len(at), 2))
        file += names
    at = np.concatenate(time_s)
    order = np.argsort(at, kind="stable")
    ids = pa.array([*jobs["job_id"], ""])
    numbers = ("priority", "submit_s", "finish_s", "requested")
    columns = jobs | {name: np.concatenate(jobs[name]) for name in numbers}
    operations = {
        "time_s": at[order],
        "job": pa.DictionaryArray.from_arrays(
            pa.array(np.concatenate(job)[order].astype(np.int32)), ids
        ),
        "operation": pa.DictionaryArray.from_arrays(
            pa.array(np.concatenate(kind)[order].astype(np.int32)), pa.array(OPERATION_NAMES)
        ),
        "file": pa.array(file).dictionary_encode().take(pa.array(order)),
    }
    return make_logs(operations, columns)
