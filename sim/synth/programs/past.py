"""What runs have to do with each other: inputs and downloads, and which of them are the past."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I8
from sim.base.random import stream
from sim.dags import Graphs
from sim.knobs.parts import rebuilt
from sim.synth.programs.cards import Card
from sim.synth.programs.draw import Runs
from sim.workload.columns import job_n_tasks, stage_durations
from sim.workload.paths import critical_path_s
from sim.workload.tables import names, or_nan, take_rows, values
from sim.workload.workload import Workload

RECORDED = 3
"""How many earlier runs of a program are recorded task by task, at most."""
FEATURES = ("template", "user", "application", "job_name", "requested")


def linked(workload: Workload, cards: list[Card], runs: Runs, seed: int) -> Workload:
    """Let runs read the latest ones of other programs, and others download their output."""
    lot = stream(seed, "programs", "inputs")
    latest: dict[int, int] = {}
    up, down, hard = [], [], []
    for row, number in enumerate(runs.card.tolist()):
        for other, share, is_hard in cards[number].inputs:
            if lot.random() < share and other in latest:
                up.append(latest[other])
                down.append(row)
                hard.append(is_hard)
        latest[number] = row
    lot = stream(seed, "programs", "downloads")
    submit_s = values(workload.jobs, "submit_s")
    job: list[int] = []
    time: list[float] = []
    for row, number in enumerate(runs.card.tolist()):
        card = cards[number]
        if not card.downloads:
            continue
        whole, part = divmod(card.downloads, 1.0)
        for _ in range(int(whole) + (lot.random() < part)):
            job.append(row)
            time.append(max(submit_s[row] + card.lags[int(lot.random() * len(card.lags))], 0.0))
    edges = {
        "upstream": np.array(up, np.int32),
        "downstream": np.array(down, np.int32),
        "kind": ["hard" if each else "soft" for each in hard],
    }
    downloads = {"job": np.array(job, np.int32), "time_s": np.array(time)}
    return rebuilt(
        workload, None, job_edges=edges if up else None, downloads=downloads if job else None
    )


def cut(workload: Workload, n_past: int) -> Workload:
    """Make a history of the first jobs, and of the runs of programs that deadlines are met by."""
    if not n_past:
        return workload
    submit_s = values(workload.jobs, "submit_s")
    begin_s = float(submit_s[n_past])
    rows = np.arange(n_past)
    jobs = take_rows(workload.jobs, rows)
    finish_s = submit_s[rows] + critical_path_s(workload.columns)[rows]
    n_tasks = job_n_tasks(workload)[rows]
    history: dict[str, Any] = {
        "submit_s": submit_s[rows] - begin_s,
        "finish_s": finish_s - begin_s,
        "n_tasks": n_tasks.astype(np.int32),
        "mean_task_s": workload.columns.job_work[rows] / n_tasks,
        **{name: jobs[name] for name in FEATURES if name in jobs.column_names},
    }
    training = _recorded(workload, n_past)
    late = np.arange(n_past, workload.n_jobs)
    edges = workload.job_edges
    kept = workload.take(late)
    if edges.num_rows == 0:
        kept = rebuilt(kept, None, job_edges=None)
    kept = kept.slice_time(begin_s, np.inf)
    return rebuilt(kept, None, validate=True, history=pa.table(history), training=training)


def _recorded(workload: Workload, n_past: int) -> dict[str, Any] | None:
    """Return the tasks of the last runs, before, of the programs of jobs with a deadline."""
    known = names(workload.jobs, "template")
    code = values(workload.jobs, "template")
    due = ~np.isnan(or_nan(workload.jobs, "deadline_s"))
    wanted = set(code[n_past:][due[n_past:]].tolist())
    seen: dict[int, int] = {}
    chosen: list[tuple[int, int]] = []
    for row in range(n_past - 1, -1, -1):
        program = int(code[row])
        if known[program] and program in wanted and seen.get(program, 0) < RECORDED:
            chosen.append((row, seen.get(program, 0)))
            seen[program] = seen.get(program, 0) + 1
    if not chosen:
        return None
    ready_s = _ready_s(workload)
    columns = workload.columns
    parts = []
    for row, run in chosen:
        g0, g1 = columns.job_stage0[row], columns.job_stage0[row + 1]
        t0, t1 = columns.stage_task0[g0], columns.stage_task0[g1]
        stage = np.repeat(np.arange(g0, g1), columns.stage_n_tasks[g0:g1])
        task = np.arange(t0, t1) - columns.stage_task0[stage]
        ready = ready_s[stage]
        numbers = (stage - g0, task, ready, ready + columns.task_duration[t0:t1])
        parts.append((int(code[row]), run, numbers))
    template = [known[program] for program, _, (stage, *_) in parts for _ in stage]
    column = [np.concatenate(x) for x in zip(*(numbers for _, _, numbers in parts), strict=True)]
    return {
        "template": template,
        "run": np.concatenate([np.full(len(of[0]), run) for _, run, of in parts]).astype(np.int32),
        "stage": column[0].astype(np.int32),
        "task": column[1].astype(np.int32),
        "ready_s": column[2],
        "start_s": column[2],
        "finish_s": column[3],
    }


def _ready_s(workload: Workload) -> F8:
    """Return when each stage's inputs are there if nothing waits for room, s from submission."""
    graphs = Graphs.of(workload)
    longest = stage_durations(workload)[1]
    ready = np.zeros(workload.n_stages)
    edge0: I8 = graphs.edge0
    for stage in graphs.order.tolist():
        at = ready[stage] + longest[stage]
        for child in graphs.edge_child[edge0[stage] : edge0[stage + 1]].tolist():
            ready[child] = max(ready[child], at)
    return ready
