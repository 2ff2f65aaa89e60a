"""Ends of jobs that are served in given orders, and their utility (`policies.jockey.arbiter`)."""

from __future__ import annotations

import numpy as np

from sim.base.jit import jit, part


@jit
def finish_times(work_s, max_rate, orders, total, out_finish_s):
    """Set the end of each job in each order, (M, J) s: see `arbiter.finish_times_s`."""
    n_jobs = orders.shape[1]
    job, left = np.empty(n_jobs, np.int64), np.empty(n_jobs)  # those left, in order
    rate, ends_in = np.empty(n_jobs), np.empty(n_jobs)
    for row in range(len(orders)):
        n, now = 0, 0.0
        for i in range(n_jobs):
            j = orders[row, i]
            out_finish_s[row, j] = 0.0
            if work_s[j] > 0:
                job[n], left[n] = j, work_s[j]
                n += 1
        while n > 0:
            demanded, step, n_running = 0.0, np.inf, 0
            for i in range(n):
                if demanded > total * (1 + 1e-12):  # those after it have no tokens
                    break
                demand = max_rate[job[i]]
                demanded += demand
                rate[i] = min(max(total - (demanded - demand), 0.0), demand)
                ends_in[i] = left[i] / rate[i] if rate[i] > 0 else np.inf
                step = min(step, ends_in[i])
                n_running += 1
            if step == np.inf:
                step = 0.0
            now += step
            n_left = 0
            for i in range(n):
                if i < n_running:
                    if ends_in[i] <= step * (1 + 1e-12):
                        out_finish_s[row, job[i]] = now
                        continue
                    left[i] -= rate[i] * step
                job[n_left], left[n_left] = job[i], left[i]
                n_left += 1
            n = n_left


@jit
def expected_utility(late_s, left_s, slack, points_s, values, slope, out):
    """Set the mean utility, (M, J), of ends in ``left_s / slack``, ``left_s``, ``left_s * slack``.

    `left_s` (M, J) are times left, s, from `late_s` (J,) s after the deadline on. The utility is
    piecewise linear, with `values` (P,) at `points_s` (P,) after the deadline and `slope` a second
    beyond; see `sim.workload.utility.Utility`. `out` (M, J) is overwritten.
    """
    for row in range(len(out)):
        for i in range(len(late_s)):
            late, left = late_s[i], left_s[row, i]
            if row > 0 and left == left_s[row - 1, i]:  # orders that follow each other are alike
                out[row, i] = out[row - 1, i]
                continue
            total = _utility(late + left / slack, points_s, values, slope)
            total += _utility(late + left, points_s, values, slope)
            total += _utility(late + left * slack, points_s, values, slope)
            out[row, i] = total / 3


@part
def _utility(late, points_s, values, slope):
    """Interpolate as `sim.base.maths.interp` does, straight on beyond the last point."""
    last = len(points_s) - 1
    if late <= points_s[0]:
        return values[0]
    x = min(max(late, points_s[0]), points_s[last])
    k = 0
    while k < last - 1 and points_s[k + 1] <= x:
        k += 1
    share = (x - points_s[k]) / (points_s[k + 1] - points_s[k])
    value = values[k] + share * (values[k + 1] - values[k])
    if x == points_s[k + 1]:
        value = values[k + 1]
    beyond = max(late - points_s[last], 0.0)
    return value + (beyond * slope if beyond > 0 else 0.0)
