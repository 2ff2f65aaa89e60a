"""One half of a trace, by the hash of its jobs' ids, or what is synthesized from one."""

from __future__ import annotations

from typing import Annotated, Literal

from sim.base.parameters import Between, checked
from sim.describe.fidelity import second_half
from sim.knobs.parts import rebuilt
from sim.synth.programs.knobs import anew
from sim.workload.workload import Workload


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
