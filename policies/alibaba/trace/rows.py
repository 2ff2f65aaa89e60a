"""Validate rows of ``batch_task`` block by block, and parse the dependencies in their names.

``R4_2_3`` is task 4 of its job and waits for tasks 2 and 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sim.base.arrays import F8, I4, I8, Mask
from sim.base.reading import Account, count_rule

_DAG_NAME = r"^[A-Za-z]+(?P<number>[0-9]{1,9})(?P<parents>(?:_(?:Stg)?[0-9]{1,9})*)_?$"

ZERO_BECOMES_S = 0.5
"""Duration of stages of 0 s: the trace counts whole seconds, so their mean is half a second."""
COLUMNS = (
    "kept", "number", "n_tasks", "start_s", "duration_s", "span_s", "cpu", "mem", "guessed"
)  # fmt: skip

GUESSED = {"instance_num": 1, "plan_cpu": 2, "plan_mem": 4}
"""Bits of ``guessed``, one for each number of a row that can be missing and is filled in."""
GUESSED_DURATION = 8
"""The same for a duration: of a stage of 0 s, or that never ended."""
BY_OPTION = ("not Terminated",)
CENSORED = "censored: end is 0"
USED = {"cpu_usage": "used_cpu", "mem_usage": "used_mem"}
"""Mean use of tasks, if a file has it, in the units of their demands."""
_PERCENT = 100.0


class CollectedRows:
    """Columns of all rows so far, with counts of dropped, filled and noticed rows by rule."""

    def __init__(
        self, defaults: Mapping[str, float], *, only_terminated: bool, keep_unfinished: bool = False
    ) -> None:
        self.defaults = defaults
        self.only_terminated = only_terminated
        self.keep_unfinished = keep_unfinished
        self.columns: dict[str, list[NDArray[Any]]] = {name: [] for name in COLUMNS}
        self.name: list[pa.StringArray] = []
        self.run_job: list[pa.StringArray] = []
        self.run_rows: list[I8] = []
        self.edge_row: list[I4] = []
        self.edge_parent: list[I4] = []
        self.dropped: dict[str, int] = {}
        self.filled: dict[str, int] = {}
        self.noticed: dict[str, int] = {}
        self.n_rows = 0
        self.account = Account({"jobs": np.empty(0), "tasks": np.empty(0), "cpu_s": np.empty(0)})

    def add(self, block: Mapping[str, Any]) -> None:
        """Validate the rows of one block and append their columns."""
        n = len(block["start_time"])
        if n == 0:
            return
        is_kept = self._valid_rows(block)
        names = parse_names(block["task_name"])
        count_rule(self.noticed, "name not of the DAG form", is_kept & (names.number < 0))
        n_tasks = self._fill("instance_num missing: 1", block["instance_num"], 1.0, is_kept)
        cpu, mem = (
            self._fill(f"{column} missing: {default:g}", block[column], default, is_kept)
            for column, default in self.defaults.items()
        )
        start, end = block["start_time"], block["end_time"]
        duration, is_guessed = self._duration(block, is_kept)
        columns = {
            "kept": is_kept,
            "number": names.number,
            "n_tasks": n_tasks.astype(np.int32),
            "start_s": np.where((start == 0) & (end == 0), np.inf, start),
            "duration_s": duration,
            "span_s": np.where(end == 0, np.nan, end - start).astype(np.float32),
            "cpu": cpu / _PERCENT,
            "mem": mem,
            "guessed": sum(
                np.isnan(block[column]) * np.int8(bit) for column, bit in GUESSED.items()
            )
            + is_guessed * np.int8(GUESSED_DURATION),
        }
        for source, name in USED.items():
            if source in block:
                used = block[source]
                known = np.isfinite(used) & (used >= 0)
                scale = _PERCENT if source == "cpu_usage" else 1.0
                columns[name] = np.where(known, used, np.nan) / scale
        for name, column in columns.items():
            self.columns.setdefault(name, []).append(column)
        self.name.append(block["task_name"])
        self._add_jobs(block["job_name"])
        self.edge_row.append((self.n_rows + names.row).astype(np.int32))
        self.edge_parent.append(names.parent)
        self.n_rows += n

    def _valid_rows(self, block: Mapping[str, Any]) -> Mask:
        start, end = block["start_time"], block["end_time"]
        terminated = pc.fill_null(pc.equal(block["status"], "Terminated"), False)
        not_terminated = ~terminated.to_numpy(zero_copy_only=False)
        unfinished = end == 0
        rules = {
            "start or end missing": np.isnan(start) | np.isnan(end),
            CENSORED: unfinished & (not self.keep_unfinished),
            "end before start": (end < start) & ~unfinished,
            "0 instances": block["instance_num"] == 0,
        }
        if self.only_terminated:
            rules[BY_OPTION[0]] = not_terminated
        account = Account(amounts(block))
        is_kept = account.keep(rules, self.dropped, BY_OPTION)
        self.account.merge(account)
        count_rule(self.noticed, "not Terminated", is_kept & not_terminated)
        return is_kept

    def _fill(self, rule: str, column: F8, value: float, is_kept: Mask) -> F8:
        missing = np.isnan(column)
        count_rule(self.filled, rule, is_kept & missing)
        return np.where(missing, value, column)

    def _duration(self, block: Mapping[str, Any], is_kept: Mask) -> tuple[F8, Mask]:
        """Return the duration of a stage's tasks, and mark those that are not of the log."""
        duration: F8 = block["end_time"] - block["start_time"]
        if "mean_inst_dur" in block:
            mean = block["mean_inst_dur"]
            valid = np.isfinite(mean) & (mean >= 0)
            missing = is_kept & ~valid & (block["end_time"] != 0)
            count_rule(self.filled, "mean_inst_dur missing: end - start", missing)
            duration = np.where(valid, mean, duration)
        unfinished = block["end_time"] == 0
        count_rule(self.filled, f"end is 0: {ZERO_BECOMES_S} s", is_kept & unfinished)
        zero = (duration == 0) & ~unfinished
        count_rule(self.filled, f"0 s becomes {ZERO_BECOMES_S} s", is_kept & zero)
        return np.where(zero | unfinished, ZERO_BECOMES_S, duration), zero | unfinished

    def _add_jobs(self, job: pa.StringArray) -> None:
        new = np.ones(len(job), dtype=bool)
        if len(job) > 1:
            new[1:] = pc.not_equal(job.slice(1), job.slice(0, len(job) - 1)).to_numpy(
                zero_copy_only=False
            )
        first = np.flatnonzero(new)
        self.run_job.append(job.take(pa.array(first)))
        self.run_rows.append(np.diff(first, append=len(job)))


def amounts(block: Mapping[str, Any]) -> dict[str, F8]:
    """Return tasks of each row, and what they hold times their durations, by kind.

    NaN: a number of the row is missing. Rows are stages, so no jobs are counted here.
    """
    start, end = block["start_time"], block["end_time"]
    span_s = np.where((end > 0) & (end >= start), end - start, np.nan)
    if "mean_inst_dur" in block:
        mean_s = block["mean_inst_dur"]
        is_known = np.isfinite(mean_s) & (mean_s >= 0) & (end > 0)
        span_s = np.where(is_known, mean_s, span_s)
    n_tasks = block["instance_num"]
    return {
        "jobs": np.zeros(len(start)),
        "tasks": n_tasks,
        "cpu_s": n_tasks * span_s * block["plan_cpu"] / _PERCENT,
    }


@dataclass(frozen=True)
class DagNames:
    """Task numbers and parents in N names."""

    number: I4  # number of the task in its job; -1 for a name that is not of the DAG form
    row: I8  # rows of the names, ascending, one entry per parent
    parent: I4  # number of that parent


def parse_names(names: pa.StringArray) -> DagNames:
    """Parse the dependencies in task names of the Alibaba trace.

    A name of the DAG form is letters (the type), the task's number, and after underscores the
    numbers of its parents: ``M1``, ``R2_1``, ``J3_1_2``. ``Stg8`` is another form of parent 8. Of a
    name that is cut off after an underscore, the complete parents count (the trace cuts at 50
    characters). Any other name (``task_Nzg3==``, ``MergeTask``) has no number and no parents.
    """
    coded = names.dictionary_encode()
    code = coded.indices.to_numpy()
    parts = pc.extract_regex(coded.dictionary, _DAG_NAME)
    number = _whole(pc.fill_null(pc.struct_field(parts, "number"), "-1"))
    listed = pc.fill_null(pc.struct_field(parts, "parents"), "")
    listed = pc.utf8_ltrim(pc.replace_substring(listed, "Stg", ""), "_")
    named = pc.not_equal(listed, "")
    size = np.zeros(len(number), np.int64)
    split = pc.split_pattern(listed.filter(named), "_")
    size[named.to_numpy(zero_copy_only=False)] = pc.list_value_length(split).to_numpy()
    parent = _whole(pc.list_flatten(split))
    first = np.cumsum(size) - size
    per_row = size[code]
    row = np.repeat(np.arange(len(code)), per_row)
    within = np.arange(len(row)) - np.repeat(np.cumsum(per_row) - per_row, per_row)
    return DagNames(number[code], row, parent[first[code[row]] + within])


def _whole(texts: pa.Array) -> I4:
    whole: I4 = texts.cast(pa.int32()).to_numpy(zero_copy_only=False)
    return whole
