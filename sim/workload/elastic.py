"""Elastic jobs: speed-up curves, the pace at each width, and the least room that a job takes.

An elastic job is one stage of like tasks, which start and end together, in as many places as its
*width*: from ``jobs.width_min`` to the number of its tasks, its greatest width, at which it lasts
the duration of a task. At width w its *pace*, the part of that speed, is S(w) over S(greatest
width), where S is its speed-up curve, linear between its points.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sim.base.arrays import F8
from sim.base.errors import InputError

if TYPE_CHECKING:
    from sim.workload.columns import Columns

NOT_A_CURVE = "not a speed-up curve"
"""Rule of the error where the text of a curve can't be read."""


def curve_points(text: str) -> tuple[F8, F8]:
    """Return widths and speed-ups of the points of a curve, such as ``"1:1 4:3.2 16:9"``.

    Raises
    ------
    InputError
        Unless widths are whole and ascending, and speed-ups positive and never less than before.
    """
    try:
        pairs = [point.split(":") for point in text.split()]
        width = np.array([int(first) for first, _ in pairs], np.float64)
        value = np.array([float(second) for _, second in pairs], np.float64)
    except ValueError:
        width = value = np.zeros(0)
    is_curve = len(width) > 0 and width[0] >= 1 and value[0] > 0 and bool(np.isfinite(value).all())
    if not (is_curve and (np.diff(width) > 0).all() and (np.diff(value) >= 0).all()):
        raise InputError(
            f"the speed-up {text!r} is no curve: write points width:speed-up, such as '1:1 4:3.2', "
            "of ascending whole widths and positive speed-ups that never fall",
            rule=NOT_A_CURVE,
        )
    return width, value


def speedup(text: str, width: F8) -> F8:
    """Return the speed-up at each width, linear between the points; w for an empty text.

    Widths outside the curve take the nearest point's.
    """
    if not text:
        return width
    x, y = curve_points(text)
    if len(x) == 1:
        return np.full(len(width), y[0])
    k = np.clip(np.searchsorted(x, width, side="right") - 1, 0, len(x) - 2)
    part = (np.clip(width, x[0], x[-1]) - x[k]) / (x[k + 1] - x[k])
    value: F8 = np.minimum(y[k] + (y[k + 1] - y[k]) * part, y[k + 1])
    return value


def paces(text: str, width_max: int) -> F8:
    """Return the pace at the widths 0 to `width_max`: 0 at 0, 1 at the greatest."""
    value = speedup(text, np.arange(1.0, width_max + 1.0))
    return np.concatenate([[0.0], np.minimum(value / value[-1], 1.0)])


def has_elastic(columns: Columns) -> bool:
    """Check for an elastic job."""
    return bool(columns.job_width_min.any())


def least_work_shares(columns: Columns) -> F8:
    """Return the least room × time of each job, over that at its greatest width: (J,).

    1 for jobs that are not elastic.
    """
    share, known = np.ones(len(columns.job_submit)), {}
    for j in np.flatnonzero(columns.job_width_min).tolist():
        low, high = int(columns.job_width_min[j]), int(columns.job_n_tasks[j])
        key = low, high, int(columns.job_speedup[j])
        if key not in known:
            pace = paces(columns.speedups[key[2]], high)[low:]
            known[key] = float((np.arange(low, high + 1) / pace).min()) / high
        share[j] = known[key]
    return share
