"""What jobs with deadlines can be worth at most, whatever serves them: an integer program."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from policies.jockey.control import Utility

NODES: Final = 20
"""After so many the program's bound is taken as it is."""


def utility_bound(
    submit_s: ArrayLike,
    deadline_s: ArrayLike,
    work_s: ArrayLike,
    shortest_s: ArrayLike,
    tokens: int,
    worth: Utility,
    step_s: float = 60.0,
) -> float:
    """Return an upper bound on the sum of the utilities of J jobs, by an integer program.

    Each job finishes in some step of time, and is worth what it is at the step's begin. By the end
    of a step the jobs that are done by then, of those submitted since any instant, can have taken
    no more than all tokens all that time. What is returned is the program's own bound, within 1 %
    of its solution or after a number of steps that is always the same.
    """
    from scipy import optimize, sparse  # slow to import, and every command lists the policies

    submit, work = np.asarray(submit_s, dtype=float), np.asarray(work_s, dtype=float)
    earliest = submit + np.maximum(shortest_s, work / tokens)
    due = submit + np.asarray(deadline_s, dtype=float)
    begin_s = submit.min()
    last_s = max(submit.max() + work.sum() / tokens, earliest.max()) + step_s
    ends = begin_s + step_s * np.arange(1, int(np.ceil((last_s - begin_s) / step_s)) + 2)
    at = np.maximum(earliest[:, None], ends - step_s)  # (J, K)
    possible = earliest[:, None] <= ends
    job, step = np.nonzero(possible)
    value = worth(at - due[:, None])[job, step]
    column = np.arange(len(job))
    whole = sparse.coo_array((np.ones(len(job)), (job, column)))
    rows, limits = [], []
    for since in np.unique(submit):
        mine = submit[job] >= since
        for k, end in enumerate(ends):
            if end <= since:
                continue
            rows.append(np.where(mine & (step <= k), work[job], 0.0))
            limits.append(tokens * (end - since))
    limited = optimize.LinearConstraint(sparse.csr_array(np.array(rows)), -np.inf, limits)
    once = optimize.LinearConstraint(whole, 1.0, 1.0)
    solved = optimize.milp(
        -value,
        constraints=[limited, once],
        bounds=optimize.Bounds(0.0, 1.0),
        integrality=np.ones(len(job)),
        options={"node_limit": NODES, "mip_rel_gap": 0.01},
    )
    assert solved.mip_dual_bound is not None, solved.message
    return float(-solved.mip_dual_bound)
