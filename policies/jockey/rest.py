"""What is left of a running job, as a job of its own: its model is refreshed from what was seen."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from policies.jockey.model import Model
from policies.jockey.profile import Profile
from policies.jockey.shape import Shape
from sim.base.arrays import F8, I4


def rest_of(profile: Profile, left: I4, factor: F8) -> tuple[Profile, I4]:
    """Return the profile of what is left, and the stages it is made of.

    Stages that are done are left out, with the edges from them. Of two stages joined one to one
    task i of what is left of the one goes with task i of what is left of the other.
    """
    shape = profile.shape
    kept = np.flatnonzero(left > 0).astype(np.int32)
    new = np.full(len(left), -1, dtype=np.int32)
    new[kept] = np.arange(len(kept), dtype=np.int32)
    edge = (new[shape.parent] >= 0) & (new[shape.child] >= 0)
    rest = Shape(left[kept], new[shape.parent[edge]], new[shape.child[edge]], shape.kind[edge])
    width = np.diff(profile.sample0)
    stage = np.repeat(np.arange(len(left)), width)
    sample = left[stage] > 0
    part = left / shape.n_tasks
    made = dataclasses.replace(
        profile,
        shape=rest,
        sample0=np.concatenate([[0], np.cumsum(width[kept])]).astype(np.int64),
        run_s=(profile.run_s * factor[stage])[sample],
        init_s=(profile.init_s * factor[stage])[sample],
        n_failed=profile.n_failed[sample],
        work_s=(profile.work_s * part * factor)[kept],
        queued_s=(profile.queued_s * part * factor)[kept],
        longest_s=(profile.longest_s * factor)[kept],
        begin=profile.begin[kept],
        end=profile.end[kept],
    )
    return made, kept


@dataclass(frozen=True, eq=False)
class Rest:
    """A model of what was left of a job, that answers for the whole job."""

    model: Model  # of the rest
    kept: I4  # the stages of the rest, in the job
    part: F8  # what fraction of each was left when the model was made

    @property
    def shortest_s(self) -> float:
        """See `policies.jockey.model.Model`: of the rest."""
        return self.model.shortest_s

    def left_s(self, done: F8) -> F8:
        """See `policies.jockey.model.Model`."""
        return self.model.left_s(1.0 - (1.0 - done[self.kept]) / self.part)
