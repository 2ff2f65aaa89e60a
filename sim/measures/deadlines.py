"""How jobs with a deadline were run: when they ended, and what they were guaranteed until then.

What Ferguson et al. (Jockey, EuroSys 2012, §5) look at: completion relative to the deadline, and
the allocation over time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sim.base import maths
from sim.base.arrays import F8
from sim.engine.plan import NO_LIMIT
from sim.metrics.tokens import above_oracle, cpu_s
from sim.workload.columns import final_deadline_s

if TYPE_CHECKING:
    import pyarrow as pa

    from sim.measures import Measured, Simulate
    from sim.result import Result


def measure(
    run: Simulate, workload: Any, cluster: Any, policy: Any, seed: int, step_s: float = 60.0
) -> Measured:
    """Simulate once, and look at the jobs that have a deadline.

    Parameters
    ----------
    run, workload, cluster, policy, seed
        As every measure is given.
    step_s : float
        Time between rows of the table, s.

    Returns
    -------
    metrics : dict of str to float
        Those of `sim.metrics`, and means over the jobs with a deadline that were done:
        ``relative_finish``, completion time over the deadline that held at the end; and over those
        that had a run limit throughout: ``tokens_first``, ``tokens_p50``, ``tokens_max`` and
        ``tokens_last``, of the limit over time (each instant counts alike); ``token_hours``, its
        integral; ``tokens_above_oracle``, how much of it is above the oracle's, late jobs
        included; ``tokens_over_minimum``, what it is over that of the oracle's up to the deadline,
        less 1; ``tokens_above_held``, as `allocation_above_oracle` where T counts all that a token
        is held for, initialisation included; ``tokens_changed``, where the deadline changes, the
        mean limit from then on over that before, less 1; and ``spare_share``, what part of the
        job's running tasks, counted each step, is beyond the limit.
    table : pyarrow.Table
        A row for each such job and step: ``job``, ``elapsed_s`` since its submission, ``tokens``,
        ``raw`` (what the policy wanted before it smoothed; NaN if it does not say), ``running``
        (tasks, by the attempts that succeeded) and ``oracle``.
    """
    watched = Watched(policy)
    result: Result = run(workload, cluster, watched, seed=seed, record="tasks")
    columns = result.workload.columns
    has = ~np.isnan(columns.job_deadline) & np.isfinite(result.job_finish) & ~result.job_failed
    jobs = np.flatnonzero(has)
    took_s = result.job_finish - columns.job_submit
    deadline_s = final_deadline_s(columns, took_s)
    needed_s = cpu_s(result.workload)
    rows = [_Allocation.of(result, int(j), float(deadline_s[j]), needed_s[j]) for j in jobs]
    limited = [row for row in rows if row is not None]
    metrics = {name: float(value) for name, value in result.metrics.items()}
    metrics["relative_finish"] = _mean(took_s[jobs] / deadline_s[jobs])
    for name in ("first", "p50", "max", "last", "changed", "above_oracle", "over_minimum"):
        metrics[f"tokens_{name}"] = _mean([getattr(row, name) for row in limited])
    metrics["tokens_above_held"] = above_oracle(result, columns.job_work)
    metrics["token_hours"] = _mean([row.hours for row in limited])
    parts = [_over_time(result, row, watched.raw, step_s) for row in limited]
    metrics["spare_share"] = _mean([_spare_share(part) for part in parts])
    return metrics, pa.concat_tables([_empty(), *parts])


class Watched:
    """A policy, of which it is noted what it wanted for a job before it smoothed.

    A policy that has a method ``wanted(memory)`` returns that as a mapping of the job's row to a
    number of tokens. In all else it is the policy itself.
    """

    def __init__(self, policy: Any) -> None:
        self._policy = policy
        self.raw: dict[int, list[tuple[float, float]]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policy, name)

    def react(self, memory: object, batch: Any, world: Any, plan: Any) -> None:
        """Let the policy react, and note."""
        self._policy.react(memory, batch, world, plan)
        wanted = getattr(self._policy, "wanted", None)
        if wanted is not None:
            for job, tokens in wanted(memory).items():
                self.raw.setdefault(job, []).append((batch.now, float(tokens)))


class _Allocation:
    """The limit of one job from its submission to its end."""

    def __init__(self, job: int, submit_s: float, time_s: F8, tokens: F8) -> None:
        self.job, self.submit_s = job, submit_s
        self.time_s, self.tokens = time_s, tokens  # one more time than numbers of tokens
        self.oracle, self.deadline_s, self.change_s = 0.0, np.nan, np.nan

    @classmethod
    def of(cls, result: Result, job: int, deadline_s: float, needed_s: float) -> _Allocation | None:
        """Return that of a job, None if it had no limit at some time."""
        limits = result.limits
        mine = limits["job"].to_numpy() == job
        tokens = limits["tokens"].to_numpy()[mine]
        if not len(tokens) or (tokens == NO_LIMIT).any():
            return None
        columns = result.workload.columns
        submit_s, end_s = float(result.job_submit[job]), float(result.job_finish[job])
        time_s = np.append(limits["time_s"].to_numpy()[mine], end_s)
        made = cls(job, submit_s, time_s, tokens.astype(np.float64))
        made.oracle, made.deadline_s = float(np.ceil(needed_s / deadline_s)), deadline_s
        made.change_s = submit_s + float(columns.job_new_deadline_at[job])
        return made

    @property
    def lasts_s(self) -> F8:
        return np.diff(self.time_s)

    @property
    def first(self) -> float:
        """The limit set first that let anything run."""
        return float(self.tokens[self.tokens > 0][0]) if (self.tokens > 0).any() else 0.0

    @property
    def last(self) -> float:
        return float(self.tokens[-1])

    @property
    def max(self) -> float:
        return float(self.tokens.max())

    @property
    def p50(self) -> float:
        order = np.argsort(self.tokens, kind="stable")
        reached = np.cumsum(self.lasts_s[order])
        return float(self.tokens[order][np.searchsorted(reached, reached[-1] / 2)])

    @property
    def hours(self) -> float:
        return float(maths.dot(self.tokens, self.lasts_s)) / 3600

    @property
    def above_oracle(self) -> float:
        given = maths.dot(self.tokens, self.lasts_s)
        above = maths.dot(np.maximum(self.tokens - self.oracle, 0.0), self.lasts_s)
        return float(above / given) if given > 0 else float("nan")

    @property
    def over_minimum(self) -> float:
        least = self.oracle * self.deadline_s
        return float(maths.dot(self.tokens, self.lasts_s) / least - 1) if least > 0 else np.nan

    @property
    def changed(self) -> float:
        if not self.time_s[0] < self.change_s < self.time_s[-1]:
            return float("nan")
        before = self.tokens[np.searchsorted(self.time_s, self.change_s) - 1]
        later = np.maximum(self.time_s, self.change_s)
        after = maths.dot(self.tokens, np.diff(later)) / (self.time_s[-1] - self.change_s)
        return float(after / before - 1)


def _over_time(
    result: Result, row: _Allocation, raw: dict[int, list[tuple[float, float]]], step_s: float
) -> pa.Table:
    at = np.arange(row.submit_s, row.time_s[-1], step_s)
    columns = result.workload.columns
    first, end = columns.stage_task0[columns.job_stage0[row.job : row.job + 2]]
    assert result.task_start is not None
    assert result.task_finish is not None
    started = np.searchsorted(np.sort(result.task_start[first:end]), at, side="right")
    ended = np.searchsorted(np.sort(result.task_finish[first:end]), at, side="right")
    noted = np.array(raw.get(row.job, [])).reshape(-1, 2)
    return pa.table(
        {
            "job": np.full(len(at), row.job, np.int64),
            "elapsed_s": at - row.submit_s,
            "tokens": _held(row.time_s[:-1], row.tokens, at),
            "raw": _held(noted[:, 0], noted[:, 1], at),
            "running": (started - ended).astype(np.float64),
            "oracle": np.full(len(at), row.oracle),
        }
    )


def _spare_share(part: pa.Table) -> float:
    running, tokens = part["running"].to_numpy(), part["tokens"].to_numpy()
    n = running.sum()
    return float(np.maximum(running - tokens, 0.0).sum() / n) if n else float("nan")


def _held(time_s: F8, values: F8, at: F8) -> F8:
    """Return the value that was set last at each time, NaN before the first."""
    place = np.searchsorted(time_s, at, side="right") - 1
    return np.where(place >= 0, np.append(values, np.nan)[place], np.nan)


def _empty() -> pa.Table:
    names = ("elapsed_s", "tokens", "raw", "running", "oracle")
    columns: dict[str, Any] = {name: pa.array([], pa.float64()) for name in names}
    return pa.table({"job": pa.array([], pa.int64()), **columns})


def _mean(values: Any) -> float:
    known = np.asarray(values, dtype=np.float64)
    known = known[~np.isnan(known)]
    return float(known.mean()) if len(known) else float("nan")
