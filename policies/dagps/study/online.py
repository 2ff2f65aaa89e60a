"""DAGPS's online half against Tez: the choice of its defaults, and their evaluation.

The rule is that of policies/dagps/decisions/0013-what-is-left.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sweep.questions.papers.figures import Findings, Row, jct_s, published, within
from sweep.report.findings import Finding, FinishedSweep

TEZ = "tez"
MAX_SLOWDOWN = 16.0
"""Largest slowdown of a job against Tez in the paper, % (§8.2.1)."""

BEST_M = (0.1, 0.2, 0.3)
"""The values of m that the paper finds best (§8.5)."""

RECOMMENDED = 0.2
TOLERANCE = 1.0
"""Shares of slower jobs that differ by less count as equal, percentage points."""

MEDIAN, MEAN, TOO_SLOW = (
    "JCT, p50",
    "mean JCT",
    f"share of jobs slower by more than {MAX_SLOWDOWN:g} %",
)

LIMIT_MEAN = "limit for any schedule, mean JCT"
ABOVE = "mean JCT above its bound"

Setting = tuple[str, str, float]
"""The parameters priority, srpt and m."""


def gains(finished: FinishedSweep, row: Row, base: Row) -> dict[str, float]:
    """Compare a run with Tez's run of the same stream, %: job by job, and as a whole."""
    gain = 100.0 * (1.0 - jct_s(finished.table(row)) / jct_s(finished.table(base)))
    return {
        MEDIAN: float(np.median(gain)),
        "JCT, p75": float(np.percentile(gain, 75)),
        "share of jobs slower": 100.0 * float((gain < 0).mean()),
        TOO_SLOW: 100.0 * float((gain < -MAX_SLOWDOWN).mean()),
        "JCT, worst job": float(gain.min()),
        MEAN: 100.0 * (1.0 - row["jct_mean_s"] / base["jct_mean_s"]),
        "makespan": 100.0 * (1.0 - row["makespan_s"] / base["makespan_s"]),
        **above_bound(row),
    }


def limit(row: Row) -> dict[str, float]:
    """Return the gain in mean JCT of a schedule as short as the lower bound, %, if known."""
    if "jct_mean_lb_s" not in row:
        return {}
    return {LIMIT_MEAN: 100.0 * (1.0 - row["jct_mean_lb_s"] / row["jct_mean_s"])}


def above_bound(row: Row) -> dict[str, float]:
    """Return the gap of a run's mean JCT to its lower bound, %, if known."""
    return {ABOVE: 100.0 * row["gap_lb_mean"]} if "gap_lb_mean" in row else {}


def _gains_by_cell(finished: FinishedSweep) -> Iterator[tuple[Row, dict[str, float]]]:
    """Yield each cell other than Tez's, with its gains over Tez's of the same stream and load."""
    for cells in finished.group_by("trace", "capacity", "seed").values():
        base = next(row for row in cells if row["policy"] == TEZ)
        for row in cells:
            if row is not base:
                yield row, gains(finished, row, base)


def choice(finished: FinishedSweep) -> Findings:
    """Compute the criteria of the rule for each setting, and the setting that it chooses."""
    by_setting: dict[Setting, dict[tuple[str, float], list[dict[str, float]]]] = {}
    for row, gain in _gains_by_cell(finished):
        setting = (row["policy.priority"], row["policy.srpt"], float(row["policy.m"]))
        stream = (row["trace"], row["capacity"])
        by_setting.setdefault(setting, {}).setdefault(stream, []).append(gain)
    criteria = {s: _criteria(list(streams.values())) for s, streams in by_setting.items()}
    for setting, values in criteria.items():
        for name, value in values.items():
            yield Finding(_label(setting), name, value)
    chosen = rule(criteria)
    yield Finding("chosen by the rule", _label(chosen), criteria[chosen][TOO_SLOW])


WORSE = "streams and loads at which the median or the mean is worse than Tez's"


def _criteria(streams: Sequence[Sequence[dict[str, float]]]) -> dict[str, float]:
    """Compute the rule's criteria of a setting; each stream and load is the mean over its seeds."""
    median, mean, slow = (
        np.array([np.mean([gain[name] for gain in seeds]) for seeds in streams])
        for name in (MEDIAN, MEAN, TOO_SLOW)
    )
    return {
        WORSE: float(((median < 0) | (mean < 0)).sum()),
        f"lowest {MEDIAN}, %": float(median.min()),
        f"lowest {MEAN}, %": float(mean.min()),
        f"average {MEAN}, %": float(mean.mean()),
        TOO_SLOW: float(slow.mean()),
    }


def rule(criteria: dict[Setting, dict[str, float]]) -> Setting:
    """Choose a setting by the rule of policies/dagps/decisions/0013-what-is-left.md."""
    fewest = min(values[WORSE] for values in criteria.values())
    candidates = [setting for setting, values in criteria.items() if values[WORSE] == fewest]
    candidates = [setting for setting in candidates if setting[2] in BEST_M] or candidates
    slow = {setting: criteria[setting][TOO_SLOW] for setting in candidates}
    lowest = min(slow.values())

    def preference(setting: Setting) -> tuple[bool, float, float]:
        _, srpt, m = setting
        return srpt != "pending", round(abs(m - RECOMMENDED), 9), slow[setting]

    return min((s for s in candidates if slow[s] <= lowest + TOLERANCE), key=preference)


def _label(setting: Setting) -> str:
    priority, srpt, m = setting
    return f"priority={priority}, srpt={srpt}, m={m:g}"


def judged(finished: FinishedSweep) -> Findings:
    """Compute the improvement over Tez, %, of each stream and load: the mean over its seeds.

    Expectations hold for the default alone: neither the median nor the mean worse than Tez's, the
    paper's medians within a quarter, and no more jobs that are much slower than the paper has.
    """
    by_stream: dict[tuple[str, float], dict[str, dict[str, list[float]]]] = {}
    for row, gain in _gains_by_cell(finished):
        policies = by_stream.setdefault((row["trace"], row["capacity"]), {})
        for name, value in gain.items():
            policies.setdefault(row["policy"], {}).setdefault(name, []).append(value)
    bounds: dict[tuple[str, float], list[float]] = {}
    for row in finished.cells:
        if row["policy"] == TEZ:
            bounds.setdefault((row["trace"], row["capacity"]), []).extend(limit(row).values())
    for (trace, capacity), policies in by_stream.items():
        figure = f"{trace}, load {1 / capacity:.2g} times, improvement over {TEZ} %"
        if bounds[trace, capacity]:
            yield Finding.from_seeds(figure, LIMIT_MEAN, bounds[trace, capacity])
        for policy, by_name in policies.items():
            for name, values in by_name.items():
                is_default = policy == "dagps"
                paper, expected = _expected(trace, capacity, name) if is_default else ("", {})
                label = f"{policy}, {name}"
                yield Finding.from_seeds(figure, label, values, paper=paper, **expected)


def arrivals(finished: FinishedSweep) -> Findings:
    """Compute Fig. 10 by reading of the arrivals (decision 55), and the readings' distances."""
    by_trace: dict[str, dict[str, dict[str, list[float]]]] = {}
    for row, gain in _gains_by_cell(finished):
        by_name = by_trace.setdefault(row["trace"], {}).setdefault(row["policy"], {})
        for name, value in gain.items():
            by_name.setdefault(name, []).append(value)
    distances: dict[str, list[float]] = {}
    for trace, schemes in by_trace.items():
        source, _, reading = trace.partition("_stream")
        for scheme, by_name in schemes.items():
            for name in (MEDIAN, "JCT, p75", "share of jobs slower", TOO_SLOW, MEAN):
                paper = published("dagps", "fig10", f"{source}_stream", scheme, name)
                figure = f"{trace}, improvement over {TEZ} %"
                finding = Finding.from_seeds(
                    figure, f"{scheme}, {name}", by_name[name], paper=paper
                )
                yield finding
                if paper:
                    distances.setdefault(reading, []).append(abs(finding.ours - float(paper)))
    for source in ("tpcds", "tpch"):
        fast, slow = (by_trace[f"{source}_stream{end}"]["dagps"][TOO_SLOW] for end in ("", "_25s"))
        points = [b - a for a, b in zip(fast, slow, strict=True)]
        yield Finding.from_seeds(f"{TOO_SLOW}, 25 s less 15 s, points", f"{source}, dagps", points)
    for reading, values in distances.items():
        label = reading.removeprefix("_") or "15s"
        yield Finding("mean distance to Fig. 10 (b), points", label, float(np.mean(values)))


def _expected(trace: str, capacity: float, name: str) -> tuple[str, dict[str, float]]:
    """Return the paper's value and the expected range."""
    if name == TOO_SLOW:
        return "", {"at_most": 5.0}
    paper = published("dagps", "fig10", trace, "dagps", name) if capacity == 1.0 else ""
    if name == MEDIAN and paper:
        return paper, within(float(paper), 0.25)
    return paper, {"at_least": 0.0} if name in (MEDIAN, MEAN) else {}
