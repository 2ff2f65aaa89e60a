"""Knowledge of jobs for Wing's schedulers: predictions from the past, or the truth (§5, §6.3)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import pyarrow as pa

from sim.base import maths
from sim.base.arrays import F8, I4, Mask
from sim.base.errors import PolicyError
from sim.engine.plan import World
from sim.lineage.templates import medians
from sim.workload.tables import values

Knowledge = Literal["predicted", "oracle"]
Statistic = Literal["median", "mean", "geometric mean"]


def truth(world: World, policy: str, column: str) -> F8:
    """Return a column of true values of jobs, for oracles only, (J,)."""
    jobs = world.columns.features.jobs
    if column not in jobs.column_names:
        raise PolicyError(
            f"policy {policy} with knowledge=oracle needs the column {column!r} of jobs, which "
            "this workload does not have; use trace=cosmos or a workload built from logs "
            "(sim.lineage.workload), or set knowledge=predicted"
        )
    return values(jobs, column)


def lengths(world: World) -> F8:
    """Return the true run time of each job, for oracles only, s, (J,)."""
    c = world.columns
    return np.bincount(c.stage_job, c.stage_max_s, len(c.job_submit)).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Past:
    """Statistics of similar jobs in the workload's history.

    Similar to a job are the past jobs of its template. For an ad hoc job, or a template without
    past jobs, these are the past ad hoc jobs of its user; without any, all past ad hoc jobs.
    """

    world: World
    statistic: Statistic = "median"

    @cached_property
    def _template(self) -> tuple[I4, I4]:
        known = {n: i for i, n in enumerate(self.world.columns.template_names) if n}
        return self.world.columns.job_template, self._codes("template", known)

    @cached_property
    def _user(self) -> tuple[I4, I4]:
        known = {n: i for i, n in enumerate(self.world.columns.user_names)}
        return self.world.columns.job_user, self._codes("user", known)

    @cached_property
    def _ad_hoc(self) -> Mask:
        out: Mask = self._codes("template", {"": 0}) == 0
        return out

    def column(self, name: str) -> F8:
        """Return a column of the history, (H,); NaN where the history has no value."""
        history = self.world.columns.features.history
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

    def _codes(self, name: str, known: dict[str, int]) -> I4:
        """Return the codes of a column of the history; -1 for unknown names.

        A history without templates consists of ad hoc jobs.
        """
        history = self.world.columns.features.history
        if name not in history.column_names or not history.num_rows:
            return np.full(history.num_rows, known.get("", -1), dtype=np.int32)
        column = history[name].combine_chunks()
        if not pa.types.is_dictionary(column.type):  # a column beyond the schema
            column = column.dictionary_encode()
        lookup = np.array([known.get(n, -1) for n in column.dictionary.to_pylist()], np.int32)
        out: I4 = lookup[column.indices.to_numpy()]
        return out


def ratio(value: F8, compute: F8) -> F8:
    """Return value over resource-time; 0 where either is unknown or resource-time is 0."""
    out = np.zeros(len(value))
    np.divide(value, compute, out=out, where=(compute > 0) & ~np.isnan(value))
    return out
