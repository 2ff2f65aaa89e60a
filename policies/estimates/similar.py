"""Similar jobs and stages, by which durations of one are expected of another.

The papers differ. DAGPS (MSR-TR-2016-19, §7.1) and Jockey (EuroSys 2012, §4.1) take earlier runs of
the template, stage by stage. Wing (OSDI 2020, §5) takes those of the template, and for an ad hoc
job, which has none, the ad hoc jobs of its user. SLearn (NSDI 2022, §4.2) takes jobs that share the
value of one of six features (`sim.workload.history.NAMES`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from sim.base.arrays import I4, I8
from sim.workload.columns import Columns

AdHoc = Literal["alone", "user"]
"""Jobs similar to one without a template: none, or those of its user."""

NO_GROUP = np.iinfo(np.int64).max
"""The group of a past job that no job of the workload is similar to."""


def job_groups(columns: Columns, ad_hoc: AdHoc = "alone") -> I8:
    """Return the group of similar jobs of each job, (J,): its template, or below 0 if ad hoc."""
    template = columns.job_template.astype(np.int64)
    unnamed = np.array([name == "" for name in columns.template_names], dtype=bool)
    is_ad_hoc = unnamed[template] if len(unnamed) else np.ones(len(template), dtype=bool)
    own = np.arange(len(template)) if ad_hoc == "alone" else columns.job_user.astype(np.int64)
    return np.where(is_ad_hoc, -1 - own, template)


def stage_pairs(columns: Columns, ad_hoc: AdHoc = "alone") -> I8:
    """Return the group of each stage's job, and the stage's index in the job, (G, 2)."""
    place = np.arange(len(columns.stage_job)) - columns.job_stage0[columns.stage_job]
    return np.stack([job_groups(columns, ad_hoc)[columns.stage_job], place], axis=1)


@dataclass(frozen=True, eq=False)
class Classes:
    """Classes of stages: like groups of jobs, and the index in the job, as one ascending code."""

    code: I8  # (N,): group times `n_places`, plus index in the job
    n_places: int
    stage_class: I4  # class of each stage, (G,); -1 where no other stage can be of it

    def find(self, group: I8, place: I8) -> I8:
        """Return the classes of stages by the group of their job and their index in it."""
        known = (place < self.n_places) & (group != NO_GROUP)
        index = np.full(len(group), -1, dtype=np.int64)
        index[known] = find(self.code, group[known] * self.n_places + place[known])
        return index


def stage_classes(columns: Columns, ad_hoc: AdHoc = "alone") -> Classes:
    """Return the classes of stages by group and index; ad hoc jobs that are alone have none."""
    group = job_groups(columns, ad_hoc)[columns.stage_job]
    place = np.arange(len(group)) - columns.job_stage0[columns.stage_job]
    n_places = int(place.max(initial=0)) + 1
    stage_class = np.full(len(group), -1, dtype=np.int32)
    shared = group >= 0 if ad_hoc == "alone" else np.ones(len(group), dtype=bool)
    code, stage_class[shared] = np.unique(
        group[shared] * n_places + place[shared], return_inverse=True
    )
    return Classes(code, n_places, stage_class)


def find(sorted_values: I8, values: I8) -> I8:
    """Return the index of each value, -1 if it is absent."""
    if not len(sorted_values):
        return np.full(len(values), -1, dtype=np.int64)
    i = np.minimum(np.searchsorted(sorted_values, values), len(sorted_values) - 1)
    return np.where(sorted_values[i] == values, i, -1)


def past_groups(columns: Columns) -> I8:
    """Return the group of each job of the history, (H,), as `job_groups` with ``ad_hoc="user"``.

    A past job without a column ``template`` has its application as template.
    """
    history = columns.features.history
    column = "template" if "template" in history.column_names else "application"
    template = past_codes(history, column, {n: i for i, n in enumerate(columns.template_names)})
    is_ad_hoc = past_codes(history, column, {"": 0}) == 0
    user = past_codes(history, "user", {n: i for i, n in enumerate(columns.user_names)})
    group = np.where(template >= 0, template.astype(np.int64), NO_GROUP)
    return np.where(is_ad_hoc, np.where(user >= 0, -1 - user.astype(np.int64), NO_GROUP), group)


def past_codes(history: pa.Table, name: str, known: dict[str, int]) -> I4:
    """Return the codes of a column of the history, (H,); -1 for unknown names.

    A history without templates consists of ad hoc jobs.
    """
    if name not in history.column_names or not history.num_rows:
        return np.full(history.num_rows, known.get("", -1), dtype=np.int32)
    column = history[name].combine_chunks()
    if not pa.types.is_dictionary(column.type):  # a column beyond the schema
        column = column.dictionary_encode()
    lookup = np.array([known.get(n, -1) for n in column.dictionary.to_pylist()], np.int32)
    codes: I4 = lookup[column.indices.to_numpy()]
    return codes
