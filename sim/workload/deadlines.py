"""Which deadline of a job counts: it may change while the job runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sim.base.arrays import F8

if TYPE_CHECKING:
    from sim.workload.workload import Columns


def final_deadline_s(columns: Columns, took_s: F8) -> F8:
    """Return the deadline that held when each job ended, relative to its submission: (J,) s."""
    changed = took_s >= columns.job_new_deadline_at  # never where that is NaN
    deadline_s: F8 = np.where(changed, columns.job_new_deadline, columns.job_deadline)
    return deadline_s
