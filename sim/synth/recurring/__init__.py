"""Workloads of recurring jobs whose runtime drifts, like those of Jajoo et al., NSDI 2022.

Users run programs, under names, again and again. A run's tasks last longer or shorter than those
of the run before: the code was updated, the machines are other ones, the input is larger. How much
like jobs differ over time, and the tasks of a job over space, are what the workload is told; so is
the load in windows of time. Jobs of the past, from before time 0, are the workload's history.

What that is drawn from, `tables` describes; `python -m sim fit` makes it of a workload that has a
history. The paper's traces are private or too large to ship: `presets` says what is fitted, what
was published and what is assumed, ``meta["wanted, got"]`` how near a workload came.
"""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from sim.base.errors import InputError, unknown
from sim.base.parameters import Between, Count, NotNegative, Positive, Share, checked
from sim.synth.recurring.presets import given
from sim.synth.recurring.presets import preset as preset_tables
from sim.synth.recurring.programs import Drift
from sim.synth.recurring.tables import read_tables

if TYPE_CHECKING:
    from sim.workload.workload import Workload

__all__ = ["synthesize"]


@checked
def synthesize(
    preset: str | None = None,
    jobs: Annotated[int, Between(50)] = 1250,
    seed: int = 0,
    tables: str | os.PathLike[str] | None = None,
    history: Annotated[int, Between(0)] | None = None,
    over_time: tuple[float, float] | None = None,
    over_space: tuple[float, float] | None = None,
    recurring: Share | None = None,
    stale: tuple[float, float] | None = None,
    slots: Count = 150,
    updates: NotNegative = Drift.updates,
    hardware: NotNegative = Drift.hardware,
    inputs: NotNegative = Drift.inputs,
    update_days: Positive = Drift.update_days,
) -> Workload:
    """Synthesize a workload of recurring jobs.

    Every job has one stage, and a task takes one slot (``cpu``). Jobs and the history have the
    features that predictors look for: ``application`` (the program), ``job_name`` (of half of the
    programs, with the version of the code), ``user`` and ``requested``.

    Parameters
    ----------
    preset : str, optional
        ``2sigma`` (the default), ``google2011`` or ``google2019``.
    jobs : int
        How many, at least 50.
    seed : int
        Seed of all draws.
    tables : path-like, optional
        A file made by ``python -m sim fit --generator recurring``, in place of a preset.
    history : int, optional
        Jobs of the past: of the preset's days before time 0; left out, as many for each job as
        what was fitted has.
    over_time, over_space : tuple of float, optional
        Median and 90th percentile over jobs of how much like jobs vary over time, and tasks within
        a job (`sim.describe.slearn`); left out, the preset's.
    recurring : float, optional
        Share of jobs whose program has run before, 0 to 1; left out, the preset's.
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

    if preset is not None and tables is not None:
        raise InputError("give a preset or tables, not both", rule="preset and tables")
    name = "2sigma" if preset is None else preset
    if tables is None and name not in given():
        raise InputError(unknown("preset of recurring", name, given()), rule="unknown preset")
    source = preset_tables(name) if tables is None else read_tables(tables)
    if recurring is None and tables is None:
        recurring = given()[name].get("recurring")
    changes: dict[str, Any] = {}
    for key, pair in (("over_time", over_time), ("over_space", over_space), ("stale", stale)):
        if pair is not None:
            changes[key] = (float(pair[0]), float(pair[1]))
            if key != "stale" and not 0 < pair[0] < pair[1] < 100:
                raise InputError(f"{key} must be two rising numbers up to 100, not {pair!r}")
    if stale is not None and not (0 <= stale[0] <= 1 and 0 < stale[1] < math.inf):
        raise InputError(f"stale must be a share from 0 to 1 and a positive mean, not {stale!r}")
    drift = Drift(updates, hardware, inputs, update_days)
    if updates + hardware + inputs <= 0:
        raise InputError("one of updates, hardware and inputs must be positive")
    label = name if tables is None else Path(tables).name
    return make(label, replace(source, **changes), jobs, history, recurring, slots, drift, seed)
