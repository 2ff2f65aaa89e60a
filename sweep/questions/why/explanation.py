"""Comparison of two runs job by job: which lost and won most, whose loss it is, and why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sim.base.arrays import F8, I8
from sim.base.errors import InputError
from sweep.driver.captured_run import Captured
from sweep.execution import job_facts
from sweep.questions.why import fronts, groups
from sweep.questions.why.attempts import read_attempts
from sweep.questions.why.groups import Facts, Group
from sweep.questions.why.splits import Split, Splitter

N_SHOWN, N_LOOKED_AT = 20, 100
"""Largest numbers of jobs that are shown on either side, and that are looked at in a group."""

ROUNDING = 1e-9
"""Relative differences of completion times that are none."""


@dataclass(frozen=True)
class Focus:
    """The jobs whose loss, or gain, it mainly is, and what they waited for.

    Attributes
    ----------
    is_loss : bool
        True if it is the loss, False if the gain.
    group : Group or None
        None if no natural group is small: then all jobs are meant.
    looked_at : (K,) int64
        Jobs of the group that lost most, at most `N_LOOKED_AT`; positions among those compared.
    share : float
        Their share of the whole loss.
    seconds : (dict of str to float, dict of str to float)
        Completion times of the looked-at jobs under the first policy and the second, s, by reason.
    behind : dict of (int, str) to float
        Behind whom they waited there, s; see `Split.behind`.
    """

    is_loss: bool
    group: Group | None
    looked_at: I8
    share: float
    seconds: tuple[Mapping[str, float], Mapping[str, float]]
    behind: Mapping[tuple[int, str], float]

    @property
    def front(self) -> list[tuple[int, float]]:
        """Other jobs behind which they waited, with the share of all of that, largest first."""
        total = sum(self.behind.values()) or 1.0
        shares: dict[int, float] = {}
        for (job, how), front_s in self.behind.items():
            if how != fronts.OWN:
                shares[job] = shares.get(job, 0.0) + front_s / total
        return sorted(shares.items(), key=lambda item: (-item[1], item[0]))

    @property
    def slow(self) -> int:
        """The policy under which they took longer, 0 or 1."""
        return 0 if self.is_loss else 1

    @property
    def longer(self) -> dict[str, float]:
        """By how much they took longer under the slower policy, s, by reason."""
        slow, fast = self.seconds[self.slow], self.seconds[1 - self.slow]
        return {r: slow.get(r, 0.0) - fast.get(r, 0.0) for r in {**slow, **fast}}


class Explanation:
    """Two runs of the same jobs: `names` are their policies, the first the one that is asked about.

    Attributes
    ----------
    jobs : (N,) int64
        Rows of the jobs that are done under both.
    n_jobs : int
        Number of all jobs.
    lost_s : (N,) float64
        Completion time under the first minus that under the second, s.
    """

    def __init__(self, runs: Sequence[Captured], names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._focuses: dict[bool, Focus] = {}
        self.runs = tuple(runs)
        self.splitters = tuple(Splitter(read_attempts(run)) for run in runs)
        first, second = (splitter.attempts.run for splitter in self.splitters)
        tables = [run.workload.jobs["job_id"] for run in (first, second)]
        if not tables[0].equals(tables[1]):
            raise InputError("the two cells ran different jobs: they can't be compared one by one")
        is_done = [~run.job_failed & np.isfinite(run.job_finish) for run in (first, second)]
        self.jobs = np.flatnonzero(is_done[0] & is_done[1])
        self.n_jobs = len(is_done[0])
        if not len(self.jobs):
            raise InputError("no job is done in both cells: nothing can be compared")

    @cached_property
    def jct_s(self) -> tuple[F8, F8]:
        """Completion times of the compared jobs under either policy, (N,) s."""
        runs = (splitter.attempts.run for splitter in self.splitters)
        first, second = ((run.job_finish - run.job_submit)[self.jobs] for run in runs)
        return first, second

    @cached_property
    def lost_s(self) -> F8:
        """Loss of each compared job, (N,) s; below 0 a gain."""
        first, second = self.jct_s
        lost = first - second
        return np.where(abs(lost) <= ROUNDING * np.maximum(first, second), 0.0, lost)

    @property
    def is_loss(self) -> bool:
        """True if the first policy loses on the whole: its mean is larger."""
        return bool(self.lost_s.sum() > 0)

    @cached_property
    def order(self) -> I8:
        """Positions of the compared jobs, those that lost most first; ties by row."""
        return np.argsort(-self.lost_s, kind="stable")

    @property
    def losers(self) -> list[int]:
        """Positions of the jobs that lost most."""
        return [k for k in self.order[:N_SHOWN].tolist() if self.lost_s[k] > 0]

    @property
    def winners(self) -> list[int]:
        """Positions of the jobs that won most."""
        back = np.argsort(self.lost_s, kind="stable")
        return [k for k in back[:N_SHOWN].tolist() if self.lost_s[k] < 0]

    def splits(self, position: int) -> tuple[Split, Split]:
        """Split the completion time of a compared job under both."""
        job = int(self.jobs[position])
        first, second = (splitter.split(job) for splitter in self.splitters)
        return first, second

    @cached_property
    def facts(self) -> Facts:
        """Facts of the compared jobs."""
        table = job_facts.facts(self.splitters[0].attempts.run.workload).take(self.jobs)
        users, queues = (table[name].to_pylist() for name in ("user", "queue"))
        numbers = (table[name].to_numpy() for name in ("n_tasks", "work_s"))
        n_tasks, work_s = (values.astype(np.float64) for values in numbers)
        submit_s = self.splitters[0].attempts.run.job_submit[self.jobs] + self.origin_s
        return Facts(n_tasks, work_s, submit_s, users, queues)

    @property
    def origin_s(self) -> float:
        """Zero of the runs' clock on that of the workload, s."""
        return float(self.runs[0].result.workload.origin_s)

    def focus(self, *, is_loss: bool) -> Focus:
        """Return the jobs whose loss it mainly is, or whose gain."""
        if is_loss not in self._focuses:
            self._focuses[is_loss] = self._focus(is_loss)
        return self._focuses[is_loss]

    def _focus(self, is_loss: bool) -> Focus:
        change_s = np.maximum(self.lost_s if is_loss else -self.lost_s, 0.0)
        group = groups.concentrated(self.facts, change_s)
        rows = np.ones(len(self.jobs), np.bool_) if group is None else group.rows
        order = np.argsort(-change_s, kind="stable")
        looked_at = order[(rows & (change_s > 0))[order]][:N_LOOKED_AT]
        seconds: tuple[dict[str, float], ...] = defaultdict(float), defaultdict(float)
        behind: dict[tuple[int, str], float] = {}
        for position in looked_at.tolist():
            both = self.splits(position)
            for sums, split in zip(seconds, both, strict=True):
                for reason, value in split.seconds.items():
                    sums[reason] += value
            fronts.add(behind, both[0 if is_loss else 1].behind)
        total = change_s.sum()
        share = float(change_s[looked_at].sum() / total) if total else 0.0
        return Focus(is_loss, group, looked_at, share, (seconds[0], seconds[1]), behind)
