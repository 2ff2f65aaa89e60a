"""Workloads of recurring jobs whose runtime drifts, like those of Jajoo et al., NSDI 2022.

Users run named programs again and again. A run's tasks last longer or shorter than those of the
run before: the code was updated, the machines differ, the input is larger. Targets of the workload
are the variation of similar jobs over time, the variation of a job's tasks over space, and the load
in windows of time. Jobs from before time 0 are the workload's history.

`tables` describes the distributions; `python -m sim fit` fits them to a workload that has a
history. The paper's traces are private or too large to ship: `presets` says which numbers are
fitted, published or assumed, ``meta["target, actual"]`` how near a workload came to its targets.
"""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from policies.slearn.recurring.presets import preset as preset_tables
from policies.slearn.recurring.presets import preset_changes
from policies.slearn.recurring.programs import Drift
from policies.slearn.recurring.tables import read_tables
from sim.base.errors import InputError, unknown
from sim.base.parameters import Between, Count, NotNegative, Positive, Share, checked

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
        Number of jobs, at least 50.
    seed : int
        Seed of all draws.
    tables : path-like, optional
        File made by ``python -m sim fit --generator recurring``, in place of a preset.
    history : int, optional
        Number of jobs in the history, which covers the preset's days before time 0; by default the
        same ratio to `jobs` as in the fitted workload.
    over_time, over_space : tuple of float, optional
        Median and 90th percentile over jobs of the variation of similar jobs over time, and of the
        tasks within a job (`policies.slearn.task_variation`); by default the preset's.
    recurring : float, optional
        Share of jobs whose program has run before, 0 to 1; by default the preset's.
    stale : tuple of float, optional
        Share of the jobs whose program has become faster since the history, 0 to 1, and the mean
        of the logarithm of the speed-up, positive; by default the preset's.
    slots : int
        Slots of the cluster on which the load is measured.
    updates, hardware, inputs, update_days : float
        Causes of the variation of a program's runs: see `Drift`.

    Returns
    -------
    Workload
        ``meta["target, actual"]`` has a pair for each target.

    Raises
    ------
    InputError
        On an unknown preset or a number out of range.
    """
    from policies.slearn.recurring.make import make  # late: listing options does not need it

    if preset is not None and tables is not None:
        raise InputError("give a preset or tables, not both", rule="preset and tables")
    name = "2sigma" if preset is None else preset
    if tables is None and name not in preset_changes():
        raise InputError(
            unknown("preset of recurring", name, preset_changes()), rule="unknown preset"
        )
    source = preset_tables(name) if tables is None else read_tables(tables)
    if recurring is None and tables is None:
        recurring = preset_changes()[name].get("recurring")
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
