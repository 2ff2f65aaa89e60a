"""Jobs of an explanation as rows: for a terminal, a page and data frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sweep.questions.why.explanation import Explanation
from sweep.questions.why.fronts import KINDS, LATER
from sweep.questions.why.sentences import SHORT, job_name, reason_words
from sweep.questions.why.splits import Split


@dataclass(frozen=True)
class JobRow:
    """A job that was compared, under both policies.

    Attributes
    ----------
    why : Explanation
        Of which it is a job.
    position : int
        Among the compared jobs.
    """

    why: Explanation
    position: int

    @property
    def job(self) -> int:
        """Row of the workload's jobs."""
        return int(self.why.jobs[self.position])

    @property
    def job_id(self) -> str:
        """Its name."""
        return job_name(self.why, self.job)

    @cached_property
    def splits(self) -> tuple[Split, Split]:
        """Its completion time under both, split."""
        return self.why.splits(self.position)

    @property
    def lost_s(self) -> float:
        """Difference of its completion times: how much longer it took under the first policy, s."""
        return float(self.why.lost_s[self.position])

    @property
    def slow(self) -> int:
        """The policy under which it took longer, 0 or 1."""
        return 0 if self.lost_s > 0 else 1

    @cached_property
    def longer(self) -> tuple[str, float]:
        """The reason that it mainly took longer there, and how much longer for that, s."""
        slow, fast = self.splits[self.slow], self.splits[1 - self.slow]
        change = {
            reason: slow.seconds.get(reason, 0.0) - fast.seconds.get(reason, 0.0)
            for reason in {**slow.seconds, **fast.seconds}
        }
        return max(change.items(), key=lambda item: item[1])

    @property
    def overtaken_share(self) -> float:
        """Share of what stood before it that came later than it did."""
        behind = self.splits[self.slow].behind
        total = sum(behind.values())
        later = sum(seconds for (_, how), seconds in behind.items() if how == LATER)
        return later / total if total else 0.0

    def in_front(self, policy: int, n: int) -> list[tuple[str, str, float]]:
        """Return who stood before it most: name, how, and seconds."""
        behind = self.splits[policy].behind
        first = sorted(behind, key=lambda key: (-behind[key], key[0], KINDS.index(key[1])))[:n]
        return [(job_name(self.why, job), how, behind[job, how]) for job, how in first]

    def facts(self) -> dict[str, Any]:
        """Return its facts, and how long it took."""
        facts, k = self.why.facts, self.position
        run = self.why.splitters[0].attempts.run
        numbers = {
            "estimate_s": float(run.estimate_s[self.job]),
            "requested_s": float(run.workload.columns.job_requested[self.job]),
        }
        known = {"user": facts.user[k], "queue": facts.queue[k]}
        return {
            "job_id": self.job_id,
            **{name: value for name, value in known.items() if value},
            "n_tasks": int(facts.n_tasks[k]),
            "work_s": float(facts.work_s[k]),
            **{name: value for name, value in numbers.items() if not np.isnan(value)},
            "submit_s": float(facts.submit_s[k]),
            "jct_s": float(self.why.jct_s[0][k]),
            "jct_other_s": float(self.why.jct_s[1][k]),
            "lost_s": self.lost_s,
        }


def rows(why: Explanation, positions: Sequence[int]) -> list[JobRow]:
    """Return rows of some compared jobs."""
    return [JobRow(why, position) for position in positions]


def reasons_of(job_rows: Sequence[JobRow]) -> list[str]:
    """Return the reasons that occur in some rows, those that took most time first."""
    seconds: dict[str, float] = {}
    for row in job_rows:
        for split in row.splits:
            for reason, value in split.seconds.items():
                seconds[reason] = seconds.get(reason, 0.0) + value
    return sorted((r for r in seconds if seconds[r] > 0), key=lambda r: -seconds[r])


def longer_words(row: JobRow, *, is_short: bool = False) -> str:
    """Say what it mainly took longer for, such as "cpu"."""
    words = reason_words(row.longer[0])
    return SHORT.get(row.longer[0], words) if is_short else words
