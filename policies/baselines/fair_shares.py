"""Fair shares of time on kinds of machines: the linear program of max-min fairness."""

from __future__ import annotations

import numpy as np

from policies.baselines.kinds import Kinds
from policies.baselines.simplex import maximise
from sim.base.arrays import F8, I8

MORE = 1e-4
"""Weight of the mean worth beside the least, so that nothing is left that harms nobody."""


def shares(kinds: Kinds, rows: I8, *, by_speed: bool = True) -> F8:
    """Return the share of time of some jobs by each option, (n, C): like jobs have equal ones.

    The least worth of a job's shares is as great as possible, and then almost their mean.
    """
    has = kinds.options(rows)
    worth = (kinds.worth[rows] if by_speed else 1.0) * has * kinds.share[rows, -1:]
    distinct, group, n = np.unique(
        np.hstack([worth, kinds.share[rows], has]), axis=0, return_inverse=True, return_counts=True
    )
    worth, share, has = np.split(distinct, 3, axis=1)
    worth = worth / worth.max()
    own, n_kinds = np.eye(len(n)), len(kinds.takes.T)
    objective = -worth[:, None, :] * own[:, :, None]  # least worth - own worth
    room = (n[:, None] * share)[None, :, :] * kinds.takes.T[:, None, :]
    time = own[:, :, None] * np.ones(worth.shape)[:, None, :]
    limits = np.vstack([part.reshape(len(part), -1) for part in (objective, room, time)])
    n_other = n_kinds + len(n)
    exists = np.append(has.ravel() > 0, True)  # and the last unknown is the least worth
    limits = np.column_stack([limits, np.repeat([1.0, 0.0], [len(n), n_other])])[:, exists]
    gain = np.append((MORE * n[:, None] * worth / n.sum()).ravel(), 1.0)[exists]
    part = np.zeros(len(exists))
    part[exists] = maximise(gain, limits, np.repeat([0.0, 1.0], [len(n), n_other]))
    by_option: F8 = part[:-1].reshape(worth.shape)[group.ravel()]
    return by_option
