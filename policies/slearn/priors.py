"""What the past says of a stage, as a distribution: as wide as such predictions were off lately."""

from __future__ import annotations

import math
from collections.abc import Sequence

from policies.slearn.history import moments
from sim.base import maths
from sim.base.random import Normal
from sim.workload.history import NAMES, Features

SHORTEST_S = 1e-3
"""What takes less counts as this: logarithms are taken."""

RECENT = 100
"""Over about how many predictions the errors of a kind of group go: the T of SLearn's Fig. 4."""

OWN_RECENT = 10
"""The same of the errors of one group."""

LIKE = 4.0
"""How many errors of its own those of its kind count as beside them."""

UNKNOWN = Normal(0.0, math.inf)


class Errors:
    """Squared errors of the two ways to predict, the older the fainter."""

    __slots__ = ("_kept", "last", "mean", "n")

    def __init__(self, recent: int) -> None:
        self._kept = 1.0 - 1.0 / recent
        self.n = self.mean = self.last = 0.0

    def add(self, by_mean: float, by_last: float) -> None:
        """Take in by how much each way was off."""
        kept = self._kept
        self.n = kept * self.n + 1.0
        self.mean = kept * self.mean + by_mean * by_mean
        self.last = kept * self.last + by_last * by_last


class Runs:
    """Runs that share one value of one feature, in logarithms of mean task seconds."""

    __slots__ = ("errors", "last", "mean", "n")

    def __init__(self) -> None:
        self.n = 0
        self.mean = self.last = 0.0
        self.errors = Errors(OWN_RECENT)

    def add(self, log_s: float) -> None:
        """Take in a run that has ended."""
        self.n += 1
        self.mean += (log_s - self.mean) / self.n
        self.last = log_s if self.n == 1 else (self.last + log_s) / 2


Told = list[tuple[Runs, Errors, float, float]]


class Priors:
    """Predicts the logarithm of a stage's mean task duration, and how far off that may be.

    The runs of the same value of a feature predict it in two ways: by their mean, and by a mean of
    which the last run is a half, the one before a quarter, and so on. How far off a way is, is the
    mean square of what it was off by when like jobs came: the late errors of those runs, and
    beside them, as `LIKE` more, those of all groups of the kind, which are of the same feature and
    had seen about as many runs (1, 2 to 3, 4 to 7, ...), and one as by the mean of all that ended,
    so that what was hardly tried is not sure. Of a job whose first feature nobody had before only
    such jobs' errors count, not its groups' own: groups that tell known programs well may tell new
    ones badly. The least mean square is the variance of the prior, and that way's prediction its
    mean. All that ended is a group too.

    So a program with one run behind it is as sure as such programs were, and one that changed is
    not for a while. Everything that ended by `now` counts, history and simulated jobs alike, and
    nothing else. (3Sigma, EuroSys 2018, chooses among such predictors, and keeps histograms.)
    """

    def __init__(self, features: Features) -> None:
        now, past = features.codes
        self.codes: list[list[int]] = now.tolist()
        self._past: list[list[int]] = past.tolist()
        took = features.history_column("mean_task_s").clip(SHORTEST_S)
        self._past_log: list[float] = maths.log(took).tolist()
        self._moments = moments(features)
        self._moment = 0
        self._groups: list[dict[int, Runs]] = [{} for _ in NAMES]
        self._all, self._broad = Runs(), Errors(RECENT)
        # by feature and last of all runs; of known jobs, then of new ones
        kinds = range(2 * (len(NAMES) + 1))
        self._like = [[Errors(RECENT) for _ in range(32)] for _ in kinds]
        self._told: dict[int, tuple[bool, Told]] = {}

    def prior(self, stage: int, now: float) -> Normal:
        """Return what is known of a stage as its job comes; of infinite variance for nothing."""
        self._catch_up(now)
        new, told = self._told[stage] = self._ask(self.codes[stage])
        best, least = UNKNOWN
        if self._broad.n == 0.0:
            return UNKNOWN
        broad = self._broad.mean / self._broad.n
        for runs, like, mean, last in told:
            share, own = LIKE / (like.n + 1.0), runs.errors
            by_mean, by_last, n = share * (like.mean + broad), share * (like.last + broad), LIKE
            if not new:
                by_mean, by_last, n = by_mean + own.mean, by_last + own.last, n + own.n
            if by_mean < least * n:
                best, least = mean, by_mean / n
            if by_last < least * n:
                best, least = last, by_last / n
        return Normal(best, least)

    def learn(self, stage: int, mean_task_s: float, now: float) -> None:
        """Take in that a stage has ended."""
        self._catch_up(now)
        log_s = maths.log(max(mean_task_s, SHORTEST_S))
        self._add(self.codes[stage], self._told.pop(stage, (True, [])), log_s)

    def _ask(self, codes: Sequence[int]) -> tuple[bool, Told]:
        """Return whether the first feature is new, and what each group says, and its kind."""
        told: Told = []
        new = codes[0] not in self._groups[0]
        kind = len(NAMES) + 1 if new else 0
        for groups, code in zip(self._groups, codes, strict=True):
            runs = groups.get(code)
            if runs is not None:
                told.append((runs, self._like[kind][runs.n.bit_length()], runs.mean, runs.last))
            kind += 1
        runs = self._all
        if runs.n:
            told.append((runs, self._like[kind][runs.n.bit_length()], runs.mean, runs.last))
        return new, told

    def _add(self, codes: Sequence[int], asked: tuple[bool, Told], log_s: float) -> None:
        new, told = asked
        if told:
            self._broad.add(log_s - told[-1][2], log_s - told[-1][3])
        for runs, like, mean, last in told:
            like.add(log_s - mean, log_s - last)
            if not new:
                runs.errors.add(log_s - mean, log_s - last)
        for groups, code in zip(self._groups, codes, strict=True):
            if code >= 0:
                group = groups.get(code)
                if group is None:
                    group = groups[code] = Runs()
                group.add(log_s)
        self._all.add(log_s)

    def _catch_up(self, now: float) -> None:
        """Replay what of the history came and ended by `now`."""
        moments, at = self._moments, self._moment
        while at < len(moments) and moments[at][0] <= now:
            _, comes, row = moments[at]
            at += 1
            if comes:
                self._told[-1 - row] = self._ask(self._past[row])
            else:
                told = self._told.pop(-1 - row, (True, []))
                self._add(self._past[row], told, self._past_log[row])
        self._moment = at
