"""When jobs come and how their sizes spread, so that the load in windows is as is wanted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from sim.base.arrays import F8
from sim.base.random import stream
from sim.describe.slearn import window_loads

N_SURGES = 3
"""How many times jobs come in quick succession."""

SURGE_PACE = 0.01
"""Mean gap between jobs in a surge, over that between others."""

_SIZES = (0.2, 0.5, 0.8, 1.1, 1.4, 1.7, 2.0, 2.5, 3.0)
_SURGING, _LAST_STEP = (0.0, 0.9, 10), 0.002
_NEAR, _NEAR_ENOUGH, _HOPELESS = 0.01, 0.04, 0.4


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

    They come at random times, but for a share of them that come in a few surges. That share is
    searched for so that median and 90th percentile of the load in windows come near to `load`, and
    time is stretched so that its mean does. Sizes spread as little as they can for that: else a few
    jobs would make up most of the work, and the load's variation be theirs.
    """
    works: dict[float, F8] = {}

    def at(shape: tuple[float, float], draw: tuple[F8, F8], rounds: int) -> tuple[F8, F8]:
        spread, surging = shape
        if spread not in works:
            works[spread] = work_of(spread)
        work_s = works[spread]
        return _stretched(_gaps(*draw, surging), work_s, load[0], n_slots, rounds), work_s

    def off(draw: tuple[F8, F8], spread: float, surging: float) -> float:
        return error_of(*at((spread, surging), draw, 2), load, n_slots)

    found: list[tuple[float, tuple[float, float], tuple[F8, F8]]] = []
    for number in range(draws):
        draw = _drawn(n_jobs, seed, number)
        for spread in _SIZES if size is None else (size,):
            surging, error = _least(partial(off, draw, spread))
            found.append((error, (spread, surging), draw))
            if error <= _NEAR_ENOUGH:
                break
        if found[-1][0] <= _NEAR_ENOUGH:
            break
    _, best, draw = min(found, key=lambda each: each[0])
    submit_s, work_s = at(best, draw, 3)
    return submit_s, best, error_of(submit_s, work_s, load, n_slots)


def _least(off: Callable[[float], float]) -> tuple[float, float]:
    """Return where in `_SURGING` a function is least, and how much it is there."""
    low, high, n = _SURGING
    shares = np.linspace(low, high, n)
    step = (high - low) / (n - 1)
    errors = [off(float(share)) for share in shares]
    best, error = float(shares[int(np.argmin(errors))]), min(errors)
    while _HOPELESS > error > _NEAR and step > _LAST_STEP:
        step /= 2
        for share in (best - step, best + step):
            share = min(max(share, low), high)
            if (tried := off(share)) < error:
                best, error = share, tried
    return best, error


def error_of(submit_s: F8, work_s: F8, load: tuple[float, float, float], n_slots: int) -> float:
    """Return how far the worse of two percentiles of the load is off, as a logarithm."""
    got = np.quantile(window_loads(submit_s, work_s, n_slots), [0.5, 0.9])
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


def _stretched(gap: F8, work_s: F8, mean: float, n_slots: int, rounds: int = 3) -> F8:
    time = np.concatenate([[0.0], np.cumsum(gap[:-1])])
    time *= work_s.sum() / (n_slots * mean * time[-1])
    for _ in range(rounds):
        time *= np.clip(window_loads(time, work_s, n_slots).mean() / mean, 0.5, 2.0)
    return time
