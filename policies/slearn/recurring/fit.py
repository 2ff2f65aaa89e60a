"""Fit the tables of recurring jobs to a workload that has a history and features."""

from __future__ import annotations

import math

import numpy as np

from policies.slearn.recurring.giants import group_rows, history_log_ratio
from policies.slearn.recurring.tables import BOUNDS_S, WIDE, Stratum, Tables, heaviest, quantiles_at
from policies.slearn.task_variation import (
    jobs_over_space,
    jobs_over_time,
    load_statistics,
    window_loads,
)
from sim.base import maths
from sim.base.arrays import F8, I8
from sim.base.errors import InputError
from sim.workload.columns import Columns
from sim.workload.history import NAMES
from sim.workload.workload import Workload

N_QUANTILES_MAX = 40
DAY_S = 86_400.0
LARGE = 0.06
"""Share of the runs with a large input: assumed."""
UNTIMED_DAYS = 3
"""Assumed length of a history without times: the paper's window for Google."""
_STALE_LOG = 0.5
"""Logarithm by which a history must be longer than its job to count as stale, not as chance."""


def fit(workload: Workload, n_slots: int, note: str | None = None) -> Tables:
    """Count the tables of `policies.slearn.recurring`; a program is one value of ``application``.

    Arrivals are not changed: stretch them first, if the trace needs it. The runs of a program are
    counted in the stratum of its median job.
    """
    columns = workload.columns
    if workload.history.num_rows == 0 or "application" not in workload.jobs.column_names:
        raise InputError(
            "a fit of recurring jobs needs a history and the feature application", rule="no history"
        )
    if workload.n_stages != workload.n_jobs:
        raise InputError("a fit of recurring jobs needs jobs of one stage", rule="several stages")
    now, past = (
        side[:, NAMES.index("application")].astype(np.int64) for side in columns.features.codes
    )
    alone = int(max(now.max(), past.max())) + 1 + np.arange(len(now))
    now = np.where(now < 0, alone, now)  # a job without a name is a program with one run
    past_s, past = columns.features.history_column("mean_task_s")[past >= 0], past[past >= 0]
    n_tasks, work_s = np.diff(columns.stage_task0), columns.job_work
    n_programs = int(max(now.max(initial=0), past.max(initial=0))) + 1
    n_past = np.bincount(past, minlength=n_programs)
    stratum = _strata(n_tasks, work_s)
    program_stratum = _program_strata(now, stratum, n_programs)
    is_now = np.bincount(now, minlength=n_programs) > 0
    over_space = jobs_over_space(workload)
    strata = []
    for number in np.unique(stratum):
        rows = np.flatnonzero(stratum == number)
        widths, weights = np.unique(n_tasks[rows], return_counts=True)
        strata.append(
            Stratum(
                thin=bool(number % 2),
                large=bool(number > 1),
                jobs=_short(len(rows) / len(now)),
                work_s=_quantiles(work_s[rows]),
                widths=tuple(zip(widths.tolist(), weights.tolist(), strict=True)),
                runs=_runs(now[rows], n_past, is_now & (program_stratum == number), len(now)),
                over_space=_pair(over_space[rows]),
            )
        )
    loads = load_statistics(window_loads(columns.job_submit, work_s, n_slots))
    since_s = float(columns.job_submit[0] - columns.features.history_column("submit_s").min())
    days = UNTIMED_DAYS if columns.features.untimed.any() else max(math.ceil(since_s / DAY_S), 1)
    over_time = jobs_over_time(workload, days * DAY_S)
    return Tables(
        strata=tuple(strata),
        history_only=(
            _per(int((~is_now & (n_past > 0)).sum()), now),
            _per(int(n_past[~is_now].sum()), now),
        ),
        users=_feature_values(columns, "user", len(now)),
        requests=_feature_values(columns, "requested", len(now)),
        stale=_stale(now, past, work_s / n_tasks, past_s),
        together=_together(work_s),
        unlike_user=_unlike_user(columns, heaviest(work_s)),
        large=LARGE,
        over_time=_pair(over_time),
        over_space=_pair(over_space),
        load=(_short(loads["load_average"]), _short(loads["load_p50"]), _short(loads["load_p90"])),
        history_days=days,
        provenance={
            "made_by": "python -m sim fit --generator recurring",
            "source": note or f"workload {workload.meta.get('name', '')}".strip(),
            "input_sha256": workload.digest,
            "counted": {"jobs": len(now), "history": len(past), "programs": int(is_now.sum())},
        },
    )


def _strata(n_tasks: I8, work_s: F8) -> I8:
    """Return each job's stratum: 2 x queue for wide jobs; 1 or 3 for small or large thin ones."""
    queue = np.searchsorted(BOUNDS_S, work_s, side="right")
    thin = n_tasks < WIDE
    return np.where(thin, 2 * np.minimum(queue, 1) + 1, 2 * queue)


def _program_strata(now: I8, stratum: I8, n_programs: int) -> I8:
    """Return the stratum of each program: the lower median of its jobs'."""
    order = np.lexsort((stratum, now))
    n_runs = np.bincount(now, minlength=n_programs)
    first = np.cumsum(n_runs) - n_runs
    middle = np.minimum(first + (n_runs - 1) // 2, len(now) - 1)
    return np.where(n_runs > 0, stratum[order][middle], -1)


def _runs(
    jobs: I8, n_past: I8, programs: I8, n_jobs: int
) -> tuple[tuple[float, float, float], ...]:
    """Return each class's share of the jobs, and its programs and past runs per job."""
    classes = []
    for low, high in ((0, 0), (1, 1), (2, np.inf)):
        members = programs & (n_past >= low) & (n_past <= high)
        share = float(np.mean((n_past[jobs] >= low) & (n_past[jobs] <= high)))
        n_runs = n_past[members].sum()
        classes.append((_short(share), _short(members.sum() / n_jobs), _short(n_runs / n_jobs)))
    return tuple(classes)


def _quantiles(work_s: F8) -> tuple[float, ...]:
    n = min(len(work_s), N_QUANTILES_MAX)
    logs = quantiles_at(maths.log(np.sort(work_s)), (np.arange(n) + 0.5) / n)
    return tuple(_short(size_s) for size_s in maths.exp(logs).tolist())


def _stale(now: I8, past: I8, mean_s: F8, past_s: F8) -> tuple[float, float]:
    """Return the share of jobs shorter than their history, and the mean logarithm of the ratio.

    The history of a program is the median of its past runs, if it has at least two. Where that is
    `_STALE_LOG` above the job's duration, the excess is assumed to be exponential.
    """
    order = np.lexsort((past_s, past))
    key, value = past[order], past_s[order]
    low, high = np.searchsorted(key, now, "left"), np.searchsorted(key, now, "right")
    has_history = high - low >= 2
    middle = value[(low + (high - low) // 2)[has_history]]
    log_ratios = maths.log(middle / mean_s[has_history])
    above = log_ratios[log_ratios > _STALE_LOG] - _STALE_LOG
    if not len(above):
        return 0.0, 1.0
    mean = float(above.mean())
    share = len(above) / len(log_ratios) * float(maths.exp(_STALE_LOG / mean))
    return _short(min(share, 1.0)), _short(mean)


def _pair(numbers: F8) -> tuple[float, float]:
    if np.isnan(numbers).all():
        return 0.0, 0.0
    p50, p90 = np.nanquantile(numbers, [0.5, 0.9])
    return _short(float(p50)), _short(float(p90))


def _feature_values(columns: Columns, feature: str, n_jobs: int) -> tuple[float, float]:
    """Return a feature's number of values per job, and the share of variance that they explain.

    The variance is that of the logarithms of programs' mean task durations, between values.
    """
    features, column = columns.features, NAMES.index(feature)
    codes = np.concatenate(features.codes)
    mean_s = np.concatenate(
        [columns.stage_work / columns.stage_n_tasks, features.history_column("mean_task_s")]
    )
    valid = np.flatnonzero(
        (codes[:, column] >= 0) & (codes[:, NAMES.index("application")] >= 0) & (mean_s > 0)
    )
    if len(valid) == 0:
        return 1.0, 0.0
    pairs, program = np.unique(
        codes[valid][:, [NAMES.index("application"), column]], axis=0, return_inverse=True
    )
    program = program.reshape(-1)
    log_s = np.bincount(program, maths.log(mean_s[valid])) / np.bincount(program)
    values, value = np.unique(pairs[:, 1], return_inverse=True)
    residual = log_s - (np.bincount(value, log_s) / np.bincount(value))[value]
    whole = log_s - log_s.mean()
    freedom = max(len(log_s) - len(values), 1) / max(len(log_s) - 1, 1)
    within_ss, total_ss = float((residual * residual).sum()), float((whole * whole).sum())
    between = 1 - within_ss / max(total_ss, 1e-300) / freedom
    return _short(len(values) / n_jobs), _short(min(max(between, 0.0), 1.0))


def _together(work_s: F8) -> tuple[float, float, float]:
    """Return `Tables.together`: near jobs, their work and their groups, per heaviest job."""
    rows = np.sort(heaviest(work_s))
    group = group_rows(rows)
    near = np.bincount(group)[group] > 1
    return (
        _short(float(near.mean())),
        _short(float(work_s[rows[near]].sum() / work_s[rows].sum())),
        _short(len(np.unique(group[near])) / len(rows)),
    )


def _unlike_user(columns: Columns, rows: I8) -> float | None:
    """Return `Tables.unlike_user` of the jobs `rows`; None where no user is known."""
    features = columns.features
    user = NAMES.index("user")
    now, past = (side[:, user].astype(np.int64) for side in features.codes)
    mean_s = features.history_column("mean_task_s")
    has_history = (past >= 0) & (mean_s > 0)
    n_users = int(max(now.max(initial=0), past.max(initial=0))) + 1
    rows = rows[now[rows] >= 0]
    job_mean_s = columns.job_work[rows] / np.diff(columns.stage_task0)[rows]
    log_ratio = history_log_ratio(
        past[has_history], mean_s[has_history], np.ones(has_history.sum()), now[rows],
        job_mean_s, columns.job_work[rows], n_users,
    )  # fmt: skip
    return None if math.isnan(log_ratio) else _short(log_ratio)


def _per(count: int, jobs: I8) -> float:
    return _short(float(count) / len(jobs))


def _short(number: float) -> float:
    return float(f"{number:.4g}")
