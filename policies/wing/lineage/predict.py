"""Prediction of dependencies: which templates will read a job's output, and when (§3).

A model learns from past jobs and is tested on the jobs of the following week. For this a workload's
``history`` and ``jobs`` have the columns `READERS`, beside those of `sim.workload.schema` and of
`policies.wing.lineage.worth`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from policies.wing.lineage.dependencies import Dependencies
from policies.wing.lineage.templates import medians
from sim.base.arrays import F8, I4, I8, Mask, offsets, ranges
from sim.base.errors import InputError

THRESHOLDS: Final = tuple(range(0, 101, 5))
"""Prediction thresholds tr to evaluate, %."""


@dataclass(frozen=True, eq=False)
class Model:
    """Statistics of one interval for each pair of templates where one reads the other's output."""

    upstream: I4  # templates; sorted by upstream, then downstream
    downstream: I4
    # share of the upstream template's jobs whose output a job of the downstream one consumed
    share: F8
    time_s: F8  # median time from submission to the first such job's submission, s


@dataclass(frozen=True, eq=False)
class Forecast:
    """Pairs (job, downstream template) that were predicted, or occurred, or both."""

    job: I4  # upstream job, and downstream template
    template: I4
    share: F8  # the model's share; -1 for pairs that it has not seen
    occurred: Mask  # a job of the template did read the output
    forecast_s: F8  # time to the first one, s; NaN where unknown
    actual_s: F8

    def precision_recall(self, threshold: float) -> tuple[float, float]:
        """Compute precision and recall of predicting the pairs with a share ≥ `threshold` (%)."""
        predicted = self.share >= max(threshold / 100, 0.0)
        hits = int((predicted & self.occurred).sum())
        n_predicted, n_occurred = int(predicted.sum()), int(self.occurred.sum())
        return (
            hits / n_predicted if n_predicted else np.nan,
            hits / n_occurred if n_occurred else np.nan,
        )

    def errors_s(self, threshold: float) -> tuple[F8, F8]:
        """Return forecast and actual times of the pairs that were predicted and occurred, s."""
        both = (self.share >= threshold / 100) & self.occurred
        return self.forecast_s[both], self.actual_s[both]


@dataclass(frozen=True, eq=False)
class Uses:
    """Uses of each job's output: the templates that read it, and the first read by each."""

    job: I4  # upstream job, and downstream template; sorted by job, then template
    template: I4
    # submission of the first reading job, and its delay after the upstream job's submission, s; the
    # delay is negative if the reader was submitted earlier
    first_s: F8
    time_s: F8

    def where(self, keep: Mask) -> Uses:
        """Return a subset of the uses."""
        return Uses(self.job[keep], self.template[keep], self.first_s[keep], self.time_s[keep])


def first_uses(edges: Dependencies, template: I4, submit_s: F8, recurring: Mask) -> Uses:
    """Find the first use of each job's output by each template, among recurring templates."""
    both = recurring[template[edges.upstream]] & recurring[template[edges.downstream]]
    up, down = edges.upstream[both], edges.downstream[both]
    order = np.lexsort((submit_s[down], template[down], up))
    up, down = up[order], down[order]
    reader_template = template[down]
    first = np.append(True, (up[1:] != up[:-1]) | (reader_template[1:] != reader_template[:-1]))[
        : len(up)
    ]
    up, first_s = up[first], submit_s[down[first]]
    return Uses(up, reader_template[first], first_s, first_s - submit_s[up])


def learn(
    uses: Uses, template: I4, submit_s: F8, within: tuple[float, float], n_templates: int
) -> Model:
    """Learn from the jobs submitted within an interval, and the uses seen by its end.

    A job whose output has not been used by then may still be used. So the share of a pair is
    measured over an interval of the same length that lies earlier, by the longest delay of its
    uses.

    Parameters
    ----------
    uses : Uses
        Of all jobs; uses at the end of the interval or later are ignored.
    template : (N,) int32
        Template of each job; -1 for jobs to ignore.
    submit_s : (N,) float64
        Submission of each job, s.
    within : (float, float)
        The interval [begin, end), s.
    n_templates : int
        Number of templates.
    """
    begin, end = within
    n = max(n_templates, 1)
    seen = uses.where((uses.first_s < end) & (template[uses.job] >= 0))
    pair = template[seen.job].astype(np.int64) * n + seen.template
    upstream_s = submit_s[seen.job]
    recent = (upstream_s >= begin) & (upstream_s < end)
    pairs, pair_index = np.unique(pair[recent], return_inverse=True)
    up, delay_s = (pairs // n).astype(np.int32), seen.time_s[recent]
    max_delay_s = np.zeros(len(pairs))
    np.maximum.at(max_delay_s, pair_index, delay_s)
    begin_s, end_s = begin - max_delay_s, end - max_delay_s
    index = np.searchsorted(pairs, pair)
    known = np.isin(pair, pairs)
    index, upstream_s = index[known], upstream_s[known]
    counted = (upstream_s >= begin_s[index]) & (upstream_s < end_s[index])
    n_used = np.bincount(index[counted], minlength=len(pairs))
    last, first = (_n_submitted_before(template, submit_s, up, s) for s in (end_s, begin_s))
    n_jobs = last - first
    return Model(
        up, (pairs % n).astype(np.int32), n_used / np.maximum(n_jobs, 1),
        medians(delay_s, pair_index.astype(np.int32), len(pairs)),
    )  # fmt: skip


def _n_submitted_before(template: I4, submit_s: F8, templates: I4, before_s: F8) -> I8:
    """Count, for each given template, its jobs submitted before the given time."""
    ordered, base = np.sort(submit_s), np.int64(len(submit_s) + 1)
    key = np.sort(template * base + np.searchsorted(ordered, submit_s))
    end = np.searchsorted(key, templates * base + np.searchsorted(ordered, before_s))
    return end - np.searchsorted(key, templates * base)


def forecast(model: Model, uses: Uses, template: I4, jobs: I8, n_templates: int) -> Forecast:
    """Compare the model's predictions with the actual uses of the given jobs (rows, ascending)."""
    first = np.searchsorted(model.upstream, template[jobs], side="left")
    count = np.searchsorted(model.upstream, template[jobs], side="right") - first
    predicted_job = np.repeat(jobs, count)
    model_row = ranges(first, first + count)
    predicted = predicted_job * np.int64(n_templates) + model.downstream[model_row]
    actual = uses.where(np.isin(uses.job, jobs))
    occurred = actual.job * np.int64(n_templates) + actual.template
    pairs = np.union1d(predicted, occurred)
    share, forecast_s = np.full(len(pairs), -1.0), np.full(len(pairs), np.nan)
    index = np.searchsorted(pairs, predicted)
    share[index], forecast_s[index] = model.share[model_row], model.time_s[model_row]
    actual_s, has_occurred = np.full(len(pairs), np.nan), np.zeros(len(pairs), bool)
    index = np.searchsorted(pairs, occurred)
    actual_s[index], has_occurred[index] = actual.time_s, True
    return Forecast(
        (pairs // max(n_templates, 1)).astype(np.int32),
        (pairs % max(n_templates, 1)).astype(np.int32), share, has_occurred, forecast_s, actual_s,
    )  # fmt: skip


def threshold_table(tested: Forecast, thresholds: tuple[float, ...] = THRESHOLDS) -> pa.Table:
    """Tabulate precision, recall and time errors over tr (tasks T1 and T2, Figs. 2 and 3)."""
    columns: dict[str, list[float]] = {
        k: [] for k in ("tr", "precision", "recall", "n", "rmse_s", "mae_s", "within_20", "over_2x")
    }
    for tr in thresholds:
        precision, recall = tested.precision_recall(tr)
        predicted, actual = tested.errors_s(tr)
        error = predicted - actual
        relative = percentage_errors(predicted, actual)
        numbers = (
            float(tr), precision, recall, float(len(error)),
            float(np.sqrt(np.mean(error**2))) if len(error) else np.nan,
            float(np.median(np.abs(error))) if len(error) else np.nan,
            float(np.mean(np.abs(relative) <= 0.2)) if len(relative) else np.nan,
            float(np.mean(relative >= 1.0)) if len(relative) else np.nan,
        )  # fmt: skip
        for column, number in zip(columns.values(), numbers, strict=True):
            column.append(number)
    return pa.table(columns)


def best_threshold(table: pa.Table) -> float:
    """Return the tr that maximises precision × recall; the smallest of ties."""
    product = table["precision"].to_numpy() * table["recall"].to_numpy()
    if np.isnan(product).all():
        raise InputError(
            "no dependency recurs in both intervals, so no prediction threshold can be chosen"
        )
    return float(table["tr"].to_numpy()[np.nanargmax(product)])


def percentage_errors(forecast_s: F8, actual_s: F8) -> F8:
    """Return (forecast − actual) / actual, where the actual time is positive."""
    ok = actual_s > 0
    return (forecast_s[ok] - actual_s[ok]) / actual_s[ok]


READERS: Final = ("readers", "readers_after_s")
"""Columns of lists of equal length: the recurring templates that read the job's output, and the
delay of each one's first reader after the job's submission, s. A history has the readers submitted
before the start; in ``jobs`` only oracles may use them."""


def reader_columns(uses: Uses, rows: I8, names: Sequence[str]) -> dict[str, pa.ListArray]:
    """Build the columns `READERS` for the given jobs."""
    first, end = (np.searchsorted(uses.job, rows, side) for side in ("left", "right"))
    selected = uses.where(np.isin(uses.job, rows))
    begin = pa.array(offsets(end - first).astype(np.int32))
    spellings = pa.array(names, pa.string()).take(pa.array(selected.template))
    return {
        name: pa.ListArray.from_arrays(begin, values)
        for name, values in zip(READERS, (spellings, pa.array(selected.time_s)), strict=True)
    }


def parse_uses(table: pa.Table, codes: Mapping[str, int]) -> Uses:
    """Parse the columns `READERS` of a table into uses; skip templates without a code."""
    names, after_s = (table[name].combine_chunks() for name in READERS)
    coded = names.flatten().dictionary_encode()
    lookup = np.array([codes.get(n, -1) for n in coded.dictionary.to_pylist()], dtype=np.int32)
    template = lookup[coded.indices.to_numpy()] if len(coded) else np.empty(0, np.int32)
    job = np.repeat(np.arange(len(names)), np.diff(names.offsets.to_numpy())).astype(np.int32)
    time_s = after_s.flatten().to_numpy()
    first_s = table["submit_s"].to_numpy()[job] + time_s
    order = np.lexsort((template, job))
    order = order[template[order] >= 0]
    return Uses(job[order], template[order], first_s[order], time_s[order])
