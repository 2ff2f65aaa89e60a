"""How DAGPS's online half does against Tez: what its defaults are chosen and judged by.

The rule is docs/decisions/0013-what-is-left.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sweep.papers.figures import Findings, Row, jct_s, near, printed
from sweep.report.findings import Finding, FinishedSweep

TEZ = "tez"
SLOWER = 16.0
"""By how much at most a job is slower than under Tez in the paper, % (§8.2.1)."""

RANGE = (0.1, 0.2, 0.3)
"""The values of m that the paper finds best (§8.5)."""

RECOMMENDED = 0.2
ALIKE = 1.0
"""Shares of slower jobs that differ by less count as equal, percentage points."""

MEDIAN, MEAN, TOO_SLOW = "JCT, p50", "mean JCT", f"share of jobs slower by more than {SLOWER:g} %"

MOST_MEAN = "no schedule more than, mean JCT"
ABOVE = "mean JCT above its bound"

Setting = tuple[str, str, float]
"""priority, srpt, m."""


def gains(finished: FinishedSweep, row: Row, base: Row) -> dict[str, float]:
    """Compare a run with Tez's of the same stream, %: jobs one by one, and as a whole."""
    gain = 100.0 * (1.0 - jct_s(finished.table(row)) / jct_s(finished.table(base)))
    return {
        MEDIAN: float(np.median(gain)),
        "JCT, p75": float(np.percentile(gain, 75)),
        "share of jobs slower": 100.0 * float((gain < 0).mean()),
        TOO_SLOW: 100.0 * float((gain < -SLOWER).mean()),
        "JCT, worst job": float(gain.min()),
        MEAN: 100.0 * (1.0 - row["jct_mean_s"] / base["jct_mean_s"]),
        "makespan": 100.0 * (1.0 - row["makespan_s"] / base["makespan_s"]),
        **above_bound(row),
    }


def most(row: Row) -> dict[str, float]:
    """Give what a schedule as short as the bound would gain on a run's mean JCT, %, if known."""
    if "jct_mean_lb_s" not in row:
        return {}
    return {MOST_MEAN: 100.0 * (1.0 - row["jct_mean_lb_s"] / row["jct_mean_s"])}


def above_bound(row: Row) -> dict[str, float]:
    """Give how far a run's mean JCT is above what any schedule's must be, %, if that is known."""
    return {ABOVE: 100.0 * row["gap_lb_mean"]} if "gap_lb_mean" in row else {}


def _of_seeds(finished: FinishedSweep) -> Iterator[tuple[Row, dict[str, float]]]:
    """Give each cell that is not Tez's, and what it gains on Tez's of its stream and load."""
    for cells in finished.group_by("trace", "capacity", "seed").values():
        base = next(row for row in cells if row["policy"] == TEZ)
        for row in cells:
            if row is not base:
                yield row, gains(finished, row, base)


def choice(finished: FinishedSweep) -> Findings:
    """Say of each setting what the rule looks at, and which one it takes."""
    found: dict[Setting, dict[tuple[str, float], list[dict[str, float]]]] = {}
    for row, gain in _of_seeds(finished):
        setting = (row["policy.priority"], row["policy.srpt"], float(row["policy.m"]))
        stream = (row["trace"], row["capacity"])
        found.setdefault(setting, {}).setdefault(stream, []).append(gain)
    sums = {setting: _looked_at(list(streams.values())) for setting, streams in found.items()}
    for setting, values in sums.items():
        for what, value in values.items():
            yield Finding(_words(setting), what, value)
    taken = rule(sums)
    yield Finding("what the rule takes", _words(taken), sums[taken][TOO_SLOW])


WORSE = "streams and loads at which the median or the mean is worse than Tez's"


def _looked_at(streams: Sequence[Sequence[dict[str, float]]]) -> dict[str, float]:
    """Sum up a setting: each stream and load is the mean over its seeds."""
    median, mean, slow = (
        np.array([np.mean([gain[name] for gain in seeds]) for seeds in streams])
        for name in (MEDIAN, MEAN, TOO_SLOW)
    )
    return {
        WORSE: float(((median < 0) | (mean < 0)).sum()),
        f"least {MEDIAN}, %": float(median.min()),
        f"least {MEAN}, %": float(mean.min()),
        f"average {MEAN}, %": float(mean.mean()),
        TOO_SLOW: float(slow.mean()),
    }


def rule(sums: dict[Setting, dict[str, float]]) -> Setting:
    """Take a setting by the rule of docs/decisions/0013-what-is-left.md."""
    fewest = min(of[WORSE] for of in sums.values())
    left = [setting for setting, of in sums.items() if of[WORSE] == fewest]
    left = [setting for setting in left if setting[2] in RANGE] or left
    least = min(sums[setting][TOO_SLOW] for setting in left)
    alike = [setting for setting in left if sums[setting][TOO_SLOW] <= least + ALIKE]
    return min(
        alike,
        key=lambda of: (of[1] != "pending", round(abs(of[2] - RECOMMENDED), 9), sums[of][TOO_SLOW]),
    )


def _words(setting: Setting) -> str:
    priority, srpt, m = setting
    return f"priority={priority}, srpt={srpt}, m={m:g}"


def judged(finished: FinishedSweep) -> Findings:
    """Give the improvement over Tez, %, of each stream and load: the mean over its seeds.

    What is wanted is asked of the default alone: neither the median nor the mean worse than Tez's,
    the paper's medians within a quarter, and no more jobs that are much slower than the paper has.
    """
    found: dict[tuple[str, float], dict[str, dict[str, list[float]]]] = {}
    for row, gain in _of_seeds(finished):
        of_policy = found.setdefault((row["trace"], row["capacity"]), {})
        for name, value in gain.items():
            of_policy.setdefault(row["policy"], {}).setdefault(name, []).append(value)
    bounds: dict[tuple[str, float], list[float]] = {}
    for row in finished.cells:
        if row["policy"] == TEZ:
            bounds.setdefault((row["trace"], row["capacity"]), []).extend(most(row).values())
    for (trace, capacity), policies in found.items():
        figure = f"{trace}, load {1 / capacity:.2g} times, improvement over {TEZ} %"
        if bounds[trace, capacity]:
            yield Finding.from_seeds(figure, MOST_MEAN, bounds[trace, capacity])
        for policy, of_name in policies.items():
            for name, values in of_name.items():
                paper, wanted = _wanted(trace, capacity, name) if policy == "dagps" else ("", {})
                what = f"{policy}, {name}"
                yield Finding.from_seeds(figure, what, values, paper=paper, **wanted)


def _wanted(trace: str, capacity: float, name: str) -> tuple[str, dict[str, float]]:
    """Return the paper's figure, and what is wanted."""
    if name == TOO_SLOW:
        return "", {"at_most": 5.0}
    paper = printed("dagps", "fig10", trace, "dagps", name) if capacity == 1.0 else ""
    if name == MEDIAN and paper:
        return paper, near(float(paper), 0.25)
    return paper, {"at_least": 0.0} if name in (MEDIAN, MEAN) else {}
