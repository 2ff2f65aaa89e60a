"""Parts of DAGPS taken away alone, the region where its offline order pays, and losses of Tez.

The rules are those of policies/dagps/decisions/0037-dagps-parts.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from sweep.questions.papers.figures import (
    Findings,
    Groups,
    Row,
    column,
    compare_seeds,
    grouped,
    percent_reduction,
)
from sweep.report.findings import Finding, FinishedSweep
from sweep.stats import interval

WHOLE, WITHOUT_ORDER, TEZ = "dagps", "dagps_without/order", "tez"
MIN_GAIN = 5.0
"""Gain in the mean completion time above which a setting may be in the region, %."""

FACTORS = {
    "trace.dag": "DAG", "trace.depth": "levels", "trace.wide": "share of wide DAGs",
    "trace.demand_sigma": "spread of demands", "trace.load": "load",
    "trace.at_once": "jobs at once", "cluster.count": "machines",
}  # fmt: skip
SECONDS, FACTOR = "trace.transforms.lengthen.seconds", "trace.transforms.lengthen.factor"


def parts(finished: FinishedSweep) -> Findings:
    """Compute how much longer mean completion times are without each part, %, by seed."""
    for (trace,), cells in finished.group_by("trace").items():
        policies = grouped(cells, "policy")
        for name in policies:
            if name == WHOLE:
                continue
            values = compare_seeds(policies, (name, WHOLE), "jct_mean_s", _percent_longer)
            figure = f"{trace}, mean JCT above that of dagps, %"
            yield Finding.from_seeds(figure, f"{name}{_verdict(name, values)}", values)
        for name in policies:
            if name != TEZ:
                values = compare_seeds(policies, (name, TEZ), "jct_mean_s", percent_reduction)
                yield Finding.from_seeds(f"{trace}, mean JCT below tez's, %", name, values)


def _percent_longer(value: float, base: float) -> float:
    return 100.0 * (value / base - 1.0)


def _verdict(policy: str, values: Sequence[float]) -> str:
    """Name what the rule says of a part; empty for another policy."""
    if not policy.startswith("dagps_without/"):
        return ""
    _, low, high = interval(values)
    return ": pays" if low > 0 else ": costs" if high < 0 else ": shows nothing"


def region(finished: FinishedSweep) -> Findings:
    """Compute where the offline order gains more than `MIN_GAIN` % of the mean completion time.

    First the number of settings in the region and the average gain for each value of each factor,
    then the settings in the region, with the gains of all policies over DAGPS without the order.
    """
    factors = [key for key in FACTORS if len({row.get(key) for row in finished.cells}) > 1]
    settings = finished.group_by(*factors)
    policies = [name for name in grouped(finished.cells, "policy") if name != WITHOUT_ORDER]
    gains_by_policy: dict[str, dict[tuple[object, ...], list[float]]] = {
        name: {} for name in policies
    }
    for setting, cells in settings.items():
        groups = grouped(cells, "policy")
        for name, gains_by_setting in gains_by_policy.items():
            pair = (name, WITHOUT_ORDER)
            gains_by_setting[setting] = compare_seeds(groups, pair, "jct_mean_s", percent_reduction)
    gains = gains_by_policy[WHOLE]
    inside = [setting for setting in settings if _is_inside(gains[setting])]
    yield Finding("all settings", "settings", float(len(settings)), exact=True)
    yield Finding("all settings", "settings in the region", float(len(inside)), exact=True)
    for name, gains_by_setting in gains_by_policy.items():
        yield from _average(
            "all settings", f"average gain, {name}, %", [*gains_by_setting.values()]
        )
    yield Finding("all settings", "greatest gain, %", max(interval(g)[0] for g in gains.values()))
    yield Finding("all settings", "least gain, %", min(interval(g)[0] for g in gains.values()))
    for i, factor in enumerate(factors):
        for value in dict.fromkeys(setting[i] for setting in settings):
            rows = [setting for setting in settings if setting[i] == value]
            share = 100.0 * sum(setting in inside for setting in rows) / len(rows)
            figure = f"{FACTORS[factor]} {value}"
            yield Finding(figure, "settings in the region, %", share, exact=True)
            yield from _average(figure, "average gain, %", [gains[setting] for setting in rows])
    for setting in inside:
        named = zip(factors, setting, strict=True)
        label = ", ".join(f"{FACTORS[factor]} {value}" for factor, value in named)
        for name, gains_by_setting in gains_by_policy.items():
            figure = "in the region: gain of the order, %"
            yield Finding.from_seeds(figure, f"{label}, {name}", gains_by_setting[setting])


def _is_inside(gains: Sequence[float]) -> bool:
    mean, low, _ = interval(gains)
    return mean > MIN_GAIN and low > 0


def _average(figure: str, quantity: str, gains: Sequence[Sequence[float]]) -> Findings:
    """Yield the average over settings, with the interval over seeds."""
    by_seed = [math.fsum(values) / len(values) for values in zip(*gains, strict=True)]
    yield Finding.from_seeds(figure, quantity, by_seed)


def losses(finished: FinishedSweep) -> Findings:
    """Compute the reduction of the makespan from Tez's, %, with losses of Tez alone or of all."""
    for (trace,), cells in finished.group_by("trace").items():
        by_loss = grouped(cells, SECONDS, FACTOR, label="{:g} s and factor {:g}")
        free = grouped(next(iter(by_loss.values())), "policy")
        for loss, rows in by_loss.items():
            lossy = grouped(rows, "policy")
            base = lossy[TEZ]
            tez = column(base, "makespan_s")
            mean_s = column(free[TEZ], "makespan_s")
            figure = f"{trace}, losses of {loss}, shorter makespan than tez %"
            longer = [_percent_longer(a, b) for a, b in zip(tez, mean_s, strict=True)]
            yield Finding.from_seeds(figure, "tez itself, longer than without losses", longer)
            for name in lossy:
                if name == TEZ:
                    continue
                yield from _shorter(figure, f"{name}, all alike", lossy[name], base)
                if name == WHOLE:
                    yield from _shorter(figure, f"{name}, tez alone", free[name], base)


def _shorter(figure: str, label: str, rows: Sequence[Row], base: Sequence[Row]) -> Findings:
    groups: Groups = {"scheme": rows, "base": base}
    values = compare_seeds(groups, ("scheme", "base"), "makespan_s", percent_reduction)
    yield Finding.from_seeds(figure, label, values)
