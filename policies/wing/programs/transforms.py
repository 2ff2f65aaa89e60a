"""Transforms: a workload synthesized from a fit to another one; half of a workload's jobs."""

from __future__ import annotations

from typing import Annotated, Literal

from policies.wing.programs.file import fit
from policies.wing.programs.make import make
from sim.base.parameters import Between, Count, Positive, Whole, checked
from sim.transforms.parts import rebuild
from sim.workload.halves import second_half
from sim.workload.workload import Workload


@checked
def resynthesize(
    workload: Workload,
    seed: int = 0,
    jobs: Count | None = None,
    history: Whole = 0,
    joint: bool | None = None,
    deadline: Positive | None = None,
) -> Workload:
    """Fit a workload and synthesize a similar one, as ``sim fit`` and ``sim synth`` do.

    Parameters
    ----------
    workload : Workload
        Workload of at least two jobs to fit.
    seed : int
        Seed of all draws.
    jobs : int, optional
        Number of jobs; by default as many as were fitted.
    history : int
        Number of past runs besides them.
    joint, deadline
        See `policies.wing.programs.synthesize`.
    """
    n = workload.n_jobs if jobs is None else jobs
    return make(fit(workload), n, seed, history, joint, deadline)


@checked
def half(
    workload: Workload,
    part: Literal["first", "second", "made"],
    split: Annotated[int, Between(0, 63)] = 0,
    seed: int = 0,
) -> Workload:
    """Keep one half of the jobs, at their times; or synthesize a workload fitted to the first.

    So a synthesized workload can be compared with jobs that were not in its fit.

    Parameters
    ----------
    workload : Workload
        Workload whose jobs have unique ids.
    part : {"first", "second", "made"}
        The half to keep, or ``made``: as many jobs as the first half, synthesized from a fit to it
        (`resynthesize`). The two halves are disjoint.
    split : int
        Number of the split, one of 64 independent ones: a bit of the hash of the id.
    seed : int
        Seed of the synthesized jobs.
    """
    selected = workload.take(second_half(workload, split) == (part == "second"))
    selected = rebuild(selected, {"half": part, "split": int(split)})
    return resynthesize(selected, seed) if part == "made" else selected
