"""From what was fitted to a workload."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa

from sim.base import maths
from sim.base.arrays import F8, I8, Mask
from sim.base.random import stream
from sim.describe.flow import job_work_s
from sim.synth.fitted.arrivals import draw_rows
from sim.synth.fitted.jobs import draw_jobs
from sim.synth.programs.draw import Runs, contents, draw_runs, drawn, of_kinds, program_of
from sim.synth.programs.file import Fitted
from sim.synth.programs.history import cut, linked
from sim.synth.programs.profiles import LABELS, Card, attributes
from sim.transforms.parts import rebuilt, repeat_jobs
from sim.workload.columns import job_n_tasks
from sim.workload.paths import critical_path_s
from sim.workload.tables import values, with_column
from sim.workload.workload import Workload

NEAR_TURNS = 4.0
"""By how many turns of the clock (weeks of a log of months) jobs of kinds come sooner or later."""


def make(
    fitted: Fitted,
    jobs: int,
    seed: int,
    history: int | None = None,
    joint: bool | None = None,
    deadline: float | None = None,
) -> Workload:
    """Draw runs, and make jobs of them: the first ones are the history."""
    cards = fitted.programs
    if history is None:
        history = jobs if any(card.is_program for card in cards) else 0
    n = jobs + history
    kinds = of_kinds(cards)
    tables = fitted.tables
    rows = draw_jobs(tables, n, seed, joint=tables.has_joint if joint is None else joint)
    came, submit_s = None, values(rows.jobs, "submit_s")
    if kinds and tables.arrivals is not None:
        came, submit_s = draw_rows(tables.arrivals, n, seed, NEAR_TURNS)
    runs = draw_runs(cards, n, seed, came)
    program, card_of = program_of(cards, runs)
    row, factor = contents(cards, runs, program, card_of, job_work_s(rows), attributes(rows))
    whole = repeat_jobs(rows, row, np.ones(n, dtype=bool), submit_s, {})
    whole = _labelled(whole, cards, runs)
    whole = _lasting(whole, factor, np.array([card.spread for card in cards])[runs.card], seed)
    asked_s = np.array([card.asked[0] if card.asked else np.nan for card in cards])[runs.card]
    if kinds:
        part = np.array([card.asked[1] if card.asked else np.nan for card in cards])[runs.card]
        shorter = np.fmin(asked_s * part / critical_path_s(whole.columns), 1.0)
        whole = _lasting(whole, shorter, np.zeros(len(cards))[runs.card], seed)
    named = np.array([card.is_program for card in cards])[runs.card]
    whole = _due(whole, cards, runs, np.where(named, program, -1), deadline, seed)
    if kinds:
        asked = pa.array(asked_s, from_pandas=True)
        whole = rebuilt(whole, None, jobs=with_column(whole.jobs, "requested_s", asked))
    whole = linked(whole, cards, runs, seed)
    made = cut(whole, history)
    synth = {
        "generator": "programs", "jobs": jobs, "seed": int(seed), "history": int(history),
        "deadline": deadline, "source": fitted.source, "programs": len(card_of),
        "of": made.meta["synth"],
    }  # fmt: skip
    return made.with_meta({"name": "synth-programs", "synth": synth, "transforms": []})


def _labelled(workload: Workload, cards: tuple[Card, ...], runs: Runs) -> Workload:
    """Give jobs their programs' names; those that ran once have another name in every block."""
    jobs = workload.jobs
    jobs = with_column(jobs, "job_id", [f"run-{at:07d}" for at in range(workload.n_jobs)])
    told = [(card.labels, card.priority, card.gang) for card in cards]
    n_runs = Counter(label for label, card in zip(told, cards, strict=True) for _ in card.at)
    once = [card.is_program and n_runs[of] == 1 for of, card in zip(told, cards, strict=True)]
    again = np.array(once)[runs.card]
    suffix = np.where(again, runs.block, 0)
    keys = runs.card * (int(runs.block.max()) + 1) + suffix
    distinct, at = np.unique(keys, return_inverse=True)
    of_key, block = np.divmod(distinct, int(runs.block.max()) + 1)
    for place, label in enumerate(LABELS):
        named = [
            f"{cards[c].labels[place]}~{b}" if b and place < 3 and cards[c].labels[place]
            else cards[c].labels[place]
            for c, b in zip(of_key.tolist(), block.tolist(), strict=True)
        ]  # fmt: skip
        if not any(named):
            continue
        column = pa.DictionaryArray.from_arrays(pa.array(at, pa.int32()), pa.array(named))
        jobs = with_column(jobs, label, column.cast(pa.string()).dictionary_encode())
    priority = np.array([card.priority for card in cards])[runs.card]
    gang = np.array([card.gang for card in cards])[runs.card]
    poll = np.array([card.poll_lag_s for card in cards])[runs.card]
    jobs = with_column(jobs, "priority", priority)
    jobs = with_column(jobs, "min_tasks", np.where(gang, job_n_tasks(workload), 0).astype(np.int32))
    if poll.any():
        jobs = with_column(jobs, "poll_lag_s", pa.array(poll))
    return rebuilt(workload, None, jobs=jobs)


def _lasting(workload: Workload, factor: F8, spread: F8, seed: int) -> Workload:
    """Change how long tasks last: by a job's factor, and apart from each other around a mean."""
    of_stage = factor[values(workload.stages, "job")]
    if workload.stage_duration_s is not None and not spread.any():
        return rebuilt(workload, None, workload.stage_duration_s * of_stage)
    columns = workload.columns
    stage = columns.task_stage()
    if workload.stage_duration_s is None:  # drawn apart from each other
        spread = np.zeros(len(factor))
    lot = stream(seed, "programs", "tasks").standard_normal(len(stage))
    apart = maths.exp(spread[columns.stage_job][stage] * lot)
    mean = np.bincount(stage, apart, workload.n_stages) / columns.stage_n_tasks
    lasts = columns.task_duration * (of_stage / mean)[stage] * apart
    return rebuilt(workload, None, tasks={"stage": stage.astype(np.int32), "duration_s": lasts})


def _due(
    workload: Workload,
    cards: tuple[Card, ...],
    runs: Runs,
    program: I8,
    deadline: float | None,
    seed: int,
) -> Workload:
    """Say by when jobs are due."""
    jobs, cp_s = workload.jobs, critical_path_s(workload.columns)
    lot = stream(seed, "programs", "asked").random((2, workload.n_jobs))[1]
    due = cp_s * drawn([card.deadline for card in cards], runs.card, lot)
    if np.isnan(due).all() and deadline is not None:
        due = deadline * _before(program, cp_s)
    jobs = with_column(jobs, "deadline_s", pa.array(due, pa.float64(), from_pandas=True))
    return rebuilt(workload, None, jobs=jobs)


def _before(program: I8, cp_s: F8) -> F8:
    """Return the median of what runs of a program take, (N,); NaN for the first of each."""
    found = np.full(len(program), np.nan)
    order = np.lexsort((cp_s, program))
    n = np.bincount(program[program >= 0], minlength=1)
    begin = int((program < 0).sum()) + np.cumsum(n) - n
    mine: Mask = program >= 0
    found[mine] = cp_s[order[begin + n // 2]][program[mine]] if mine.any() else np.nan
    first = np.unique(program, return_index=True)[1]
    found[first] = np.nan
    return found
