"""A workload that has everything: what each of the five systems looks at, in one.

Each part is fitted to the real trace that has it, or else has the published numbers, and stated
rules join them (policies/wserpt/decisions/0042-everything.md):

- recurring programs, new ones among them, users, sizes, widths, run times that drift, surges and
  a history of two weeks: `policies.slearn.recurring`, fitted to Google's trace of 2011;
- a user's priority and queue, and a program's requests of cpu and memory: Google's of 2011;
- a DAG for each program, whose stages differ in demands: `give_dags`, fitted to Alibaba's trace;
- reads of other programs' output: Mozilla's scheduled tables; downloads: Wing (OSDI 2020, §6.3);
- deadlines of programs with recorded runs: Jockey (EuroSys 2012, §5.1).

No policy but first come, first served was run while this was made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from sim.base.parameters import Between, Share, Whole, checked

if TYPE_CHECKING:
    from sim.workload.workload import Workload

__all__ = ["synthesize"]


@checked
def synthesize(
    jobs: Annotated[int, Between(50)] = 600,
    seed: int = 0,
    history: Whole | None = None,
    due: Share = 0.5,
) -> Workload:
    """Synthesize the workload.

    Parameters
    ----------
    jobs : int
        Number of jobs, at least 50.
    seed : int
        Seed of all draws.
    history : int, optional
        Number of past runs, over two weeks; by default about twice as many as jobs, the ratio of
        the fitted trace.
    due : float
        Share of the programs with recorded runs whose jobs have a deadline, 0 to 1.

    Returns
    -------
    Workload
        ``meta["synth"]`` counts what it has: programs, new ones, reads, deadlines.
    """
    from policies.wserpt.everything.make import make  # late: listing options does not need it

    return make(jobs, seed, history, due)
