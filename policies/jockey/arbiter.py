"""An arbiter between jobs with deadlines: beyond the paper, which leaves it open (§1, §4.4).

Who gets how many tokens, from when on: jobs are rectangles of tokens × time on one cluster. Each
has a few allocations to choose from, each with the time that it then takes. Jobs are placed one
after the other where their expected utility is greatest; what is searched for is the order in which
that gives the most utility together. `utility_bound` says what they can be worth at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from policies.jockey.control import Job, Running, Utility
from policies.jockey.model import Simulated, serial_s
from policies.jockey.policy import Jockey
from policies.jockey.profile import Profile
from policies.registry import register
from sim.base import maths
from sim.base.arrays import F8, I8
from sim.base.parameters import Whole
from sim.engine.plan import Event, World

PRIOR: Final = 0.05
"""That a job needs as much as in training counts like having seen this part of its work."""

TRIED: Final = 4
"""How many of the jobs that lose most are tried elsewhere in the order at a time."""


@dataclass(eq=False)
class Pace:
    """The token seconds that a job has held, by looks at how many of its tasks run."""

    profile: Profile  # of its training
    looked_s: float  # when it was looked at last, s
    running: int = 0  # how many of its tasks ran then
    held_s: float = 0.0  # token seconds until then

    def look(self, now: float, running: int) -> None:
        """Count the time since the last look, with as many tasks as ran on average of the two."""
        self.held_s += (now - self.looked_s) * (self.running + running) / 2
        self.looked_s, self.running = now, running

    def factor(self, done: F8) -> float:
        """Return the work that was needed for what is done over that in training.

        Of tasks that run half a mean task is taken to be done; `PRIOR` keeps the first few tasks
        from counting much.
        """
        work_s = self.profile.token_s
        whole_s = float(work_s.sum())
        half_s = self.running * whole_s / float(self.profile.shape.n_tasks.sum()) / 2
        known_s = PRIOR * whole_s
        return (max(self.held_s - half_s, 0.0) + known_s) / (
            float(maths.dot(done, work_s)) + known_s
        )


@register("jockey_arbiter")
@dataclass(frozen=True)
class JockeyArbiter(Jockey):
    """Tokens go to the jobs in which they are worth most: total expected utility is maximised.

    Ferguson et al. (EuroSys 2012, §4.4) plan an arbiter that shifts resources from jobs of low to
    jobs of high expected marginal utility. Here all jobs with a deadline are planned anew each
    period, and when one comes or goes, as rectangles of tokens × time (see `best_timetable`);
    a job holds the tokens of its rectangle once that begins, and runs on spare ones before.

    A job's utility is the mean over the simulated runs in three cases: what is left is as
    predicted, `slack` times as long with the dead zone on top, and both twice over. Predictions are
    stretched by the work that the job turned out to need so far (`Pace`), and are
    never less than the serial work that is left nor all of it over the tokens: C(p, a) is of jobs
    whose tasks kept running, and one whose tokens were taken has none under way. Nothing is
    smoothed, since shares must add up.

    Attributes
    ----------
    total_tokens : int
        How many tokens there are for jobs with a deadline; 0 for as many as the cluster has slots.
    """

    total_tokens: Whole = 0

    events = Event.JOB_ARRIVED | Event.JOB_DONE | Event.TIMER
    together = True

    def allocate(self, memory: Running, due: Sequence[Job], now: float, world: World) -> None:
        """Share the tokens out among all jobs that run."""
        total = self.total_tokens or int(world.cluster.total[0])
        jobs = [self._choice(job, now, world, total) for job in due]
        due_s = [job.submit_s + job.deadline_at(now - job.submit_s) for job in due]
        least = [float((c.tokens * c.takes_s).min()) for c in jobs]
        orders = [np.argsort(x, kind="stable").tolist() for x in (due_s, least)]
        orders.append(np.argsort([c.late_s.min() for c in jobs], kind="stable")[::-1].tolist())
        plan = best_timetable(jobs, orders, total, self.worth, self.period_s)
        for job, share, start in zip(due, plan.tokens.tolist(), plan.start.tolist(), strict=True):
            job.raw = job.allocation = float(share) if start == 0 else 0.0

    def _choice(self, job: Job, now: float, world: World, total: int) -> Choice:
        model = job.model
        assert isinstance(model, Simulated)
        elapsed_s = now - job.submit_s
        done = job.done(world)
        pace = job.notes = job.notes if isinstance(job.notes, Pace) else Pace(job.profile, now)
        pace.look(now, int(world.view["running"][job.row]))
        work_s = float(maths.dot(1.0 - done, job.profile.token_s))
        tokens = np.arange(1, model.max_tokens + 1)
        least_s = np.maximum(serial_s(job.profile, done), work_s / tokens)
        left_s = pace.factor(done) * np.maximum(model.left_by_run_s(done), least_s[:, None])
        grid = model.remaining.tokens
        grid = grid[grid <= total]
        left_s = left_s[grid - 1]
        now_s = elapsed_s - job.deadline_at(elapsed_s)
        cases = [now_s + self.slack**k * left_s + k * self.dead_zone_s for k in range(3)]
        return Choice(grid.astype(np.int64), left_s.mean(axis=1), np.concatenate(cases, axis=1))


@dataclass(frozen=True, eq=False)
class Choice:
    """What a job may get."""

    tokens: I8  # allocations, ascending
    takes_s: F8  # how long it is expected to hold them, s
    late_s: F8  # how late it would be, in each of R runs that may come, if it got them now, s


@dataclass(frozen=True, eq=False)
class Timetable:
    """A plan for J jobs."""

    order: tuple[int, ...]  # in which the jobs were placed
    tokens: I8  # what each gets, and from which step on; step 0 is now
    start: I8
    value: F8  # expected utility of each

    @property
    def total(self) -> float:
        """Expected utility of all."""
        return float(self.value.sum())


def timetable(
    jobs: Sequence[Choice], order: Sequence[int], total: int, worth: Utility, step_s: float
) -> Timetable:
    """Place the jobs in the order given, each where it is worth most; of equals the least work."""
    steps = [np.maximum(np.ceil(job.takes_s / step_s), 1).astype(np.int64) for job in jobs]
    work = sum(int((job.tokens * s).min()) for job, s in zip(jobs, steps, strict=True))
    n_steps = 2 * work // total + max(int(s.min()) for s in steps) + 1
    free = np.full(n_steps, total, dtype=np.int64)
    tokens, start = np.zeros(len(jobs), np.int64), np.zeros(len(jobs), np.int64)
    value = np.zeros(len(jobs))
    for j in order:
        job = jobs[j]
        first = _first_fit(free, job.tokens, steps[j])
        value_of = worth(job.late_s + step_s * first[:, None]).mean(axis=1)
        best = np.flatnonzero(value_of >= value_of.max() - 1e-9)
        i = best[np.argmin((job.tokens * steps[j])[best])]
        tokens[j], start[j], value[j] = job.tokens[i], first[i], value_of[i]
        free[first[i] : first[i] + steps[j][i]] -= job.tokens[i]
    return Timetable(tuple(order), tokens, start, value)


def _first_fit(free: I8, tokens: I8, steps: I8) -> I8:
    """Return the first step from which so many tokens are free for so many steps: (A,).

    After the last step of `free` all are taken to be.
    """
    n = len(free)
    at = np.arange(n)
    taken = np.where(free < tokens[:, None], at, np.iinfo(np.int64).max)
    ends = np.minimum.accumulate(taken[:, ::-1], axis=1)[:, ::-1]
    fits = ends - at >= steps[:, None]
    return np.where(fits.any(axis=1), fits.argmax(axis=1), n)


def best_timetable(
    jobs: Sequence[Choice],
    orders: Sequence[Sequence[int]],
    total: int,
    worth: Utility,
    step_s: float,
) -> Timetable:
    """Return the best plan found: of the orders given, and with single jobs moved first or last."""
    most = np.array([worth(job.late_s).mean(axis=1).max() for job in jobs])
    best = max((timetable(jobs, o, total, worth, step_s) for o in orders), key=lambda t: t.total)
    for _ in range(len(jobs)):
        worst = np.argsort(best.value - most, kind="stable")
        lost = [j for j in worst.tolist() if best.value[j] < most[j] - 1e-9]
        tried = (
            timetable(jobs, order, total, worth, step_s)
            for j in lost[:TRIED]
            for order in _moved(best.order, j)
        )
        better = next((t for t in tried if t.total > best.total + 1e-6), None)
        if better is None:
            break
        best = better
    return best


def _moved(order: Sequence[int], j: int) -> list[list[int]]:
    rest = [k for k in order if k != j]
    return [[j, *rest], [*rest, j]]


def utility_bound(
    submit_s: ArrayLike,
    deadline_s: ArrayLike,
    work_s: ArrayLike,
    shortest_s: ArrayLike,
    tokens: int,
    worth: Utility,
    step_s: float = 60.0,
) -> float:
    """Return an upper bound on the sum of the utilities of J jobs, by a linear program.

    Each job finishes in some step of time, and is worth what it is at the step's begin. By the end
    of a step the jobs that are done by then, of those submitted since any instant, can have taken
    no more than all tokens all that time. A job may be split over several ends: that only loosens
    the bound.
    """
    from scipy import sparse  # slow to import, and every command lists the policies
    from scipy.optimize import linprog

    submit, work = np.asarray(submit_s, dtype=float), np.asarray(work_s, dtype=float)
    earliest = submit + np.maximum(shortest_s, work / tokens)
    due = submit + np.asarray(deadline_s, dtype=float)
    begin_s = submit.min()
    last_s = max(submit.max() + work.sum() / tokens, earliest.max()) + step_s
    ends = begin_s + step_s * np.arange(1, int(np.ceil((last_s - begin_s) / step_s)) + 2)
    at = np.maximum(earliest[:, None], ends - step_s)  # (J, K)
    possible = earliest[:, None] <= ends
    job, step = np.nonzero(possible)
    value = worth(at - due[:, None])[job, step]
    column = np.arange(len(job))
    whole = sparse.coo_array((np.ones(len(job)), (job, column)))
    rows, limits = [], []
    for since in np.unique(submit):
        mine = submit[job] >= since
        for k, end in enumerate(ends):
            if end <= since:
                continue
            rows.append(np.where(mine & (step <= k), work[job], 0.0))
            limits.append(tokens * (end - since))
    solved = linprog(
        -value,
        A_ub=sparse.csr_array(np.array(rows)),
        b_ub=np.array(limits),
        A_eq=whole,
        b_eq=np.ones(len(submit)),
        bounds=(0, 1),
    )
    assert solved.status == 0, solved.message
    return float(-solved.fun)
