"""What runs have to do with each other: inputs and downloads, and which of them are the past."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I8
from sim.base.random import stream
from sim.dags import Graphs
from sim.lineage.dependencies import edges_from_pairs
from sim.lineage.predict import first_uses, reader_columns
from sim.lineage.worth import JobGraph
from sim.synth.programs.draw import Runs
from sim.synth.programs.profiles import Card, names_of
from sim.transforms.parts import history_of, rebuilt
from sim.workload.columns import stage_durations
from sim.workload.paths import critical_path_s
from sim.workload.schema import DEMAND_PREFIX
from sim.workload.tables import column_or_nan, names, take_rows, values
from sim.workload.workload import Workload

RECORDED = 3
"""How many earlier runs of a program are recorded task by task, at most."""
FEATURES = ("template", "user", "application", "job_name", "requested")


def linked(workload: Workload, cards: tuple[Card, ...], runs: Runs, seed: int) -> Workload:
    """Let runs read the latest ones of other programs, and their output be downloaded."""
    lot = stream(seed, "programs", "inputs")
    runs_of: dict[int, list[int]] = {}
    up: list[int] = []
    down: list[int] = []
    hard: list[bool] = []
    for row, number in enumerate(runs.card.tolist()):
        for other, share, many, is_hard in cards[number].inputs:
            n = int(many) + (lot.random() < many % 1.0)
            read = runs_of.get(other, [])[-n:] if lot.random() < share else []
            up += read
            down += [row] * len(read)
            hard += [is_hard] * len(read)
        runs_of.setdefault(number, []).append(row)
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
    finish_s = submit_s[rows] + critical_path_s(workload.columns)[rows]
    history = history_of(workload, rows, finish_s, begin_s, FEATURES)
    worth, known = _worth(workload, n_past, begin_s)
    training = _recorded(workload, n_past)
    late = np.arange(n_past, workload.n_jobs)
    kept = workload.take(late).slice_time(begin_s, np.inf)
    jobs, table = kept.jobs, pa.table(history)
    if worth is not None:
        table = take_rows(table, known)
        for name, column in worth[0].items():
            jobs = jobs.append_column(name, pa.array(column))
        for name, column in worth[1].items():
            table = table.append_column(name, pa.array(column))
    return rebuilt(kept, None, validate=True, jobs=jobs, history=table, training=training)


def _worth(
    workload: Workload, n_past: int, begin_s: float
) -> tuple[tuple[dict[str, Any], dict[str, Any]] | None, I8]:
    """Return what jobs were worth and who read them (`sim.lineage.worth`): of jobs, of the past.

    The past are the jobs that had ended when the first one came, of which the rows are returned
    too; nothing where no job reads another's output and none is downloaded.
    """
    edges, loads = workload.job_edges, workload.downloads
    if not edges.num_rows and not loads.num_rows:
        return None, np.arange(n_past)
    submit_s = values(workload.jobs, "submit_s") - begin_s
    kinds = names(edges, "kind") if edges.num_rows else ["hard"]
    down = values(edges, "downstream").astype(np.int64)
    waits = np.array([mode == "poll" for mode in names_of(workload, "input_mode")])
    held = values(workload.stages, f"{DEMAND_PREFIX}{workload.resources[0]}")
    compute_s = np.zeros(len(submit_s))
    np.add.at(compute_s, values(workload.stages, "job"), held * workload.columns.stage_work)
    past = JobGraph(
        submit_s, submit_s + critical_path_s(workload.columns),
        compute_s,
        values(edges, "upstream").astype(np.int64), down,
        np.array([kind == "hard" for kind in kinds])[values(edges, "kind")], waits[down],
        values(loads, "job").astype(np.int64), values(loads, "time_s") - begin_s,
        values(loads, "n").astype(np.int64),
    )  # fmt: skip
    code = values(workload.jobs, "template")
    templates = names(workload.jobs, "template")
    uses = first_uses(
        edges_from_pairs(len(code), past.up, past.down), code.astype(np.int32), submit_s,
        np.array([bool(name) for name in templates]),
    )  # fmt: skip
    known, learnt = past.ended_before(0.0)
    late = np.arange(n_past, workload.n_jobs)
    truth = {k: v[late] for k, v in past.columns(None, since_s=0.0).items()}
    truth |= reader_columns(uses, late, templates)
    return (
        truth,
        learnt.columns(0.0) | reader_columns(uses.where(uses.first_s < 0.0), known, templates),
    ), known


def _recorded(workload: Workload, n_past: int) -> dict[str, Any] | None:
    """Return the tasks of the last runs, before, of the programs of jobs with a deadline."""
    known = names(workload.jobs, "template")
    code = values(workload.jobs, "template")
    due = ~np.isnan(column_or_nan(workload.jobs, "deadline_s"))
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
    graphs = Graphs.from_workload(workload)
    longest = stage_durations(workload)[1]
    ready = np.zeros(workload.n_stages)
    edge0: I8 = graphs.edge0
    for stage in graphs.order.tolist():
        at = ready[stage] + longest[stage]
        for child in graphs.edge_child[edge0[stage] : edge0[stage + 1]].tolist():
            ready[child] = max(ready[child], at)
    return ready
