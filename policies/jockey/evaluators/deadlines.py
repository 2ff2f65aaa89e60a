"""Evaluator of jobs with a deadline: completion times, and guaranteed tokens over time.

As in Ferguson et al. (Jockey, EuroSys 2012, §5): completion relative to the deadline, and the
allocation over time.
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
    """Simulate once, and evaluate the jobs that have a deadline.

    Parameters
    ----------
    run, workload, cluster, policy, seed
        As for every evaluator.
    step_s : float
        Time between rows of the table, s.

    Returns
    -------
    metrics : dict of str to float
        Those of `sim.metrics`, and means over the jobs with a deadline that were done:
        ``relative_finish``, completion time over the final deadline; and over those that had a run
        limit throughout: ``tokens_first``, ``tokens_p50``, ``tokens_max`` and ``tokens_last``, of
        the limit over time (weighted by time); ``token_hours``, its integral;
        ``tokens_above_oracle``, the share of that above the oracle's limit, late jobs included;
        ``tokens_over_minimum``, the integral over the oracle's up to the deadline, minus 1;
        ``tokens_above_held``, as `allocation_above_oracle` with T counting all the time that a
        token is held, initialisation included; ``tokens_changed``, for jobs whose deadline changes,
        the mean limit from then on over the limit before, minus 1; and ``spare_share``, the share
        of the job's running tasks, counted each step, beyond the limit.
    table : pyarrow.Table
        A row per such job and step: ``job``, ``elapsed_s`` since its submission, ``tokens``,
        ``raw`` (the policy's allocation before smoothing; NaN if it has none), ``running`` (tasks,
        by the attempts that succeeded) and ``oracle``.
    """
    recording = RecordingPolicy(policy)
    result: Result = run(workload, cluster, recording, seed=seed, record="tasks")
    columns = result.workload.columns
    has_deadline = (
        ~np.isnan(columns.job_deadline) & np.isfinite(result.job_finish) & ~result.job_failed
    )
    jobs = np.flatnonzero(has_deadline)
    run_s = result.job_finish - columns.job_submit
    deadline_s = final_deadline_s(columns, run_s)
    need_s = cpu_s(result.workload)
    oracle = np.ceil(need_s / deadline_s)
    rows = [_job_limit(result, int(j), float(oracle[j])) for j in jobs]
    limited = [row for row in rows if row is not None]
    change_s = columns.job_submit + columns.job_new_deadline_at
    numbers = [_limit_statistics(row, deadline_s[row.job], change_s[row.job]) for row in limited]
    metrics = {name: float(value) for name, value in result.metrics.items()}
    metrics["relative_finish"] = _mean(run_s[jobs] / deadline_s[jobs])
    for name in ("first", "p50", "max", "last", "changed", "above_oracle", "over_minimum"):
        metrics[f"tokens_{name}"] = _mean([limit[name] for limit in numbers])
    metrics["tokens_above_held"] = above_oracle(result, columns.job_work)
    metrics["token_hours"] = _mean([limit["hours"] for limit in numbers])
    parts = [_over_time(result, row, recording.raw, step_s) for row in limited]
    metrics["spare_share"] = _mean([_spare_share(part) for part in parts])
    return metrics, pa.concat_tables([_empty(), *parts])


class RecordingPolicy:
    """Wrapper of a policy that records its allocations before smoothing.

    A policy with a method ``raw_allocations(memory)`` returns them as a mapping from the job's row
    to a number of tokens. All other attributes are the policy's own.
    """

    def __init__(self, policy: Any) -> None:
        self._policy = policy
        self.raw: dict[int, list[tuple[float, float]]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policy, name)

    def react(self, memory: object, batch: Any, world: Any, plan: Any) -> None:
        """Let the policy react, and record its raw allocations."""
        self._policy.react(memory, batch, world, plan)
        raw_allocations = getattr(self._policy, "raw_allocations", None)
        if raw_allocations is not None:
            for job, tokens in raw_allocations(memory).items():
                self.raw.setdefault(job, []).append((batch.now, float(tokens)))


@dataclass(frozen=True, eq=False)
class _Limit:
    """Run limit of one job from its submission to its end."""

    job: int
    submit_s: float
    time_s: F8  # begin of each limit, and the end
    tokens: F8
    oracle: float  # the tokens that would have sufficed


def _job_limit(result: Result, job: int, oracle: float) -> _Limit | None:
    """Return the run limit of a job; None if it had no limit at some time."""
    limits = result.limits
    is_job = limits["job"].to_numpy() == job
    tokens = limits["tokens"].to_numpy()[is_job]
    if not len(tokens) or (tokens == NO_LIMIT).any():
        return None
    time_s = np.append(limits["time_s"].to_numpy()[is_job], result.job_finish[job])
    submit_s = float(result.job_submit[job])
    return _Limit(job, submit_s, time_s, tokens.astype(np.float64), oracle)


def _limit_statistics(limit: _Limit, deadline_s: float, change_s: float) -> dict[str, float]:
    """Compute the statistics of a limit; see `evaluate`."""
    time_s, tokens = limit.time_s, limit.tokens
    held_s = np.diff(time_s)
    token_s = maths.dot(tokens, held_s)
    above = maths.dot(np.maximum(tokens - limit.oracle, 0.0), held_s)
    minimum_token_s = limit.oracle * deadline_s
    order = np.argsort(tokens, kind="stable")
    cumulative_s = np.cumsum(held_s[order])
    changed = np.nan
    if time_s[0] < change_s < time_s[-1]:
        before = tokens[np.searchsorted(time_s, change_s) - 1]
        later_s = np.diff(np.maximum(time_s, change_s))
        changed = maths.dot(tokens, later_s) / (time_s[-1] - change_s) / before - 1
    return {
        "first": tokens[tokens > 0][0]
        if (tokens > 0).any()
        else 0.0,  # the first that lets a task run
        "p50": tokens[order][np.searchsorted(cumulative_s, cumulative_s[-1] / 2)],
        "max": tokens.max(),
        "last": tokens[-1],
        "hours": token_s / 3600,
        "above_oracle": above / token_s if token_s > 0 else np.nan,
        "over_minimum": token_s / minimum_token_s - 1 if minimum_token_s > 0 else np.nan,
        "changed": changed,
    }


def _over_time(
    result: Result, row: _Limit, raw: dict[int, list[tuple[float, float]]], step_s: float
) -> pa.Table:
    time_s = np.arange(row.submit_s, row.time_s[-1], step_s)
    columns = result.workload.columns
    first, end = columns.stage_task0[columns.job_stage0[row.job : row.job + 2]]
    assert result.task_start is not None
    assert result.task_finish is not None
    started = np.searchsorted(np.sort(result.task_start[first:end]), time_s, side="right")
    ended = np.searchsorted(np.sort(result.task_finish[first:end]), time_s, side="right")
    raw_points = np.array(raw.get(row.job, [])).reshape(-1, 2)
    raw_points[:, 0] += result.workload.origin_s  # the policy has the run's clock
    return pa.table(
        {
            "job": np.full(len(time_s), row.job, np.int64),
            "elapsed_s": time_s - row.submit_s,
            "tokens": _value_at(row.time_s[:-1], row.tokens, time_s),
            "raw": _value_at(raw_points[:, 0], raw_points[:, 1], time_s),
            "running": (started - ended).astype(np.float64),
            "oracle": np.full(len(time_s), row.oracle),
        }
    )


def _spare_share(part: pa.Table) -> float:
    running, tokens = part["running"].to_numpy(), part["tokens"].to_numpy()
    n = running.sum()
    return float(np.maximum(running - tokens, 0.0).sum() / n) if n else float("nan")


def _value_at(time_s: F8, values: F8, query_s: F8) -> F8:
    """Return the value last set before each query time; NaN before the first."""
    index = np.searchsorted(time_s, query_s, side="right") - 1
    return np.where(index >= 0, np.append(values, np.nan)[index], np.nan)


def _empty() -> pa.Table:
    names = ("elapsed_s", "tokens", "raw", "running", "oracle")
    columns: dict[str, Any] = {name: pa.array([], pa.float64()) for name in names}
    return pa.table({"job": pa.array([], pa.int64()), **columns})


def _mean(values: Any) -> float:
    known = np.asarray(values, dtype=np.float64)
    known = known[~np.isnan(known)]
    return float(known.mean()) if len(known) else float("nan")
