"""Dependencies and downloads of runs, and the split into history and workload."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from policies.wing.lineage.dependencies import edges_from_pairs
from policies.wing.lineage.predict import first_uses, reader_columns
from policies.wing.lineage.worth import JobGraph
from policies.wing.programs.draw import Runs
from policies.wing.programs.profiles import Profile, job_labels
from sim.base.arrays import I8
from sim.base.random import stream
from sim.transforms.parts import (
    history_table,
    ready_without_waiting,
    rebuild,
    training_table,
)
from sim.workload.columns import stage_durations
from sim.workload.paths import critical_path_s
from sim.workload.schema import DEMAND_PREFIX
from sim.workload.tables import column_or_nan, names, take_rows, values
from sim.workload.workload import Workload

MAX_RECORDED = 3
"""Maximum number of a program's earlier runs that are recorded task by task."""
FEATURES = ("template", "user", "application", "job_name", "requested")


def add_dependencies(
    workload: Workload, profiles: tuple[Profile, ...], runs: Runs, seed: int
) -> Workload:
    """Add dependencies on the latest runs of other programs, and downloads of outputs."""
    rng = stream(seed, "programs", "inputs")
    program_runs: dict[int, list[int]] = {}
    up: list[int] = []
    down: list[int] = []
    hard: list[bool] = []
    for row, number in enumerate(runs.profile.tolist()):
        for other, share, mean_n, is_hard in profiles[number].inputs:
            n = int(mean_n) + (rng.random() < mean_n % 1.0)
            read = program_runs.get(other, [])[-n:] if rng.random() < share else []
            up += read
            down += [row] * len(read)
            hard += [is_hard] * len(read)
        program_runs.setdefault(number, []).append(row)
    rng = stream(seed, "programs", "downloads")
    submit_s = values(workload.jobs, "submit_s")
    job: list[int] = []
    time_s: list[float] = []
    for row, number in enumerate(runs.profile.tolist()):
        profile = profiles[number]
        if not profile.downloads:
            continue
        whole, part = divmod(profile.downloads, 1.0)
        for _ in range(int(whole) + (rng.random() < part)):
            job.append(row)
            lag_s = profile.lags[int(rng.random() * len(profile.lags))]
            time_s.append(max(submit_s[row] + lag_s, 0.0))
    edges = {
        "upstream": np.array(up, np.int32),
        "downstream": np.array(down, np.int32),
        "kind": ["hard" if is_hard else "soft" for is_hard in hard],
    }
    downloads = {"job": np.array(job, np.int32), "time_s": np.array(time_s)}
    return rebuild(
        workload, None, job_edges=edges if up else None, downloads=downloads if job else None
    )


def split_history(workload: Workload, n_past: int) -> Workload:
    """Move the first jobs to the history; record the last runs of programs with deadlines."""
    if not n_past:
        return workload
    submit_s = values(workload.jobs, "submit_s")
    begin_s = float(submit_s[n_past])
    rows = np.arange(n_past)
    finish_s = submit_s[rows] + critical_path_s(workload.columns)[rows]
    history = history_table(workload, rows, finish_s, begin_s, FEATURES)
    job_columns, past_columns, past_rows = _value_columns(workload, n_past, begin_s)
    training = _training_table(workload, n_past)
    current = workload.take(np.arange(n_past, workload.n_jobs)).slice_time(begin_s, np.inf)
    jobs, table = current.jobs, take_rows(pa.table(history), past_rows)
    for name, column in job_columns.items():
        jobs = jobs.append_column(name, pa.array(column))
    for name, column in past_columns.items():
        table = table.append_column(name, pa.array(column))
    return rebuild(current, None, validate=True, jobs=jobs, history=table, training=training)


def _value_columns(
    workload: Workload, n_past: int, begin_s: float
) -> tuple[dict[str, Any], dict[str, Any], I8]:
    """Return columns of value and readers (`lineage.worth`) of the jobs and of the past.

    The past consists of the jobs that had ended when the first of the others is submitted; their
    rows are returned too. Without dependencies and downloads there are no columns.
    """
    edges, loads = workload.job_edges, workload.downloads
    if not edges.num_rows and not loads.num_rows:
        return {}, {}, np.arange(n_past)
    submit_s = values(workload.jobs, "submit_s") - begin_s
    kinds = names(edges, "kind") if edges.num_rows else ["hard"]
    down = values(edges, "downstream").astype(np.int64)
    polls = np.array([mode == "poll" for mode in job_labels(workload, "input_mode")])
    demand = values(workload.stages, f"{DEMAND_PREFIX}{workload.resources[0]}")
    compute_s = np.zeros(len(submit_s))
    np.add.at(compute_s, values(workload.stages, "job"), demand * workload.columns.stage_work)
    past = JobGraph(
        submit_s, submit_s + critical_path_s(workload.columns),
        compute_s,
        values(edges, "upstream").astype(np.int64), down,
        np.array([kind == "hard" for kind in kinds])[values(edges, "kind")], polls[down],
        values(loads, "job").astype(np.int64), values(loads, "time_s") - begin_s,
        values(loads, "n").astype(np.int64),
    )  # fmt: skip
    code = values(workload.jobs, "template")
    templates = names(workload.jobs, "template")
    uses = first_uses(
        edges_from_pairs(len(code), past.up, past.down), code.astype(np.int32), submit_s,
        np.array([bool(name) for name in templates]),
    )  # fmt: skip
    ended, ended_graph = past.ended_before(0.0)
    late = np.arange(n_past, workload.n_jobs)
    truth = {k: v[late] for k, v in past.columns(None, since_s=0.0).items()}
    truth |= reader_columns(uses, late, templates)
    past_uses = uses.where(uses.first_s < 0.0)
    return truth, ended_graph.columns(0.0) | reader_columns(past_uses, ended, templates), ended


def _training_table(workload: Workload, n_past: int) -> dict[str, Any] | None:
    """Return the tasks of the last past runs of programs that have jobs with a deadline."""
    template_names = names(workload.jobs, "template")
    code = values(workload.jobs, "template")
    due = ~np.isnan(column_or_nan(workload.jobs, "deadline_s"))
    target_codes = set(code[n_past:][due[n_past:]].tolist())
    n_recorded: dict[int, int] = {}
    selected: list[tuple[int, int]] = []
    for row in range(n_past - 1, -1, -1):
        program = int(code[row])
        n_runs = n_recorded.get(program, 0)
        if template_names[program] and program in target_codes and n_runs < MAX_RECORDED:
            selected.append((row, n_runs))
            n_recorded[program] = n_runs + 1
    if not selected:
        return None
    rows, run = np.array(selected).T
    ready_s = ready_without_waiting(workload, stage_durations(workload)[1])
    return training_table(workload, rows, run, ready_s, workload.columns.task_duration)
