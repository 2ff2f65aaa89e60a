"""A workload like another, made of nothing but what was fitted to it; half of one, or like that."""

from __future__ import annotations

from typing import Annotated, Literal

from sim.base.parameters import Between, Count, Positive, Whole, checked
from sim.describe.fidelity import second_half
from sim.synth.programs.file import fit
from sim.synth.programs.make import make
from sim.transforms.parts import rebuilt
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


@checked
def half(
    workload: Workload,
    which: Literal["first", "second", "made"],
    split: Annotated[int, Between(0, 63)] = 0,
    seed: int = 0,
) -> Workload:
    """Keep one half of the jobs, at their times; or a workload fitted to the first (`anew`).

    So a synthesized workload can be judged by jobs that its fit has not seen.

    Parameters
    ----------
    workload : Workload
        Of jobs with ids of their own.
    which : {"first", "second", "made"}
        The half to keep, which has the jobs that the other has not; made: as many jobs as the
        first has, synthesized.
    split : int
        Which of 64 ways to cut, independent of each other: a bit of the hash.
    seed : int
        Seed of what is made.
    """
    kept = workload.take(second_half(workload, split) == (which == "second"))
    kept = rebuilt(kept, {"half": which, "split": int(split)})
    return anew(kept, seed) if which == "made" else kept
