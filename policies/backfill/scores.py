"""Scores of waiting batch jobs by requested time, processors and wait; the smallest goes first.

The formulas of WFP3, UNICEF and F1 to F4 are as in the simulator of RLScheduler (Zhang et al., SC
2020; github.com/DIR-LAB/deep-batch-scheduler), which compares with them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.base import maths
from sim.base.arrays import F8, I4
from sim.engine.plan import Batch, Event, Plan, World

LN_2, LN_10 = 0.6931471805599453, 2.302585092994046
ZERO = 1e-15
"""Binary logarithm of 1 processor, by which UNICEF divides."""
MANY = 32
"""Number of jobs that are over, beyond that of others, from which on they are left out."""
_ARRIVED = int(Event.JOB_ARRIVED)


class Requests(NamedTuple):
    """Requests of jobs, (n,) each: run time, s, processors, submission and wait, s."""

    run_s: F8
    processors: F8
    submit_s: F8  # since the first submission
    wait_s: F8


@dataclass(frozen=True)
class Score:
    """A score, and whether it changes while a job waits."""

    formula: Callable[[Requests], F8]
    changes: bool = False


def _log10(x: F8) -> F8:
    logarithm: F8 = maths.log(np.maximum(x, 1.0)) / LN_10  # times below 1 s count as 1 s
    return logarithm


def _wfp3(job: Requests) -> F8:
    """Return -(wait / run time)^3 · processors."""
    ratio = job.wait_s / job.run_s
    return -(ratio * ratio * ratio) * job.processors


def _unicef(job: Requests) -> F8:
    """Return -wait / (log2(processors) · run time)."""
    logarithm = np.maximum(maths.log(job.processors) / LN_2, ZERO)
    score: F8 = -job.wait_s / (logarithm * job.run_s)
    return score


SCORES: Mapping[str, Score] = {
    "spf": Score(lambda job: job.run_s),
    "saf": Score(lambda job: job.run_s * job.processors),
    "exp": Score(lambda job: -(job.wait_s + job.run_s) / job.run_s, changes=True),
    "wfp3": Score(_wfp3, changes=True),
    "unicef": Score(_unicef, changes=True),
    "f1": Score(lambda job: _log10(job.run_s) * job.processors + 870 * _log10(job.submit_s)),
    "f2": Score(lambda job: np.sqrt(job.run_s) * job.processors + 25_600 * _log10(job.submit_s)),
    "f3": Score(lambda job: job.run_s * job.processors + 6_860_000 * _log10(job.submit_s)),
    "f4": Score(lambda job: job.run_s * np.sqrt(job.processors) + 530_000 * _log10(job.submit_s)),
}


class Waiting:
    """Jobs that are submitted and not over, and what scores are made of.

    Parameters
    ----------
    run_s : (J,) float64
        Run times by which jobs are scored, those of the plan.
    processors : (J,) float64
    submit_s : (J,) float64
        Submissions, of which the first is time 0 of scores, s.
    history : object
        State of predictions, None for none.
    """

    def __init__(self, run_s: F8, processors: F8, submit_s: F8, history: object) -> None:
        self.run_s, self.processors, self.history = run_s, processors, history
        self.first_s = float(submit_s.min(initial=np.inf))
        self._rows, self._n = np.zeros(len(run_s), np.int32), 0  # by submission

    def follow(self, batch: Batch) -> None:
        """Take the jobs that came."""
        for kind, j in zip(batch.kind.tolist(), batch.row.tolist(), strict=True):
            if kind == _ARRIVED:
                self._rows[self._n] = j
                self._n += 1

    def rows(self, view: Mapping[str, NDArray[Any]]) -> I4:
        """Return the jobs that wait, of which no task runs."""
        rows = self._rows[: self._n]
        left = view["left"].take(rows)
        waiting: I4 = rows[left > view["running"].take(rows)]
        if self._n > 2 * len(waiting) + MANY:
            present = rows[left > 0]
            self._n = len(present)
            self._rows[: self._n] = present
        return waiting

    def set_keys(self, name: str, promote_s: float, now: float, world: World, plan: Plan) -> int:
        """Set the keys of waiting jobs, and when the next has waited for `promote_s`, if above 0.

        Those that have go first, in the order of submission. Return how many jobs wait.
        """
        rows = self.rows(world.view)
        if len(rows) < 2:
            return len(rows)
        submit_s = world.view["submit"].take(rows)
        key = self.scores(name, rows, submit_s, now)
        if promote_s:
            due_s = submit_s + promote_s
            key[due_s <= now] = -np.inf
            plan.timer_s = float(due_s[due_s > now].min(initial=np.inf))
        plan.jobs["key"][rows] = key
        plan.note_jobs(rows)
        return len(rows)

    def scores(self, name: str, rows: I4 | slice, submit_s: F8, now: F8 | float) -> F8:
        """Return the scores of some jobs, submitted at some times, at a time."""
        since_s, wait_s = submit_s - self.first_s, now - submit_s
        return SCORES[name].formula(
            Requests(self.run_s[rows], self.processors[rows], since_s, wait_s)
        )
