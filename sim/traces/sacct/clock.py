"""Times of records: submission, start, end and run time; and clocks that were put back or forward.

``sacct`` prints local times. Where daylight saving ends, the clock is put back by an hour, and End
may come before Start. ``Elapsed`` is right even then; without it the run time is a guess.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from sim.base.arrays import F8, I8, Mask
from sim.base.reading import count_rule
from sim.traces.sacct.columns import (
    Log,
    are_all,
    local_times,
    numbers,
    spans_s,
    times_s,
)

JUMP_S = 3600.0
"""By this much clocks are put back and forward."""
MAX_JUMP_S = 7200.0
"""End, or Start, this much before what comes first is a sign of a clock that was put back."""
GUESS = "End before Start: 3600 s are added, as the clock may have been put back"
MIN_S = 60.0
"""A start this much before its submission is no matter of rounding."""
_IN_ROW = 3
"""Submissions in a row that all lie before as many earlier ones, where a clock was put back."""
MAX_DESCENTS = 0.05
"""Share of submissions that may go back in a log that is in their order."""
_SUNDAY, _MONTHS, _HOURS = 3, (3, 4, 9, 10, 11), 5
"""Clocks are put back early on a Sunday (1970-01-04 was one) in one of these months."""
_DAY_S = 86400.0
_MAX_DATES = 3


@dataclass(frozen=True, eq=False)
class Times:
    """Times of N records, s since 1970 in the log's time zone; NaN where unknown.

    Attributes
    ----------
    submit_s, eligible_s, start_s, end_s : (N,) float64
        As logged.
    finish_s : (N,) float64
        Start + run time + the time in which the job was suspended: never before the start.
    run_s : (N,) float64
        Run time; negative where it can't be known, as End is before Start.
    is_guess : (N,) bool
        The run time is a guess (`GUESS`).
    is_off : (N,) bool
        The clock changed by an hour while the job ran, by its run time.
    is_local : (N,) bool
        Logged in local time, not in seconds since 1970.
    """

    submit_s: F8
    eligible_s: F8
    start_s: F8
    end_s: F8
    finish_s: F8
    run_s: F8
    is_guess: Mask
    is_off: Mask
    is_local: Mask

    def take(self, rows: I8) -> Times:
        """Return those of some records."""
        if are_all(rows, len(self.run_s)):
            return self
        return Times(*(getattr(self, field.name)[rows] for field in fields(self)))


def read_times(log: Log) -> Times:
    """Read the times of each record; the run time is ``Elapsed`` where the log has it."""
    submit_s, eligible_s, start_s, end_s = (
        times_s(log, name) for name in ("Submit", "Eligible", "Start", "End")
    )
    suspended_s = spans_s(log, "Suspended")
    elapsed_s = _elapsed_s(log)
    span_s = end_s - start_s
    run_s = np.where(np.isnan(elapsed_s), span_s - np.nan_to_num(suspended_s), elapsed_s)
    with np.errstate(invalid="ignore"):
        is_guess = np.isnan(elapsed_s) & (span_s < 0) & (span_s + JUMP_S >= 0)
    is_local = local_times(log)
    is_guess &= is_local
    run_s[is_guess] = span_s[is_guess] + JUMP_S
    is_off = _clock_changes(span_s, run_s, suspended_s) & ~is_guess
    with np.errstate(invalid="ignore"):
        finish_s = np.where((span_s >= run_s) & ~is_off & ~is_guess, end_s, start_s + run_s)
    return Times(submit_s, eligible_s, start_s, end_s, finish_s, run_s, is_guess, is_off, is_local)


def _elapsed_s(log: Log) -> F8:
    elapsed_s = numbers(log, "ElapsedRaw")
    if "Elapsed" in log:
        elapsed_s = np.where(np.isnan(elapsed_s), spans_s(log, "Elapsed"), elapsed_s)
    return elapsed_s


def _clock_changes(span_s: F8, run_s: F8, suspended_s: F8) -> Mask:
    """Mark the records whose End is an hour off: the clock changed while they ran."""
    gap_s = span_s - run_s
    with np.errstate(invalid="ignore"):
        is_off = np.abs(np.abs(gap_s) - JUMP_S) <= 1.0
        return np.asarray(is_off & ~(np.abs(gap_s - suspended_s) <= 1.0))


def clock_sentence(times: Times, has_elapsed: bool, filled: dict[str, int]) -> Iterator[str]:
    """Count guessed run times; say that the clock was put back if the log shows it, else nothing.

    Signs are End before Start, Start before Submit, a difference of an hour between Elapsed and
    End - Start, and submissions, in the order of the log, that go back.
    """
    if not times.is_local.any():
        return
    count_rule(filled, GUESS, times.is_guess)
    span_s = times.end_s - times.start_s
    wait_s = times.start_s - times.submit_s
    with np.errstate(invalid="ignore"):
        signs = {
            "End before Start": (span_s < 0) & (span_s > -MAX_JUMP_S),
            "Start before Submit": (wait_s <= -MIN_S) & (wait_s > -MAX_JUMP_S),
            "End an hour off Start + Elapsed": (span_s >= 0) & times.is_off,
        }
    counts = [f"{n:,} with {sign}" for sign, rows in signs.items() if (n := int(rows.sum()))]
    dates = [times.start_s[rows] for rows in signs.values()]
    goes_back = _sundays_put_back(times.submit_s)
    counts += ["submissions go back"] if len(goes_back) else []
    days = np.unique(np.floor(np.concatenate([*dates, goes_back]) / _DAY_S))
    if not len(days):
        return
    names = [str(np.datetime64(int(day), "D")) for day in days[:_MAX_DATES]]
    more = f" and {len(days) - _MAX_DATES} more days" if len(days) > _MAX_DATES else ""
    wrong, cure = ("waits", "") if has_elapsed else ("run times and waits", ", or add Elapsed")
    yield (
        f"the clock was put back or forward, as where daylight saving ends, on {', '.join(names)}"
        f"{more} ({', '.join(counts)}): {wrong} across it may be an hour off; run sacct with "
        f"SLURM_TIME_FORMAT=%s{cure}"
    )


def elapsed_sentence(times: Times) -> Iterator[str]:
    """Say how many run times are longer than from start to end; suspension only shortens them."""
    with np.errstate(invalid="ignore"):
        span_s = times.end_s - times.start_s
        is_longer = (span_s >= 0) & (times.run_s - span_s > 1.0) & ~times.is_off
    n = int(is_longer.sum())
    if n:
        yield (
            f"Elapsed is longer than from Start to End in {n:,} of {len(is_longer):,} records: "
            "Elapsed counts, and the end follows from it"
        )


def _sundays_put_back(submit_s: F8) -> F8:
    """Return submissions from which on the clock is behind by up to an hour, in the log's order.

    A requeued job alone has a later submission than its neighbours, too.
    """
    submit_s = submit_s[~np.isnan(submit_s)]
    n = len(submit_s) - 2 * _IN_ROW + 1
    n_descents = int((np.diff(submit_s) < 0).sum())
    if n < 1 or n_descents > max(1, MAX_DESCENTS * n):
        return np.empty(0)  # too short, or in another order
    windows = [submit_s[i : i + n] for i in range(2 * _IN_ROW)]
    before = np.minimum.reduce(windows[:_IN_ROW])
    after = np.maximum.reduce(windows[_IN_ROW:])
    late = after[(before > after) & (before - after <= JUMP_S)]
    days = np.floor(late / _DAY_S).astype(np.int64)
    month = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) % 12 + 1
    is_sunday = days % 7 == _SUNDAY
    is_early = late - days * _DAY_S < _HOURS * 3600.0
    goes_back: F8 = late[is_sunday & is_early & np.isin(month, _MONTHS)]
    return goes_back
