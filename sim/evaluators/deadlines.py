"""How jobs with a deadline were run: when they ended, and what they were guaranteed until then.

What Ferguson et al. (Jockey, EuroSys 2012, §5) look at: completion relative to the deadline, and
the allocation over time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sim.base import maths
from sim.base.arrays import F8
from sim.engine.plan import NO_LIMIT
from sim.metrics.tokens import above_oracle, cpu_s
from sim.workload.columns import final_deadline_s

if TYPE_CHECKING:
    from sim.evaluators import Evaluation, Simulate
    from sim.result import Result


def evaluate(
    run: Simulate, workload: Any, cluster: Any, policy: Any, seed: int, step_s: float = 60.0
) -> Evaluation:
    """Simulate once, and look at the jobs that have a deadline.

    Parameters
    ----------
    run, workload, cluster, policy, seed
        As every evaluator is given.
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
    oracle = np.ceil(needed_s / deadline_s)
    rows = [_limit_of(result, int(j), float(oracle[j])) for j in jobs]
    limited = [row for row in rows if row is not None]
    change_s = columns.job_submit + columns.job_new_deadline_at
    numbers = [_numbers(row, deadline_s[row.job], change_s[row.job]) for row in limited]
    metrics = {name: float(value) for name, value in result.metrics.items()}
    metrics["relative_finish"] = _mean(took_s[jobs] / deadline_s[jobs])
    for name in ("first", "p50", "max", "last", "changed", "above_oracle", "over_minimum"):
        metrics[f"tokens_{name}"] = _mean([each[name] for each in numbers])
    metrics["tokens_above_held"] = above_oracle(result, columns.job_work)
    metrics["token_hours"] = _mean([each["hours"] for each in numbers])
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
        raw_allocations = getattr(self._policy, "raw_allocations", None)
        if raw_allocations is not None:
            for job, tokens in raw_allocations(memory).items():
                self.raw.setdefault(job, []).append((batch.now, float(tokens)))


@dataclass(frozen=True, eq=False)
class _Limit:
    """The limit of one job from its submission to its end."""

    job: int
    submit_s: float
    time_s: F8  # from when on each number of tokens held, and the end
    tokens: F8
    oracle: float  # the tokens that would have done


def _limit_of(result: Result, job: int, oracle: float) -> _Limit | None:
    """Return the limit of a job, None if it had none at some time."""
    limits = result.limits
    mine = limits["job"].to_numpy() == job
    tokens = limits["tokens"].to_numpy()[mine]
    if not len(tokens) or (tokens == NO_LIMIT).any():
        return None
    time_s = np.append(limits["time_s"].to_numpy()[mine], result.job_finish[job])
    submit_s = float(result.job_submit[job])
    return _Limit(job, submit_s, time_s, tokens.astype(np.float64), oracle)


def _numbers(of: _Limit, deadline_s: float, change_s: float) -> dict[str, float]:
    """Return what is told of a limit; see `evaluator`."""
    time_s, tokens = of.time_s, of.tokens
    lasts_s = np.diff(time_s)
    given = maths.dot(tokens, lasts_s)
    above = maths.dot(np.maximum(tokens - of.oracle, 0.0), lasts_s)
    least = of.oracle * deadline_s
    order = np.argsort(tokens, kind="stable")
    reached = np.cumsum(lasts_s[order])
    changed = np.nan
    if time_s[0] < change_s < time_s[-1]:
        before = tokens[np.searchsorted(time_s, change_s) - 1]
        later_s = np.diff(np.maximum(time_s, change_s))
        changed = maths.dot(tokens, later_s) / (time_s[-1] - change_s) / before - 1
    return {
        "first": tokens[tokens > 0][0] if (tokens > 0).any() else 0.0,  # that let anything run
        "p50": tokens[order][np.searchsorted(reached, reached[-1] / 2)],
        "max": tokens.max(),
        "last": tokens[-1],
        "hours": given / 3600,
        "above_oracle": above / given if given > 0 else np.nan,
        "over_minimum": given / least - 1 if least > 0 else np.nan,
        "changed": changed,
    }


def _over_time(
    result: Result, row: _Limit, raw: dict[int, list[tuple[float, float]]], step_s: float
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
