"""Build the workload: past and present runs in order of submission, their links, then the cut."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from policies.alibaba.synth.give_dags import give_dags
from policies.slearn.recurring.draft import means
from policies.slearn.recurring.make import draw_draft, durations, labels, variations
from policies.slearn.recurring.presets import preset
from policies.slearn.recurring.programs import Drift, Programs
from policies.wing.programs.history import split_history
from policies.wserpt.everything.links import draw_downloads, draw_reads
from policies.wserpt.everything.tables import WIDTHS, Tables, shipped
from sim.base.arrays import F8, I8
from sim.base.random import stream
from sim.transforms.parts import rebuild
from sim.workload.paths import critical_path_s
from sim.workload.tables import values, with_column
from sim.workload.workload import Workload

HISTORY_DAYS = 14
"""The value of a job is known after a week, so that a history of two weeks has values."""
SLOTS = 150
"""Slots by which arrivals are made, as in the fitted workload; the cluster is sized afterwards."""
BANDS = ((0.0, "gratis"), (2.0, "other"), (9.0, "production"))
"""Google's bands of priorities, by their lowest (Reiss et al., SoCC 2012): the queues."""
RATIOS = (2.8, 5.6)
"""Deadlines over the median critical path of a program's past runs, short and long (Jockey, §5.1:
2.8 times is the mean of the published short ones, and long ones are twice as long)."""
DUE_STEP_S = 300.0
"""Deadlines are whole multiples of this, as the published ones."""
MIN_RUNS = 2
"""Past runs of a program from which on its jobs may have deadlines."""
LAG_S, MAX_LAG_S = 180.0, 840.0
"""Lag of a polling program behind its last input: mean and maximum, as in the trace cosmos."""


def make(jobs: int, seed: int, history: int | None, due: float) -> Workload:
    """Build the workload; see `policies.wserpt.everything.synthesize`."""
    joins = shipped()
    tables = replace(preset("google2011"), history_days=HISTORY_DAYS)
    draft, draft_seed = draw_draft(tables, jobs, history, None, SLOTS, Drift(), seed)
    programs = draft.programs
    order = np.argsort(draft.time_s, kind="stable")  # the past is before time 0
    program, n_past = programs.program[order], len(order) - jobs
    n_tasks, mean_s = programs.width[program], means(draft)[order]
    spread = variations(tables, programs, draft_seed, past=True)[order]
    names = pa.table(labels(draft)).take(order)
    stage = np.arange(len(order), dtype=np.int32)
    cpu, mem = _requests(joins, programs, seed)
    priority = _priorities(joins, programs, seed)[program]
    workload = Workload.from_tables(
        jobs={
            "job_id": [f"job-{row - n_past}" for row in range(len(order))],
            "submit_s": draft.time_s[order] - draft.time_s.min(),
            "template": names["application"],
            **{name: names[name] for name in names.column_names},
            "priority": priority,
            "queue": [_queue(x) for x in priority.tolist()],
        },
        stages={
            "job": stage,
            "n_tasks": n_tasks.astype(np.int32),
            "demand_cpu": cpu[program],
            "demand_mem": mem[program],
        },
        tasks={
            "stage": np.repeat(stage, n_tasks),
            "duration_s": durations(n_tasks, mean_s, spread, draft_seed),
        },
        meta={"name": "everything", "quantum": {"cpu": 1e-6, "mem": 1e-6}},
    )
    workload = give_dags(workload, seed=seed, per="program", demands=True)
    runs = [np.flatnonzero(program == p) for p in range(len(programs.width))]
    reads = draw_reads(joins, programs.user, runs, seed)
    is_due = _deadlines(runs, n_past, critical_path_s(workload.columns), due, seed)
    workload = _link(workload, program, runs, reads.edges(runs), is_due, seed)
    present = np.unique(program[n_past:])
    synth: dict[str, Any] = {
        "generator": "everything", "jobs": jobs, "seed": int(seed), "history": n_past, "due": due,
        "programs": len(present),
        "new programs": int((~np.isin(present, program[:n_past])).sum()),
    }  # fmt: skip
    workload = split_history(workload, n_past)
    synth |= {
        "reads": workload.job_edges.num_rows,
        "deadlines": int((~np.isnan(is_due[n_past:])).sum()),
        "downloads": int(values(workload.downloads, "n").sum()),
    }
    return workload.with_meta({"name": "everything", "synth": synth, "transforms": []})


def _requests(joins: Tables, programs: Programs, seed: int) -> tuple[F8, F8]:
    """Draw the requests of each program from those of jobs about as wide, (P,) each."""
    u = stream(seed, "everything", "requests").random(len(programs.width))
    width_class = np.searchsorted(WIDTHS, programs.width, side="right") - 1
    drawn = np.empty((2, len(u)))
    for number, pairs in enumerate(joins.requests):
        rows = np.flatnonzero(width_class == number)
        cpu, mem, count = np.array(pairs).T
        chosen = np.searchsorted(np.cumsum(count), u[rows] * count.sum(), side="right")
        drawn[:, rows] = np.stack([cpu, mem])[:, chosen]
    return drawn[0], drawn[1]


def _priorities(joins: Tables, programs: Programs, seed: int) -> F8:
    """Draw the priority of each user; return that of each program, (P,)."""
    u = stream(seed, "everything", "priorities").random(int(programs.user.max()) + 1)
    priority, count = np.array(joins.priorities).T
    drawn: F8 = priority[np.searchsorted(np.cumsum(count), u * count.sum(), side="right")]
    return drawn[programs.user]


def _queue(priority: float) -> str:
    return next(name for low, name in reversed(BANDS) if priority >= low)


def _deadlines(runs: list[I8], n_past: int, cp_s: F8, due: float, seed: int) -> F8:
    """Return the deadline of each run, s; NaN for none."""
    rng = stream(seed, "everything", "deadlines")
    u, long = rng.random((2, len(runs)))
    deadline_s = np.full(len(cp_s), np.nan)
    for program, rows in enumerate(runs):
        past = rows[rows < n_past]
        if len(past) >= MIN_RUNS and u[program] < due:
            target_s = RATIOS[int(long[program] < 0.5)] * float(np.median(cp_s[past]))
            deadline_s[rows] = np.ceil(target_s / DUE_STEP_S) * DUE_STEP_S
    return deadline_s


def _link(
    workload: Workload,
    program: I8,
    runs: list[I8],
    edges: dict[str, Any],
    deadline_s: F8,
    seed: int,
) -> Workload:
    """Add reads, downloads and deadlines; readers of hard inputs poll for them."""
    polls = np.zeros(workload.n_jobs, dtype=bool)
    polls[edges["downstream"][np.array(edges["kind"]) == "hard"]] = True
    lag_s = stream(seed, "everything", "lags").exponential(LAG_S, len(runs))
    lag_s = np.minimum(lag_s, MAX_LAG_S)[program]
    finish_s = values(workload.jobs, "submit_s") + critical_path_s(workload.columns)
    jobs = with_column(workload.jobs, "deadline_s", pa.array(deadline_s, from_pandas=True))
    modes = pa.array(np.where(polls, "poll", "none").tolist(), pa.string()).dictionary_encode()
    jobs = with_column(jobs, "input_mode", modes)
    jobs = with_column(jobs, "poll_lag_s", np.where(polls, lag_s, 0.0))
    loads = draw_downloads(runs, edges["upstream"], finish_s, seed)
    return rebuild(workload, None, jobs=jobs, job_edges=edges, downloads=loads)
