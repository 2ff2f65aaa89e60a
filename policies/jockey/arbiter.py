"""An arbiter between jobs with deadlines: beyond the paper, which leaves it open (§1, §4.4).

Where what the jobs need fits within the cluster, each has what Jockey gives it. Where it does not,
tokens go by turns: a job takes all that it can use of what those before it leave. What is looked
for is the order of turns that is worth most, looking ahead to when each job ends in it.
`policies.jockey.bound` says what jobs can be worth at most, and `policies.jockey.filling` has
another way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

import numpy as np

from policies.jockey.control import Job, Running, need
from policies.jockey.filling import greedy_fill
from policies.jockey.model import Simulated, serial_s
from policies.jockey.policy import Jockey
from policies.jockey.profile import Profile
from policies.registry import register
from sim.base import maths
from sim.base.arrays import F8, I8
from sim.engine.plan import Batch, Event, Plan, World

PRIOR: Final = 0.05
"""That a job needs as much as in training counts like having seen this part of its work."""

MOVED: Final = 20
"""How many of the jobs that lose most are tried at every other place in the order."""

ROUNDS: Final = 20
"""How many jobs are moved at a look, at most."""

HAIR: Final = 1e-6
"""Utility that is no gain."""


@dataclass(eq=False)
class Pace:
    """The token seconds that a job has held, by looks at how many of its tasks run."""

    profile: Profile  # of its training
    looked_s: float  # when it was looked at last, s
    running: int = 0  # how many of its tasks ran then
    held_s: float = 0.0  # token seconds until then
    turn: int = 0  # how many jobs go before it

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
    jobs of high expected marginal utility. Here all jobs with a deadline are looked at together
    each period, and when one comes or goes. If what they need to meet their deadlines adds up to
    no more than the cluster has, those are their tokens. If not, or if one must be late, each may
    have all tokens, and they are served in the order of `best_order`: a job that nothing saves
    goes where that costs the least together.

    Predictions are stretched by the work that a job turned out to need so far (`Pace`), and are
    never less than the serial work that is left nor all of it over the tokens: C(p, a) is of jobs
    whose tasks kept running, and one whose tokens were taken has none under way. Nothing is
    smoothed.

    Attributes
    ----------
    fill : {"turns", "greedy"}
        What becomes of tokens that do not do for all: turns, or shares to whom the next token is
        worth most, where having none is worth what waiting for all others is.
    longest_path_first : bool
        Whether of a job's stages those go first from whose start the longest path is left, by its
        training (l_s + L_s), or those that are ready first.
    """

    fill: Literal["turns", "greedy"] = "turns"
    longest_path_first: bool = True

    events = Event.JOB_ARRIVED | Event.JOB_DONE | Event.TIMER
    together = True

    def prepare(self, world: World, plan: Plan) -> Running:
        """See `Jockey`; then set which stages of a job go first."""
        memory = super().prepare(world, plan)
        if self.longest_path_first:
            for job in memory.jobs.values():
                path_s = job.profile.longest_s + job.profile.after_s
                plan.set_stages(np.arange(job.stage0, job.stage1), key=-path_s)
        return memory

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        """See `Jockey`; then set whose turn it is."""
        super().react(memory, batch, world, plan)
        assert isinstance(memory, Running)
        for job in memory.live.values():
            assert isinstance(job.notes, Pace)
            plan.set_jobs(job.row, key=float(job.notes.turn))

    def allocate(self, memory: Running, due: Sequence[Job], now: float, world: World) -> None:
        """Give each job what it needs, or all that it can use when it has its turn."""
        total = int(world.cluster.total[0])
        turns = [self._look(job, now, world, total) for job in due]
        if sum(job.raw for job in due) <= total:
            for job in due:
                job.allocation = job.raw
            return
        left = Left(*np.array(turns).T)
        if self.fill == "greedy":
            self._fill(due, left, world, total)
            return
        for job in due:
            job.raw = job.allocation = float(total)
        before = np.argsort([_pace(job).turn for job in due], kind="stable")
        by_deadline = np.argsort(-left.late_s, kind="stable")
        order = best_order(left, [before, by_deadline], total, self.expected)
        for turn, j in enumerate(order.tolist()):
            _pace(due[j]).turn = turn

    def expected(self, late_s: F8, left_s: F8) -> F8:
        """Return the expected utility of jobs that end in about `left_s` from now.

        They are `late_s` past their deadlines now. What is left is predicted right, or `slack`
        times too long or too short.
        """
        cases = (left_s / self.slack, left_s, left_s * self.slack)
        return np.asarray(sum(self.worth(late_s + case) for case in cases) / len(cases))

    def _fill(self, due: Sequence[Job], left: Left, world: World, total: int) -> None:
        """Share the tokens out by what jobs are expected to be worth with so many to their end."""
        tokens, worth = [], []
        for job, late_s, work_s in zip(due, left.late_s, left.work_s, strict=True):
            assert isinstance(job.model, Simulated)
            done = job.done(world)
            at = job.model.remaining.tokens.astype(np.int64)
            at = at[at <= total]
            factor = _pace(job).factor(done)
            least_s = np.maximum(factor * serial_s(job.profile, done), work_s / at)
            left_s = np.maximum(factor * job.model.left_by_run_s(done)[: len(at)], least_s[:, None])
            waits_s = (left.work_s.sum() - work_s) / total
            cases = np.concatenate([left_s[-1:] + waits_s, left_s])
            tokens.append(np.concatenate([[0], at]))
            worth.append(self.expected(late_s, cases).mean(axis=1))
        for job, got in zip(due, greedy_fill(tokens, worth, total).tolist(), strict=True):
            job.raw = job.allocation = float(got)

    def _look(self, job: Job, now: float, world: World, total: int) -> tuple[float, float, float]:
        """Set what a job needs; return how late it is, its work, and its least time."""
        model = job.model
        assert isinstance(model, Simulated)
        elapsed_s, done = now - job.submit_s, job.done(world)
        if not isinstance(job.notes, Pace):
            job.notes = Pace(job.profile, now)
        pace = _pace(job)
        pace.look(now, int(world.view["running"][job.row]))
        factor, deadline_s = pace.factor(done), job.deadline_at(elapsed_s)
        work_s = factor * float(maths.dot(1.0 - done, job.profile.token_s))
        least_s = factor * serial_s(job.profile, done)
        tokens = np.arange(1, model.max_tokens + 1)
        left_s = np.maximum(factor * model.left_s(done), np.maximum(least_s, work_s / tokens))
        job.raw = float(need(self.law, deadline_s, elapsed_s, left_s))
        mean_s = max(factor * float(model.left_by_run_s(done)[-1].mean()), work_s / tokens[-1])
        more_s = work_s * max(1.0 / tokens[-1] - 1.0 / total, 0.0)  # with all tokens it takes less
        return elapsed_s - deadline_s, work_s, max(least_s, mean_s - more_s)


def _pace(job: Job) -> Pace:
    assert isinstance(job.notes, Pace)
    return job.notes


@dataclass(frozen=True, eq=False)
class Left:
    """What is left of J jobs."""

    late_s: F8  # how far they are past their deadlines, s
    work_s: F8  # how long their tasks will hold tokens, s
    least_s: F8  # how long they take at least, s


def finishes_s(left: Left, orders: I8, total: int) -> F8:
    """Return when jobs end that take turns in each of M orders (M, J): (M, J), s.

    A job is so much work that runs on any number of tokens up to what would end it in its least
    time, and takes that of what the jobs before it leave.
    """
    work = left.work_s[orders]
    most = np.minimum(left.work_s / np.maximum(left.least_s, 1e-9), total)[orders]
    ends, now, runs = np.zeros(work.shape), np.zeros(len(orders)), work > 0
    while runs.any():
        wanted = np.where(runs, most, 0.0)
        rate = np.clip(total - (np.cumsum(wanted, axis=1) - wanted), 0.0, wanted)
        with np.errstate(divide="ignore", invalid="ignore"):
            ends_in = np.where(rate > 0, work / rate, np.inf)
        step = ends_in.min(axis=1)
        step[~np.isfinite(step)] = 0.0
        now = now + step
        done = runs & (ends_in <= step[:, None] * (1 + 1e-12))
        work = work - rate * step[:, None]
        ends[done] = np.broadcast_to(now[:, None], ends.shape)[done]
        runs &= ~done
    of_jobs = np.empty_like(ends)
    np.put_along_axis(of_jobs, orders, ends, axis=1)
    return of_jobs


def best_order(
    left: Left, starts: Sequence[I8], total: int, expected: Callable[[F8, F8], F8]
) -> I8:
    """Return the order of turns of most expected utility: the best start, with jobs moved in it.

    At a time the one job is moved that gains most by it, until none gains anything.
    """

    def values(orders: I8) -> F8:
        return expected(left.late_s, finishes_s(left, orders, total))

    alone = expected(left.late_s, np.maximum(left.least_s, left.work_s / total))
    orders = np.array(starts)
    value = values(orders)
    for _ in range(ROUNDS):
        i = int(value.sum(axis=1).argmax())
        best, reached = orders[i], value[i]
        lost = alone - reached
        if lost.sum() <= HAIR:
            break
        moved = np.sort(np.argsort(-lost[best], kind="stable")[:MOVED])
        orders = best[_moves(len(best))[moved].reshape(-1, len(best))]
        value = values(orders)
        if value.sum(axis=1).max() <= reached.sum() + HAIR:
            break
    return np.asarray(best)


@lru_cache(maxsize=64)
def _moves(n: int) -> I8:
    """Return orders of n places, the one at the first index moved to the second: (n, n, n)."""
    places = np.empty((n, n, n), dtype=np.int64)
    for i in range(n):
        rest = np.delete(np.arange(n), i)
        for k in range(n):
            places[i, k] = np.insert(rest, k, i)
    places.setflags(write=False)
    return places
