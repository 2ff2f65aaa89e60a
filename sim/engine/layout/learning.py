"""Layout of learnt durations (`sim.engine.plan.learning`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.errors import PolicyError
from sim.engine.plan import Plan


def learning_fields(plan: Plan) -> dict[str, NDArray[Any]]:
    """Return the fields of learnt durations; short ones if the run learns none."""
    learning, none = plan.learning, np.zeros(1)
    if learning is None:
        return {
            "p_learn": none,
            "p_learn_group": np.zeros((1, 1), np.int32),
            "state_learn_mean": none,
            "state_learn_work": none,
            "state_learn_tasks": none,
            "state_learn_runs": np.zeros(1, np.int64),
            "out_job_estimate": none,
        }
    if np.isnan(plan.stages["expected_s"]).any():
        raise PolicyError("plan.learning needs the stage column expected_s of all stages")
    if not learning.refresh_s > 0:
        raise PolicyError(f"plan.learning.refresh_s must be above 0 s, not {learning.refresh_s!r}")
    return {
        "p_learn": np.array([learning.guess_s, learning.prior_tasks, learning.refresh_s]),
        "p_learn_group": learning.group,
        "state_learn_mean": learning.mean_s,
        "state_learn_work": learning.work_s,
        "state_learn_tasks": learning.n_tasks,
        "state_learn_runs": learning.runs,
        "out_job_estimate": plan.estimate_s,
    }
