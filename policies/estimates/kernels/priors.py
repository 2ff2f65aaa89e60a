"""Replay of finished runs into groups of similar ones, and the prior of a stage from them.

`policies.estimates.priors` has the method. A row is a stage of the workload, or after these a past
job. Group ``n_groups - 1`` is of all runs.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping
from math import inf, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policies.estimates.weights import KIND_WEIGHT, OWN_RECENT, RECENT, SHORTEST_S
from sim.base.jit import JIT, jit, part
from sim.base.maths.kernels.exponential import exp
from sim.base.maths.kernels.logarithm import log
from sim.base.record import field_arrays, record

FIELDS: tuple[tuple[str, str, int], ...] = (
    ("w_group", "i4", 2),  # [N, F] group of each row by feature; -1 for none
    ("w_time", "f8", 1),  # [2H] arrivals and ends of past jobs, ascending, s
    ("w_event", "i8", 1),  # [2H] the row that arrives, or -1 - the row that ends
    ("w_past_log", "f8", 1),  # [H] of past runs, after the rows of stages
    ("w_n_programs", "i8", 1),  # [1] number of first features of which one names a known program
    ("state_next", "i8", 1),  # [1] next event
    ("state_n", "i8", 1),  # [K] finished runs of each group
    ("state_runs", "f8", 2),  # [K, 5] mean and moving mean; errors: n, of the mean, of the moving
    ("state_kinds", "f8", 3),  # [2 (F + 1), 32, 3] errors of groups of a kind
    ("state_broad", "f8", 1),  # [3] errors of all runs
    ("state_status", "i1", 1),  # [N] 1: predicted on arrival; 2: of a new program
    ("state_kind", "i2", 2),  # [N, F + 1] logarithmic size of each predicting group; -1 for none
    ("state_predicted", "f8", 3),  # [N, F + 1, 2] its mean and moving mean on arrival
)
Priors = namedtuple("Priors", [name for name, _, _ in FIELDS])  # type: ignore[misc]
_pack = record("PriorState", FIELDS, ("w_",)) if JIT else None

KIND_DECAY, OWN_DECAY = 1.0 - 1.0 / RECENT, 1.0 - 1.0 / OWN_RECENT
MEAN, LAST, N_ERRORS = 0, 1, 2  # columns of state_runs


def make(inputs: Mapping[str, NDArray[Any]], n_groups: int) -> Any:
    """Lay out the record: `inputs` by name without ``w_``, and the state of no run."""
    n_rows, n_features = inputs["group"].shape
    predictions = (n_rows, n_features + 1)
    state = {
        "next": np.zeros(1, np.int64),
        "n": np.zeros(n_groups, np.int64),
        "runs": np.zeros((n_groups, 5)),
        "kinds": np.zeros((2 * (n_features + 1), 32, 3)),
        "broad": np.zeros(3),
        "status": np.zeros(n_rows, np.int8),
        "kind": np.zeros(predictions, np.int16),
        "predicted": np.zeros((*predictions, 2)),
    }
    arrays = field_arrays(FIELDS, inputs, state)
    return _pack(arrays) if _pack else Priors(*arrays)


@jit
def prior(s, row, now):
    """Return a stage's prior on its arrival: mean, variance, median; (0, inf, NaN) for unknown."""
    _catch_up(s, now)
    _ask(s, row)
    best, best_variance = 0.0, inf
    if s.state_broad[0] == 0.0:
        return best, best_variance, nan
    broad = s.state_broad[1] / s.state_broad[0]
    n_features = s.w_group.shape[1]
    is_new = s.state_status[row] == 2
    first_kind = n_features + 1 if is_new else 0
    for f in range(n_features + 1):
        size = s.state_kind[row, f]
        if size < 0:
            continue
        kind = s.state_kinds[first_kind + f, size]
        share = KIND_WEIGHT / (kind[0] + 1.0)
        by_mean, by_last, n = share * (kind[1] + broad), share * (kind[2] + broad), KIND_WEIGHT
        if not is_new:
            own = s.state_runs[_group(s, row, f)]
            by_mean, by_last = by_mean + own[N_ERRORS + 1], by_last + own[N_ERRORS + 2]
            n += own[N_ERRORS]
        if by_mean < best_variance * n:
            best, best_variance = s.state_predicted[row, f, MEAN], by_mean / n
        if by_last < best_variance * n:
            best, best_variance = s.state_predicted[row, f, LAST], by_last / n
    return best, best_variance, exp(best) if best_variance < inf else nan


@jit
def add(s, row, mean_task_s, now):
    """Add a finished stage; return the logarithm of its duration."""
    _catch_up(s, now)
    log_s = log(max(mean_task_s, SHORTEST_S))
    _learn(s, row, log_s)
    return log_s


@part
def _group(s, row, f):
    """Return the group of a row by a feature, or the group of all runs after the last one."""
    if f < s.w_group.shape[1]:
        return np.int64(s.w_group[row, f])
    return np.int64(len(s.state_n) - 1)


@part
def _catch_up(s, now):
    """Replay arrivals and ends of past jobs up to `now`."""
    i = s.state_next[0]
    first = len(s.w_group) - len(s.w_past_log)
    while i < len(s.w_time) and s.w_time[i] <= now:
        row = s.w_event[i]
        if row >= 0:
            _ask(s, row)
        else:
            _learn(s, -1 - row, s.w_past_log[-1 - row - first])
        i += 1
    s.state_next[0] = i


@part
def _ask(s, row):
    """Store the predictions of each group of a row on its arrival."""
    is_new = True
    for f in range(s.w_n_programs[0]):
        is_new &= _group(s, row, f) < 0 or s.state_n[_group(s, row, f)] == 0
    s.state_status[row] = 2 if is_new else 1
    for f in range(s.w_group.shape[1] + 1):
        group = _group(s, row, f)
        s.state_kind[row, f] = -1
        if group >= 0 and s.state_n[group] > 0:
            n, bits = s.state_n[group], 0
            while n > 0:
                n >>= 1
                bits += 1
            s.state_kind[row, f] = bits
            s.state_predicted[row, f, MEAN] = s.state_runs[group, MEAN]
            s.state_predicted[row, f, LAST] = s.state_runs[group, LAST]


@part
def _learn(s, row, log_s):
    """Add the errors of a row's predictions, then the row itself."""
    n_features = s.w_group.shape[1]
    status = s.state_status[row]
    s.state_status[row] = 0
    if status > 0:
        if s.state_kind[row, n_features] >= 0:
            predicted = s.state_predicted[row, n_features]
            _add_errors(s.state_broad, KIND_DECAY, log_s - predicted[MEAN], log_s - predicted[LAST])
        first_kind = n_features + 1 if status == 2 else 0
        for f in range(n_features + 1):
            size = s.state_kind[row, f]
            if size < 0:
                continue
            by_mean = log_s - s.state_predicted[row, f, MEAN]
            by_last = log_s - s.state_predicted[row, f, LAST]
            _add_errors(s.state_kinds[first_kind + f, size], KIND_DECAY, by_mean, by_last)
            if status == 1:
                own = s.state_runs[_group(s, row, f)]
                _add_errors(own[N_ERRORS:], OWN_DECAY, by_mean, by_last)
    for f in range(n_features + 1):
        group = _group(s, row, f)
        if group >= 0:
            s.state_n[group] += 1
            n, runs = s.state_n[group], s.state_runs[group]
            runs[MEAN] += (log_s - runs[MEAN]) / n
            runs[LAST] = log_s if n == 1 else (runs[LAST] + log_s) / 2


@part
def _add_errors(errors, decay, by_mean, by_last):
    """Add the error of each prediction to exponentially weighted sums of squares."""
    errors[0] = decay * errors[0] + 1.0
    errors[1] = decay * errors[1] + by_mean * by_mean
    errors[2] = decay * errors[2] + by_last * by_last
