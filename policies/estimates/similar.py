"""Similar jobs and stages, by which durations of one are expected of another.

The papers differ. DAGPS (MSR-TR-2016-19, §7.1) and Jockey (EuroSys 2012, §4.1) take earlier runs of
the template, stage by stage. Wing (OSDI 2020, §5) takes those of the template, and for an ad hoc
job, which has none, the ad hoc jobs of its user. SLearn (NSDI 2022, §4.2) takes jobs that share the
value of one of six features (`sim.workload.history.NAMES`).
"""

from __future__ import annotations

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
