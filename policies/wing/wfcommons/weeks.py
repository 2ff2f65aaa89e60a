"""Workflows whose tasks are jobs: one run of each, or copies that recur for four weeks.

The files have one run of each workflow, so the recurrence of copies is drawn. Each copy has its own
user and queue, and one of nine priorities. Eight in ten copies run once a day, the others twice or
four times, from a random time of day on. Run times are the measured ones times a factor per copy,
log-normal with standard deviation `BETWEEN` and limited so that a run ends within half of its
period, and times noise per task, log-normal with `WITHIN`. In most copies a task waits for its
inputs: it is submitted `gap_s` after the last, plus up to `MAX_LAG_S`. In a fraction `BLIND` of
copies (Wing, OSDI 2020, Observation 3) all tasks are submitted by the clock, `gap_s` after the
latest end of their inputs in the four weeks, and fail without them. Outputs that no task reads are
downloaded: of the Z tasks with such outputs, every run of the i-th is downloaded Z / i times,
rounded down, on average `WAIT_S` after its end. A core is the number of tokens with which requests
fill a fraction `BUSY` of the pool on average.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from policies.wing.lineage import Logs, make_logs, workload
from policies.wing.lineage.dependencies import single_hop
from policies.wing.lineage.files import OPERATION_NAMES
from policies.wing.lineage.worth import NONE, POLL, JobGraph, RecordedJobs, week_workload
from policies.wing.wfcommons.instances import Instance, quantum
from sim.base import maths
from sim.base.arrays import F8, I8
from sim.base.random import stream
from sim.workload.workload import Workload

TOKENS: Final = 100_000
BUSY: Final = 0.34
"""Mean requests, as a fraction of the pool: as for the synthesized Cosmos
(`policies.wing.cosmos`)."""
WIDEST: Final = 0.1
"""Largest request of a task, as a fraction of the pool."""
BLIND: Final = 0.34
BETWEEN, WITHIN = 1.0, 0.2
MAX_LAG_S: Final = 300.0
RUNS_A_DAY, CHANCES = np.array([1, 2, 4]), np.array([0.8, 0.1, 0.1])
WAIT_S: Final = 10 * 3600.0
DAY_S, WEEK_S = 86_400.0, 7 * 86_400.0
WEEKS: Final = (-2, 2)


@dataclass(frozen=True, eq=False)
class Runs:
    """R runs of a workflow: times of submission and completion of its T tasks, (R, T), s."""

    workflow: Instance
    name: str  # of the copy
    priority: float
    submit_s: F8
    finish_s: F8


class OneRun:
    """One run of each workflow, a job per task, with the dependencies that its logs show.

    Attributes
    ----------
    logs : Logs
        What a data platform would have logged.
    inferred : set of (int, int)
        Rows of tasks, those of all instances in order: the second reads what the first wrote.
    """

    def __init__(self, instances: list[Instance], every_s: float, gap_s: float) -> None:
        runs = []
        for number, instance in enumerate(instances):
            begin_s = np.array([number * every_s])
            runs.append(
                _run(instance, instance.name, 0.0, begin_s, instance.duration_s[None, :], gap_s)
            )
        self.logs = _logs(runs, 1)
        submit_s = np.concatenate([run.submit_s.ravel() for run in runs])
        self._task = np.argsort(submit_s, kind="stable")  # of each job
        self._duration_s = np.concatenate([i.duration_s for i in instances])[self._task]
        self._gap_s = gap_s
        self._edges = single_hop(self.logs).dependencies
        up, down = (self._task[rows] for rows in (self._edges.upstream, self._edges.downstream))
        self.inferred = set(zip(up.tolist(), down.tolist(), strict=True))

    def workload(self, rounds: int | None, meta: dict[str, Any]) -> Workload:
        """Return the workload of the tasks."""
        logs, edges = self.logs, self._edges
        up, down = edges.upstream.astype(np.int64), edges.downstream.astype(np.int64)
        submit_s, finish_s = logs.column("submit_s"), logs.column("finish_s")
        mode = np.where(edges.n_upstream() > 0, POLL, NONE)
        no_download = np.empty(0, np.int64)
        graph = JobGraph(
            submit_s, finish_s, logs.column("compute_s"), up, down, np.ones(len(up), bool),
            np.ones(len(up), bool), no_download, np.empty(0), no_download,
        )  # fmt: skip
        recorded = RecordedJobs(
            graph, self._duration_s, np.where(mode == POLL, self._gap_s, 0.0),
            logs.column("priority"), logs.column("requested"), mode,
            template=(logs.column("template_name"), logs.names("template_name")),
            user=(logs.column("user"), logs.names("user")),
            queue=(logs.column("queue"), logs.names("queue")),
            job_ids=lambda rows: logs.jobs["job_id"].take(pa.array(rows)).combine_chunks(),
        )  # fmt: skip
        tokens = {"quantum": {"tokens": quantum(logs.column("requested"))}}
        return week_workload(recorded, np.inf, rounds, tokens | meta)


def third_week(
    instances: list[Instance],
    copies: int,
    gap_s: float,
    seed: int,
    rounds: int | None,
    meta: dict[str, Any],
) -> Workload:
    """Return the third of four weeks of recurring copies, with the history of earlier logs."""
    runs = [
        _recurring(instance, gap_s, seed, number * copies + copy)
        for number, instance in enumerate(instances)
        for copy in range(copies)
    ]
    max_scale = TOKENS * WIDEST / max(float(r.workflow.cores.max()) for r in runs)
    tokens_per_core = max(1, int(min(BUSY * TOKENS / max(_mean_cores(runs), 1e-9), max_scale)))
    drawn = {
        "copies": copies,
        "gap_s": gap_s,
        "seed": seed,
        "rounds": rounds,
        "tokens_per_core": tokens_per_core,
    }
    logs = _logs(runs, tokens_per_core, _downloads(runs, seed))
    return workload(logs, 0.0, WEEK_S, rounds=rounds, meta={**meta, "drawn": drawn})


def _mean_cores(runs: list[Runs]) -> float:
    """Return the mean number of cores that tasks of the third week request."""
    work_core_s = 0.0
    for r in runs:
        in_week = (r.submit_s >= 0) & (r.submit_s < WEEK_S)
        work_core_s += float(((r.finish_s - r.submit_s) * in_week * r.workflow.cores).sum())
    return work_core_s / WEEK_S


def _recurring(workflow: Instance, gap_s: float, seed: int, number: int) -> Runs:
    """Draw the runs of a copy: its period, run times, and polling or not."""
    name = "".join(
        chr(97 + int(digit)) for digit in f"{number:04d}"
    )  # digits would look like dates
    rng = stream(seed, "traces", "wfcommons", "copy", number)
    runs_a_day = int(rng.choice(RUNS_A_DAY, p=CHANCES))
    period_s = DAY_S / runs_a_day
    n_runs = (WEEKS[1] - WEEKS[0]) * 7 * runs_a_day
    begin_s = WEEKS[0] * WEEK_S + (rng.random() + np.arange(n_runs, dtype=np.float64)) * period_s
    priority = float(100 * (1 + rng.integers(9)))
    blind = bool(rng.random() < BLIND)
    single = _run(workflow, name, priority, np.zeros(1), workflow.duration_s[None, :], gap_s)
    max_factor = 0.5 * period_s / max(float(single.finish_s.max()), 1.0)
    factor = np.minimum(maths.exp(BETWEEN * rng.normal(size=1)), max_factor)
    noise = maths.exp(WITHIN * rng.normal(size=(n_runs, workflow.n_tasks)))
    lag_s = gap_s + (0.0 if blind else 1.0) * MAX_LAG_S * rng.random((n_runs, workflow.n_tasks))
    duration_s = factor * noise * workflow.duration_s
    return _run(workflow, name, priority, begin_s, duration_s, lag_s, blind=blind)


def _run(
    workflow: Instance,
    name: str,
    priority: float,
    begin_s: F8,
    duration_s: F8,
    lag_s: F8 | float,
    *,
    blind: bool = False,
) -> Runs:
    """Submit tasks after their parents; blind: after the latest end of these in all runs."""
    offset_s = np.zeros(duration_s.shape)
    lag_s = np.broadcast_to(lag_s, duration_s.shape)
    for task in workflow.order():
        parents = workflow.parents(task)
        if len(parents):
            ready_s = (offset_s[:, parents] + duration_s[:, parents]).max(axis=1)
            offset_s[:, task] = (ready_s.max() if blind else ready_s) + lag_s[:, task]
    submit_s = begin_s[:, None] + offset_s
    return Runs(workflow, name, priority, submit_s, submit_s + duration_s)


def _downloads(runs: list[Runs], seed: int) -> list[tuple[F8, list[str]]]:
    """Draw the download times of each run's files that no task reads."""
    rng = stream(seed, "traces", "wfcommons", "downloads")
    leaves = [
        (r, int(task), r.workflow.file[r.workflow.writes[1][r.workflow.writes[0] == task][0]])
        for r in runs
        for task in np.setdiff1d(r.workflow.writes[0], r.workflow.up)
    ]
    rank = rng.permutation(len(leaves)) + 1
    downloads = []
    for (r, task, file), n in zip(leaves, (len(leaves) // rank).tolist(), strict=True):
        n_runs = len(r.finish_s)
        wait_s = np.minimum(WAIT_S * rng.exponential(size=(n_runs, n)), WEEK_S)
        names = [f"{r.name}/{k}/{file}" for k in range(n_runs) for _ in range(n)]
        downloads.append(((r.finish_s[:, [task]] + wait_s).ravel(), names))
    return downloads


def _logs(
    runs: list[Runs], tokens_per_core: int, downloads: list[tuple[F8, list[str]]] | None = None
) -> Logs:
    """Write the log of reads, writes and downloads; runs share only files that no task writes."""
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
        is_output = np.zeros(len(r.workflow.file), bool)
        is_output[r.workflow.writes[1]] = True
        for k in range(n_runs):
            names = [
                f"{r.name}/{k}/{f}" if is_written else f
                for f, is_written in zip(r.workflow.file, is_output, strict=True)
            ]
            for code, (task, f), task_time_s in (
                (0, r.workflow.reads, r.submit_s),
                (1, r.workflow.writes, r.finish_s),
            ):
                time_s.append(task_time_s[k, task])
                job.append(first + task.astype(np.int64))
                kind.append(np.full(len(task), code))
                file += [names[number] for number in f.tolist()]
            jobs["job_id"] += [f"{r.name}/{k}/{task_id}" for task_id in r.workflow.task_id]
            first += n
        jobs["template_name"] += [f"{r.name}/{program}" for program in r.workflow.program] * n_runs
        jobs["user"] += [f"user-{r.name}"] * (n * n_runs)
        jobs["queue"] += [f"queue-{r.name}"] * (n * n_runs)
        for name, column in (
            ("priority", np.full(n * n_runs, r.priority)),
            ("submit_s", r.submit_s.ravel()), ("finish_s", r.finish_s.ravel()),
            ("requested", np.tile(r.workflow.cores * tokens_per_core, n_runs)),
        ):  # fmt: skip
            jobs[name].append(column)
    for download_s, names in downloads or []:
        time_s.append(download_s)
        job.append(np.full(len(download_s), first))
        kind.append(np.full(len(download_s), 2))
        file += names
    all_times_s = np.concatenate(time_s)
    order = np.argsort(all_times_s, kind="stable")
    ids = pa.array([*jobs["job_id"], ""])
    numbers = ("priority", "submit_s", "finish_s", "requested")
    columns = jobs | {name: np.concatenate(jobs[name]) for name in numbers}
    operations = {
        "time_s": all_times_s[order],
        "job": pa.DictionaryArray.from_arrays(
            pa.array(np.concatenate(job)[order].astype(np.int32)), ids
        ),
        "operation": pa.DictionaryArray.from_arrays(
            pa.array(np.concatenate(kind)[order].astype(np.int32)), pa.array(OPERATION_NAMES)
        ),
        "file": pa.array(file).dictionary_encode().take(pa.array(order)),
    }
    return make_logs(operations, columns)
