"""Backtest one step at a time: a model in each state that the log shows, and what it starts there.

The log's jobs are placed as they were. At each *moment* at which it starts jobs, and at *quiet*
ones at which something happens, somebody waits and nobody starts, the model's scheduler places jobs
once (`sim.engine.trials`). A start that both have is *found*; one that the model alone has is a
*false start*. So a model is judged without the chaos of a whole run, in which one early start
changes all that follow.

A quiet moment lasts for a cycle of the scheduler, which plans at some time of it, in the state of
then. So a start breaks it only if the model makes it whenever something happens meanwhile, and the
log does not have it within the longest cycle.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base import columns
from sim.base.arrays import F8, I8
from sim.base.errors import InputError
from sim.cluster.launch import NO_LAUNCH
from sim.engine.plan import Plan, World
from sim.engine.trials import Trial, features_of, trials
from sim.state import recorded_state
from sim.workload.schema import ELIGIBLE, RECORDED
from sim.workload.tables import column_or_default, names, values
from sweep.questions.backtest.attempts import with_attempts
from sweep.questions.backtest.mechanisms import Model, without_each
from sweep.questions.backtest.starts import find_starts

MAX_MOMENTS = 2_000
"""Most starts, and most quiet moments, that are tried: of more, so many are taken evenly."""


@dataclass(frozen=True)
class Moments:
    """Moments of a log.

    Attributes
    ----------
    cycle_s, longest_s : float
        Time of a cycle of the scheduler, and of the longest: starts so close together as the first
        are one moment, s.
    start_s, quiet_s : (K,), (L,) float64
        Moments at which jobs start, and quiet ones, s.
    behind_s : (B,) float64
        Others at which something happens within a cycle of a quiet one, s.
    job_start_s : (J,) float64
        Recorded start of each job, NaN if unknown, s.
    free_s : (J,) float64
        Time from which each job was free to start, s.
    """

    cycle_s: float
    longest_s: float
    start_s: F8
    quiet_s: F8
    behind_s: F8
    job_start_s: F8
    free_s: F8

    @property
    def all_s(self) -> F8:
        """All moments, ascending, s."""
        return np.unique(np.concatenate([self.start_s, self.quiet_s, self.behind_s]))

    def waits(self, time_s: float) -> Any:
        """Return flags of the jobs that wait then, and start more than a cycle later."""
        return (self.free_s <= time_s) & (self.job_start_s > time_s + self.cycle_s)


def find_moments(model: Model, cycle_s: float, longest_s: float = 0.0) -> Moments:
    """Find the moments of a log, at most `MAX_MOMENTS` of each kind."""
    workload = model.workload
    starts = find_starts(workload)
    start_s, release_s = starts.start_s, starts.release_s
    eligible_s = column_or_default(workload.jobs, ELIGIBLE)
    free_s = np.fmax(release_s, eligible_s)
    end_s = column_or_default(workload.jobs, RECORDED[1])
    distinct = np.unique(start_s[~np.isnan(start_s)])
    events = np.unique(np.concatenate([end_s, free_s]))
    events = events[~np.isnan(events)]
    following = np.append(distinct, np.inf)[np.searchsorted(distinct, events)]
    quiet_s, none = events[following > events + cycle_s], np.zeros(0)
    longest_s = max(cycle_s, longest_s)
    moments = Moments(cycle_s, longest_s, _thinned(distinct), quiet_s, none, start_s, free_s)
    quiet_s = _thinned(np.array([t for t in quiet_s.tolist() if moments.waits(t).any()]))
    first = np.searchsorted(quiet_s, events - cycle_s, side="left")
    is_behind = first < np.searchsorted(quiet_s, events, side="left")
    behind_s = np.setdiff1d(events[is_behind], np.union1d(distinct, quiet_s))
    return replace(moments, quiet_s=quiet_s, behind_s=behind_s)


def _thinned(times_s: F8) -> F8:
    if len(times_s) <= MAX_MOMENTS:
        return times_s
    return times_s[np.linspace(0, len(times_s) - 1, MAX_MOMENTS).astype(np.int64)]


def cycle_of(model: Model, otherwise_s: float) -> tuple[float, float]:
    """Return the time of a cycle of a policy that plans anew every so often, and of the longest, s.

    What happens while it plans it plans for in the next cycle, and starts at any time in that. Of
    other policies both are `otherwise_s`.
    """
    world = World(model.workload.columns, model.cluster, 0, {})
    plan = Plan(model.workload.n_jobs, model.workload.n_stages, model.workload.n_tasks)
    model.policy.begin(world, plan)
    if plan.replan is None:
        return otherwise_s, otherwise_s
    pause_s = plan.replan.interval_s + plan.replan.main_delay_s
    longest_s = max(plan.replan.cycle_s, getattr(model.policy, "longest_cycle_s", 0.0))
    return pause_s + 2 * plan.replan.cycle_s, pause_s + 2 * longest_s


@dataclass(frozen=True)
class Steps:
    """A model's starts at the moments of a log.

    Attributes
    ----------
    matches : (J,) int8
        1 for jobs that the model starts at a moment less than a cycle before their recorded start;
        2 where it chooses the recorded nodes, too; 0 for others that started at a moment; -1 else.
    false : (F, 2) int64
        Moment, by number, and job of each false start.
    quiet : (L,) float64
        Quiet moments that were reached, s.
    broken : (B, 2) int64
        Quiet moment, by number, and job of each start there that the model keeps to for a cycle.
    late : int
        Jobs that could not be placed where the log has them, when they started.
    """

    matches: Any
    false: I8
    quiet: F8
    broken: I8
    late: int


def judge(
    model: Model,
    moments: Moments,
    rows: I8 | None = None,
    shared: frozenset[str] = frozenset(),
) -> Steps:
    """Try a model at the moments of a log.

    Parameters
    ----------
    model : Model
        The model, or one without a mechanism.
    moments : Moments
        Those of the whole model.
    rows : (J,) int64, optional
        Row, in the log, of each job of the model; as they are by default.
    shared : frozenset of str
        Features of the whole model's loop.
    """
    rows = np.arange(model.workload.n_jobs) if rows is None else rows
    state = recorded_state(model.workload, model.cluster, moments.all_s)
    model = _at_once(model)
    start_s, cycle_s = moments.job_start_s, moments.cycle_s
    matches = np.where(np.isin(start_s, moments.start_s), 0, -1).astype(np.int8)
    quiet_s, behind_s = {*moments.quiet_s.tolist()}, {*moments.behind_s.tolist()}
    false: dict[tuple[int, int], None] = {}
    quiet: list[float] = []
    broken: list[set[int]] = []
    late: set[int] = set()
    number, until_s, recent = -1, -np.inf, 0
    pins = _pins(model, rows, state.machine)
    for trial in trials(*model, state, shared=shared):
        started = rows[_starts(trial, rows, start_s)]
        is_right = (start_s[started] >= trial.time_s) & (start_s[started] <= trial.time_s + cycle_s)
        late |= {*rows[trial.late].tolist()}
        while recent < len(quiet) and quiet[recent] + cycle_s < trial.time_s:
            recent += 1
        for jobs in broken[recent:]:
            jobs &= {*started.tolist()}
        if trial.time_s in quiet_s:
            quiet.append(trial.time_s)
            is_late = ~(start_s[started] <= trial.time_s + moments.longest_s)
            broken.append({*started[~is_right & is_late].tolist()})
        if trial.time_s in quiet_s | behind_s:
            continue
        if trial.time_s > until_s:
            number, until_s = number + 1, trial.time_s + cycle_s
        nodes = {int(rows[j]): frozenset(placed) for j, placed in trial.machines.items()}
        for j in started[is_right].tolist():
            if matches[j] >= 0:
                matches[j] = max(int(matches[j]), 2 if nodes[j] == pins[j] else 1)
        false |= dict.fromkeys((number, j) for j in started[~is_right].tolist())
    return Steps(
        matches,
        np.array([*false], np.int64).reshape(-1, 2),
        np.array(quiet),
        np.array([(i, j) for i, jobs in enumerate(broken) for j in sorted(jobs)], np.int64).reshape(
            -1, 2
        ),
        len(late),
    )


def _starts(trial: Trial, rows: I8, start_s: F8) -> I8:
    """Return what counts of a trial: a pass, and a plan behind it.

    A plan is made at another time than a pass that starts jobs, in the state that these make. It
    counts with it if the log itself has starts at that time that the pass does not have.
    """
    passed = trial.started
    now = np.flatnonzero(start_s == trial.time_s)
    if len(passed) and len(now) and np.isin(now, rows[passed]).all():
        return passed
    return np.concatenate([passed, trial.planned])


def _pins(model: Model, rows: I8, machine: Any) -> dict[int, frozenset[int]]:
    """Return the recorded machines of each job, by its row in the log."""
    columns_ = model.workload.columns
    task0 = columns_.stage_task0[columns_.job_stage0]
    return {
        int(rows[j]): frozenset(machine[task0[j] : task0[j + 1]].tolist()) - {-1}
        for j in range(model.workload.n_jobs)
    }


def _at_once(model: Model) -> Model:
    """Return the model in which jobs start where they are placed, and end as the log has it.

    Nodes complete a job at once, as ends in a log are of that time.
    """
    policy: Any = model.policy
    lags = {name: 0.0 for name in ("completing_s", "node_completing_s") if hasattr(policy, name)}
    cluster = replace(model.cluster, enforce_limits=False, launch=NO_LAUNCH)
    return Model(model.workload, cluster, replace(policy, **lags) if lags else policy)


def steps_table(label: str, model: Model, otherwise_s: float) -> pa.Table:
    """Judge a model and the model without each mechanism; return ``steps.parquet``."""
    model = model._replace(workload=with_attempts(model.workload))
    moments = find_moments(model, *cycle_of(model, otherwise_s))
    shared = features_of(*_at_once(model), recorded_state(model.workload, model.cluster))
    tables = [_rows(label, "", model, moments, judge(model, moments))]
    job_id = model.workload.jobs["job_id"].to_pylist()
    row_of = {name: row for row, name in enumerate(job_id)}
    for name, other in without_each(model):
        ids = other.workload.jobs["job_id"].to_pylist()
        rows = np.array([row_of[job] for job in ids], np.int64)
        try:
            steps = judge(other, moments, rows, shared)
        except InputError:
            continue  # the rest does not suit the jobs without it
        tables.append(_rows(label, name, model, moments, steps))
    return pa.concat_tables(tables)


def _rows(label: str, without: str, model: Model, moments: Moments, steps: Steps) -> pa.Table:
    """Return a row for all jobs, and one for each partition."""
    queue = values(model.workload.jobs, "queue")
    known = names(model.workload.jobs, "queue")
    has_several = len(np.unique(queue)) > 1
    groups = [("", np.ones(len(queue), np.bool_))]
    groups += [(known[code], queue == code) for code in np.unique(queue) if has_several]
    rows = []
    for _, is_in in groups:
        matches = steps.matches[is_in]
        waits = [t for t in steps.quiet.tolist() if (moments.waits(t) & is_in).any()]
        broken = {i for i, j in steps.broken.tolist() if is_in[j]}
        broken &= {i for i, t in enumerate(steps.quiet.tolist()) if t in {*waits}}
        rows.append(
            {
                "starts": int((matches >= 0).sum()),
                "found": int((matches > 0).sum()),
                "false_starts": int(is_in[steps.false[:, 1]].sum()),
                "quiet": len(waits),
                "quiet_kept": len(waits) - len(broken),
                "same_nodes": int((matches == 2).sum()),
            }
        )
    table: dict[str, Any] = {
        "without": columns.strings([without] * len(rows)),
        "partition": columns.strings([partition for partition, _ in groups]),
        **{key: np.array([row[key] for row in rows], np.int64) for key in rows[0]},
        "policy": columns.strings([label] * len(rows)),
        "not_placed": np.full(len(rows), steps.late),
    }
    return pa.table(table)
