"""A workload like another one, made of nothing but what was fitted to it."""

from __future__ import annotations

from sim.base.parameters import Count, Positive, Whole, checked
from sim.synth.programs.file import fit
from sim.synth.programs.make import make
from sim.workload.workload import Workload


@checked
def anew(
    workload: Workload,
    seed: int = 0,
    jobs: Count | None = None,
    history: Whole = 0,
    joint: bool | None = None,
    deadline: Positive | None = None,
) -> Workload:
    """Fit a workload and synthesize another one like it, as ``sim fit`` and ``sim synth`` do.

    Parameters
    ----------
    workload : Workload
        What is fitted: at least two jobs.
    seed : int
        Seed of all that is drawn.
    jobs : int, optional
        How many; left out, as many as were fitted.
    history : int
        Runs of the past beside them.
    joint, deadline
        See `sim.synth.programs.synthesize`.
    """
    n = workload.n_jobs if jobs is None else jobs
    return make(fit(workload), n, seed, history, joint, deadline)
