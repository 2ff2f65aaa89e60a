"""The three workloads of Jajoo et al., NSDI 2022: one fitted, two that are assumed like it.

`presets.yaml` beside this file says in what the others differ from the fitted one, and why.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from sim.base import maths
from sim.base.arrays import F8
from sim.synth.recurring.tables import BOUNDS_S, Stratum, Tables, read_tables

_HERE = Path(__file__).parent
KINDS = ("thin small", "wide small", "thin large", "wide large")


@cache
def given() -> dict[str, dict[str, Any]]:
    """Return what each preset changes."""
    found: dict[str, dict[str, Any]] = yaml.safe_load(
        (_HERE / "presets.yaml").read_text(encoding="utf-8")
    )
    return found


def preset(name: str) -> Tables:
    """Return the tables of a preset."""
    changes: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in given()[name].items()
    }
    tables = read_tables(_HERE / "google2011.json")
    bins, job_work_s = changes.pop("bins", None), changes.pop("job_work_s", None)
    for number, by in enumerate(changes.pop("stretch", ())):
        rows = [_like(each, number) for each in tables.strata]
        strata = [
            _longer(each, by) if mine else each
            for each, mine in zip(tables.strata, rows, strict=True)
        ]
        tables = replace(tables, strata=tuple(strata))
    widths = changes.pop("widths", None)
    if bins is not None:
        tables = _as_bins(tables, bins, job_work_s)
    if widths is not None:
        tables = replace(tables, strata=tuple(_as_wide(each, widths) for each in tables.strata))
    changes.pop("recurring", None)
    return replace(tables, **changes)


def _as_bins(tables: Tables, bins: dict[str, list[float]], job_work_s: float) -> Tables:
    """Give each kind of jobs its share of them and of the work.

    Sizes keep their order. Small jobs are all made smaller alike; sizes of large ones are
    stretched, as logarithms, from where large begins, until their mean is right.
    """
    strata = list(tables.strata)
    for number, kind in enumerate(KINDS):
        rows = [i for i, each in enumerate(strata) if _like(each, number)]
        jobs, work = bins[kind]
        of = sum(strata[i].jobs for i in rows)
        logs = [maths.log(np.array(strata[i].work_s)) for i in rows]
        weight = [strata[i].jobs / of for i in rows]
        mean_s = work * job_work_s / jobs
        stretch = _stretch(logs, weight, mean_s) if number > 1 else 1.0
        is_s = _mean(logs, weight, stretch)
        for i in rows:
            each = _longer(strata[i], stretch)
            work_s = tuple(size_s * mean_s / is_s for size_s in each.work_s)
            strata[i] = replace(each, jobs=each.jobs * jobs / of, work_s=work_s)
    return replace(tables, strata=tuple(strata))


def _like(each: Stratum, kind: int) -> bool:
    return 2 * each.large + (not each.thin) == kind


def _longer(each: Stratum, stretch: float) -> Stratum:
    logs = _stretched(maths.log(np.array(each.work_s)), stretch)
    return replace(each, work_s=tuple(maths.exp(logs).tolist()))


def _stretched(logs: F8, stretch: float) -> F8:
    base = maths.log(BOUNDS_S[0])
    return base + stretch * (logs - base)


def _stretch(logs: list[F8], weight: list[float], mean_s: float) -> float:
    """Return by what to stretch so that sizes have a mean, by bisection."""
    low, high = 0.0, 8.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _mean(logs, weight, middle) < mean_s else (low, middle)
    return (low + high) / 2


def _mean(logs: list[F8], weight: list[float], stretch: float) -> float:
    return sum(
        share * float(maths.exp(_stretched(each, stretch)).mean())
        for share, each in zip(weight, logs, strict=True)
    )


def _as_wide(each: Stratum, widths: dict[str, Any]) -> Stratum:
    """Give wide jobs of the first queues a width of their own, and others none below it."""
    if each.thin:
        return each
    least, share = widths["tasks"], widths["share"] if each.work_s[0] < widths["below_s"] else 0.0
    rest = [(n, w) for n, w in each.widths if n > least]
    total = sum(w for _, w in rest)
    own = ((least, share * total / (1 - share)),) if share else ()
    return replace(each, widths=(*own, *rest))
