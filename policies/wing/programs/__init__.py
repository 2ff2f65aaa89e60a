"""Runs of recurring programs, fitted to a trace.

`sim.synth.fitted` draws jobs independently: their DAGs, tasks, demands and arrivals. This generator
starts with programs. Each has its user, queue, priority and features, and its runs, in the rhythm
(counted in jobs) of the trace; the size of a run varies as that of its program's runs did. All runs
of a program have the DAG, tasks and demands of one drawn job, with durations scaled to the work of
another drawn job. So the work of jobs has the fitted distribution, and runs of a program are
similar. Runs before time 0 are the history, and the recorded runs from which deadlines can be
predicted; if the trace has dependencies and downloads, jobs read the latest output of other
programs, and their own output is downloaded.
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
        Number of jobs, at least 1.
    seed : int
        Seed of all draws.
    tables : path-like
        File made by ``python -m sim fit --generator programs``.
    history : int, optional
        Number of past runs; by default as many as jobs if programs are known, else none.
    joint : bool, optional
        Draw the attributes of stages jointly; by default if the tables have a joint distribution.
    deadline : float, optional
        Deadline of jobs whose program ran before, over the median critical path of its runs, if
        the trace has no deadlines; by default none. An assumption.

    Returns
    -------
    Workload
        ``meta["synth"]`` has the options and the source.

    Raises
    ------
    InputError
        If there is no such file, or a number is out of range.
    """
    from policies.wing.programs import file, make  # late: listing options does not need them

    if tables is None:
        raise InputError(
            "programs needs tables=FILE; make it by "
            "`python -m sim fit WORKLOAD FILE --generator programs`",
            rule="no tables",
        )
    fitted = file.read(tables)
    options: dict[str, Any] = {"history": history, "joint": joint, "deadline": deadline}
    return make.make(fitted, jobs, seed, **options)
