"""Load in sliding windows of time (Jajoo et al., NSDI 2022, Table 5)."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8

WINDOW_S, STEP_S = 1000.0, 100.0
"""Length of a window, and from the begin of one to that of the next."""


def loads(
    submit_s: F8,
    work_s: F8,
    n_slots: float,
    window_s: float = WINDOW_S,
    step_s: float = STEP_S,
) -> F8:
    """Return the work that is submitted in each window, over what all slots could do in it.

    Windows begin at the first submission and at every `step_s` after it, up to the last one.
    """
    n = int((submit_s[-1] - submit_s[0]) // step_s) + 1
    begin = submit_s[0] + step_s * np.arange(n)
    total = np.concatenate([[0.0], np.cumsum(work_s)])
    low = np.searchsorted(submit_s, begin, side="left")
    high = np.searchsorted(submit_s, begin + window_s, side="left")
    found: F8 = (total[high] - total[low]) / (n_slots * window_s)
    return found


def statistics(load: F8) -> dict[str, float]:
    """Return the figures of the paper's Table 5, and the busiest window's load."""
    p50, p90 = np.quantile(load, [0.5, 0.9])
    return {
        "load_average": float(load.mean()),
        "load_p50": float(p50),
        "load_p90": float(p90),
        "load_max": float(load.max()),
    }
