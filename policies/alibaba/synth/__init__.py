"""Workloads like Alibaba's batch jobs of 2018, after Tian et al., SoCC 2019, §7.

The generator, `sim.synth.fitted`, can be fitted to any workload. The tables of Alibaba's trace are
part of the package (`tables.json`); `python -m sim fit` makes tables from any workload.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from policies.alibaba.synth.shipped import SHIPPED
from sim.base.parameters import Count, Positive, checked
from sim.synth.fitted.jobs import ArrivalMode, draw_jobs
from sim.synth.fitted.tables_file import read_tables
from sim.transforms import amplify, fit_machines
from sim.workload.workload import Workload


@checked
def synthesize(
    jobs: Count = 10_000,
    seed: int = 0,
    tables: str | os.PathLike[str] | None = None,
    variant: str = "improved",
    joint: bool = False,
    arrivals: ArrivalMode = "fitted",
    max_tasks_per_stage: int | None = None,
    machine: Mapping[str, float] | None = None,
    load: Positive = 1.0,
    heterogeneity: float = 1.0,
) -> Workload:
    """Synthesize a workload from probability tables.

    All edges are barriers, and all tasks of a stage have the same duration, unless they differ in
    the fitted workload: then the longest is drawn too, and the others are spread below it. The
    first `k` jobs are the same for every `jobs`, if `load` and `heterogeneity` are 1 and the tasks
    of a stage are equal.

    Parameters
    ----------
    jobs : int
        Number of jobs, at least 1.
    seed : int
        Seed of all draws.
    tables : path-like, optional
        File made by ``python -m sim fit``; by default the shipped tables of Alibaba's trace.
    variant : {"improved", "paper"}
        Algorithm that links stages: with fitted level and edge steps, or Algorithm 2 as printed;
        see `sim.synth.fitted.tian_algorithm2`.
    joint : bool
        Draw durations, numbers of tasks and demands jointly, so that stages of a job, and parents
        and children, differ as much as they do in the fitted workload (§5), also conditional on the
        job's size if the tables are of a workload; see `sim.synth.fitted.draw_joint`. In the
        paper's generator they are independent.
    arrivals : {"fitted", "independent"}
        Redraw blocks of the fitted workload's arrivals (see `sim.synth.fitted.arrivals`), if they
        are in the tables; or draw each interval independently.
    max_tasks_per_stage : int, optional
        Limit on the number of a stage's tasks; larger values are excluded from the draw. By default
        the distribution keeps its tail: with the shipped tables a stage has 43 tasks on average, a
        few have 47,000.
    machine : dict of str to float, optional
        Capacity of one machine to which demands are scaled (*cluster configuration*, §7.4):
        `sim.transforms.fit_machines`, from the machine of the tables, if they have one.
    load : float
        Factor of the arrival rate (§7.4): as in `transforms.change_load`, but every job is
        synthesized. `jobs` is their final number.
    heterogeneity : float
        The heterogeneity amplifier (§7.4): `sim.transforms.amplify`, of durations and demands.

    Returns
    -------
    Workload
        ``meta["synth"]`` has the options and the source.

    Raises
    ------
    InputError
        If a number is out of its range, or the tables can't be read or lack a requested part.
    """
    path = Path(SHIPPED if tables is None else tables)
    source = read_tables(path)
    workload = draw_jobs(source, jobs, seed, variant, joint, arrivals, max_tasks_per_stage, load)
    synth = {
        "generator": "alibaba2018",
        **workload.meta["synth"],
        "tables": "shipped" if tables is None else path.name,
        "tables_sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
    }
    workload = workload.with_meta({"name": "synth-alibaba2018", "synth": synth})
    if heterogeneity != 1.0:
        workload = amplify(workload, heterogeneity)
    if machine is not None:
        workload = fit_machines(workload, machine, source_machine=source.provenance.get("machine"))
    return workload
