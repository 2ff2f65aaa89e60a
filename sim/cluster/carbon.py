"""Carbon-aware provisioning: a cap on what a cluster uses, lower while electricity is dirty.

CAP (Lechowicz et al., *Carbon- and precedence-aware scheduling for data processing clusters*,
arXiv 2502.09717): a share of the cluster may always be used, and each further unit at and below a
threshold of the carbon intensity. The thresholds are those of k-min search (Lorenz, Panagiotou and
Steger, *Optimal algorithms for k-search with application in option pricing*, Algorithmica 2009),
between the bounds of the intensity in the time to come.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sim.base import maths
from sim.base.arrays import F8
from sim.base.errors import InputError
from sim.base.parameters import Positive, check, check_keys
from sim.cluster.caps import Cap
from sim.cluster.power import CARBON, Series

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster

HORIZON_S = 48 * 3600.0
"""Time to come in which the bounds of the intensity are known, s."""
N_STEPS = 10_000
"""Steps of a series that repeats for which it is followed after the last submission."""
Step = tuple[float, float, float]
"""Intensity, and the least and greatest of the time to come."""
_KEYS = ("share", "horizon_s", "bounds")


def thresholds(low: float, high: float, n: int) -> F8:
    """Return the intensities at and below which 1, 2, ... n more units are used, descending, (n,).

    The i-th is high · (1 - (1 - 1/α) (1 + 1/(α n))^(i-1)), where α is the competitive ratio of
    n-min search: (1 + 1/(α n))^n (1 - 1/α) = 1 - low / high.
    """
    if low == high:
        return np.full(n, high)
    gap = 1.0 - low / high
    inverse = maths.root(lambda x: maths.power(1 + x / n, float(n)) * (1 - x) - gap, 0.0, 1.0)
    steps: F8 = maths.power(1 + inverse / n, np.arange(n, dtype=np.float64))
    return high * (1 - (1 - inverse) * steps)


def carbon_cap(cluster: Cluster, options: Mapping[str, Any], last_s: float) -> Cap:
    """Return the cap of a policy's option ``carbon``, its changes s after the first submission.

    Parameters
    ----------
    cluster : Cluster
        A cluster whose power is metered, with a carbon intensity.
    options : mapping
        share : part of the cluster that may always be used (B / K of the paper), 0.2 by default;
        horizon_s : time to come whose least and greatest intensities are known, `HORIZON_S` by
        default; bounds : [least, greatest] at all times, instead of those.
    last_s : float
        Last submission, s after the first.

    Raises
    ------
    InputError
        On a wrong option, or if the cluster has no carbon intensity.
    """
    check_keys("policy.carbon", options, _KEYS, "carbon")
    share, bounds = options.get("share", 0.2), options.get("bounds")
    horizon_s = options.get("horizon_s", HORIZON_S)
    check("policy.carbon.share", share, Positive)
    check("policy.carbon.horizon_s", horizon_s, Positive)
    power = cluster.power
    if power is None or CARBON not in power.series:
        raise InputError(
            f"policy.carbon needs the carbon intensity of electricity; set cluster.power.{CARBON}",
            rule="carbon",
        )
    if share >= 1 or (bounds is not None and not _are_bounds(bounds)):
        raise InputError(
            "policy.carbon: share must be below 1, and bounds two intensities, the lower first, "
            f"not {dict(options)!r}",
            rule="carbon",
        )
    name = power.resource or cluster.devices or cluster.resources[0]
    total = float(cluster.capacity[:, cluster.resources.index(name)].sum())
    always = max(1.0, float(np.rint(share * total)))
    at_s, steps = steps_ahead(power.series[CARBON], last_s, horizon_s)
    numbers = []
    n, known = int(total - always), dict[Step, float]()
    for step in steps:
        if step not in known:
            low, high = step[1:] if bounds is None else bounds
            n_open = int(np.count_nonzero(thresholds(float(low), float(high), n) >= step[0]))
            known[step] = total if n_open == n else always + n_open
        numbers.append(known[step])
    changes = [
        (float(time_s), number)
        for i, (time_s, number) in enumerate(zip(at_s.tolist(), numbers, strict=True))
        if i > 0 and number != numbers[i - 1]
    ]
    if numbers[-1] != total:
        changes.append((float(at_s[-1]), total))
    return Cap(name, numbers[0], name="policy.carbon", changes=tuple(changes))


def steps_ahead(series: Series, last_s: float, horizon_s: float) -> tuple[F8, Iterator[Step]]:
    """Return when the intensity changes, and what it is from then on, with its bounds ahead.

    The first time is 0; steps ahead begin before the horizon ends. A series that repeats is
    followed for `N_STEPS` after the last submission.
    """
    from_s, value, repeat_s = series.from_s, series.value, series.repeat_s
    end_s, repeats = math.inf, math.isfinite(repeat_s)
    if repeats:
        end_s = last_s + math.ceil(N_STEPS / len(value)) * repeat_s
        n = math.ceil((series.offset_s + end_s + min(horizon_s, repeat_s)) / repeat_s) + 1
        from_s = np.add.outer(np.arange(n) * repeat_s, from_s).ravel()
        value = np.tile(value, n)
    at_s = from_s - series.offset_s
    first = int(np.searchsorted(at_s, 0.0, side="right")) - 1
    at_s, value = np.maximum(at_s[first:], 0.0), value[first:]
    ends = np.searchsorted(at_s, at_s + horizon_s, side="left")
    n = int(np.searchsorted(at_s, end_s, side="right"))
    if repeats and repeat_s <= horizon_s:
        low, high = float(series.value.min()), float(series.value.max())
        return at_s[:n], ((now, low, high) for now in value[:n].tolist())
    ahead = (value[i : max(int(ends[i]), i + 1)] for i in range(n))
    return at_s[:n], ((float(v[0]), float(v.min()), float(v.max())) for v in ahead)


def _are_bounds(bounds: Any) -> bool:
    if not isinstance(bounds, Sequence) or len(bounds) != 2:
        return False
    return all(isinstance(x, int | float) for x in bounds) and 0 <= bounds[0] <= bounds[1]
