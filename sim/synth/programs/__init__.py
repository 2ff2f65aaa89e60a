"""A workload of programs and their runs: what recurs in a trace, made of what was fitted to it.

`sim.synth.fitted` draws jobs, each on its own: their DAGs, tasks, demands, and when they come.
Here programs come first. Each has its user, queue, priority and features, and its runs, in the
rhythm (counted in jobs) that they had in the trace; a run is as large as its program's runs were,
give or take as much as they differed. All runs of a program have the DAG, tasks and demands of one
drawn job, and durations that make their work that of another. So the work of jobs is distributed as
drawn, and runs of a program are alike. Runs that come before time 0 are the history, and the
records of earlier runs that deadlines are met by; where the trace tells of them, jobs read the
latest output of other programs, and their own is downloaded.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from sim.base.errors import InputError
from sim.base.parameters import Count, Positive, Whole, checked

if TYPE_CHECKING:
    from sim.workload.workload import Workload

__all__ = ["synthesize"]


@checked
def synthesize(
    jobs: Count = 10_000,
    seed: int = 0,
    tables: str | os.PathLike[str] | None = None,
    history: Whole | None = None,
    joint: bool | None = None,
    deadline: Positive | None = None,
) -> Workload:
    """Synthesize runs of programs.

    Parameters
    ----------
    jobs : int
        How many, at least 1.
    seed : int
        Seed of all draws.
    tables : path-like
        A file made by ``python -m sim fit --generator programs``.
    history : int, optional
        Runs of the past; left out, as many as jobs where programs are known, else none.
    joint : bool, optional
        Whether what stages have is drawn jointly; left out, it is where the fit tells how.
    deadline : float, optional
        Where the trace has no deadlines: that of jobs whose program ran before, over the time that
        such a run took by itself at the median; left out, none. An assumption.

    Returns
    -------
    Workload
        ``meta["synth"]`` tells what it was made from.

    Raises
    ------
    InputError
        If there is no such file, or a number is out of range.
    """
    from sim.synth.programs import file, make  # load what naming the options needs not

    if tables is None:
        raise InputError(
            "programs needs tables=FILE; make it by "
            "`python -m sim fit WORKLOAD FILE --generator programs`",
            rule="no tables",
        )
    fitted = file.read(tables)
    options: dict[str, Any] = {"history": history, "joint": joint, "deadline": deadline}
    return make.make(fitted, jobs, seed, **options)
