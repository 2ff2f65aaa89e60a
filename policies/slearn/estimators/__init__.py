"""What a scheduler that does not know the truth expects of jobs, stages and tasks.

`stage_profiles` is what DAGPS goes by. The others tell `policies.slearn.gs` how large jobs are:
`histogram` and `history` learn over time, as 3Sigma does; `ratio` and `pilots` learn in space, as
SLearn does; `posterior` does both.
"""

from __future__ import annotations

from typing import Protocol


class Estimator(Protocol):
    """What `policies.slearn.gs` needs of an estimator; one object a run."""

    def arrived(self, job: int, now: float, thin: bool) -> int:
        """Take in that a job has come; return how many pilots it wants, 0 for none.

        A thin job gets none, and is not asked about: it goes first whatever its size.
        """

    def size_s(self, job: int, now: float) -> float:
        """Estimate the sum of a job's task durations, s, once its pilots have ended.

        NaN where nothing is known.
        """

    def stage_done(self, stage: int, now: float) -> None:
        """Take in that all tasks of a stage have ended."""

    def job_done(self, job: int, now: float) -> None:
        """Take in that a job has ended."""
