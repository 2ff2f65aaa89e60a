"""How many percent of a job's tasks are sampled: the adaptive algorithm of SLearn."""

from __future__ import annotations


class AdaptiveRatio:
    """The sampling ratio whose recent jobs ended soonest for their size (NSDI 2022, Fig. 4).

    The first T jobs sample 3 %, the second T 2 %, the third T 4 %. Then the ratio of the least
    score goes, its score being the mean normalised completion time of the last T + 1 jobs that
    used it (the figure drops one only when there are more than T, then appends). Where 2 % beats
    3 % by a tenth, 1 % is tried, and where 4 % does, 5 %.

    Two things that the figure leaves open: a ratio with no score yet is skipped, and while none
    has one the ratio is 3 %; of equal scores the smallest ratio goes.
    """

    def __init__(self, recent: int = 100) -> None:
        self.recent = recent
        self._n_jobs = 0
        self._jobs: dict[int, list[float]] = {}
        self._score: dict[int, float] = {}

    def percent(self) -> int:
        """Return the ratio for the next job, percent."""
        turn = self._n_jobs // self.recent
        self._n_jobs += 1
        if turn < 3:
            return (3, 2, 4)[turn]
        score = self._score
        if not score:
            return 3
        best = min(score, key=lambda percent: (score[percent], percent))
        if best in (2, 4) and 3 in score and score[3] > 1.1 * score[best]:
            return 1 if best == 2 else 5
        return best

    def update(self, percent: int, normalised_jct: float) -> None:
        """Take in how a job of that ratio fared: its completion time over its ideal one."""
        jobs = self._jobs.setdefault(percent, [])
        if len(jobs) > self.recent:
            del jobs[0]
        jobs.append(normalised_jct)
        self._score[percent] = sum(jobs) / len(jobs)
