"""Will a job's output be used, by whom, and when? (§3).

What is foretold is learnt from jobs of the past and held against those of the week. So a workload's
``history`` and ``jobs`` have, beside the columns of `sim.workload.schema` and of
`sim.lineage.worth`, those of `READERS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I4, I8, Mask, offsets, ranges
from sim.base.errors import InputError
from sim.lineage.dependencies import Dependencies
from sim.lineage.templates import medians

THRESHOLDS: Final = tuple(range(0, 101, 5))
"""Prediction thresholds tr that are tried, %."""


@dataclass(frozen=True, eq=False)
class Model:
    """What one interval says of each pair of templates, one of which reads the other's output."""

    upstream: I4  # templates; sorted by upstream, then downstream
    downstream: I4
    # share of the upstream template's jobs whose output a job of the downstream one consumed
    share: F8
    time_s: F8  # median time from submission to the first such job's submission, s


@dataclass(frozen=True, eq=False)
class Forecast:
    """Pairs (job, downstream template) that were predicted or came true."""

    job: I4  # upstream job, and downstream template
    template: I4
    share: F8  # the model's share; -1 if it does not know the pair
    came: Mask  # whether a job of the template did consume the job's output
    forecast_s: F8  # time to the first one, s; NaN where unknown
    actual_s: F8

    def precision_recall(self, threshold: float) -> tuple[float, float]:
        """Return precision and recall of predicting what has a share ≥ `threshold` (%)."""
        said = self.share >= max(threshold / 100, 0.0)
        hits = int((said & self.came).sum())
        n_said, n_came = int(said.sum()), int(self.came.sum())
        return hits / n_said if n_said else np.nan, hits / n_came if n_came else np.nan

    def errors_s(self, threshold: float) -> tuple[F8, F8]:
        """Return forecast and actual time of what was both predicted and came, s."""
        both = (self.share >= threshold / 100) & self.came
        return self.forecast_s[both], self.actual_s[both]


@dataclass(frozen=True, eq=False)
class Uses:
    """Which templates' jobs consumed a job's output, and when the first one of each came."""

    job: I4  # upstream job, and downstream template; sorted by job, then template
    template: I4
    # when the first such job was submitted, and how long after the upstream one, s; the latter is
    # negative if it was earlier
    come_s: F8
    time_s: F8

    def where(self, keep: Mask) -> Uses:
        """Return some of them."""
        return Uses(self.job[keep], self.template[keep], self.come_s[keep], self.time_s[keep])


def first_uses(edges: Dependencies, template: I4, submit_s: F8, recurring: Mask) -> Uses:
    """Find the first use of each job's output by each template; of recurring templates only."""
    both = recurring[template[edges.upstream]] & recurring[template[edges.downstream]]
    up, down = edges.upstream[both], edges.downstream[both]
    order = np.lexsort((submit_s[down], template[down], up))
    up, down = up[order], down[order]
    to = template[down]
    first = np.append(True, (up[1:] != up[:-1]) | (to[1:] != to[:-1]))[: len(up)]
    up, come_s = up[first], submit_s[down[first]]
    return Uses(up, to[first], come_s, come_s - submit_s[up])


def learn(
    uses: Uses, template: I4, submit_s: F8, within: tuple[float, float], n_templates: int
) -> Model:
    """Learn from the jobs submitted within a time, of what was seen by its end.

    Who was not used, but is not yet due, was not missed: so the share of a pair is of jobs of as
    long a time that ended earlier, by the longest that its uses took.

    Parameters
    ----------
    uses : Uses
        Of all jobs; those that came at the end of the time or later are not looked at.
    template : (N,) int32
        Of each job; -1 for jobs that are not learnt from.
    submit_s : (N,) float64
        When each job was submitted.
    within : (float, float)
        The time, s: from when, and before when.
    n_templates : int
        How many templates there are.
    """
    begin, end = within
    n = max(n_templates, 1)
    seen = uses.where((uses.come_s < end) & (template[uses.job] >= 0))
    pair = template[seen.job].astype(np.int64) * n + seen.template
    at_s = submit_s[seen.job]
    recent = (at_s >= begin) & (at_s < end)
    pairs, of = np.unique(pair[recent], return_inverse=True)
    up, took_s = (pairs // n).astype(np.int32), seen.time_s[recent]
    late_s = np.zeros(len(pairs))
    np.maximum.at(late_s, of, took_s)
    first_s, last_s = begin - late_s, end - late_s
    place = np.searchsorted(pairs, pair)
    known = np.isin(pair, pairs)
    place, at_s = place[known], at_s[known]
    counted = (at_s >= first_s[place]) & (at_s < last_s[place])
    n_used = np.bincount(place[counted], minlength=len(pairs))
    last, first = (_submitted(template, submit_s, up, s) for s in (last_s, first_s))
    n_jobs = last - first
    return Model(
        up, (pairs % n).astype(np.int32), n_used / np.maximum(n_jobs, 1),
        medians(took_s, of.astype(np.int32), len(pairs)),
    )  # fmt: skip


def _submitted(template: I4, submit_s: F8, of: I4, before_s: F8) -> I8:
    """Return how many jobs of some templates were submitted before a time each."""
    ordered, n = np.sort(submit_s), np.int64(len(submit_s) + 1)
    key = np.sort(template * n + np.searchsorted(ordered, submit_s))
    last = np.searchsorted(key, of * n + np.searchsorted(ordered, before_s))
    return last - np.searchsorted(key, of * n)


def forecast(model: Model, uses: Uses, template: I4, jobs: I8, n_templates: int) -> Forecast:
    """Hold the model against what came: the uses of the jobs of some rows, ascending."""
    first = np.searchsorted(model.upstream, template[jobs], side="left")
    count = np.searchsorted(model.upstream, template[jobs], side="right") - first
    said_job = np.repeat(jobs, count)
    place = ranges(first, first + count)
    said = said_job * np.int64(n_templates) + model.downstream[place]
    true = uses.where(np.isin(uses.job, jobs))
    came = true.job * np.int64(n_templates) + true.template
    either = np.union1d(said, came)
    share, forecast_s = np.full(len(either), -1.0), np.full(len(either), np.nan)
    at = np.searchsorted(either, said)
    share[at], forecast_s[at] = model.share[place], model.time_s[place]
    actual_s, is_true = np.full(len(either), np.nan), np.zeros(len(either), bool)
    at = np.searchsorted(either, came)
    actual_s[at], is_true[at] = true.time_s, True
    return Forecast(
        (either // max(n_templates, 1)).astype(np.int32),
        (either % max(n_templates, 1)).astype(np.int32), share, is_true, forecast_s, actual_s,
    )  # fmt: skip


def threshold_table(of: Forecast, thresholds: tuple[float, ...] = THRESHOLDS) -> pa.Table:
    """Tabulate T1 and T2 over tr (Figs. 2 and 3)."""
    columns: dict[str, list[float]] = {
        k: [] for k in ("tr", "precision", "recall", "n", "rmse_s", "mae_s", "within_20", "over_2x")
    }
    for tr in thresholds:
        precision, recall = of.precision_recall(tr)
        said, actual = of.errors_s(tr)
        error = said - actual
        relative = percentage_errors(said, actual)
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
    """Return the tr that maximises precision × recall; the smallest of equals."""
    product = table["precision"].to_numpy() * table["recall"].to_numpy()
    if np.isnan(product).all():
        raise InputError("nothing recurs in both intervals, so that no threshold is best")
    return float(table["tr"].to_numpy()[np.nanargmax(product)])


def percentage_errors(forecast_s: F8, actual_s: F8) -> F8:
    """Return (forecast − actual) / actual, where the actual time is positive."""
    ok = actual_s > 0
    return (forecast_s[ok] - actual_s[ok]) / actual_s[ok]


READERS: Final = ("readers", "readers_after_s")
"""Recurring templates of which a job used the job's output, and how long after the job's submission
the first of each was submitted, s: lists of equal length. A history knows those submitted before
the start; in ``jobs`` only oracles may look at them."""


def reader_columns(uses: Uses, rows: I8, names: Sequence[str]) -> dict[str, pa.ListArray]:
    """Return `READERS` of some jobs."""
    first, end = (np.searchsorted(uses.job, rows, side) for side in ("left", "right"))
    own = uses.where(np.isin(uses.job, rows))
    begin = pa.array(offsets(end - first).astype(np.int32))
    spelled = pa.array(names, pa.string()).take(pa.array(own.template))
    return {
        name: pa.ListArray.from_arrays(begin, values)
        for name, values in zip(READERS, (spelled, pa.array(own.time_s)), strict=True)
    }


def parse_uses(table: pa.Table, codes: Mapping[str, int]) -> Uses:
    """Return the uses that the columns of a table tell; of templates without a code, none."""
    names, after_s = (table[name].combine_chunks() for name in READERS)
    coded = names.flatten().dictionary_encode()
    lookup = np.array([codes.get(n, -1) for n in coded.dictionary.to_pylist()], dtype=np.int32)
    template = lookup[coded.indices.to_numpy()] if len(coded) else np.empty(0, np.int32)
    job = np.repeat(np.arange(len(names)), np.diff(names.offsets.to_numpy())).astype(np.int32)
    time_s = after_s.flatten().to_numpy()
    come_s = table["submit_s"].to_numpy()[job] + time_s
    order = np.lexsort((template, job))
    order = order[template[order] >= 0]
    return Uses(job[order], template[order], come_s[order], time_s[order])
