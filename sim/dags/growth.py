"""How a measure of DAGs grows with their number of stages (Tian et al., SoCC 2019, Fig. 6)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sim.base.arrays import F8, I8
from sim.base.errors import InputError


def mean_by_size(n_stages: NDArray[np.integer], values: ArrayLike) -> tuple[I8, F8, I8]:
    """Average a measure over the jobs of each number of stages.

    Parameters
    ----------
    n_stages, values : (J,)
        Size and measure of each job.

    Returns
    -------
    sizes : (K,) int64
        The sizes that occur, ascending.
    means : (K,) float64
        Mean of the measure.
    counts : (K,) int64
        How many jobs it is the mean of.
    """
    sizes, place, counts = np.unique(n_stages, return_inverse=True, return_counts=True)
    total = np.bincount(place, weights=np.asarray(values, dtype=np.float64))
    return sizes.astype(np.int64), total / counts, counts.astype(np.int64)


def slope(x: ArrayLike, y: ArrayLike) -> float:
    """Fit a line by ordinary least squares and return its slope.

    Parameters
    ----------
    x, y : (N,)
        Points, of at least two different x.

    Raises
    ------
    InputError
        If all x are equal, or there are none.
    """
    across = np.asarray(x, dtype=np.float64)
    if not len(across) or (across == across[0]).all():
        raise InputError(f"a slope needs points at two x or more, not at {set(across.tolist())}")
    across = across - across.mean()
    return float(across @ np.asarray(y, dtype=np.float64) / (across @ across))
