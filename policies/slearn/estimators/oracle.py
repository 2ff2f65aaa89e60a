"""An estimator that knows."""

from __future__ import annotations

from sim.engine.plan import World


class Oracle:
    """Says the truth: the sum of a job's task durations (SLearn, NSDI 2022, §5.1.3)."""

    def __init__(self, world: World) -> None:
        self._work = world.columns.job_work.tolist()

    def arrived(self, job: int, now: float, thin: bool) -> int:
        """Want no pilots."""
        return 0

    def size_s(self, job: int, now: float) -> float:
        """Return the job's size."""
        return float(self._work[job])

    def stage_done(self, stage: int, now: float) -> None:
        """Learn nothing."""

    def job_done(self, job: int, now: float) -> None:
        """Learn nothing."""
