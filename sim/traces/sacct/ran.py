"""Records that become no job: they never ran, had not ended, or can't be read."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import Mask
from sim.traces.sacct.clock import Times
from sim.traces.sacct.columns import Log, States
from sim.traces.sacct.resources import ALLOCATED, Resources

WAITING = "censored: waiting when the log was written"
RUNNING = "censored: not ended when the log was written"
NEVER_STARTED = "never started"
WAITING_STATES = ("PENDING", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD")
RUNNING_STATES = (
    "RUNNING", "SUSPENDED", "CONFIGURING", "COMPLETING", "STOPPED", "SIGNALING", "STAGE_OUT",
)  # fmt: skip
NOT_ENDED = (*WAITING_STATES, *RUNNING_STATES)


def reasons(log: Log, times: Times, resources: Resources) -> dict[str, Mask]:
    """Return, for each reason why a record is no job that ran, the records that it holds for."""
    states = States(log)
    is_running = states.among(*RUNNING_STATES)
    if "End" in log:
        is_running |= states.among("") & np.isnan(times.end_s) & ~np.isnan(times.start_s)
    is_cancelled = states.among("CANCELLED")
    with np.errstate(invalid="ignore"):
        has_run, has_no_time = times.run_s > 0, times.run_s < 0
    had_nothing = resources.is_empty & (~has_run | is_cancelled)
    if not {*ALLOCATED} & log.keys():
        had_nothing |= is_cancelled & ~has_run
    return {
        WAITING: states.among(*WAITING_STATES),
        RUNNING: is_running,
        "submission unknown": np.isnan(times.submit_s),
        NEVER_STARTED: np.isnan(times.start_s) | had_nothing,
        "run time unknown": np.isnan(times.run_s),
        "ends before it starts": has_no_time,
    }
