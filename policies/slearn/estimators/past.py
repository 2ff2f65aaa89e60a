"""An estimator that goes by history alone."""

from __future__ import annotations

from policies.slearn.estimators.history import History
from policies.slearn.estimators.jobs import Jobs
from sim.engine.plan import World


class Past:
    """Sums what history says of each stage: mean task duration times tasks (NSDI 2022, §4.3, §6).

    With the utility it is 3Sigma, with the median Point-Est.
    """

    def __init__(self, world: World, history: History) -> None:
        self._jobs = Jobs(world)
        self._history = history

    def arrived(self, job: int, now: float, thin: bool) -> int:
        """Want no pilots; predict what will be judged when the job ends."""
        if thin:
            self.size_s(job, now)
        return 0

    def size_s(self, job: int, now: float) -> float:
        """Return the sum over the job's stages of predicted mean times number of tasks."""
        jobs, predict = self._jobs, self._history.predict
        stages = range(jobs.stage0[job], jobs.stage0[job + 1])
        return sum([predict(g, now) * jobs.n_tasks[g] for g in stages])

    def stage_done(self, stage: int, now: float) -> None:
        """Add it to the history."""
        self._history.learn(stage, self._jobs.mean_task_s(stage), now)

    def job_done(self, job: int, now: float) -> None:
        """Learn nothing more."""
