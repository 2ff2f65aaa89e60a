"""Presets: the three workloads of Jajoo et al., NSDI 2022, one fitted and two derived from it.

`presets.yaml` beside this file holds the published numbers in which the two differ from the fitted
one, and the reasons.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from policies.slearn.recurring.tables import BOUNDS_S, Stratum, Tables, read_tables
from sim.base import maths
from sim.base.arrays import F8

_HERE = Path(__file__).parent
KINDS = ("thin small", "wide small", "thin large", "wide large")


@cache
def preset_changes() -> dict[str, dict[str, Any]]:
    """Return the changes of each preset to the fitted tables."""
    changes: dict[str, dict[str, Any]] = yaml.safe_load(
        (_HERE / "presets.yaml").read_text(encoding="utf-8")
    )
    return changes


def preset(name: str) -> Tables:
    """Return the tables of a preset."""
    changes: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in preset_changes()[name].items()
    }
    tables = read_tables(_HERE / "google2011.json")
    bins, job_work_s = changes.pop("bins", None), changes.pop("job_work_s", None)
    for kind, stretch in enumerate(changes.pop("stretch", ())):
        strata = [_stretch_sizes(s, stretch) if _is_kind(s, kind) else s for s in tables.strata]
        tables = replace(tables, strata=tuple(strata))
    widths = changes.pop("widths", None)
    if bins is not None:
        tables = _set_bins(tables, bins, job_work_s)
    if widths is not None:
        tables = replace(tables, strata=tuple(_set_min_width(s, widths) for s in tables.strata))
    changes.pop("recurring", None)
    return replace(tables, **changes)


def _set_bins(tables: Tables, bins: dict[str, list[float]], job_work_s: float) -> Tables:
    """Set the share of jobs and of work of each kind of jobs.

    Sizes keep their order. Small jobs are all scaled by one factor; the logarithms of the sizes of
    large ones are stretched, from the bound between small and large, until their mean is right.
    """
    strata = list(tables.strata)
    for kind, name in enumerate(KINDS):
        rows = [i for i, stratum in enumerate(strata) if _is_kind(stratum, kind)]
        jobs, work = bins[name]
        total = sum(strata[i].jobs for i in rows)
        logs = [maths.log(np.array(strata[i].work_s)) for i in rows]
        weight = [strata[i].jobs / total for i in rows]
        mean_s = work * job_work_s / jobs
        stretch = _find_stretch(logs, weight, mean_s) if kind > 1 else 1.0
        stretched_mean_s = _stretched_mean(logs, weight, stretch)
        for i in rows:
            stratum = _stretch_sizes(strata[i], stretch)
            work_s = tuple(size_s * mean_s / stretched_mean_s for size_s in stratum.work_s)
            strata[i] = replace(stratum, jobs=stratum.jobs * jobs / total, work_s=work_s)
    return replace(tables, strata=tuple(strata))


def _is_kind(stratum: Stratum, kind: int) -> bool:
    return 2 * stratum.large + (not stratum.thin) == kind


def _stretch_sizes(stratum: Stratum, stretch: float) -> Stratum:
    logs = _stretch_logs(maths.log(np.array(stratum.work_s)), stretch)
    return replace(stratum, work_s=tuple(maths.exp(logs).tolist()))


def _stretch_logs(logs: F8, stretch: float) -> F8:
    base = maths.log(BOUNDS_S[0])
    return base + stretch * (logs - base)


def _find_stretch(logs: list[F8], weight: list[float], mean_s: float) -> float:
    """Return the stretch at which sizes have the mean `mean_s`, by bisection."""
    low, high = 0.0, 8.0
    for _ in range(60):
        middle = (low + high) / 2
        is_below = _stretched_mean(logs, weight, middle) < mean_s
        low, high = (middle, high) if is_below else (low, middle)
    return (low + high) / 2


def _stretched_mean(logs: list[F8], weight: list[float], stretch: float) -> float:
    return sum(
        share * float(maths.exp(_stretch_logs(log_s, stretch)).mean())
        for share, log_s in zip(weight, logs, strict=True)
    )


def _set_min_width(stratum: Stratum, widths: dict[str, Any]) -> Stratum:
    """Set the minimum width of wide jobs; in the first queues a share of the jobs has just that."""
    if stratum.thin:
        return stratum
    n_min = widths["tasks"]
    share = widths["share"] if stratum.work_s[0] < widths["below_s"] else 0.0
    wider = [(n, w) for n, w in stratum.widths if n > n_min]
    total = sum(w for _, w in wider)
    narrowest = ((n_min, share * total / (1 - share)),) if share else ()
    return replace(stratum, widths=(*narrowest, *wider))
