"""Expected durations of tasks: the protocol of estimators, and the simple ones.

`Truth` is for oracles, `Declared` what users request, `Recorded` the mean of recorded runs.
"""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

import numpy as np

from sim.base.arrays import F8, I8
from sim.base.errors import InputError
from sim.workload.columns import Columns
from sim.workload.paths import stage_depth

ENDLESS_S = 365 * 86_400.0
"""Expected run time of a job without a limit, s: a year, as in Slurm's backfill thread."""


class Durations(Protocol):
    """Estimator of the mean duration of a stage's tasks, s; NaN for unknown."""

    def expect(self, stages: I8, now: float) -> F8:
        """Return the expected task duration of each of `stages` (rows) at time `now`: (n,) s."""

    def learn(self, stages: I8, work_s: F8, now: float) -> None:
        """Add `stages` that have finished, with the total durations of their tasks: (n,) s."""


class Truth:
    """The true mean of each stage, for oracles."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    @cached_property
    def _mean_s(self) -> F8:
        """Means by stage; read on first use, because a policy may turn out to need none."""
        columns = self._columns
        is_uniform = columns.stage_min_s == columns.stage_max_s
        mean_s = columns.stage_work / columns.stage_n_tasks
        return np.where(is_uniform, columns.stage_max_s, mean_s)

    def expect(self, stages: I8, now: float = 0.0) -> F8:
        """See `Durations`."""
        expected_s: F8 = self._mean_s[stages]
        return expected_s

    def learn(self, stages: I8, work_s: F8, now: float = 0.0) -> None:
        """Learn nothing: all is known."""


class Declared:
    """The requested run time of a job, in equal parts for each stage of its longest chain.

    So the job would take as long as requested if all its tasks ran at once.

    Raises
    ------
    InputError
        If no job has a request.
    """

    def __init__(self, columns: Columns) -> None:
        depth = stage_depth(columns)
        n_levels = np.ones(len(columns.job_submit))
        np.maximum.at(n_levels, columns.stage_job, depth + 1.0)
        self._task_s = (requested_s(columns) / n_levels)[columns.stage_job]

    def expect(self, stages: I8, now: float = 0.0) -> F8:
        """See `Durations`."""
        expected_s: F8 = self._task_s[stages]
        return expected_s

    def learn(self, stages: I8, work_s: F8, now: float = 0.0) -> None:
        """Learn nothing: a request stays."""


class Recorded:
    """Mean duration of the recorded tasks of the same stage of the template (``training``).

    The mean of the samples of Jockey's profile (`policies.estimates.profile.Profile`),
    initialisation included; NaN for a stage without any.
    """

    def __init__(self, columns: Columns) -> None:
        training, n_templates = columns.training, len(columns.template_names)
        place = np.arange(len(columns.stage_job)) - columns.job_stage0[columns.stage_job]
        stage = training.column("stage").astype(np.int64)
        n_places = int(max(place.max(initial=0), stage.max(initial=0))) + 1
        known = training.template >= 0
        cell = (training.template * n_places + stage)[known]
        task_s = (training.column("finish_s") - training.column("start_s"))[known]
        count = np.bincount(cell, minlength=n_templates * n_places)
        mean_s = np.full(len(count), np.nan)
        np.divide(np.bincount(cell, task_s, len(count)), count, out=mean_s, where=count > 0)
        self._mean_s = mean_s[columns.job_template[columns.stage_job] * n_places + place]

    def expect(self, stages: I8, now: float = 0.0) -> F8:
        """See `Durations`."""
        expected_s: F8 = self._mean_s[stages]
        return expected_s

    def learn(self, stages: I8, work_s: F8, now: float = 0.0) -> None:
        """Learn nothing: the recorded runs are all before the run."""


def requested_s(columns: Columns) -> F8:
    """Return requested run times, (J,) s; a job without one is taken to be endless.

    It counts as `ENDLESS_S`, or the maximum request if that is longer.

    Raises
    ------
    InputError
        If no job has a request.
    """
    requested = columns.job_requested
    known = np.isfinite(requested)
    if len(requested) and not known.any():
        raise InputError(
            "requested run times are needed (column requested_s of jobs, in which 0 is no limit), "
            "and no job has one; set policy.knowledge=true, or use a trace with requested times "
            "(swf, sacct, column limit_s of a table)",
            rule="no requested time",
        )
    return np.where(known, requested, np.max(requested[known], initial=ENDLESS_S))
