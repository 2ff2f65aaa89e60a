"""Workloads like Alibaba's batch jobs of 2018, after Tian et al., SoCC 2019, §7.

What draws them, `sim.synth.fitted`, serves any workload. The tables of the trace travel with the
package (`tables.json`); `python -m sim fit` makes others from any workload.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from sim.base.parameters import Count, Positive, checked
from sim.synth.alibaba2018.shipped import SHIPPED
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

    All edges are barriers, and all tasks of a stage last the same, unless they did not where the
    tables are from: then the longest is drawn too, and the others are spread below it. The first
    `k` jobs are the same whatever `jobs` is, with `load` and `heterogeneity` at 1 and
    tasks of a stage alike.

    Parameters
    ----------
    jobs : int
        How many, at least 1.
    seed : int
        Seed of all draws.
    tables : path-like, optional
        A file made by ``python -m sim fit``; left out, the shipped tables of Alibaba's trace.
    variant : {"improved", "paper"}
        How stages are linked: with the level and edge steps fitted, or by Algorithm 2 as printed;
        see `sim.synth.fitted.tian_algorithm2`.
    joint : bool
        Draw durations, numbers of tasks and demands jointly, so that stages of a job, and parents
        and children, differ as much as they do in the fitted workload (§5), given the job's size
        too if the tables are of a workload; see `sim.synth.fitted.draw_joint`. In the paper's
        generator each is drawn on its own.
    arrivals : {"fitted", "independent"}
        Take blocks of the times at which the fitted workload's jobs came (see
        `sim.synth.fitted.arrivals`), where the tables tell them; or draw each interval on its
        own.
    max_tasks_per_stage : int, optional
        Draw the number of a stage's tasks among those of at most this. Left out, the
        distribution keeps its tail: of the shipped tables a stage has 43 tasks on average, a few
        have 47,000.
    machine : dict of str to float, optional
        What one machine has that the demands are to fit (*cluster configuration*, §7.4):
        `sim.transforms.fit_machines`, from the machine that the tables tell of, if they do.
    load : float
        How many times as often jobs come (§7.4): as `load.change_load` does it, but every job is
        synthesized. `jobs` is their number in the end.
    heterogeneity : float
        The heterogeneity amplifier (§7.4): `sim.transforms.amplify`, of durations and demands.

    Returns
    -------
    Workload
        With ``meta["synth"]`` telling what it was made from.

    Raises
    ------
    InputError
        If a number is out of its range, or the tables can't be read or lack what is asked for.
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
        workload = fit_machines(workload, machine, of=source.provenance.get("machine"))
    return workload
