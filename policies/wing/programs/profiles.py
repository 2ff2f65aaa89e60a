"""Profiles of a workload's programs: labels, rhythm and size of their runs.

Jobs with the same labels are runs of one program. Without a template, an application or a name,
a profile has a user's (or a queue's) jobs of unknown programs. Jobs with a requested time are
grouped in *kinds*: jobs of one program or user with the same requested time and number of tasks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim.base import maths
from sim.base.arrays import F8, I8, ranks
from sim.workload.columns import job_n_tasks, job_work_s
from sim.workload.paths import critical_path_s
from sim.workload.schema import DEMAND_PREFIX
from sim.workload.tables import column_or_nan, names, values
from sim.workload.workload import Workload

LABELS = ("template", "application", "job_name", "user", "queue", "requested", "input_mode")
"""Columns that distinguish profiles, along with the priority; the first three name a program."""
MAX_QUANTILES = 9
"""Maximum number of quantiles stored of a distribution."""


@dataclass(frozen=True)
class Profile:
    """Profile of a program or a kind."""

    labels: tuple[str, ...]  # by `LABELS`
    priority: float
    positions: tuple[int, ...]  # of its runs in the order of all jobs
    # mean and deviation over its runs of the normal score of a job's work among all jobs; of a
    # kind, quantiles
    score: tuple[float, ...]
    # stages, tasks and demands of a typical run of the program; () if unknown
    shape: tuple[float, ...]
    spread: float  # deviation of the logarithms of the durations of a stage's tasks
    gang: bool  # all tasks of a run start together
    # requested time, s, and the largest share of it that a run's critical path takes; () for none
    requested: tuple[float, ...]
    # quantiles of the deadline over a run's critical path; () for none
    deadline: tuple[float, ...]
    downloads: float  # mean number of downloads of a run's output
    lags: tuple[float, ...]  # quantiles of the time from submission to download, s
    poll_lag_s: float
    # programs that it reads: number, share of its runs that read it, mean number of latest runs
    # that are read, and whether they are hard inputs
    inputs: tuple[tuple[int, float, float, bool], ...]

    @property
    def is_program(self) -> bool:
        """True if its runs are of one named program."""
        return any(self.labels[:3])


def fit_profiles(workload: Workload) -> tuple[Profile, ...]:
    """Group the jobs of a workload by program, and fit a profile to each."""
    jobs = workload.jobs
    n_tasks, work_s = job_n_tasks(workload).astype(np.float64), job_work_s(workload)
    gang = values(jobs, "min_tasks") == n_tasks
    columns = [values(jobs, name).astype(np.int64) for name in LABELS if name in jobs.column_names]
    priority = np.unique(values(jobs, "priority"), return_inverse=True)[1]
    requested_s, due_s = (
        column_or_nan(jobs, name) if name in jobs.column_names else np.full(len(gang), np.nan)
        for name in ("requested_s", "deadline_s")
    )
    has_kinds = bool((requested_s > 0).any())
    requested_s = np.where(requested_s > 0, requested_s, np.nan)
    kind = np.stack([np.nan_to_num(requested_s, nan=-1.0), n_tasks]) * has_kinds
    _, first, profile = np.unique(
        np.stack([*columns, priority, gang, *kind]), axis=1, return_index=True, return_inverse=True
    )
    profile = ranks(first)[profile.ravel()]
    first = np.sort(first)  # cards are numbered by their first run
    labels = [job_labels(workload, name) for name in LABELS]
    is_named = np.array([any(names) for names in zip(*labels[:3], strict=True)])
    program = _number_programs(labels[0], labels[1], labels[2])
    template = np.unique(
        np.where(is_named & (not has_kinds), program, -1 - profile), return_inverse=True
    )[1]
    score = maths.normal_quantile((ranks(work_s) + 0.5) / workload.n_jobs)
    cp_s = np.maximum(critical_path_s(workload.columns), 1e-9)
    spread = _spread(workload)
    poll = (
        column_or_nan(jobs, "poll_lag_s")
        if "poll_lag_s" in jobs.column_names
        else np.zeros(len(profile))
    )
    inputs, lags = _inputs(workload, profile), _lags(workload)
    typical = np.stack([_medians(template, column) for column in attributes(workload)], axis=1)
    profiles: list[Profile] = []
    order = np.argsort(profile, kind="stable")
    for number, rows in enumerate(np.split(order, np.cumsum(np.bincount(profile))[:-1])):
        run = first[number]
        lags_s = np.concatenate([lags.get(row, np.empty(0)) for row in rows.tolist()])
        has_shape = is_named[run] or has_kinds
        profiles.append(
            Profile(
                labels=tuple(label[run] for label in labels),
                priority=float(values(jobs, "priority")[run]),
                positions=tuple(rows.tolist()),
                score=_quantiles(score[rows])
                if has_kinds
                else (float(score[rows].mean()), float(score[rows].std())),
                shape=tuple(typical[template[run]].tolist()) if has_shape else (),
                spread=float(spread[rows].mean()),
                gang=bool(gang[run]),
                requested=_request(requested_s[run], cp_s[rows]),
                deadline=_quantiles(due_s[rows] / cp_s[rows]),
                downloads=len(lags_s) / len(rows),
                lags=_quantiles(lags_s),
                poll_lag_s=float(np.nan_to_num(poll[rows]).mean()),
                inputs=tuple(
                    (up, n / len(rows), n_edges / n, hard)
                    for up, n, n_edges, hard in inputs.get(number, ())
                ),
            )
        )
    return tuple(profiles)


def attributes(workload: Workload) -> list[F8]:
    """Return the number of stages and of tasks of each job, and its mean demands, (J,) each."""
    job, n_tasks = values(workload.stages, "job"), values(workload.stages, "n_tasks")
    n_stages, n = np.zeros((2, workload.n_jobs))
    np.add.at(n_stages, job, 1.0)
    np.add.at(n, job, n_tasks)
    columns = [n_stages, n]
    for name in workload.resources:
        demand = np.zeros(workload.n_jobs)
        np.add.at(demand, job, values(workload.stages, DEMAND_PREFIX + name) * n_tasks)
        columns.append(demand / n)
    return columns


def job_labels(workload: Workload, column: str) -> list[str]:
    """Return a label of each job; "" if there is no such column."""
    if column not in workload.jobs.column_names:
        return [""] * workload.n_jobs
    labels = names(workload.jobs, column)
    return [labels[code] for code in values(workload.jobs, column).tolist()]


def _number_programs(*labels: list[str]) -> I8:
    """Return a number per program: by template, or else application, or else name."""
    numbers: dict[tuple[str, ...], int] = {}
    keys = [
        next(((str(i), name) for i, name in enumerate(job) if name), ())
        for job in zip(*labels, strict=True)
    ]
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)


def _request(requested_s: float, cp_s: F8) -> tuple[float, ...]:
    if np.isnan(requested_s):
        return ()
    return float(requested_s), float(cp_s.max() / requested_s)


def _quantiles(x: F8) -> tuple[float, ...]:
    x = x[np.isfinite(x)]
    n = min(len(x), MAX_QUANTILES)
    return tuple(float(f"{q:.6g}") for q in np.quantile(x, (np.arange(n) + 0.5) / n)) if n else ()


def _medians(group: I8, x: F8) -> F8:
    order = np.lexsort((x, group))
    size = np.bincount(group)
    medians: F8 = x[order][np.cumsum(size) - size + size // 2]
    return medians


def _spread(workload: Workload) -> F8:
    """Return the deviation of the logarithms of each job's tasks within its stages."""
    if workload.stage_duration_s is not None:
        return np.zeros(workload.n_jobs)
    columns = workload.columns
    stage = columns.task_stage()
    log = maths.log(np.maximum(columns.task_duration, 1e-9))
    n = columns.stage_n_tasks
    mean = np.bincount(stage, log, workload.n_stages) / n
    square = np.bincount(stage, (log - mean[stage]) ** 2, workload.n_stages)
    total, freedom = (np.bincount(columns.stage_job, x, workload.n_jobs) for x in (square, n - 1.0))
    return np.sqrt(total / np.maximum(freedom, 1.0))


def _lags(workload: Workload) -> dict[int, F8]:
    """Return the times from each job's submission to the downloads of its output, s."""
    job = values(workload.downloads, "job").astype(np.int64)
    lag_s = values(workload.downloads, "time_s") - values(workload.jobs, "submit_s")[job]
    repeated = values(workload.downloads, "n")
    lags_s: dict[int, list[float]] = {}
    for row, x, n in zip(job.tolist(), lag_s.tolist(), repeated.tolist(), strict=True):
        lags_s.setdefault(row, []).extend([x] * n)
    return {row: np.array(x) for row, x in lags_s.items()}


def _inputs(workload: Workload, profile: I8) -> dict[int, list[tuple[int, int, int, bool]]]:
    """Return each program's inputs: (program, runs that read it, edges, most of them are hard)."""
    edges = workload.job_edges
    if not edges.num_rows:
        return {}
    up, down = (values(edges, end).astype(np.int64) for end in ("upstream", "downstream"))
    hard = np.array([kind == "hard" for kind in names(edges, "kind")])[values(edges, "kind")]
    pairs, pair = np.unique(np.stack([profile[down], profile[up]]), axis=1, return_inverse=True)
    pair = pair.ravel()
    readers = np.unique(np.stack([pair, down]), axis=1)[0]
    inputs: dict[int, list[tuple[int, int, int, bool]]] = {}
    for (reader, read), n, n_edges, n_hard in zip(
        pairs.T.tolist(), np.bincount(readers), np.bincount(pair), np.bincount(pair, hard),
        strict=True,
    ):  # fmt: skip
        is_hard = bool(2 * n_hard >= n_edges)
        inputs.setdefault(reader, []).append((read, int(n), int(n_edges), is_hard))
    return inputs
