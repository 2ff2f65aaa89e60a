"""Troubles of the cluster that a run met: outages of machines, slow periods, reservations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from sim.base.arrays import F8
from sim.base.text import format_count
from sim.engine.record import Run
from sim.metrics.common import POSITIVE, Metric

OUTAGES, SLOW_PERIODS = "outages_met", "slow_periods_met"
RESERVATIONS = "reservations_met"
METRICS = {
    OUTAGES: Metric("1", "lower", "outages of machines that began during the run", span=POSITIVE),
    SLOW_PERIODS: Metric(
        "1", "lower", "slow periods of the cluster, part of which was in the run", span=POSITIVE
    ),
    RESERVATIONS: Metric(
        "1",
        "lower",
        "advance reservations of machines that began during the run",
        span=POSITIVE,
    ),
}
_NOUNS = {
    OUTAGES: "outages",
    SLOW_PERIODS: "slow periods",
    RESERVATIONS: "reservations of machines",
}


def compute(run: Run, bounds: Mapping[str, F8]) -> dict[str, float]:
    """Count the outages, slow periods and reservations that begin in the run.

    ``outages_met``, ``slow_periods_met`` and ``reservations_met``, each only for a cluster that has
    some. The run is from the first submission to the last end of a task's job.
    """
    return {name: float((begin_s < _end_s(run)).sum()) for name, begin_s in _begins(run).items()}


def unmet(run: Run) -> Iterator[str]:
    """Yield a sentence for each kind of troubles of the cluster none of which is in the run.

    `run` is on its own clock (`sim.engine.clock`).
    """
    zero_s, end_s = _zero_s(run), _end_s(run)
    for name, begin_s in _begins(run).items():
        first_s = float(begin_s.min())
        if first_s >= end_s:
            yield (
                f"None of the cluster's {format_count(len(begin_s))} {_NOUNS[name]} is in the run: "
                f"the first begins {first_s - zero_s:g} s, and the run ends {end_s - zero_s:g} s "
                "from the first submission on"
            )


def _begins(run: Run) -> dict[str, F8]:
    """Return the begins of the cluster's troubles, s, by kind; without those that it has not."""
    begins = {
        OUTAGES: run.cluster.outages.down_s,
        SLOW_PERIODS: run.cluster.slowdowns.begin_s,
        RESERVATIONS: run.cluster.reservations.from_s,
    }
    return {name: begin_s for name, begin_s in begins.items() if len(begin_s)}


def _zero_s(run: Run) -> float:
    return float(run.workload.columns.job_submit[0]) if len(run.job_submit) else 0.0


def _end_s(run: Run) -> float:
    return float(np.nanmax(run.job_finish, initial=-np.inf))
