"""An arbiter between jobs with deadlines: beyond the paper, which leaves it open (§1, §4.4).

If the tokens that jobs need fit the cluster, each job gets what Jockey gives it. Otherwise jobs are
served in a priority order: each takes all the tokens that it can use of those left by the jobs
before it. The arbiter searches for the order with the greatest total utility, from the predicted
end of each job in it. `policies.jockey.bound` has an upper bound on total utility, and
`policies.jockey.filling` an alternative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

import numpy as np

from policies.estimates.profile import Profile
from policies.jockey.control import Job, Running, cluster_tokens, tokens_needed
from policies.jockey.filling import greedy_fill
from policies.jockey.model import Simulated, serial_s
from policies.jockey.policy import Jockey
from policies.registry import register
from sim.base import maths
from sim.base.arrays import F8, I8
from sim.engine.plan import Batch, Event, Plan, World

PRIOR: Final = 0.05
"""Weight of the training run in the estimate of a job's work, as a fraction of its work."""

N_MOVED: Final = 20
"""Number of jobs with the greatest loss that are tried at every other position in the order."""

MAX_MOVES: Final = 20
"""Maximum number of moves in one update of the order."""

TOLERANCE: Final = 1e-6
"""Gains in utility up to this count as none."""


@dataclass(eq=False)
class WorkMeter:
    """Meter of the token seconds that a job has used, by samples of its running tasks."""

    profile: Profile  # of its training
    updated_s: float  # time of the last sample, s
    running: int = 0  # its running tasks then
    token_s: float = 0.0  # its token seconds until then
    turn: int = 0  # number of jobs before it in the order

    def __post_init__(self) -> None:
        self._whole_s = float(self.profile.token_s.sum())
        self._n_tasks = float(self.profile.shape.n_tasks.sum())

    def update(self, now: float, running: int) -> None:
        """Add the time since the last sample, times the mean of both numbers of running tasks."""
        self.token_s += (now - self.updated_s) * (self.running + running) / 2
        self.updated_s, self.running = now, running

    def factor(self, done: F8) -> float:
        """Return the work used for the finished tasks, relative to training.

        Running tasks count as half done, by the mean task; `PRIOR` limits the weight of the first
        few tasks.
        """
        half_s = self.running * self._whole_s / self._n_tasks / 2
        known_s = PRIOR * self._whole_s
        return (max(self.token_s - half_s, 0.0) + known_s) / (
            float(maths.dot(done, self.profile.token_s)) + known_s
        )


@register("jockey_arbiter")
@dataclass(frozen=True)
class JockeyArbiter(Jockey):
    """Tokens are allocated between jobs with deadlines for the greatest total expected utility.

    Ferguson et al. (EuroSys 2012, §4.4) plan an arbiter that shifts resources from jobs of low to
    jobs of high expected marginal utility. Here all jobs with a deadline are updated together each
    period, and when one arrives or ends. If the tokens that they need to meet their deadlines fit
    the cluster, each gets those. If not, or if a job must be late, each may use all tokens, and
    they are served in the order of `best_order`: a job that must be late goes where the total loss
    is least.

    Predictions are scaled by the work that a job has needed so far relative to training
    (`WorkMeter`). They are at least the remaining serial work, and at least all remaining work over
    the tokens: C(p, a) is for jobs whose tasks kept running, and a job that lost its tokens has no
    running tasks. Allocations are not smoothed.

    Attributes
    ----------
    fill : {"turns", "greedy"}
        Allocation when tokens do not suffice for all jobs. "turns": in a priority order. "greedy":
        each token to the job with the greatest gain, where a job without tokens waits until all
        others have ended.
    longest_path_first : bool
        Order of a job's stages: the longest remaining path first, by its training (l_s + L_s), or
        the first ready stage first.
    """

    fill: Literal["turns", "greedy"] = "turns"
    longest_path_first: bool = True

    events = Event.JOB_ARRIVED | Event.JOB_DONE | Event.TIMER
    joint = True

    def prepare(self, world: World, plan: Plan) -> Running:
        """See `Jockey`; then set the order of each job's stages."""
        memory = super().prepare(world, plan)
        if self.longest_path_first:
            for job in memory.jobs.values():
                path_s = job.profile.longest_s + job.profile.after_s
                plan.set_stages(np.arange(job.stage0, job.stage1), key=-path_s)
        return memory

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        """See `Jockey`; then set the order of the jobs."""
        super().react(memory, batch, world, plan)
        assert isinstance(memory, Running)
        if not memory.live:
            return
        rows = np.array([*memory.live], np.int32)
        turns = np.array([_meter(job).turn for job in memory.live.values()], np.float64)
        moved = plan.jobs["key"][rows] != turns
        if moved.any():
            plan.set_jobs(rows[moved], key=turns[moved])

    def allocate(self, memory: Running, due: Sequence[Job], now: float, world: World) -> None:
        """Allocate the tokens that jobs need or, if too many, all tokens in the best order."""
        total = cluster_tokens(world)
        left = self._remaining(due, now, world, total)
        if sum(job.raw for job in due) <= total:
            for job in due:
                job.allocation = job.raw
            return
        if self.fill == "greedy":
            self._fill(due, left, world, total)
            return
        for job in due:
            job.raw = job.allocation = float(total)
        before = np.argsort([_meter(job).turn for job in due], kind="stable")
        by_deadline = np.argsort(-left.late_s, kind="stable")
        order = best_order(left, [before, by_deadline], total, self.expected)
        for turn, j in enumerate(order.tolist()):
            _meter(due[j]).turn = turn

    def expected(self, late_s: F8, left_s: F8) -> F8:
        """Return the expected utility of jobs that end in about `left_s` from now.

        Their deadlines are `late_s` in the past now. The prediction is right, or too long or too
        short by a factor of `slack`.
        """
        from policies.jockey.kernels.turns import expected_utility  # compiled: slow to import

        curve, expected = self.utility_curve, np.empty(left_s.shape)
        late_s, rows = np.broadcast_to(late_s, left_s.shape[-1:]).copy(), (-1, left_s.shape[-1])
        points = curve.late_s.copy(), curve.value.copy(), curve.slope
        out = expected.reshape(rows)
        expected_utility(late_s, left_s.reshape(rows), float(self.slack), *points, out)
        return expected

    def _fill(self, due: Sequence[Job], left: RemainingWork, world: World, total: int) -> None:
        """Allocate tokens greedily by the jobs' expected utility with a constant allocation."""
        tokens, worth = [], []
        for job, late_s, work_s in zip(due, left.late_s, left.work_s, strict=True):
            assert isinstance(job.model, Simulated)
            done = job.done(world)
            allocations = job.model.remaining.tokens.astype(np.int64)
            allocations = allocations[allocations <= total]
            factor = _meter(job).factor(done)
            least_s = np.maximum(factor * serial_s(job.profile, done), work_s / allocations)
            left_s = np.maximum(
                factor * job.model.left_by_run_s(done)[: len(allocations)], least_s[:, None]
            )
            waits_s = (left.work_s.sum() - work_s) / total
            cases = np.concatenate([left_s[-1:] + waits_s, left_s])
            tokens.append(np.concatenate([[0], allocations]))
            worth.append(self.expected(late_s, cases).mean(axis=1))
        for job, n_tokens in zip(due, greedy_fill(tokens, worth, total).tolist(), strict=True):
            job.raw = job.allocation = float(n_tokens)

    def _remaining(self, due: Sequence[Job], now: float, world: World, total: int) -> RemainingWork:
        """Set the tokens that jobs need; return their lateness and remaining work."""
        measured, levels_s = [], []
        for job in due:
            elapsed_s, done, model = now - job.submit_s, job.done(world), job.model
            assert isinstance(model, Simulated)
            if not isinstance(job.notes, WorkMeter):
                job.notes = WorkMeter(job.profile, now)
            job.notes.update(now, int(world.view["running"][job.row]))
            factor, level = job.notes.factor(done), model.level(done)
            work_s = factor * float(maths.dot(1.0 - done, job.profile.token_s))
            least_s = factor * serial_s(job.profile, done)
            times_s = elapsed_s, job.deadline_at(elapsed_s), work_s, least_s
            measured.append((*times_s, factor, factor * model.remaining.mean_s(level)))
            levels_s.append(model.table[level])
        elapsed, deadline, work, shortest, factors, mean = np.array(measured).reshape(-1, 6).T
        tokens = np.arange(1, self.max_tokens + 1)
        fewest_s = np.maximum(shortest[:, None], work[:, None] / tokens)
        left_s = np.maximum(factors[:, None] * np.reshape(levels_s, (-1, len(tokens))), fewest_s)
        for job, need in zip(due, tokens_needed(self.law, deadline, elapsed, left_s), strict=True):
            job.raw = float(need)
        more_s = work * max(1.0 / tokens[-1] - 1.0 / total, 0.0)  # with all tokens it takes less
        mean_s = np.maximum(mean, work / tokens[-1])
        return RemainingWork(elapsed - deadline, work, np.maximum(shortest, mean_s - more_s))


def _meter(job: Job) -> WorkMeter:
    assert isinstance(job.notes, WorkMeter)
    return job.notes


@dataclass(frozen=True, eq=False)
class RemainingWork:
    """Lateness and remaining work of J jobs."""

    late_s: F8  # time past their deadlines, s
    work_s: F8  # remaining token seconds
    least_s: F8  # shortest remaining time, s


def finish_times_s(left: RemainingWork, orders: I8, total: int) -> F8:
    """Return the ends of jobs that are served in each of M orders (M, J): (M, J), s.

    A job is an amount of work for any number of tokens, up to the number that would end it in its
    shortest time. It takes up to that many of the tokens that the jobs before it leave.
    """
    from policies.jockey.kernels.turns import finish_times  # compiled: slow to import

    max_rate = np.minimum(left.work_s / np.maximum(left.least_s, 1e-9), total)
    finish_s = np.empty(orders.shape)
    orders = np.array(orders, dtype=np.int64, order="C")
    finish_times(left.work_s.copy(), max_rate, orders, float(total), finish_s)
    return finish_s


def best_order(
    left: RemainingWork, initial_orders: Sequence[I8], total: int, expected: Callable[[F8, F8], F8]
) -> I8:
    """Return an order of jobs of high expected utility, by local search from the best initial one.

    Each step makes the single move of a job with the greatest gain, until no move has a gain.
    """

    def values(orders: I8) -> F8:
        return expected(left.late_s, finish_times_s(left, orders, total))

    alone = expected(left.late_s, np.maximum(left.least_s, left.work_s / total))
    orders = np.array(initial_orders)
    value = values(orders)
    for _ in range(MAX_MOVES):
        i = int(value.sum(axis=1).argmax())
        best, best_value = orders[i], value[i]
        loss = alone - best_value
        if loss.sum() <= TOLERANCE:
            break
        moved = np.sort(np.argsort(-loss[best], kind="stable")[:N_MOVED])
        orders = best[_moves(len(best))[moved].reshape(-1, len(best))]
        value = values(orders)
        if value.sum(axis=1).max() <= best_value.sum() + TOLERANCE:
            break
    return np.asarray(best)


@lru_cache(maxsize=64)
def _moves(n: int) -> I8:
    """Return the permutations of n positions that move index i to index k: (n, n, n)."""
    places = np.empty((n, n, n), dtype=np.int64)
    for i in range(n):
        rest = np.delete(np.arange(n), i)
        for k in range(n):
            places[i, k] = np.insert(rest, k, i)
    places.setflags(write=False)
    return places
