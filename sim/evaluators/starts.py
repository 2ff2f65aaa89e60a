"""Evaluator of expected starts: when the jobs start that wait at an instant of a log.

What runs then runs on from where it is (`sim.state`). How long jobs run, which jobs come, and lags
are unknown and drawn, many times (`sim.evaluators._draws`); the starts that follow are the
expectation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, frozen
from sim.base.errors import InputError
from sim.base.parameters import Between
from sim.base.random import key_words, stream
from sim.cluster.cluster import Cluster
from sim.evaluators import Evaluation, Simulate
from sim.evaluators._draws import Instant, RunTimes, drawn_workload, instant_of
from sim.state import state_at
from sim.workload.schema import NOW, REASON, RECORDED
from sim.workload.tables import column_or_default, names, values
from sim.workload.workload import Workload

LOW, MEDIAN, HIGH = 0.1, 0.5, 0.9
"""Quantiles of the draws: the ends of the 80 % interval, and what lies between."""
HELD = ("JobHeldUser", "JobHeldAdmin")
"""Reasons of jobs that wait for a person."""


def evaluate(
    run: Simulate,
    workload: Any,
    cluster: Any,
    policy: Any,
    seed: int,
    at_s: float = -1.0,
    arrivals: bool = True,
    draws: Annotated[int, Between(2)] = 20,
) -> Evaluation:
    """Simulate from an instant on, with as many draws.

    Parameters
    ----------
    run, workload, cluster, policy, seed
        See `sim.evaluators.evaluate`.
    at_s : float
        The instant, s on the log's clock; below 0 when its queue was written (``meta["now_s"]``).
    arrivals : bool
        Jobs come as in the past; False: none comes.
    draws : int
        Number of simulations.

    Returns
    -------
    metrics : dict of str to float
        ``jobs_waiting`` and ``jobs_running`` then, and ``starts_covered``, the share of the waiting
        jobs with a recorded start whose start lies in the interval; NaN for none.
    jobs : pyarrow.Table
        A row a waiting job: ``job``, its row in the log; ``low_s``, ``median_s``, ``high_s`` of its
        drawn starts (quantiles 10, 50 and 90 %; inf for never); ``recorded_start_s``.

    Raises
    ------
    InputError
        If the log tells no instant, or not where jobs ran, or nothing had been submitted.
    """
    time_s = _instant_s(workload, at_s)
    instant = instant_of(workload, time_s, _held_jobs(workload))
    if not len(instant.rows):
        raise InputError(f"no job had been submitted at {time_s:g} s", rule="empty")
    run_times = RunTimes(instant)
    waiting = np.flatnonzero(instant.waits)
    starts = np.stack(
        [
            _starts(run, instant, cluster, policy, run_times, number, arrivals=arrivals)[waiting]
            for number in range(seed * draws, (seed + 1) * draws)
        ]
    )
    ends = [_quantile(starts, q) for q in (LOW, MEDIAN, HIGH)]
    recorded_s = column_or_default(workload.jobs, RECORDED[0])[instant.rows[waiting]]
    known = ~np.isnan(recorded_s)
    covered = (recorded_s >= ends[0]) & (recorded_s <= ends[2])
    metrics = {
        "jobs_waiting": float(len(waiting)),
        "jobs_running": float((instant.is_open & ~instant.waits).sum()),
        "starts_covered": float(covered[known].mean()) if known.any() else np.nan,
    }
    table = {
        "job": instant.rows[waiting],
        **dict(zip(("low_s", "median_s", "high_s"), ends, strict=True)),
        "recorded_start_s": recorded_s,
    }
    return metrics, pa.table(table)


def _instant_s(workload: Workload, at_s: float) -> float:
    if at_s >= 0:
        return at_s
    if NOW not in workload.meta:
        raise InputError(
            "the log has no queue of now: put squeue.json beside sacct.txt, or export Workloads "
            "that wait (docs/your_site.md), or give evaluator.at_s",
            rule="no queue",
        )
    return float(workload.meta[NOW])


def _held_jobs(workload: Workload) -> Any:
    """Flag the jobs that wait for a person, of a queue that was written."""
    if NOW not in workload.meta or REASON.name not in workload.jobs.column_names:
        return None
    known = names(workload.jobs, REASON.name)
    is_held = np.isin(
        values(workload.jobs, REASON.name), [known.index(name) for name in HELD if name in known]
    )
    return is_held & np.isnan(column_or_default(workload.jobs, RECORDED[0]))


def _starts(
    run: Simulate, instant: Instant, cluster: Cluster, policy: Any, run_times: RunTimes,
    seed: int, *, arrivals: bool,
) -> F8:  # fmt: skip
    """Return the starts of the jobs in one draw, s; inf for never."""
    rng = stream(seed, "starts")
    run_s = np.full(len(instant.rows), np.nan)
    run_s[run_times.open_rows] = run_times.draw(rng)
    workload = drawn_workload(instant, run_s, rng, arrivals=arrivals)
    state = state_at(instant.workload, cluster, instant.time_s)
    n_more = workload.n_jobs - len(instant.rows), workload.n_tasks - len(state.machine)
    state = replace(
        state,
        placed_s=np.append(state.placed_s, np.full(n_more[0], np.nan)),
        machine=np.append(state.machine, np.full(n_more[1], -1, np.int32)),
    )
    launch = replace(cluster.launch, key=frozen(key_words(seed, "launch")))
    result = run(
        workload, replace(cluster, launch=launch), policy, seed=seed, record="jobs", state=state
    )
    start_s = result.job_start[: len(instant.rows)]
    return np.where(np.isnan(start_s), np.inf, np.maximum(start_s, instant.time_s))


def _quantile(starts: F8, q: float) -> F8:
    """Return a quantile of each column: the smallest draw that so many are at most."""
    rank = int(np.ceil(q * len(starts))) - 1
    ordered: F8 = np.sort(starts, axis=0)[max(rank, 0)]
    return ordered
