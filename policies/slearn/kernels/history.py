"""Past jobs in groups of similar ones, by day, and predictions from them, as 3Sigma makes them.

`policies.slearn.history` has the method. A row is a stage of the workload, or after these a past
job. Group ``n_groups - 1`` is of all rows. A group has a span of slots, one for each row that it
may get. The mean task durations of its rows, in the order of their ends, fill the span; those of a
day that was summarised are replaced by the bins of their histogram. The days of the group have as
many slots, and the histogram of its window at most one more bin than the maximum.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from math import floor, inf, nan

import numpy as np

from policies.slearn.kernels.histogram import add_value, reduce_bins, statistic, unite
from policies.slearn.kernels.history_record import (
    ARRIVAL,
    BEGIN,
    BINS,
    BINS_END,
    BY_POINTS,
    DAY_ERRORS,
    DAY_S,
    ERROR,
    FALLS_BACK,
    FIRST_DAY,
    IS_KNOWN,
    N_ADDED,
    N_BINS,
    N_DAYS,
    N_ERRORS,
    N_IN,
    N_RANKED,
    N_ROWS,
    NUMBER,
    RANK,
    STATISTIC,
    SUMMARISED,
    TOTAL,
    TRUTH,
    UNKNOWN_QUEUE,
    VALUE,
)
from sim.base.jit import jit, part


@jit
def predict(s, row, now):
    """Estimate the mean task duration of a row on its arrival, s; NaN for unknown."""
    _catch_up(s, now)
    return _predict(s, row, now)


@jit
def predict_size(s, first, end, now):
    """Return the sum over rows of predicted mean task duration times number of tasks, s."""
    _catch_up(s, now)
    size = 0.0
    for row in range(first, end):
        size += _predict(s, row, now) * s.w_n_tasks[row]
    return size


@jit
def react(s, kinds, rows, times):
    """Learn stages that ended, and place jobs that arrived by their predicted sizes.

    Return the number of jobs in ``state_changed``. Thin jobs are predicted too, because the errors
    of these estimates count.
    """
    n_changed = 0
    for i in range(len(kinds)):
        row, now = rows[i], times[i]
        if kinds[i] != s.w_options[ARRIVAL]:
            if not s.w_leaks[row]:
                learn(s, row, s.w_mean_s[row], now)
            continue
        first, end = s.w_job_stage0[row], s.w_job_stage0[row + 1]
        size = predict_size(s, first, end, now)
        for stage in range(first, end):
            if s.w_leaks[stage]:
                learn(s, stage, s.w_mean_s[stage], now)
        if s.state_is_thin[row]:
            continue
        s.state_size[row] = size
        queue = s.w_options[UNKNOWN_QUEUE]
        if size == size:
            queue = 0
            while queue < len(s.w_threshold) and s.w_threshold[queue] <= size:
                queue += 1
        if queue > 0:  # jobs begin in the first queue
            s.state_queue[row] = queue
            s.state_changed[n_changed] = row
            n_changed += 1
    return n_changed


@jit
def learn(s, row, mean_task_s, now):
    """Add a row that ends now."""
    _catch_up(s, now)
    _learn(s, row, mean_task_s, now)


@part
def _catch_up(s, now):
    """Replay arrivals and ends of past jobs up to `now`."""
    i = s.state_next[0]
    first = len(s.w_group) - len(s.w_past_s)
    while i < len(s.w_time) and s.w_time[i] <= now:
        row, time_s = s.w_event[i], s.w_time[i]
        if row >= 0:
            _ask(s, row, time_s)
        else:
            _learn(s, -1 - row, s.w_past_s[-1 - row - first], time_s)
        i += 1
    s.state_next[0] = i


@part
def _predict(s, row, now):
    """Store the estimates of a row's groups; return that of the best group."""
    group = _ask(s, row, now)
    if group < 0:
        if s.w_options[FALLS_BACK] == 0:
            return nan
        group = len(s.state_group) - 1
        _open_window(s, group, now)
    return _statistic(s, group)


@part
def _ask(s, row, now):
    """Store the estimates of each group of a row; return the best group, -1 for none."""
    best, best_error = np.int64(-1), inf
    for f in range(s.w_group.shape[1]):
        group = np.int64(s.w_group[row, f])
        s.state_estimate[row, f, 0] = nan
        if group < 0 or s.state_group[group, N_ROWS] == 0:
            continue
        _open_window(s, group, now)
        if s.state_group[group, N_IN] == 0:
            continue
        if s.w_options[BY_POINTS]:
            for k in range(3):
                s.state_estimate[row, f, k] = s.state_points[group, 1 + k]
            n_estimates = s.state_n_points[group, 1]
        else:
            s.state_estimate[row, f, 0] = _statistic(s, group)
            n_estimates = s.state_group[group, N_ERRORS]
        rank = s.w_limits[1]
        if n_estimates > 0:
            rank = _points_error(s, group) if s.w_options[BY_POINTS] else _error(s, group)
        if rank < best_error or (best < 0 and rank == best_error):
            best, best_error = group, rank
    return best


@part
def _statistic(s, group):
    """Return the statistic of a group's window, which is up to date."""
    reg, window = s.state_group[group], s.state_window_s[group]
    if reg[IS_KNOWN] == 0:
        bin0 = s.w_bin0[group]
        centers, counts = s.state_center[bin0:], s.state_bin[bin0:]
        code = s.w_options[STATISTIC]
        window[VALUE] = statistic(code, centers, counts, reg[N_BINS], reg[N_IN], window[TOTAL])
        reg[IS_KNOWN] = 1
    return window[VALUE]


@part
def _error(s, group):
    """Return the relative error of a group's estimates, of which there are some."""
    window = s.state_window_s[group]
    if window[ERROR] == 0.0:
        return 0.0
    return window[ERROR] / window[TRUTH] if window[TRUTH] > 0.0 else inf


@part
def _points_error(s, group):
    """Return the relative error of a group's best point estimator, all of which have some."""
    points, n_points = s.state_points[group], s.state_n_points[group]
    n = n_points[1]
    if n_points[N_RANKED] == n:
        return points[RANK]
    n_points[N_RANKED], points[RANK] = n, inf
    if points[0] == 0.0:
        return inf
    first, end = s.w_recent0[group], s.w_recent0[group + 1]
    oldest = first + n % (end - first) if n > end - first else end
    mean, moving, start = 0.0, 0.0, 0.0
    for errors in (s.state_recent[oldest:end], s.state_recent[first : min(oldest, first + n)]):
        for row in range(len(errors)):
            mean += errors[row, 0]
            moving += errors[row, 1]
            start += errors[row, 2]
    length = min(n, end - first)
    best = min(min(mean / length, moving / length), start / length)
    points[RANK] = best / (points[0] / n)
    return points[RANK]


@part
def _open_window(s, group, now):
    """Bring the histogram of a group's window up to date."""
    reg, window, slot0 = s.state_group[group], s.state_window_s[group], s.w_slot0[group]
    first_number = np.int64(floor(now / DAY_S - s.w_limits[0]))
    if reg[FIRST_DAY] < reg[N_DAYS] and s.state_day[slot0 + reg[FIRST_DAY], NUMBER] < first_number:
        _drop_days(s, group, first_number)
    if reg[N_ADDED] < reg[N_ROWS]:
        bin0, bins, n = s.w_bin0[group], s.w_options[BINS], reg[N_BINS]
        centers, counts = s.state_center[bin0:], s.state_bin[bin0:]
        for slot in range(slot0 + reg[N_ADDED], slot0 + reg[N_ROWS]):
            n = add_value(centers, counts, n, bins, s.state_value[slot])
            window[TOTAL] += s.state_value[slot]
        reg[N_IN] += reg[N_ROWS] - reg[N_ADDED]
        reg[N_ADDED], reg[N_BINS], reg[IS_KNOWN] = reg[N_ROWS], n, 0


@part
def _drop_days(s, group, first_number):
    """Drop days before `first_number`; make the window's histogram that of the others."""
    reg, window, slot0 = s.state_group[group], s.state_window_s[group], s.w_slot0[group]
    while reg[FIRST_DAY] < reg[N_DAYS]:
        if s.state_day[slot0 + reg[FIRST_DAY], NUMBER] >= first_number:
            break
        reg[FIRST_DAY] += 1
    window[:] = 0.0
    reg[N_IN], reg[N_ERRORS], reg[IS_KNOWN] = 0, 0, 0
    n, n_lists = 0, 0
    for index in range(reg[FIRST_DAY], reg[N_DAYS]):
        day, day_s = s.state_day[slot0 + index], s.state_day_s[slot0 + index]
        is_last = index + 1 == reg[N_DAYS]
        end = slot0 + reg[N_ROWS] if is_last else s.state_day[slot0 + index + 1, BEGIN]
        _summarise(s, day, day_s, end)
        s.state_links[0, n_lists] = n
        n_lists += 1
        for slot in range(day[BEGIN], day[BINS_END]):
            s.state_centers[0, n], s.state_counts[0, n] = s.state_value[slot], s.state_count[slot]
            n += 1
        window[TOTAL] += day_s[TOTAL]
        window[ERROR] += day_s[ERROR]
        window[TRUTH] += day_s[TRUTH]
        reg[N_ERRORS] += day[DAY_ERRORS]
    side = 0
    while n_lists > 1:
        n = _unite(s, n, n_lists, side)
        n_lists, side = (n_lists + 1) // 2, 1 - side
    centers, counts = s.state_centers[side], s.state_counts[side]
    for i in range(n):
        reg[N_IN] += counts[i]
    n = reduce_bins(centers, counts, n, s.w_options[BINS], s.state_tree, s.state_links)
    bin0 = s.w_bin0[group]
    for i in range(n):
        s.state_center[bin0 + i], s.state_bin[bin0 + i] = centers[i], counts[i]
    reg[N_ADDED], reg[N_BINS] = reg[N_ROWS], n


@part
def _summarise(s, day, day_s, end):
    """Replace the values of a day, whose slots end at `end`, by the bins of their histogram."""
    if day[SUMMARISED] == end:
        return
    centers, counts = s.state_centers[1], s.state_counts[1]
    begin, n = day[BEGIN], day[BINS_END] - day[BEGIN]
    for i in range(n):
        centers[i], counts[i] = s.state_value[begin + i], s.state_count[begin + i]
    for slot in range(day[SUMMARISED], end):
        n = add_value(centers, counts, n, s.w_options[BINS], s.state_value[slot])
        day_s[TOTAL] += s.state_value[slot]
    for i in range(n):
        s.state_value[begin + i], s.state_count[begin + i] = centers[i], counts[i]
    day[SUMMARISED], day[BINS_END] = end, begin + n


@part
def _unite(s, n, n_lists, side):
    """Unite pairs of the lists of bins on one side of the scratch, on the other.

    The `n` bins are in `n_lists` lists, which begin at ``state_links``. Return the number of bins.
    """
    begins, out_begins = s.state_links[side], s.state_links[1 - side]
    out = 0
    for pair in range(0, n_lists, 2):
        begin = begins[pair]
        middle = begins[pair + 1] if pair + 1 < n_lists else n
        end = begins[pair + 2] if pair + 2 < n_lists else n
        out_begins[pair // 2] = out
        out += unite(
            s.state_centers[side, begin:middle], s.state_counts[side, begin:middle],
            s.state_centers[side, middle:end], s.state_counts[side, middle:end],
            s.state_centers[1 - side, out:], s.state_counts[1 - side, out:],
        )  # fmt: skip
    return out


@part
def _learn(s, row, mean_task_s, now):
    """Add a row that ends now, and the errors of its estimates, to its groups."""
    today = np.int64(floor(now / DAY_S))
    for f in range(s.w_group.shape[1]):
        group, expected = np.int64(s.w_group[row, f]), s.state_estimate[row, f, 0]
        if group < 0:
            continue
        if s.w_options[BY_POINTS]:
            _add_points(s, group, row, f, mean_task_s)
            expected = nan
        _add(s, group, today, mean_task_s, expected)
        s.state_estimate[row, f, 0] = nan
    _add(s, len(s.state_group) - 1, today, mean_task_s, nan)


@part
def _add(s, group, today, mean_task_s, expected):
    """Add a true mean task duration and its estimate, NaN for none, to a group."""
    reg, window, slot0 = s.state_group[group], s.state_window_s[group], s.w_slot0[group]
    slot = slot0 + reg[N_ROWS]
    if reg[N_DAYS] == reg[FIRST_DAY] or s.state_day[slot0 + reg[N_DAYS] - 1, NUMBER] != today:
        day = s.state_day[slot0 + reg[N_DAYS]]
        day[NUMBER], day[DAY_ERRORS] = today, 0
        day[BEGIN] = day[BINS_END] = day[SUMMARISED] = slot
        s.state_day_s[slot0 + reg[N_DAYS]] = 0.0
        reg[N_DAYS] += 1
    s.state_value[slot] = mean_task_s
    reg[N_ROWS] += 1
    if expected == expected:
        error, day = abs(expected - mean_task_s), slot0 + reg[N_DAYS] - 1
        reg[N_ERRORS] += 1
        window[ERROR] += error
        window[TRUTH] += mean_task_s
        s.state_day[day, DAY_ERRORS] += 1
        s.state_day_s[day, ERROR] += error
        s.state_day_s[day, TRUTH] += mean_task_s


@part
def _add_points(s, group, row, f, value):
    """Add a true value, and the errors of its estimates, to a group's point estimators."""
    points, n_points = s.state_points[group], s.state_n_points[group]
    if s.state_estimate[row, f, 0] == s.state_estimate[row, f, 0]:
        first, cap = s.w_recent0[group], s.w_recent0[group + 1] - s.w_recent0[group]
        for k in range(3):
            error = abs(s.state_estimate[row, f, k] - value)
            s.state_recent[first + n_points[1] % cap, k] = error
        n_points[1] += 1
        points[0] += value
    if n_points[0] == 0:
        points[1] = points[2] = points[3] = value
    n_points[0] += 1
    points[1] += (value - points[1]) / n_points[0]
    points[2] = 0.6 * points[2] + 0.4 * value
