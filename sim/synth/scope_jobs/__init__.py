"""Jobs with deadlines like those that Jockey was tried on, and the cluster's other jobs.

Ferguson et al., EuroSys 2012: seven jobs with the statistics of Table 2 and fourteen of their kind,
all recurring, with runs that vary as in Table 1. A workload holds one or more of them, with a
recorded run of each to learn from (``training``), drawn failures (``failures``), and jobs without
a deadline that keep the cluster busy. docs/jockey_workload.md says what is published, what is
assumed, and how near the workload comes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from sim.base.errors import InputError, unknown
from sim.base.parameters import Between, Count, NotNegative, Share, checked

if TYPE_CHECKING:
    from sim.workload.workload import Workload

__all__ = ["synthesize"]


Multiple = Annotated[float, Between(1e-3, 1e3)]


@checked
def synthesize(
    jobs: Count = 1,
    seed: int = 0,
    job: str = "F",
    deadline: str | float = "short",
    change: str | None = None,
    like_inputs: bool = True,
    work: Multiple | None = None,
    slow_stage: Multiple = 1.0,
    faults: bool = True,
    slots: Count = 200,
    utilization: Share = 0.8,
    waiting: NotNegative = 8.0,
    every_s: NotNegative = 0.0,
    initialise: bool = True,
    largest_input: bool = False,
) -> Workload:
    """Synthesize a controlled run of jobs with deadlines, with the background of the cluster.

    Parameters
    ----------
    jobs : int
        How many jobs with a deadline, from `job` on in alphabetical order (`templates.NAMES`),
        beginning again after the last.
    seed : int
        Seed of the run: what differs from other runs, what fails, and the background. The jobs and
        their recorded runs are the same whatever it is.
    job : str
        The first of them; ``"F/long"`` says its deadline too.
    deadline : {"short", "long"} or float
        Which of the job's deadlines, or minutes (`deadlines`).
    change : {"halve", "double", "triple"}, optional
        What becomes of the deadline 10 minutes after submission.
    like_inputs : bool
        Whether inputs are about as large as usual; if not they vary as those of recurring jobs do.
    work : float, optional
        How many times the work of the recorded run it needs; drawn where left out.
    slow_stage : float
        How many times as long the stage with the most work takes.
    faults : bool
        Whether attempts fail.
    slots, utilization : int, float
        Size of the cluster, and how busy ordinary jobs and those with deadlines keep it on average,
        these spread evenly until they are due. 0 for no other jobs at all.
    waiting : float
        How many further jobs have tasks waiting on average: they come at random, and share what
        the ordinary ones leave.
    every_s : float
        Time between submissions of the jobs, s.
    initialise : bool
        Whether a token is held while a vertex initialises, in training too; if not, what goes
        before a vertex takes neither token nor time.
    largest_input : bool
        Whether the recorded run is of the largest of ten inputs (§4.4), rather than of a usual one.

    Returns
    -------
    Workload
        A job's user is called as its template, so that to share between users is to share between
        jobs with deadlines.

    Raises
    ------
    InputError
        On an unknown job, deadline or change, or a number out of range.
    """
    from sim.synth.scope_jobs.make import make  # loads scipy, which naming options needs not
    from sim.synth.scope_jobs.templates import NAMES

    name, _, own = job.partition("/")
    if name not in NAMES:
        raise InputError(unknown("job of scope_jobs", name, NAMES), rule="wrong option")
    at = NAMES.index(name)
    return make(
        [NAMES[(at + i) % len(NAMES)] for i in range(jobs)],
        own or deadline,
        seed=seed, change=change, like_inputs=like_inputs, work=work, slow_stage=float(slow_stage),
        faults=faults, slots=slots, utilization=float(utilization), waiting=float(waiting),
        every_s=float(every_s), initialise=initialise, largest_input=largest_input,
    )  # fmt: skip
