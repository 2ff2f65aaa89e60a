"""Record of rows, groups, days and bins, for the kernels of `policies.slearn.kernels.history`."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import offsets
from sim.base.jit import JIT
from sim.base.record import field_arrays, record

FIELDS: tuple[tuple[str, str, int], ...] = (
    ("w_group", "i4", 2),  # [N, F] group of each row by feature; -1 for none
    ("w_time", "f8", 1),  # [2H] arrivals and ends of past jobs, ascending, s
    ("w_event", "i8", 1),  # [2H] the row that arrives, or -1 - the row that ends
    ("w_n_tasks", "i8", 1),  # [G] of stages
    ("w_past_s", "f8", 1),  # [H] mean task duration of past jobs, after the rows of stages
    ("w_options", "i8", 1),  # [6] see the registers below
    ("w_limits", "f8", 1),  # [2] window, days; rank of a group without past estimates
    ("w_slot0", "i8", 1),  # [K+1] slots of each group
    ("w_bin0", "i8", 1),  # [K+1] bins of each group's window
    ("w_recent0", "i8", 1),  # [K+1] errors of each group's point estimators
    # jobs that are placed
    ("w_job_stage0", "i8", 1),  # [J+1]
    ("w_mean_s", "f8", 1),  # [G] mean task duration, s
    ("w_leaks", "i1", 1),  # [G] is learnt on its job's arrival
    ("w_threshold", "f8", 1),  # [Q] upper limits of sizes by queue, s
    ("state_is_thin", "i1", 1),  # [J] it stays in the first queue
    ("state_size", "f8", 1),  # [J] estimates, s: the plan's
    ("state_queue", "i4", 1),  # [J] the plan's
    ("state_changed", "i4", 1),  # [J] jobs with another queue
    ("state_next", "i8", 1),  # [1] next event
    ("state_estimate", "f8", 3),  # [N, F, 1 or 3] estimates of each group on arrival; NaN for none
    # by slot
    ("state_value", "f8", 1),  # mean task duration, or center of a bin of a summarised day
    ("state_count", "i4", 1),  # number of rows in that bin
    ("state_day", "i8", 2),  # [., 5] day, see the registers below
    ("state_day_s", "f8", 2),  # [., 3] day: sum of values in bins, of errors, of true values
    # by group
    ("state_group", "i8", 2),  # [K, 8] see the registers below
    ("state_window_s", "f8", 2),  # [K, 4] sum of values, of errors, of true values; statistic
    ("state_points", "f8", 2),  # [K, 5] sum of true values; mean, moving mean, first value; error
    ("state_n_points", "i8", 2),  # [K, 3] rows; estimates; those that the error is of
    # by bin of a window
    ("state_center", "f8", 1),
    ("state_bin", "i8", 1),  # number of rows
    ("state_recent", "f8", 2),  # absolute errors of each point estimator, a ring for each group
    # scratch
    ("state_centers", "f8", 2),  # [2, .]
    ("state_counts", "i8", 2),
    ("state_tree", "f8", 1),
    ("state_links", "i8", 2),
)
Past = namedtuple("Past", [name for name, _, _ in FIELDS])  # type: ignore[misc]
_pack = record("PastState", FIELDS, ("w_",)) if JIT else None

# registers of w_options
STATISTIC, BINS, BY_POINTS, FALLS_BACK, UNKNOWN_QUEUE, ARRIVAL = range(6)
# registers of state_group: first day of the window; days; rows; those in the histogram; its bins;
# its rows; estimates; the statistic is that of the histogram
FIRST_DAY, N_DAYS, N_ROWS, N_ADDED, N_BINS, N_IN, N_ERRORS, IS_KNOWN = range(8)
# registers of state_day: its number; its first slot; ends of the slots with its bins, and of the
# rows that are in them; estimates
NUMBER, BEGIN, BINS_END, SUMMARISED, DAY_ERRORS = range(5)
# columns of state_points and state_n_points
RANK, N_RANKED = 4, 2
# columns of state_day_s and state_window_s
TOTAL, ERROR, TRUTH, VALUE = range(4)

DAY_S = 86_400.0
RECENT = 200
"""Number of estimates of each point estimator that a group is ranked by (3Sigma, EuroSys 2018)."""


def make(
    inputs: Mapping[str, NDArray[Any]],
    out: Mapping[str, NDArray[Any]],
    n_groups: int,
    bins: int,
    *,
    by_points: bool,
) -> Any:
    """Lay out the record: `inputs` by name without ``w_``, and the state of no row.

    `out` has the arrays of jobs that are placed, by name without ``state_``.
    """
    group = inputs["group"]
    n_rows, n_features = group.shape
    sizes = np.bincount(group[group >= 0], minlength=n_groups)
    sizes[n_groups - 1] = n_rows
    n_bins = np.minimum(sizes, bins + 1)
    n_recent = np.minimum(sizes, RECENT) if by_points else np.zeros(n_groups, np.int64)
    spans = {"slot0": offsets(sizes), "bin0": offsets(n_bins), "recent0": offsets(n_recent)}
    n_slots, longest = int(sizes.sum()), max(int(sizes.max()), bins + 1)
    state = {
        "next": np.zeros(1),
        "estimate": np.full((n_rows, n_features, 3 if by_points else 1), nan),
        "value": np.empty(n_slots),
        "count": np.empty(n_slots, np.int32),
        "day": np.empty((n_slots, 5), np.int64),
        "day_s": np.empty((n_slots, 3)),
        "group": np.zeros((n_groups, 8), np.int64),
        "window_s": np.zeros((n_groups, 4)),
        "points": np.zeros((n_groups if by_points else 0, 5)),
        "n_points": np.zeros((n_groups if by_points else 0, 3), np.int64),
        "center": np.empty(int(n_bins.sum())),
        "bin": np.empty(int(n_bins.sum()), np.int64),
        "recent": np.empty((int(n_recent.sum()), 3)),
        "centers": np.empty((2, longest)),
        "counts": np.empty((2, longest), np.int64),
        "tree": np.empty(4 * longest),
        "links": np.empty((2, longest), np.int64),
    }
    arrays = field_arrays(FIELDS, {**inputs, **spans}, {**state, **out})
    return _pack(arrays) if _pack else Past(*arrays)
