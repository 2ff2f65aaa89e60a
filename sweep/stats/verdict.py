"""The verdict of a sweep: on each trace, at each capacity, which policy is best and by how much.

Made once from the cells; the terminal, the reports, ``verdict.json`` and MLflow show it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from sim.cluster.load import FACTS
from sweep.stats import contrasts
from sweep.stats.arrange import (
    ArrangedCells,
    CapacityGroup,
    Settings,
    arrange,
    by_capacity,
    is_counted,
    machines,
)
from sweep.stats.best import Best, best_of, compare_metric, next_distinguishable
from sweep.stats.cell_columns import Rows, to_float64
from sweep.stats.inference import Paired, interval
from sweep.stats.metric_format import format_contrast, format_value, is_fraction, style
from sweep.stats.sentence import Facts, sentence

BOUND, WAIT, USE = "gap_lb_p50", "wait_mean_s", "utilization"
BY_ITSELF = ("deadlines_missed", "value_attained", "jct_mean_s")
"""What a verdict speaks of, the first that the workload has; else the first with a direction."""


@dataclass(frozen=True)
class Standing:
    """How one policy does, beside the baseline."""

    policy: str
    value: float  # the mean over seeds
    against: Paired | None  # None without a baseline, and of the baseline itself
    is_ratio: bool  # whether that is of ratios (times better), not of differences
    is_best: bool
    is_tied: bool  # whether it has the best's value with every seed


@dataclass(frozen=True)
class Verdict:
    """What is best on one trace, under one setting of all else, at one capacity."""

    trace: str
    settings: Settings
    capacity: float
    metric: str
    best: tuple[str, ...]  # the policies that no test tells from the best mean, best first
    value: float | None  # mean of the first; None if it is infinite
    interval: tuple[float, float] | None  # 95 %, of that mean; None with one seed
    baseline: str | None
    # the baseline's over the best's where the metric is a time or a ratio, so how many times
    # better; best - baseline of fractions; None without a baseline
    against_baseline: float | None
    against_interval: tuple[float, float] | None
    gap_lb_p50: float | None  # mean of the first
    n_seeds: int
    sentence: str
    machines: str  # such as ``41 machines``; empty where not known
    about: Mapping[str, float]  # means of `FACTS` over the cells, those known
    standings: tuple[Standing, ...]  # in the order of the columns

    def as_json(self) -> dict[str, Any]:
        """Give the entry of ``verdict.json``."""
        return {
            "trace": self.trace,
            "settings": dict(self.settings),
            "capacity": self.capacity,
            **{name: self.about.get(name) for name in FACTS},
            "metric": self.metric,
            "best": list(self.best),
            "value": self.value,
            "interval": self.interval and list(self.interval),
            "baseline": self.baseline,
            "against_baseline": self.against_baseline,
            "against_interval": self.against_interval and list(self.against_interval),
            "gap_lb_p50": self.gap_lb_p50,
            "n_seeds": self.n_seeds,
            "sentence": self.sentence,
        }


def verdicts(cells: pa.Table, config: Mapping[str, Any]) -> list[Verdict]:
    """Make a sweep's verdicts from its cells and what was asked for (``config.yaml``)."""
    asked = (config.get("verdict") or {}).get("metric")
    them = arrange(cells, config["swept"], config["baseline"])
    made = []
    for (trace, settings), members in them.blocks.items():
        metric = _metric(them, members, asked)
        if metric is None:
            continue
        paired = _against_baseline(them, members, metric)
        for world in by_capacity(them, members):
            best = best_of(metric, world.by_seed(them, metric))
            if best is not None:
                there = {c: found for (k, c), found in paired.items() if k == world.capacity}
                is_fixed = bool(config.get("is_fixed"))
                where = (trace, settings, world)
                made.append(_verdict(them, where, metric, best, there, is_fixed))
    return made


def _metric(them: ArrangedCells, members: Rows, asked: str | None) -> str | None:
    known = [
        name
        for name in ([asked] if asked else [*BY_ITSELF, *them.names])
        if name in them.names
        and style(name).better is not None
        and not np.isnan(them.values(name, members)).all()
    ]
    return known[0] if known else None


def _against_baseline(
    them: ArrangedCells, members: Rows, metric: str
) -> dict[tuple[float, int], tuple[Paired, bool]]:
    """Compare each policy with the baseline, by capacity and column; nothing without one."""
    of = partial(them.values, metric)
    return {
        (capacity, column): compare_metric(metric, of(both.own), of(both.other))
        for capacity, column, both in contrasts.pairs(them, members)
    }


def _verdict(
    them: ArrangedCells,
    where: tuple[str, Settings, CapacityGroup],
    metric: str,
    best: Best,
    paired: Mapping[int, tuple[Paired, bool]],
    is_fixed: bool,
) -> Verdict:
    trace, settings, world = where
    columns = list(them.columns.values())
    own = world.by_seed(them, metric)
    of_first = own[:, best.first][~np.isnan(own[:, best.first])]
    mean, low, high = interval(of_first)
    found, is_ratio = paired.get(best.first, _ALONE)
    ahead = None if found is None else _finite(found.estimate)
    if columns[best.first].is_baseline:
        ahead = 0.0 if is_fraction(metric) else 1.0
    means = {at: float(np.nanmean(own[:, at])) for at in best.order}
    standings = tuple(
        Standing(
            policy=column.label,
            value=means[at],
            against=paired.get(at, _ALONE)[0],
            is_ratio=paired.get(at, _ALONE)[1],
            is_best=at in best.members,
            is_tied=at in best.tied or (at == best.first and bool(best.tied)),
        )
        for at, column in enumerate(columns)
        if at in means
    )
    gap, told = _mean(them, world, BOUND, best.first), next_distinguishable(best)
    wait = _mean(them, world, WAIT)
    # of several variants of the baseline each is that of its own
    baselines = [column for column in columns if column.is_baseline]
    baseline = baselines[0].label if len(baselines) == 1 else baselines and baselines[0].policy
    facts = Facts(
        where=(trace, settings, world.capacity, machines(them, world.rows)),
        is_counted=is_counted(them, world.rows),
        metric=metric,
        best=tuple(columns[at].label for at in best.members),
        n_tied=len(best.tied),
        n_policies=len(standings),
        others=tuple(
            (columns[at].label, _how(metric, means[at], *paired.get(at, _ALONE)))
            for at in best.order
            if at not in best.members and not columns[at].is_baseline
        ),
        is_tested=best.is_tested,
        next_distinguishable=told and (columns[told[0]].label, told[1]),
        value=(mean, low, high),
        baseline=baseline or None,
        against=found,
        is_ratio=is_ratio,
        gap=gap,
        n_seeds=len(of_first),
        is_fixed=is_fixed,
        waits=None if wait is None else wait > 0,
        use=_mean(them, world, USE),
    )
    return Verdict(
        trace=trace,
        settings=settings,
        capacity=world.capacity,
        metric=metric,
        best=facts.best,
        value=_finite(mean),
        interval=None if math.isnan(low) else (low, high),
        baseline=facts.baseline,
        against_baseline=ahead,
        against_interval=None
        if found is None or math.isnan(found.low)
        else (found.low, found.high),
        gap_lb_p50=gap,
        n_seeds=len(of_first),
        sentence=sentence(facts),
        machines=facts.where[-1],
        about=_about(them, world.rows),
        standings=standings,
    )


_ALONE = (None, False)


def _how(metric: str, value: float, found: Paired | None, is_ratio: bool) -> str:
    """Write how a policy does: against the baseline, or without one its mean."""
    if found is not None and math.isfinite(found.estimate):
        kind = "ratio" if is_ratio else "difference"
        return format_contrast(metric, kind, found.estimate, math.nan, math.nan)[0]
    unit = " s" if style(metric).kind == "seconds" else ""
    return format_value(metric, value)[0].replace("%", " %") + unit


def _mean(
    them: ArrangedCells, world: CapacityGroup, metric: str, column: int | slice = slice(None)
) -> float | None:
    """Mean of a metric over seeds, and over columns unless one is named; None for none."""
    if metric not in them.names:
        return None
    values = world.by_seed(them, metric)[:, column]
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else None


def _about(them: ArrangedCells, rows: Rows) -> dict[str, float]:
    names = [name for name in FACTS if name in them.cells.column_names]
    values = {name: to_float64(them.cells, name)[rows] for name in names}
    known = {name: of_cells[~np.isnan(of_cells)] for name, of_cells in values.items()}
    return {name: float(np.mean(of_cells)) for name, of_cells in known.items() if len(of_cells)}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
