"""Task variation and windowed load of a workload, as measured by Jajoo et al., NSDI 2022.

Variation over space and time follows §4.2 (Tables 3 and 4), load in windows Table 5.
"""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I4, I8, offsets, ranges
from sim.workload.workload import Workload

SAMPLED = 0.03
"""Share of a job's tasks that are sampled, as the paper assumes."""
WINDOW_S, STEP_S = 1000.0, 100.0
"""Length of a window, and time between the begins of two windows, s."""


def over_space(duration_s: F8, first: I8) -> F8:
    """Compute the coefficient of variation of a prediction from sampled tasks, "over space".

    It is σ₁ / (√(0.03 n) μ) for a job with n tasks of mean μ and standard deviation σ₁ (of the
    population). A job may have fewer tasks than a whole sample.
    """
    n = np.diff(first)
    cov = coefficient_of_variation(duration_s, first)
    with np.errstate(invalid="ignore"):
        out: F8 = np.where(n > 1, cov / np.sqrt(SAMPLED * n), np.nan)
    return out


def coefficient_of_variation(numbers: F8, first: I8) -> F8:
    """Compute σ/μ of each group of numbers, (J,); NaN where the mean is 0."""
    n = np.diff(first)
    mean = np.add.reduceat(numbers, first[:-1]) / n
    off = numbers - np.repeat(mean, n)
    variance = np.add.reduceat(off * off, first[:-1]) / n
    with np.errstate(invalid="ignore", divide="ignore"):
        out: F8 = np.sqrt(variance) / mean
    return out


class SimilarJobs:
    """Index of similar earlier jobs: for each job and feature, those with the same feature value.

    The earlier jobs ended within the window before the job. The index serves many value arrays.
    """

    def __init__(
        self, codes: I4, submit_s: F8, finish_s: F8, jobs: I8, window_s: float, min_jobs: int = 2
    ) -> None:
        self.n = len(jobs)
        self._sets: list[tuple[I8, I8, I8, I8, I8]] = []
        for feature in codes.T:
            order = np.lexsort((finish_s, feature))
            key, end = feature[order], finish_s[order]
            begin_of = np.searchsorted(key, feature[jobs], side="left")
            end_of = np.searchsorted(key, feature[jobs], side="right")
            low = _search_ranges(end, begin_of, end_of, submit_s[jobs] - window_s)
            high = _search_ranges(end, begin_of, end_of, submit_s[jobs], right=True)
            enough = np.flatnonzero((high - low >= min_jobs) & (feature[jobs] >= 0))
            first = np.flatnonzero(np.diff(key, prepend=key[:1] - 1))
            self._sets.append((order, first, enough, low[enough], high[enough]))

    def variation(self, value: F8) -> F8:
        """Compute the minimum σ/μ of `value` (N,) over the features, (K,); NaN: no similar jobs.

        This is the paper's variation "over time", if the value is a job's mean task duration.
        """
        smallest = np.full(self.n, np.inf)
        for order, first, jobs, low, high in self._sets:
            if len(jobs):
                smallest[jobs] = np.fmin(
                    smallest[jobs], _range_variations(value[order], first, low, high)
                )
        smallest[np.isinf(smallest)] = np.nan
        return smallest


def _range_variations(value: F8, first: I8, low: I8, high: I8) -> F8:
    """Compute σ/μ of each ``value[low:high]``, a range in one of the groups that begin at `first`.

    It uses prefix sums of the values standardised by their group's mean and deviation, so that
    large numbers don't cancel.
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
    range_mean = mean[group] + deviation[group] * moments[0]
    range_mean[range_mean <= 1e-9 * mean[group]] = np.nan
    with np.errstate(invalid="ignore", divide="ignore"):
        out: F8 = deviation[group] * np.sqrt(variance) / range_mean
    return out


def _search_ranges(sorted_: F8, begin: I8, end: I8, targets: F8, right: bool = False) -> I8:
    """Search each `wanted` in ``sorted_[begin:end]``, which is ascending; bisect all at once."""
    low, high = begin.astype(np.int64), end.astype(np.int64)
    while (open_ := low < high).any():
        middle = (low + high) // 2
        value = sorted_[np.minimum(middle, len(sorted_) - 1)]
        is_below = value <= targets if right else value < targets
        low, high = (
            np.where(open_ & is_below, middle + 1, low),
            np.where(open_ & ~is_below, middle, high),
        )
    return low


def jobs_over_space(workload: Workload) -> F8:
    """Compute `over_space` of each job's first stage, (J,)."""
    columns = workload.columns
    stage, task0 = columns.job_stage0[:-1], columns.stage_task0
    sizes = task0[stage + 1] - task0[stage]
    rows = ranges(task0[stage], task0[stage + 1])
    return over_space(columns.task_duration[rows], offsets(sizes))


def jobs_over_time(workload: Workload, window_s: float, stages: I8 | None = None) -> F8:
    """Compute the minimum variation among similar earlier jobs, "over time".

    Jobs of the workload and of its history count if they ended in time. A job of the workload ends
    when it would end without waiting.
    """
    columns = workload.columns
    now, past = columns.features.codes
    submit = columns.job_submit[columns.stage_job]
    mean = columns.stage_work / columns.stage_n_tasks
    submit = np.concatenate([submit, columns.features.history_column("submit_s")])
    finish = np.concatenate(
        [submit[: len(mean)] + columns.stage_max_s, columns.features.history_column("finish_s")]
    )
    selected = np.arange(len(mean)) if stages is None else stages
    similar = SimilarJobs(np.concatenate([now, past]), submit, finish, selected, window_s)
    return similar.variation(np.concatenate([mean, columns.features.history_column("mean_task_s")]))


def window_loads(submit_s: F8, work_s: F8, n_slots: float) -> F8:
    """Compute the work submitted in each window over the work that all slots could do in it.

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
    """Compute the statistics of the paper's Table 5, and the busiest window's load."""
    p50, p90 = np.quantile(load, [0.5, 0.9])
    return {
        "load_average": float(load.mean()),
        "load_p50": float(p50),
        "load_p90": float(p90),
        "load_max": float(load.max()),
    }
