"""Records of stopped attempts: runs of tasks that failed, were stopped, or are no longer there."""

from __future__ import annotations

from dataclasses import dataclass

from sim.base.arrays import F8, I1, I4

REASONS = (
    *("failed", "input lost", "output lost", "machine lost", "evicted"),
    *("gang stopped", "timeout", "preempted", "cancelled", "resized"),
)
"""Meaning of each reason: the attempt failed; it found the output of a parent's task lost; it ran
to its end, but its output was lost and is made again; its machine was lost; it ran beyond the
limit of its job, and another job needed the room; another task of its gang was stopped so; its
job was ended at its limit of run time; it was preempted for another job; its job was, and was
cancelled; or its job, which is elastic, gave back its place, and kept the work."""


@dataclass(frozen=True, eq=False)
class StoppedAttempts:
    """Attempts of tasks that had to run again, or never completed, N of them, by end and task.

    An attempt that was stopped before it ran is none.

    Attributes
    ----------
    task : (N,) int32
        Row of the task.
    machine : (N,) int32
        The machine it ran on.
    start_s, stop_s : (N,) float64
        Start and end of the attempt, s.
    reason : (N,) int8
        Index in `REASONS`.
    kept_s : (N,) float64
        Part of its time whose work its checkpoints saved, or which was suspended, s. If the task
        fails later, it begins anew, and that is lost, too.
    """

    task: I4
    machine: I4
    start_s: F8
    stop_s: F8
    reason: I1
    kept_s: F8
