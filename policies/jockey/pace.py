"""How many times the work of its training a job turns out to need, seen while it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from policies.jockey.profile import Profile
from sim.base.arrays import F8

PRIOR: Final = 0.05
"""That a job needs as much as in training counts like having seen this part of its work."""


@dataclass(eq=False)
class Pace:
    """The token seconds that a job has held, by looks at how many of its tasks run."""

    profile: Profile  # of its training
    looked_s: float  # when it was looked at last, s
    running: int = 0  # how many of its tasks ran then
    held_s: float = 0.0  # token seconds until then

    def look(self, now: float, running: int) -> None:
        """Count the time since the last look, with as many tasks as ran on average of the two."""
        self.held_s += (now - self.looked_s) * (self.running + running) / 2
        self.looked_s, self.running = now, running

    def factor(self, done: F8) -> float:
        """Return the work that was needed for what is done over that in training.

        Of tasks that run half a mean task is taken to be done; `PRIOR` keeps the first few tasks
        from counting much.
        """
        work_s = self.profile.token_s
        whole_s = float(work_s.sum())
        half_s = self.running * whole_s / float(self.profile.shape.n_tasks.sum()) / 2
        known_s = PRIOR * whole_s
        return (max(self.held_s - half_s, 0.0) + known_s) / (float(done @ work_s) + known_s)
