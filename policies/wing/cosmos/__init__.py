"""Four weeks of an analytics cluster with dependencies between jobs, like Microsoft's Cosmos.

After Chung et al., *Unearthing inter-job dependencies for better cluster scheduling*, OSDI 2020.
The logs of that cluster are private. The synthesized jobs are drawn to match the published
statistics, and `statistics` measures how near they come. docs/wing_workload.md has the figures, and
the assumptions where the paper is silent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from sim.base.errors import InputError
from sim.base.parameters import Between, Count, Whole, checked

if TYPE_CHECKING:
    from policies.wing.lineage import Logs
    from sim.workload.workload import Workload

__all__ = ["logs", "synthesize"]

History = Literal["logs", "truth"]
Priorities = Literal["drawn", "by_value"]

Scale = Annotated[float, Between(0.02, 2)]
Organisations = Annotated[int, Between(5)]
QueueShare = Annotated[float, Between(0.01, 0.2)]


@checked
def synthesize(
    scale: Scale = 0.05,
    seed: Whole = 0,
    organisations: Organisations | None = None,
    rounds: Whole | None = None,
    hard_inputs: Count | None = None,
    history: History = "logs",
    widest: QueueShare = 0.1,
    priorities: Priorities = "drawn",
) -> Workload:
    """Synthesize the week that is scheduled: the third of four.

    Times count from its beginning. Every job is one task that holds ``tokens`` of one pool for as
    long as it runs. Edges join jobs of the week: outputs made before it exist from the start.
    Downloads are those of the week's jobs, up to a week after their end. The history consists of
    the jobs of the two weeks before, with their value (`policies.wing.lineage.worth`). Recurring
    programs, hard dependencies and polling jobs are found in the logs of these two weeks, as in a
    user's own (`policies.wing.lineage.workload`).

    Parameters
    ----------
    scale : float
        1 is the published size, 40,000 jobs and 160,000 dependencies a day; 0.02 to 2.
    seed : int
        Seed of all draws.
    organisations : int, optional
        Number of organisations, at least 5; by default 150 at full scale and fewer at a smaller
        one.
    rounds : int, optional
        Distance downstream over which value is counted: 2^rounds hops, 0 for none; by default all
        the way.
    hard_inputs : int, optional
        Maximum number of hard inputs of a job, at least 1: of the jobs that its program always
        reads, those submitted last. By default all of these. Needs ``history="truth"``, as logs
        can't show it.
    history : {"logs", "truth"}
        Source of programs, hard dependencies and polling jobs: the profiler's findings in the logs,
        or the values that were drawn.
    widest : float
        Maximum share of its queue that a job holds; more than 0.2 would not fit a fifth of the
        cluster. Calibrated on user priorities (docs/wing_workload.md).
    priorities : {"drawn", "by_value"}
        Priorities of the most valued programs: drawn as all others are, or ranked in their queue
        beside their value as those of six important templates (§4.3).

    Returns
    -------
    Workload
        ``meta["queue_share"]`` has the share of each organisation's queue, and
        ``meta["target, actual"]`` a pair for each published figure.

    Raises
    ------
    InputError
        If a number is out of its range, or `hard_inputs` is set with ``history="logs"``.
    """
    if hard_inputs is not None and history == "logs":
        raise InputError(
            f"hard_inputs={hard_inputs} needs history=truth: logs do not show how many inputs of "
            "a job are hard",
            rule="wrong option",
        )
    # scipy takes long to load, and a list of options does not need it
    from policies.wing.cosmos.month import draw_month
    from policies.wing.cosmos.tables import workload

    by_value = priorities == "by_value"
    month = draw_month(scale, seed, organisations, hard_inputs, widest, by_value=by_value)
    return workload(month, scale, seed, rounds, from_logs=history == "logs", by_value=by_value)


@checked
def logs(
    scale: Scale = 0.05,
    seed: Whole = 0,
    organisations: Organisations | None = None,
    weeks: tuple[int, int] = (-2, 2),
) -> Logs:
    """Return the logs of the same four weeks, as a data platform would have written them."""
    # as above
    from policies.wing.cosmos.month import draw_month
    from policies.wing.cosmos.tables import tables
    from policies.wing.lineage import make_logs

    if len(weeks) != 2 or not -2 <= weeks[0] < weeks[1] <= 2:
        raise InputError(f"weeks must be two rising whole numbers from -2 to 2, not {weeks!r}")
    return make_logs(*tables(draw_month(scale, seed, organisations), weeks))
