"""What Jajoo et al., NSDI 2022, measure of a workload: how much tasks vary, and how load does.

Variation over space and time is that of §4.2 (Tables 3 and 4), load in windows that of Table 5.
"""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I4, I8, offsets, ranges
from sim.workload.workload import Workload

SAMPLED = 0.03
"""Share of a job's tasks that the paper assumes are sampled."""
WINDOW_S, STEP_S = 1000.0, 100.0
"""Length of a window, and from the begin of one to that of the next."""


def over_space(duration_s: F8, first: I8) -> F8:
    """Return the coefficient of variation of what sampling a few tasks predicts.

    That is σ₁ / (√(0.03 n) μ) of a job with n tasks of mean μ and standard deviation σ₁ (of the
    population), "over space". A job need not have the tasks for a whole sample.
    """
    n = np.diff(first)
    cov = spread(duration_s, first)
    with np.errstate(invalid="ignore"):
        variation: F8 = np.where(n > 1, cov / np.sqrt(SAMPLED * n), np.nan)
    return variation


def spread(numbers: F8, first: I8) -> F8:
    """Return σ/μ of each group of numbers, (J,); NaN where the mean is 0."""
    n = np.diff(first)
    mean = np.add.reduceat(numbers, first[:-1]) / n
    off = numbers - np.repeat(mean, n)
    variance = np.add.reduceat(off * off, first[:-1]) / n
    with np.errstate(invalid="ignore", divide="ignore"):
        variation: F8 = np.sqrt(variance) / mean
    return variation


class Similar:
    """For some jobs, the earlier ones that have each feature in common with them.

    They have ended within the window before the job; found once for many durations.
    """

    def __init__(
        self, codes: I4, submit_s: F8, finish_s: F8, of: I8, window_s: float, least: int = 2
    ) -> None:
        self.n = len(of)
        self._sets: list[tuple[I8, I8, I8, I8, I8]] = []
        for feature in codes.T:
            order = np.lexsort((finish_s, feature))
            key, end = feature[order], finish_s[order]
            begin_of = np.searchsorted(key, feature[of], side="left")
            end_of = np.searchsorted(key, feature[of], side="right")
            low = _search(end, begin_of, end_of, submit_s[of] - window_s)
            high = _search(end, begin_of, end_of, submit_s[of], right=True)
            has = np.flatnonzero((high - low >= least) & (feature[of] >= 0))
            first = np.flatnonzero(np.diff(key, prepend=key[:1] - 1))
            self._sets.append((order, first, has, low[has], high[has]))

    def variation(self, value: F8) -> F8:
        """Return the least σ/μ of `value` (N,) over the features, (K,); NaN where none has any.

        This is the paper's variation "over time", with a job's mean task duration for a value.
        """
        least = np.full(self.n, np.inf)
        for order, first, has, low, high in self._sets:
            if len(has):
                least[has] = np.fmin(least[has], _spreads(value[order], first, low, high))
        least[np.isinf(least)] = np.nan
        return least


def _spreads(value: F8, first: I8, low: I8, high: I8) -> F8:
    """Return σ/μ of each ``value[low:high]``, a part of one of the groups that begin at `first`.

    By prefix sums of what is left of the values once their group's mean and deviation are taken
    out, so that nothing large cancels.
    """
    sizes = np.diff(first, append=len(value))
    mean = np.add.reduceat(value, first) / sizes
    off = value - np.repeat(mean, sizes)
    deviation = np.sqrt(np.add.reduceat(off * off, first) / sizes)
    off /= np.repeat(np.where(deviation > 0, deviation, 1.0), sizes)
    group = np.searchsorted(first, low, side="right") - 1
    n = high - low
    moments = []
    for terms in (off, off * off):
        total = np.concatenate([[0.0], np.cumsum(terms)])
        moments.append((total[high] - total[low]) / n)
    variance = np.maximum(moments[1] - moments[0] ** 2, 0.0)
    own_mean = mean[group] + deviation[group] * moments[0]
    own_mean[own_mean <= 1e-9 * mean[group]] = np.nan
    with np.errstate(invalid="ignore", divide="ignore"):
        variation: F8 = deviation[group] * np.sqrt(variance) / own_mean
    return variation


def _search(sorted_: F8, begin: I8, end: I8, wanted: F8, right: bool = False) -> I8:
    """Search each `wanted` in ``sorted_[begin:end]``, which is ascending; bisect all at once."""
    low, high = begin.astype(np.int64), end.astype(np.int64)
    while (open_ := low < high).any():
        middle = (low + high) // 2
        at = sorted_[np.minimum(middle, len(sorted_) - 1)]
        less = at <= wanted if right else at < wanted
        low, high = np.where(open_ & less, middle + 1, low), np.where(open_ & ~less, middle, high)
    return low


def jobs_over_space(workload: Workload) -> F8:
    """Return `over_space` of each job's first stage, (J,)."""
    columns = workload.columns
    stage, task0 = columns.job_stage0[:-1], columns.stage_task0
    sizes = task0[stage + 1] - task0[stage]
    rows = ranges(task0[stage], task0[stage + 1])
    return over_space(columns.task_duration[rows], offsets(sizes))


def jobs_over_time(workload: Workload, window_s: float, of: I8 | None = None) -> F8:
    """Return the least variation among similar earlier jobs, "over time".

    Jobs of the workload and of its history count as long as they ended in time. A job of the
    workload is taken to end when it would if it never waited.
    """
    columns = workload.columns
    now, past = columns.features.codes
    submit = columns.job_submit[columns.stage_job]
    mean = columns.stage_work / columns.stage_n_tasks
    submit = np.concatenate([submit, columns.features.history_column("submit_s")])
    finish = np.concatenate(
        [submit[: len(mean)] + columns.stage_max_s, columns.features.history_column("finish_s")]
    )
    similar = Similar(
        np.concatenate([now, past]), submit, finish, np.arange(len(mean)) if of is None else of,
        window_s,
    )  # fmt: skip
    return similar.variation(np.concatenate([mean, columns.features.history_column("mean_task_s")]))


def window_loads(submit_s: F8, work_s: F8, n_slots: float) -> F8:
    """Return the work that is submitted in each window, over what all slots could do in it.

    Windows begin at the first submission and at every `STEP_S` after it, up to the last one.
    """
    n = int((submit_s[-1] - submit_s[0]) // STEP_S) + 1
    begin = submit_s[0] + STEP_S * np.arange(n)
    total = np.concatenate([[0.0], np.cumsum(work_s)])
    low = np.searchsorted(submit_s, begin, side="left")
    high = np.searchsorted(submit_s, begin + WINDOW_S, side="left")
    load: F8 = (total[high] - total[low]) / (n_slots * WINDOW_S)
    return load


def load_statistics(load: F8) -> dict[str, float]:
    """Return the figures of the paper's Table 5, and the busiest window's load."""
    p50, p90 = np.quantile(load, [0.5, 0.9])
    return {
        "load_average": float(load.mean()),
        "load_p50": float(p50),
        "load_p90": float(p90),
        "load_max": float(load.max()),
    }
