"""Small worlds run under some policy, and a slow reading of why a job took as long as it did."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import policies
import sim
from policies import Policy
from sim.engine.plan import NO_LIMIT, Event
from sim.result import Result
from sweep.driver.captured_run import Captured, capturing
from sweep.questions.why.attempts import read_attempts
from sweep.questions.why.explanation import Explanation
from sweep.questions.why.splits import Split, Splitter

Job = dict[str, Any]


@dataclass(frozen=True)
class Bound(Policy):
    """First come, first served, with a start gate until some tasks are done, or a run limit."""

    gate: int = 0
    limit: int = 0

    events = Event.TASKS_DONE

    def prepare(self, world: Any, plan: Any) -> Any:
        if self.gate:
            plan.set_jobs(start_gate=self.gate, notify_at=self.gate)
        if self.limit:
            plan.set_jobs(run_limit=self.limit)

    def react(self, memory: Any, batch: Any, world: Any, plan: Any) -> None:
        rows = batch.rows(Event.TASKS_DONE)
        plan.set_jobs(rows, start_gate=NO_LIMIT, notify_at=0)


def job(name: str, submit_s: float, durations_s: Sequence[float], **more: Any) -> Job:
    """Describe a job of one stage."""
    stage = {"name": "map", "durations_s": [*durations_s], "demand": more.pop("demand", {"cpu": 1})}
    return {"job_id": name, "submit_s": submit_s, "stages": [stage], **more}


def run(jobs: Sequence[Job], cluster: sim.Cluster, policy: str | Policy = "fifo") -> Captured:
    """Run jobs, or a workload, and capture it."""
    runs: list[Captured] = []
    built = policies.build(policy) if isinstance(policy, str) else policy
    workload = jobs if isinstance(jobs, sim.Workload) else sim.Workload.from_jobs([*jobs])
    capturing(runs)(workload, cluster, built, seed=0)
    return runs[0]


def split(captured: Captured, name: str) -> Split:
    """Split the completion time of a job."""
    names = captured.result.jobs["job_id"].to_pylist()
    return Splitter(read_attempts(captured)).split(names.index(name))


def explained(jobs: Sequence[Job], cluster: sim.Cluster, first: str, second: str) -> Explanation:
    """Compare two policies."""
    return Explanation([run(jobs, cluster, name) for name in (first, second)], (first, second))


def random_jobs(rng: np.random.Generator) -> list[Job]:
    """Draw a few jobs with dependencies between their stages, and demands of two resources."""
    jobs, clock = [], 0.0
    for number in range(int(rng.integers(2, 9))):
        clock += float(rng.choice([0.0, 0.5, 2.0]))
        stages: list[Job] = []
        for s in range(int(rng.integers(1, 4))):
            earlier = [stage["name"] for stage in stages]
            parents = {
                name: str(rng.choice(["barrier", "one_to_one"]))
                for name in earlier
                if rng.random() < 0.6
            }
            demand = {"cpu": int(rng.integers(1, 4)), "mem": int(rng.integers(0, 4))}
            durations = rng.choice([0.0, 1.0, 1.5, 3.0], int(rng.integers(1, 5))).tolist()
            stage = {"name": f"s{s}", "durations_s": durations, "demand": demand}
            stages.append({**stage, "parents": parents})
        jobs.append({"job_id": f"j{number}", "submit_s": clock, "stages": stages})
    return jobs


def slow_reading(result: Result, row: int) -> tuple[dict[str, float], dict[Any, float]]:
    """Read a job's time, and behind whom it waited, one task and one instant after the other.

    Only of runs without gangs, bounds, faults and lags.
    """
    tasks = result.tasks.to_pylist()
    columns = result.workload.columns
    stage_job = columns.stage_job.tolist()
    mine = [k for k, task in enumerate(tasks) if stage_job[task["stage"]] == row]
    parents = defaultdict(list)
    for edge in result.workload.stage_edges.to_pylist():
        parents[edge["child"]].append((edge["parent"], edge["kind"]))
    seconds: dict[str, float] = defaultdict(float)
    behind: dict[Any, float] = defaultdict(float)
    current = min(mine, key=lambda k: (-tasks[k]["finish_s"], tasks[k]["start_s"], k))
    while True:
        task = tasks[current]
        seconds["running"] += task["finish_s"] - task["start_s"]
        needed = [
            k
            for k in mine
            for parent, kind in parents[task["stage"]]
            if tasks[k]["stage"] == parent
            and (kind == "barrier" or tasks[k]["task"] == task["task"])
        ]
        ready = max((tasks[k]["finish_s"] for k in needed), default=result.job_submit[row])
        times = sorted(
            {ready, task["start_s"]}
            | {t[name] for t in tasks for name in ("start_s", "finish_s")
               if ready < t[name] < task["start_s"]}
        )  # fmt: skip
        shared: dict[str, dict[Any, float]] = defaultdict(lambda: defaultdict(float))
        spent: dict[str, float] = defaultdict(float)
        for begin, end in itertools.pairwise(times):
            reason, holders = _slow_piece(result, row, task, (begin, end, task["start_s"]))
            spent[reason] += end - begin
            for key, amount in holders.items():
                shared[reason][key] += amount * (end - begin)
        for reason, span in spent.items():
            seconds[reason] += span
            amounts = shared[reason]
            scale = 1.0 if reason == "blocked" else span / sum(amounts.values())
            for key, amount in amounts.items():
                behind[key] += amount * scale
        if not needed:
            return dict(seconds), dict(behind)
        current = min(needed, key=lambda k: (-tasks[k]["finish_s"], tasks[k]["start_s"], k))


def _slow_piece(
    result: Result, row: int, waiting: dict[str, Any], times: tuple[float, float, float]
) -> tuple[str, dict[Any, float]]:
    """Return the reason of a piece of a wait, and who was in front, with how much room."""
    columns, cluster, tasks = result.workload.columns, result.cluster, result.tasks.to_pylist()
    begin, end, start_s = times
    names = list(cluster.resources)
    stages = result.workload.stages.to_pylist()
    submit_s = result.job_submit

    def demand(task: dict[str, Any]) -> list[float]:
        stage = stages[task["stage"]]
        return [1.0 if cluster.unit else float(stage[f"demand_{name}"]) for name in names]

    def front(k: int) -> tuple[int, str]:
        other = job_of[k]
        if other == row:
            return other, "its own tasks"
        if tasks[k]["start_s"] < submit_s[row]:
            return other, "ran already"
        is_later = (submit_s[other], other) > (submit_s[row], row)
        return other, "came later" if is_later else "came before"

    running = [k for k, t in enumerate(tasks) if t["start_s"] <= begin < t["finish_s"]]
    free = cluster.capacity.copy()
    for k in running:
        free[tasks[k]["machine"]] -= demand(tasks[k])
    needed = np.array(demand(waiting))
    job_of = [int(columns.stage_job[task["stage"]]) for task in tasks]
    if (free >= needed).all(axis=1).any():
        ready = [
            k
            for k, task in enumerate(tasks)
            if end <= task["start_s"] < start_s and submit_s[job_of[k]] <= begin
        ]
        first = min(ready, key=lambda k: (tasks[k]["start_s"], job_of[k], k), default=None)
        return "blocked", {} if first is None or job_of[first] == row else {front(first): 1.0}
    short = [bool((free[:, r] < needed[r]).all()) for r in range(len(names))]
    named = " and ".join(sorted(name for name, s in zip(names, short, strict=True) if s))
    counts = short if any(short) else (needed > 0).tolist()
    total = cluster.capacity.sum(axis=0)
    amounts: dict[Any, float] = defaultdict(float)
    for k in running:
        shares = (demand(tasks[k])[r] / total[r] for r in range(len(names)) if counts[r])
        amounts[front(k)] += sum(shares)
    return f"no {named}" if named else "in pieces", amounts
