"""Moments of a log at which somebody waited: the words that they add to a request."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8
from sim.base.errors import InputError
from sim.workload.schema import NOW as NOW_KEY
from sim.workload.schema import RECORDED
from sim.workload.tables import column_or_default
from sim.workload.workload import Workload
from sweep.execution.inputs import Inputs
from sweep.grid import grid
from sweep.grid.overrides import quote
from sweep.grid.request import Request
from sweep.questions.starts.goal import ARRIVALS, AT, NOW, Starts

FIRST, LAST = 0.25, 0.95
"""Part of the log's submissions in whose time moments lie: before there is little past."""


def words_of_log(request: Request) -> list[str]:
    """Return the words that the log adds: its moments, and now; each with arrivals and without.

    Raises
    ------
    InputError
        If nobody waits now or at any moment.
    """
    if any(key in request.axes for key in (AT, ARRIVALS)):
        return []
    assert isinstance(request.goal, Starts)
    cell = grid.build(request).cells[0]
    inputs = Inputs(request.settings.results)
    workload = inputs.workload(inputs.workload_id(cell))
    at_s = [NOW] * (NOW_KEY in workload.meta)
    at_s += moments_of(workload, request.goal.moments).tolist()
    if not at_s:
        raise InputError(
            "the log has no queue of now, and nobody waited at the moments that were tried: put "
            "squeue.json beside sacct.txt, or export Workloads that wait, and read the site again",
            rule="no queue",
        )
    values = ",".join(f"{moment:g}" if moment < 0 else repr(moment) for moment in at_s)
    return [f"{AT}={values}", quote(ARRIVALS, True) + ",false"]


def moments_of(workload: Workload, n: int) -> F8:
    """Return so many moments of a log, or fewer, at which somebody waited, s."""
    submit_s = workload.columns.job_submit
    start_s = column_or_default(workload.jobs, RECORDED[0])
    span_s = float(submit_s[-1] - submit_s[0])
    tried = np.unique(np.round(submit_s[0] + span_s * np.linspace(FIRST, LAST, n), 0))
    waits = [bool(((submit_s <= t) & (start_s > t)).any()) for t in tried.tolist()]
    moments: F8 = tried[np.array(waits, bool)]
    return moments
