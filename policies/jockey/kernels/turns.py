"""Ends of jobs that are served in given orders, and their utility (`policies.jockey.arbiter`)."""

from __future__ import annotations

import numpy as np

from sim.base.jit import jit, part


@jit
def finish_times(work_s, max_rate, orders, total, out_finish_s):
    """Set the end of each job in each order, (M, J) s: see `arbiter.finish_times_s`."""
    n_jobs = orders.shape[1]
    left, rate, ends_in = np.empty(n_jobs), np.empty(n_jobs), np.empty(n_jobs)
    runs = np.empty(n_jobs, np.bool_)
    for row in range(len(orders)):
        n_running, now = 0, 0.0
        for i in range(n_jobs):
            left[i] = work_s[orders[row, i]]
            runs[i] = left[i] > 0
            n_running += runs[i]
            out_finish_s[row, orders[row, i]] = 0.0
        while n_running > 0:
            demanded, step = 0.0, np.inf
            for i in range(n_jobs):
                demand = max_rate[orders[row, i]] if runs[i] else 0.0
                demanded += demand
                rate[i] = min(max(total - (demanded - demand), 0.0), demand)
                ends_in[i] = left[i] / rate[i] if rate[i] > 0 else np.inf
                step = min(step, ends_in[i])
            if step == np.inf:
                step = 0.0
            now += step
            for i in range(n_jobs):
                if runs[i] and ends_in[i] <= step * (1 + 1e-12):
                    out_finish_s[row, orders[row, i]] = now
                    runs[i] = False
                    n_running -= 1
                left[i] -= rate[i] * step


@jit
def expected_utility(late_s, left_s, slack, points_s, values, slope, out):
    """Set the mean utility of ends in ``left_s / slack``, ``left_s`` and ``left_s * slack``.

    From `late_s` after the deadline on; see `sim.workload.utility.Utility`. All are (n,).
    """
    for i in range(len(out)):
        late = late_s[i]
        total = _utility(late + left_s[i] / slack, points_s, values, slope)
        total += _utility(late + left_s[i], points_s, values, slope)
        total += _utility(late + left_s[i] * slack, points_s, values, slope)
        out[i] = total / 3


@part
def _utility(late, points_s, values, slope):
    """Interpolate as `sim.base.maths.interp` does, straight on beyond the last point."""
    last = len(points_s) - 1
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
