"""Statistics of similar past jobs: Wing's predictions (Chung et al., OSDI 2020, §5, §6.3)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import pyarrow as pa

from policies.estimates.similar import past_codes
from policies.wing.lineage.templates import medians
from sim.base import maths
from sim.base.arrays import F8, I4, I8, Mask
from sim.engine.plan import World
from sim.workload.tables import values

Statistic = Literal["median", "mean", "geometric mean"]


@dataclass(frozen=True, eq=False)
class Past:
    """Statistics of similar jobs in the workload's history.

    Similar to a job are the past jobs of its template. For an ad hoc job, or a template without
    past jobs, these are the past ad hoc jobs of its user; without any, all past ad hoc jobs.
    """

    world: World
    statistic: Statistic = "median"

    @property
    def _history(self) -> pa.Table:
        return self.world.columns.features.history

    @cached_property
    def _template(self) -> tuple[I4, I4]:
        known = {n: i for i, n in enumerate(self.world.columns.template_names) if n}
        return self.world.columns.job_template, past_codes(self._history, "template", known)

    @cached_property
    def _user(self) -> tuple[I4, I4]:
        known = {n: i for i, n in enumerate(self.world.columns.user_names)}
        return self.world.columns.job_user, past_codes(self._history, "user", known)

    @cached_property
    def _ad_hoc(self) -> Mask:
        out: Mask = past_codes(self._history, "template", {"": 0}) == 0
        return out

    def column(self, name: str) -> F8:
        """Return a column of the history, (H,); NaN where the history has no value."""
        history = self._history
        if name not in history.column_names:
            return np.full(history.num_rows, np.nan)
        return values(history, name).astype(np.float64)

    def by_template(self, past: F8) -> F8:
        """Return the statistic over past jobs of each job's template, (J,); NaN without any."""
        codes, past_codes = self._template
        return self._grouped(past, codes, past_codes, len(self.world.columns.template_names))

    def by_ad_hoc(self, past: F8) -> F8:
        """Return the statistic over past ad hoc jobs of each job's user, else over all, (J,)."""
        past = np.where(self._ad_hoc, past, np.nan)
        codes, past_codes = self._user
        out = self._grouped(past, codes, past_codes, len(self.world.columns.user_names))
        known = past[self._usable(past)]
        if len(known):
            all_ = np.zeros(len(known), dtype=np.int32)
            exact = self.statistic == "median"
            out[np.isnan(out)] = np.median(known) if exact else self._means(known, all_, 1)[0]
        return out

    def expected(self, past: F8) -> F8:
        """Return the statistic over jobs similar to each job, (J,); NaN without any past."""
        by_template = self.by_template(past)
        return np.where(np.isnan(by_template), self.by_ad_hoc(past), by_template)

    def expect(self, stages: I8, now: float = 0.0) -> F8:
        """See `policies.estimates.durations.Durations`; all stages of a job are alike."""
        expected_s: F8 = self._mean_task_s[self.world.columns.stage_job[stages]]
        return expected_s

    def learn(self, stages: I8, work_s: F8, now: float = 0.0) -> None:
        """Learn nothing: Wing reads the logs of the time before the run."""

    @cached_property
    def _mean_task_s(self) -> F8:
        return self.expected(self.column("mean_task_s"))

    def _grouped(self, past: F8, codes: I4, past_codes: I4, n: int) -> F8:
        rows = np.flatnonzero((past_codes >= 0) & self._usable(past))
        aggregate = medians if self.statistic == "median" else self._means
        return (
            aggregate(past[rows], past_codes[rows], n)[codes] if n else np.full(len(codes), np.nan)
        )

    def _usable(self, past: F8) -> Mask:
        """Return a mask of known values; a geometric mean takes only positive ones."""
        return past > 0 if self.statistic == "geometric mean" else ~np.isnan(past)

    def _means(self, past: F8, group: I4, n: int) -> F8:
        """Return the mean of each group, (n,); NaN for an empty one."""
        logs = self.statistic == "geometric mean"
        count, out = np.bincount(group, minlength=n), np.full(n, np.nan)
        total = np.bincount(group, maths.log(past) if logs else past, n)
        np.divide(total, count, out=out, where=count > 0)
        return maths.exp(out) if logs else out
