"""Answers of a backtest in words."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sim.workload.workload import Workload
from sweep.questions.backtest.compare import Comparison
from sweep.questions.backtest.logged_jobs import LoggedJobs
from sweep.questions.backtest.nearest import Ranking
from sweep.stats import reading

SMALL_LOG = 100
"""Jobs below which a log is small."""


def policy_sentence(
    label: str, log: LoggedJobs, compared: Comparison, *, with_completion: bool = False
) -> str:
    """Write how far a policy's runs are from the log.

    ``easy: mean wait 546 s [538, 560], recorded 573 (−4.7 %); of the 23 jobs that waited 70 % are
    within 10 %; 99.9 % of pairs start in the recorded order``
    """
    text = (
        f"{label}: mean wait {_s(compared.wait_mean_s)} s "
        f"[{_s(compared.low)}, {_s(compared.high)}], recorded {_s(float(log.wait_s.mean()))}"
    )
    if not math.isnan(compared.error):
        text += f" ({_signed(compared.error)})"
    n_waited = int(log.waited.sum())
    if n_waited:
        share = _percent(compared.waited_within_10pct)
        waited, verb = ("job", "is") if n_waited == 1 else ("jobs", "are")
        text += f"; of the {n_waited:,} {waited} that waited {share} {verb} within 10 %"
    else:
        text += "; no job waited"
    if not math.isnan(compared.pairs_in_order):
        text += f"; {_percent(compared.pairs_in_order)} of pairs start in the recorded order"
    if with_completion and not math.isnan(compared.completion_error):
        text += (
            f"; mean completion {_s(compared.completion_mean_s)} s, recorded "
            f"{_s(compared.completion_mean_recorded_s)} ({_signed(compared.completion_error)}), "
            f"a job's {_percent(compared.completion_mae)} off"
        )
    return text


def nearest_sentence(
    labels: Sequence[str],
    ranking: Ranking,
    *,
    is_in_order: bool = True,
    caveats: Sequence[str] = (),
) -> str:
    """Write which policy is nearest, and which a test tells from it.

    `is_in_order` is False for a log that no policy which serves one pool in order can have made;
    `caveats` are those of `log_caveats`.
    """
    best = labels[ranking.best]
    distinguished = [labels[k] for k in ranking.distinguished]
    undistinguished = [labels[k] for k in ranking.undistinguished]
    if len(labels) == 1:
        text = f"nearest: {best}, the only policy"
    elif not undistinguished:
        text = f"nearest: {best}; tests tell it from {_and(distinguished)}"
    else:
        text = f"nearest: {best}, but no test tells it from {_and(undistinguished)}"
        text += f"; told from {_and(distinguished)}" if distinguished else ""
    if not is_in_order:
        text += "; none of them can have made this log"
    return "; ".join((text, *caveats))


def log_caveats(workload: Workload) -> list[str]:
    """Write what forbids to trust a result on a log: work that is left out, and warnings."""
    log = reading.describe("", None, {"meta": workload.meta, "n_jobs": workload.n_jobs})
    if log is None:
        return []
    warned = ["mind the warning on the log"] if log.warnings else []
    return [*filter(None, [log.caveat]), *warned]


def cautions(log: LoggedJobs) -> list[str]:
    """Write what makes a log too small to judge by, besides what its audit says."""
    n_jobs = len(log.job)
    return [f"a small log: {n_jobs} jobs"] if n_jobs < SMALL_LOG else []


def _s(value: float) -> str:
    """Write seconds: whole ones from 100 on, three digits below."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _signed(fraction: float) -> str:
    percent = round(100 * fraction, 1) + 0.0  # no −0.0
    text = f"{percent:+.1f}".replace("-", "−")
    return f"{text} %"


def _percent(fraction: float) -> str:
    """Write a share; 100 % only where it is all."""
    percent = 100 * fraction
    if 99.95 <= percent < 100:
        return "more than 99.9 %"
    return f"{percent:.3g} %" if percent < 99.95 else "100 %"


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
