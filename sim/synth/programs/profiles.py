"""What is known of each program of a workload, as a file keeps it: who runs it, when, how large.

Jobs that agree in all that is known of them are runs of one program. Where neither a template nor
an application nor a name is known, they are a user's (or a queue's) jobs of whatever program. Jobs
whose user asked for a time are of a *kind*: those of one program or user that ask for the same time
and have the same number of tasks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim.base import maths
from sim.base.arrays import F8, I8, ranks
from sim.describe.flow import job_work_s
from sim.workload.columns import job_n_tasks
from sim.workload.paths import critical_path_s
from sim.workload.schema import DEMAND_PREFIX
from sim.workload.tables import column_or_nan, names, values
from sim.workload.workload import Workload

LABELS = ("template", "application", "job_name", "user", "queue", "requested", "input_mode")
"""What jobs are told apart by, along with their priority; the first three name a program."""
MOST = 9
"""Quantiles that are kept of a distribution."""


@dataclass(frozen=True)
class Card:
    """What is known of a program."""

    labels: tuple[str, ...]  # by `LABELS`
    priority: float
    at: tuple[int, ...]  # places of its runs in the order of all jobs
    # mean and deviation over its runs of the normal score of a job's work among all jobs; of a
    # kind, quantiles
    score: tuple[float, ...]
    # stages, tasks and demands of a typical run of the program; () where none is known
    like: tuple[float, ...]
    spread: float  # deviation of the logarithms of the durations of a stage's tasks
    gang: bool  # whether all tasks of a run start together
    # the time that was asked for, s, and the largest part of it that a run takes by itself; () for
    # none
    asked: tuple[float, ...]
    # quantiles of the deadline over the time that a run takes by itself; () for none
    deadline: tuple[float, ...]
    downloads: float  # how many times a run's output is downloaded
    lags: tuple[float, ...]  # quantiles of how long after its submission, s
    poll_lag_s: float
    # programs that it reads: number, share of its runs that do, how many of the latest runs, and
    # whether it needs them
    inputs: tuple[tuple[int, float, float, bool], ...]

    @property
    def is_program(self) -> bool:
        """Tell whether its runs are of one program, which has a name."""
        return any(self.labels[:3])


def fit_cards(workload: Workload) -> tuple[Card, ...]:
    """Tell the programs of a workload, and count what is known of each."""
    jobs = workload.jobs
    n_tasks, work_s = job_n_tasks(workload).astype(np.float64), job_work_s(workload)
    gang = values(jobs, "min_tasks") == n_tasks
    columns = [values(jobs, name).astype(np.int64) for name in LABELS if name in jobs.column_names]
    priority = np.unique(values(jobs, "priority"), return_inverse=True)[1]
    asked_s, due_s = (
        column_or_nan(jobs, name) if name in jobs.column_names else np.full(len(gang), np.nan)
        for name in ("requested_s", "deadline_s")
    )
    of_kind = bool((asked_s > 0).any())
    asked_s = np.where(asked_s > 0, asked_s, np.nan)
    kind = np.stack([np.nan_to_num(asked_s, nan=-1.0), n_tasks]) * of_kind
    _, first, card = np.unique(
        np.stack([*columns, priority, gang, *kind]), axis=1, return_index=True, return_inverse=True
    )
    card = ranks(first)[card.ravel()]
    first = np.sort(first)  # cards are numbered by their first run
    label = [names_of(workload, name) for name in LABELS]
    known = np.array([any(of[row] for of in label[:3]) for row in range(workload.n_jobs)])
    named = _numbers(label[0], label[1], label[2])
    template = np.unique(np.where(known & ~of_kind, named, -1 - card), return_inverse=True)[1]
    score = maths.normal_quantile((ranks(work_s) + 0.5) / workload.n_jobs)
    cp_s = np.maximum(critical_path_s(workload.columns), 1e-9)
    spread = _spread(workload)
    poll = (
        column_or_nan(jobs, "poll_lag_s")
        if "poll_lag_s" in jobs.column_names
        else np.zeros(len(card))
    )
    inputs, lags = _inputs(workload, card), _lags(workload)
    typical = np.stack([_medians(template, of) for of in attributes(workload)], axis=1)
    cards: list[Card] = []
    order = np.argsort(card, kind="stable")
    for number, rows in enumerate(np.split(order, np.cumsum(np.bincount(card))[:-1])):
        one = first[number]
        mine = np.concatenate([lags.get(row, np.empty(0)) for row in rows.tolist()])
        cards.append(
            Card(
                labels=tuple(of[one] for of in label),
                priority=float(values(jobs, "priority")[one]),
                at=tuple(rows.tolist()),
                score=_quantiles(score[rows])
                if of_kind
                else (float(score[rows].mean()), float(score[rows].std())),
                like=tuple(typical[template[one]].tolist()) if known[one] or of_kind else (),
                spread=float(spread[rows].mean()),
                gang=bool(gang[one]),
                asked=_limit(asked_s[one], cp_s[rows]),
                deadline=_quantiles(due_s[rows] / cp_s[rows]),
                downloads=len(mine) / len(rows),
                lags=_quantiles(mine),
                poll_lag_s=float(np.nan_to_num(poll[rows]).mean()),
                inputs=tuple(
                    (up, n / len(rows), many / n, hard)
                    for up, n, many, hard in inputs.get(number, ())
                ),
            )
        )
    return tuple(cards)


def attributes(workload: Workload) -> list[F8]:
    """Return stages and tasks of each job, and its tasks' mean demands, (J,) each."""
    job, n_tasks = values(workload.stages, "job"), values(workload.stages, "n_tasks")
    n_stages, n = np.zeros((2, workload.n_jobs))
    np.add.at(n_stages, job, 1.0)
    np.add.at(n, job, n_tasks)
    found = [n_stages, n]
    for name in workload.resources:
        demand = np.zeros(workload.n_jobs)
        np.add.at(demand, job, values(workload.stages, DEMAND_PREFIX + name) * n_tasks)
        found.append(demand / n)
    return found


def names_of(workload: Workload, column: str) -> list[str]:
    """Return a label of each job; "" where there is no such column."""
    if column not in workload.jobs.column_names:
        return [""] * workload.n_jobs
    known = names(workload.jobs, column)
    return [known[code] for code in values(workload.jobs, column).tolist()]


def _numbers(*labels: list[str]) -> I8:
    seen: dict[tuple[str, ...], int] = {}
    # a template, or where there is none an application, or a name
    keys = [
        next(((str(i), x) for i, x in enumerate(of) if x), ()) for of in zip(*labels, strict=True)
    ]
    return np.array([seen.setdefault(key, len(seen)) for key in keys], np.int64)


def _limit(asked_s: float, cp_s: F8) -> tuple[float, ...]:
    return () if np.isnan(asked_s) else (float(asked_s), float(cp_s.max() / asked_s))


def _quantiles(x: F8) -> tuple[float, ...]:
    x = x[np.isfinite(x)]
    n = min(len(x), MOST)
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
    of_job = [np.bincount(columns.stage_job, x, workload.n_jobs) for x in (square, n - 1.0)]
    return np.sqrt(of_job[0] / np.maximum(of_job[1], 1.0))


def _lags(workload: Workload) -> dict[int, F8]:
    """Return how long after its submission each job's output is downloaded."""
    job = values(workload.downloads, "job").astype(np.int64)
    lag = values(workload.downloads, "time_s") - values(workload.jobs, "submit_s")[job]
    repeated = values(workload.downloads, "n")
    found: dict[int, list[float]] = {}
    for row, x, n in zip(job.tolist(), lag.tolist(), repeated.tolist(), strict=True):
        found.setdefault(row, []).extend([x] * n)
    return {row: np.array(x) for row, x in found.items()}


def _inputs(workload: Workload, card: I8) -> dict[int, list[tuple[int, int, int, bool]]]:
    """Return what each program reads: which, how many runs do, with how many edges, most hard."""
    edges = workload.job_edges
    if not edges.num_rows:
        return {}
    up, down = (values(edges, end).astype(np.int64) for end in ("upstream", "downstream"))
    hard = np.array([kind == "hard" for kind in names(edges, "kind")])[values(edges, "kind")]
    pairs, pair = np.unique(np.stack([card[down], card[up]]), axis=1, return_inverse=True)
    pair = pair.ravel()
    readers = np.unique(np.stack([pair, down]), axis=1)[0]
    found: dict[int, list[tuple[int, int, int, bool]]] = {}
    for (mine, other), n, many, n_hard in zip(
        pairs.T.tolist(), np.bincount(readers), np.bincount(pair), np.bincount(pair, hard),
        strict=True,
    ):  # fmt: skip
        found.setdefault(mine, []).append((other, int(n), int(many), bool(2 * n_hard >= many)))
    return found
