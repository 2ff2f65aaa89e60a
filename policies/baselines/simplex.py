"""Simplex method on a dense tableau, of operations that give the same bits on every processor."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8

ZERO = 1e-10
"""Magnitude below which a coefficient counts as 0."""


def maximise(gain: F8, limits: F8, right: F8) -> F8:
    """Return x >= 0 of the greatest gain · x with limits · x <= right.

    A column enters by the greatest gain, and after as many pivots as there are columns by Bland's
    rule, which never cycles.

    Parameters
    ----------
    gain : (n,) float64
    limits : (m, n) float64
    right : (m,) float64
        0 or more, so that x = 0 is a beginning; and such that no gain grows for ever.

    Returns
    -------
    (n,) float64
    """
    m, n = limits.shape
    tableau = np.zeros((m + 1, n + m + 1))
    tableau[:m, :n], tableau[:m, n : n + m], tableau[:m, -1] = limits, np.eye(m), right
    tableau[m, :n] = -gain
    basis, n_pivots = np.arange(n, n + m), 0
    while True:
        cost = tableau[m, :-1]
        column = int(np.argmin(cost) if n_pivots < n + m else np.argmax(cost < -ZERO))
        if cost[column] >= -ZERO:
            break
        bounds = tableau[:m, column] > ZERO
        ratio = np.full(m, np.inf)
        ratio[bounds] = tableau[:m, -1][bounds] / tableau[:m, column][bounds]
        rows = np.flatnonzero(ratio <= ratio.min() + ZERO * ZERO)
        row = int(rows[np.argmin(basis[rows])])
        tableau[row] /= tableau[row, column]
        rest = tableau[:, column].copy()
        rest[row] = 0.0
        tableau -= rest[:, None] * tableau[row][None, :]
        basis[row] = column
        n_pivots += 1
    x = np.zeros(n + m)
    x[basis] = tableau[:m, -1]
    return np.maximum(x[:n], 0.0)
