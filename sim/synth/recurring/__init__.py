"""Workloads of recurring jobs whose runtime drifts, like those of Jajoo et al., NSDI 2022.

Users run programs, under names, again and again. A run's tasks last longer or shorter than those
of the run before: the code was updated, the machines are other ones, the input is larger. How much
like jobs differ over time, and the tasks of a job over space, are what the workload is told; so is
the load in windows of time. Jobs of the past, from before time 0, are the workload's history.

The paper's traces are private or too large to ship. Its tables are what the presets aim at:
`presets` says what was published and what is assumed, ``meta["wanted, got"]`` how near a workload
came.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sim.base.errors import InputError, unknown
from sim.synth.recurring.programs import PRESETS, Drift

if TYPE_CHECKING:
    from sim.workload.workload import Workload

__all__ = ["PRESETS", "synthesize"]


def synthesize(
    preset: str = "2sigma",
    jobs: int = 1250,
    seed: int = 0,
    history: int = 6000,
    over_time: tuple[float, float] | None = None,
    over_space: tuple[float, float] | None = None,
    recurring: float | None = None,
    stale: tuple[float, float] | None = None,
    slots: int = 150,
    updates: float = Drift.updates,
    hardware: float = Drift.hardware,
    inputs: float = Drift.inputs,
    update_days: float = Drift.update_days,
) -> Workload:
    """Synthesize a workload of recurring jobs.

    Every job has one stage, and a task takes one slot (``cpu``). Jobs and the history have the
    features that predictors look for: ``application`` (the program), ``job_name`` (of half of the
    programs, with the version of the code), ``user`` and ``requested``.

    Parameters
    ----------
    preset : str
        Of `PRESETS`: ``2sigma``, ``google2011`` or ``google2019``.
    jobs : int
        How many, at least 50.
    seed : int
        Seed of all draws.
    history : int
        Jobs of the past: of the preset's days before time 0.
    over_time, over_space : tuple of float, optional
        Median and 90th percentile over jobs of how much like jobs vary over time, and tasks within
        a job (`sim.describe.slearn`); left out, the preset's.
    recurring : float, optional
        Share of jobs whose program runs more than once, 0 to 1; left out, the preset's.
    stale : tuple of float, optional
        Share of the jobs whose program has become faster since the history, 0 to 1, and the mean
        of the logarithm by which it has, positive; left out, the preset's.
    slots : int
        How many tasks can run at once where the load is 1.
    updates, hardware, inputs, update_days : float
        Why runs of a program differ: see `Drift`.

    Returns
    -------
    Workload
        ``meta["wanted, got"]`` has a pair for each figure aimed at.

    Raises
    ------
    InputError
        On an unknown preset or a number out of range.
    """
    from sim.synth.recurring.make import make  # loads what naming the options needs not

    if preset not in PRESETS:
        raise InputError(unknown("preset of recurring", preset, PRESETS), rule="unknown preset")
    for name, value, low in (("jobs", jobs, 50), ("history", history, 0), ("slots", slots, 1)):
        if type(value) is not int or value < low:
            raise InputError(f"{name} must be a whole number from {low} on, not {value!r}")
    for name, pair in (("over_time", over_time), ("over_space", over_space)):
        if pair is not None and not (len(pair) == 2 and 0 < pair[0] < pair[1] < 100):
            raise InputError(f"{name} must be two rising numbers between 0 and 100, not {pair!r}")
    recurring = PRESETS[preset].recurring if recurring is None else recurring
    if not 0 <= recurring <= 1:
        raise InputError(f"recurring must be between 0 and 1, not {recurring!r}")
    stale = _pair(PRESETS[preset].stale if stale is None else stale)
    if not (0 <= stale[0] <= 1 and 0 < stale[1] < math.inf):
        raise InputError(f"stale must be a share from 0 to 1 and a positive mean, not {stale!r}")
    drift = Drift(updates, hardware, inputs, update_days)
    if min(updates, hardware, inputs) < 0 or updates + hardware + inputs <= 0 or update_days <= 0:
        raise InputError(
            "updates, hardware and inputs must not be negative, one of them must be positive, and "
            f"so must update_days, not {updates!r}, {hardware!r}, {inputs!r} and {update_days!r}"
        )
    return make(
        preset, jobs, history, _pair(over_time or PRESETS[preset].over_time),
        _pair(over_space or PRESETS[preset].over_space), recurring, stale, slots, drift, seed,
    )  # fmt: skip


def _pair(given: tuple[float, float]) -> tuple[float, float]:
    median, high = given
    return float(median), float(high)
