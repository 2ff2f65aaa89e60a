"""The heterogeneity amplifier."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from sim.base.arrays import F8
from sim.base.errors import InputError, unknown
from sim.knobs.parts import check_positive, rebuilt, replaced
from sim.workload.schema import DEMAND_PREFIX
from sim.workload.tables import values

if TYPE_CHECKING:
    from sim.workload.workload import Workload


def amplify(workload: Workload, ratio: float, metrics: Iterable[str] | None = None) -> Workload:
    """Make stages differ more: what is above the average grows, what is below shrinks.

    As in the paper's published generator, values above their metric's average are multiplied by
    `ratio`, the others divided by it, so that the extreme ones are that much further from it.

    Parameters
    ----------
    workload : Workload
        Real or synthesized.
    ratio : float
        The heterogeneity amplifier, positive; 1 changes nothing, less makes stages more alike.
    metrics : iterable of str, optional
        Of ``duration_s`` and ``demand_<resource>``; left out, all of them. A demand may grow
        beyond a machine: `fit_machines` cuts it.

    Raises
    ------
    InputError
        If `ratio` is not positive and finite, or there is no such metric.
    """
    check_positive("the heterogeneity ratio", ratio)
    known = ("duration_s", *(DEMAND_PREFIX + name for name in workload.resources))
    wanted = known if metrics is None else tuple(metrics)
    for name in wanted:
        if name not in known:
            raise InputError(unknown("metric", name, known), rule="unknown metric")
    stages, tasks, uniform = workload.stages, None, workload.stage_duration_s
    for name in wanted:
        if name != "duration_s":
            stages = replaced(stages, name, _apart(values(stages, name), ratio))
    if "duration_s" in wanted:
        if uniform is None:
            tasks = workload.tasks
            tasks = replaced(tasks, "duration_s", _apart(values(tasks, "duration_s"), ratio))
        else:
            uniform = _apart(uniform, ratio)
    return rebuilt(
        workload,
        stages=stages,
        tasks=tasks,
        duration_s=uniform,
        knob={"heterogeneity": float(ratio), "of": list(wanted)},
    )


def _apart(numbers: F8, ratio: float) -> F8:
    return np.where(numbers > numbers.mean(), numbers * ratio, numbers / ratio)
