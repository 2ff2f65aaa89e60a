"""One policy beside another, a sentence a trace and capacity."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.errors import InputError, unknown
from sweep.stats.arrange import ArrangedCells, arrange, by_capacity, is_counted, machines_text
from sweep.stats.best import compare_metric, is_ratio
from sweep.stats.common import Common
from sweep.stats.inference import ALPHA, BOOTSTRAP, EXACT, FEW, MIN_PAIRS, Paired, holm
from sweep.stats.metric_format import p_text, value_text
from sweep.stats.scope import Scope, scope_of
from sweep.stats.sentence import ROUNDING, gain_words, label_of, place_words
from sweep.stats.verdict import choose_metric


@dataclass(frozen=True)
class Pair:
    """A policy and another on the same seeds of one trace and capacity."""

    place: str  # such as ``t on 41 machines``
    metric: str
    paired: Paired
    is_ratio: bool
    means: tuple[float, float]  # over the seeds
    scope: Scope


def pairwise(
    cells: pa.Table, config: Mapping[str, Any], policy: str, other: str, metric: str | None = None
) -> list[str]:
    """Compare two policies on the seeds that both have, a sentence a trace and capacity.

    Parameters
    ----------
    cells : pa.Table
        A row a cell (``cells.parquet``), its times of the jobs done under all policies
        (`sweep.stats.done_jobs`).
    config : mapping
        Configuration of the sweep (``config.yaml``).
    policy, other : str
        Labels of two columns.
    metric : str, optional
        By default the verdict's.

    Raises
    ------
    InputError
        On an unknown policy or metric, or if no place has a result of both.
    """
    arranged = arrange(cells, config["swept"], config["baseline"])
    labels = [column.label for column in arranged.columns.values()]
    for name in (policy, other):
        if name not in labels:
            raise InputError(unknown("policy of this sweep", name, labels))
    if metric is not None and metric not in arranged.metrics:
        raise InputError(unknown("metric of these cells", metric, arranged.metrics))
    requested = metric or (config.get("verdict") or {}).get("metric")
    pairs = list(_pairs(arranged, (labels.index(policy), labels.index(other)), requested))
    if config.get("is_fixed"):  # no seed can change anything: one is exact
        pairs = [
            dataclasses.replace(pair, paired=dataclasses.replace(pair.paired, test=EXACT))
            if pair.paired.n == 1 and pair.paired.test == FEW
            else pair
            for pair in pairs
        ]
    if not pairs:
        raise InputError(
            f"{policy} and {other} have no seed in common on which both have a result",
            rule="pairs of two policies",
        )
    adjusted = holm(np.array([pair.paired.p for pair in pairs]))
    n_tests = int(np.count_nonzero(~np.isnan(adjusted)))
    return [
        _sentence(pair, policy, other, float(p), n_tests)
        for pair, p in zip(pairs, adjusted, strict=True)
    ]


def _pairs(
    arranged: ArrangedCells, columns: tuple[int, int], requested: str | None
) -> Iterator[Pair]:
    for (trace, settings), rows in arranged.blocks.items():
        metric = choose_metric(arranged, rows, requested)
        if metric is None:
            continue
        for group in by_capacity(arranged, rows):
            by_seed = group.by_seed(arranged, metric)
            seeds = np.flatnonzero(~np.isnan(by_seed[:, columns]).any(axis=1))
            if not len(seeds):
                continue
            values = by_seed[seeds]
            first, second = (values[:, column] for column in columns)
            by_ratio = is_ratio(metric, values[:, columns])
            options = {"is_ratio": by_ratio, "is_bootstrap": arranged.is_bootstrap}
            ranked = tuple(sorted({*columns}))
            common = Common(values, tuple(seeds.tolist()), ranked, group.n_seeds)
            machines = machines_text(arranged, group.rows)
            location = (trace, settings, group.capacity, machines)
            yield Pair(
                place=place_words(location, is_counted(arranged, group.rows)),
                metric=metric,
                paired=compare_metric(metric, first, second, **options),
                is_ratio=by_ratio,
                means=(float(first.mean()), float(second.mean())),
                scope=scope_of(arranged, group, metric, common),
            )


def _sentence(pair: Pair, policy: str, other: str, p: float, n_tests: int) -> str:
    paired, label = pair.paired, label_of(pair.metric)
    n_all = pair.scope.n_all
    n_seeds = f"{paired.n} " + (f"of {n_all} " if n_all > paired.n else "")
    n_seeds += ("draw" if paired.test == BOOTSTRAP else "seed") + "s" * (n_all > 1)
    jobs = dataclasses.replace(pair.scope, lacking=(), n_seeds=n_all)
    tail = "".join(f"; {words}" for words in jobs.words())
    if math.isnan(paired.estimate):
        ours, theirs = (value_text(pair.metric, mean) for mean in pair.means)
        result = f"{policy}'s {label} is {ours}, {other}'s is {theirs}"
        return f"{pair.place}: {result} on {n_seeds}{tail}."
    if math.isclose(paired.estimate, float(pair.is_ratio), rel_tol=ROUNDING):
        return f"{pair.place}: {policy} and {other} have the same {label} on {n_seeds}{tail}."
    amount, interval = gain_words(pair.metric, paired, pair.is_ratio)
    result = f"{amount} than {other}'s{interval}"
    if paired.test in (EXACT, FEW):
        doubt = "" if paired.test == EXACT else f", too few for a test ({MIN_PAIRS} are needed)"
        return f"{pair.place}: {policy}'s {label} is {result} on {n_seeds}{doubt}{tail}."
    correction = f" after Holm's correction over {n_tests} comparisons" if n_tests > 1 else ""
    test = f"({p_text(p)}{correction}, {n_seeds})"
    if p <= ALPHA:
        return f"{pair.place}: {policy}'s {label} is {result} {test}{tail}."
    return (
        f"{pair.place}: {policy} and {other} are not told apart by {label}: "
        f"{policy}'s is {result} {test}{tail}."
    )
