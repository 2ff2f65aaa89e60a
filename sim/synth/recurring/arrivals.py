"""When jobs come and how their sizes spread, so that the load in windows is as is wanted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sim.random import stream
from sim.windows import loads

F8 = NDArray[np.float64]

N_SURGES = 3
"""How many times jobs come in quick succession."""

SURGE_PACE = 0.01
"""Mean gap between jobs in a surge, over that between others."""

_LOW, _HIGH = (0.1, 0.0), (4.0, 0.9)
_SIZES, _SURGING = (0.2, 0.6, 1.0, 1.5, 2.0, 2.6), (0.0, 0.15, 0.3, 0.5, 0.7)
_MOVES = np.array([(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, -1), (1, -1), (-1, 1)])
_FIRST_STEP, _LAST_STEP = 0.2, 0.01
_NEAR, _NEAR_ENOUGH = 0.01, 0.04


def fitted(
    work_of: Callable[[float], F8],
    n_jobs: int,
    load: tuple[float, float, float],
    n_slots: int,
    seed: int,
    size: float | None = None,
    draws: int = 1,
) -> tuple[F8, tuple[float, float], float]:
    """Draw when jobs come.

    They come at random times, but for a share of them that come in a few surges. That share and the
    spread of sizes are searched for so that median and 90th percentile of the load in windows come
    near to `load`, and time is stretched so that its mean does.

    Parameters
    ----------
    work_of : callable
        From a spread of sizes to the work of each job in the order in which they come, (J,) s.
    n_jobs : int
        Their number J.
    load : tuple of float
        Wanted mean, median and 90th percentile of the load in windows (`sim.windows.loads`).
    n_slots : int
        Of the cluster.
    seed : int
        Seed of the gaps.
    size : float, optional
        Spread of sizes; left out, it is searched for.
    draws : int
        How many times gaps may be drawn anew where the load does not come near.

    Returns
    -------
    submit_s : (J,) float64
        From 0, ascending.
    shape : tuple of float
        Spread of sizes, and share of the jobs that come in surges.
    error : float
        How far the worse of the two percentiles is off, as a logarithm.
    """
    works: dict[float, F8] = {}

    def at(shape: F8, draw: tuple[F8, F8]) -> tuple[F8, F8]:
        spread = float(shape[0])
        if spread not in works:
            works[spread] = work_of(spread)
        work_s = works[spread]
        return _stretched(_gaps(*draw, float(shape[1])), work_s, load[0], n_slots), work_s

    def off(shape: F8, draw: tuple[F8, F8]) -> float:
        return error_of(*at(shape, draw), load, n_slots)

    directions = _MOVES if size is None else _MOVES[_MOVES[:, 0] == 0]
    found: list[tuple[float, F8, tuple[F8, F8]]] = []
    for number in range(draws):
        draw = _drawn(n_jobs, seed, number)
        sizes = _SIZES if size is None else (size,)
        grid = [np.array((one, surging)) for one in sizes for surging in _SURGING]
        scores = [off(shape, draw) for shape in grid]
        best, error, step = grid[int(np.argmin(scores))], min(scores), _FIRST_STEP
        while error > _NEAR and step > _LAST_STEP:
            moves = np.clip(best + step * directions, _LOW, _HIGH)
            errors = [off(move, draw) for move in moves]
            least = int(np.argmin(errors))
            if errors[least] < error:
                best, error = moves[least], errors[least]
            else:
                step /= 2
        found.append((error, best, draw))
        if error <= _NEAR_ENOUGH:
            break
    error, best, draw = min(found, key=lambda each: each[0])
    return at(best, draw)[0], (float(best[0]), float(best[1])), error


def error_of(submit_s: F8, work_s: F8, load: tuple[float, float, float], n_slots: int) -> float:
    """Return how far the worse of two percentiles of the load is off, as a logarithm."""
    got = np.quantile(loads(submit_s, work_s, n_slots), [0.5, 0.9])
    return float(np.abs(np.log(np.maximum(got, 1e-4) / load[1:])).max())


def _drawn(n: int, seed: int, number: int) -> tuple[F8, F8]:
    """Return the gaps of a Poisson process of pace 1, and how late in its part a surge begins."""
    gap = stream(seed, "recurring", "gaps", number).exponential(size=n)
    return gap, stream(seed, "recurring", "surges", number).random(N_SURGES)


def _gaps(gap: F8, late: F8, surging: float) -> F8:
    """Return the time from each job to the next one: a surge in each of equal parts of the jobs."""
    part, place = np.divmod(np.arange(len(gap)) * (N_SURGES / len(gap)), 1.0)
    since = place - (0.8 * (1 - surging) * late)[part.astype(np.int64)]
    found: F8 = np.where((since >= 0) & (since < surging), SURGE_PACE * gap, gap)
    return found


def _stretched(gap: F8, work_s: F8, mean: float, n_slots: int) -> F8:
    time = np.concatenate([[0.0], np.cumsum(gap[:-1])])
    time *= work_s.sum() / (n_slots * mean * time[-1])
    for _ in range(3):
        time *= np.clip(loads(time, work_s, n_slots).mean() / mean, 0.5, 2.0)
    return time
