"""Upper bound on the total utility of jobs with deadlines under any policy: a linear program."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from sim.workload.utility import Utility

NODES = 1
"""Node limit of the integer program: cuts at the root prove most of the bound."""


def utility_bound(
    submit_s: ArrayLike,
    deadline_s: ArrayLike,
    work_s: ArrayLike,
    shortest_s: ArrayLike,
    tokens: int,
    utility: Utility,
    step_s: float = 60.0,
    whole: bool = False,
) -> float:
    """Return an upper bound on the sum of the utilities of J jobs, by a linear program.

    Each job finishes in some step of time, with the utility at the step's begin. For any instant
    and any step, the jobs submitted since that instant and done by the end of that step use at most
    all tokens in between. A job may be split over several ends, which no policy can do. With
    `whole` jobs are not split: an integer program with a node limit, and the bound it has proven.
    """
    from scipy import sparse  # slow to import, and every command lists the policies
    from scipy.optimize import Bounds, LinearConstraint, linprog, milp

    submit, work = np.asarray(submit_s, dtype=float), np.asarray(work_s, dtype=float)
    earliest = submit + np.maximum(shortest_s, work / tokens)
    due = submit + np.asarray(deadline_s, dtype=float)
    begin_s = submit.min()
    last_s = max(submit.max() + work.sum() / tokens, earliest.max()) + step_s
    ends = begin_s + step_s * np.arange(1, int(np.ceil((last_s - begin_s) / step_s)) + 2)
    end_s = np.maximum(earliest[:, None], ends - step_s)  # (J, K)
    possible = earliest[:, None] <= ends
    job, step = np.nonzero(possible)
    value = utility(end_s - due[:, None])[job, step]
    column = np.arange(len(job))
    job_sums = sparse.coo_array((np.ones(len(job)), (job, column)))
    rows, limits = [], []
    for since in np.unique(submit):
        submitted = submit[job] >= since
        for k, end in enumerate(ends):
            if end <= since:
                continue
            rows.append(np.where(submitted & (step <= k), work[job], 0.0))
            limits.append(tokens * (end - since))
    fits, limit = sparse.csr_array(np.array(rows)), np.array(limits)
    if whole:
        solution = milp(
            -value,
            constraints=[LinearConstraint(fits, -np.inf, limit), LinearConstraint(job_sums, 1, 1)],
            integrality=np.ones(len(job)),
            bounds=Bounds(0, 1),
            options={"node_limit": NODES},
        )
        return float(-solution.mip_dual_bound)
    solved = linprog(
        -value, A_ub=fits, b_ub=limit, A_eq=job_sums, b_eq=np.ones(len(submit)), bounds=(0, 1)
    )
    assert solved.status == 0, solved.message
    return float(-solved.fun)
