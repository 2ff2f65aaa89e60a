"""Recurring SCOPE jobs with deadlines, as in Jockey's evaluation, and background jobs.

Ferguson et al., EuroSys 2012: seven jobs with the statistics of Table 2 and fourteen similar ones,
all recurring, with runs that vary as in Table 1. A workload holds one or more of them, with a
recorded run of each to learn from (``training``), drawn failures (``failures``), and jobs without
a deadline that keep the cluster busy. docs/jockey_workload.md says which numbers are published,
which are assumed, and how near the workload comes to the published ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from sim.base.errors import InputError, unknown
from sim.base.parameters import Between, Count, Factor, NotNegative, Share, checked, coerce

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
    initialise: Literal["true", "false", "without_token"] = "true",
    largest_input: bool = False,
    training_slowdowns: Mapping[str, Any] | None = None,
    stragglers: Share = 0.01,
    slower: tuple[Factor, Factor] = (1.5, 3.0),
    run_sigma: NotNegative = 0.05,
    narrow: bool = False,
    critical_paths: Multiple | None = None,
) -> Workload:
    """Synthesize a controlled run of jobs with deadlines among background jobs.

    Parameters
    ----------
    jobs : int
        Number of jobs with a deadline: `job` and those after it in alphabetical order
        (`templates.NAMES`), beginning again after the last.
    seed : int
        Seed of the run's variation, failures and background. The jobs and their recorded runs do
        not depend on it.
    job : str
        Name of the first job; ``"F/long"`` sets its deadline too.
    deadline : {"short", "long"} or float
        Published deadline of the job, or minutes (`make.deadline_s`).
    change : {"halve", "double", "triple"}, optional
        Change of the deadline 10 minutes after submission.
    like_inputs : bool
        Draw inputs of about the usual size; if false, input sizes vary as those of recurring jobs.
    work : float, optional
        Work of the run as a multiple of the recorded run's; drawn by default.
    slow_stage : float
        Factor of the run times of the stage with the most work.
    faults : bool
        Let attempts of tasks fail.
    slots, utilization : int, float
        Size of the cluster, and its mean utilization by ordinary jobs and those with deadlines,
        whose work counts as spread evenly until they are due. 0 for no other jobs at all.
    waiting : float
        Mean number of further jobs that have tasks waiting: they arrive at random and share the
        slots that the ordinary ones leave.
    every_s : float
        Time between submissions of the jobs, s.
    initialise : {"true", "false", "without_token"}
        Hold a token while a vertex initialises, in training too; if false, initialisation takes
        neither token nor time. With "without_token" it takes time alone, as queueing (Table 3): a
        lag of each stage behind its parents, the mean of the recorded run's, in every run. It is
        a stage's, not a vertex's, as the engine opens stages; a segment of stages that wait one
        for one takes the lags of its longest chain before its first vertex
        (`structure.Structure.queueing_s`), so it is never shorter than vertices would make it.
    largest_input : bool
        Record the run of the largest of ten inputs (§4.4), rather than of a usual one.
    training_slowdowns : mapping, optional
        Slow periods of the cluster while runs are recorded, as `cluster.slowdowns`; each job's are
        drawn on their own, the same for every seed.
    stragglers, slower : float, (float, float)
        Share of vertices that straggle, in recorded runs too, and the range of the factor of their
        durations.
    run_sigma : float
        Spread of the logarithm of the factor that all vertices of a run share.
    narrow : bool
        Split stages after a shuffle into fewer vertices, down to one, and let narrow stages be the
        slowest (§3.3, §6.1).
    critical_paths : float, optional
        Short deadlines of the seven jobs, as a multiple of their critical path (§2.2), to five
        minutes; by default those that are published, and others in proportion to a run alone.

    Returns
    -------
    Workload
        A job's user is named like its template, so that sharing between users is sharing between
        jobs with deadlines.

    Raises
    ------
    InputError
        On an unknown job, deadline or change, or a number out of range.
    """
    # loads scipy, which listing options does not need
    from policies.jockey.scope_jobs.make import make
    from policies.jockey.scope_jobs.templates import NAMES, Assumptions, Initialise

    name, _, job_deadline = job.partition("/")
    if name not in NAMES:
        raise InputError(unknown("job of scope_jobs", name, NAMES), rule="wrong option")
    first = NAMES.index(name)
    return make(
        [NAMES[(first + i) % len(NAMES)] for i in range(jobs)],
        job_deadline or deadline,
        seed=seed, change=change, like_inputs=like_inputs, work=work, slow_stage=float(slow_stage),
        faults=faults, slots=slots, utilization=float(utilization), waiting=float(waiting),
        every_s=float(every_s), initialise=coerce(initialise, Initialise),
        largest_input=largest_input, training_slowdowns=training_slowdowns,
        critical_paths=critical_paths,
        assumed=Assumptions(float(run_sigma), float(stragglers), _factors(slower), narrow),
    )  # fmt: skip


def _factors(slower: tuple[float, float]) -> tuple[float, float]:
    low, high = (float(factor) for factor in slower)
    if not low <= high:
        raise InputError(f"slower must be two numbers, the smaller one first, not {slower!r}")
    return low, high
