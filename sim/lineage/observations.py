"""The numbers of a profile, with those of the paper beside them (§2.3, §3.2, §4.5.3)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8
from sim.describe.statistics import Section, Statistic, words_of
from sim.lineage.advice import SHIFTS_H, shiftable
from sim.lineage.dependencies import DAY_S, Dependencies, SingleHop
from sim.lineage.logs import Logs
from sim.lineage.predict import best_threshold
from sim.lineage.templates import INPUT_MODES, Character
from sim.published import numbers

WORDS: Final = words_of(Path(__file__).with_name("sections.yaml"))
"""Sections in their order, and what their pages say; § are of Chung et al., OSDI 2020."""


@cache
def published() -> dict[tuple[str, str], float]:
    """Return what the paper reports of Cosmos, by section and key."""
    paper = numbers("wing")
    tr, of_time = paper["fig2"]["best_tr"], paper["fig3"]
    found = {(s, key): paper[s][key] for s in WORDS if s in paper for key in paper[s]}
    return found | {
        ("prediction", "best_tr"): float(tr),
        ("prediction", "rmse_s"): of_time["rmse_h"][tr] * 3600,
        ("prediction", "mae_s"): of_time["mae_min"][tr] * 60.0,
        ("prediction", "within_20"): of_time["within_20"][tr] / 100,
        ("prediction", "over_2x"): of_time["over_2x"][tr] / 100,
        ("value", "round_4"): paper["fig6"][4] / 100,
    }


def observations(
    logs: Logs,
    character: Character,
    hops: SingleHop,
    tables: Mapping[str, pa.Table],
    gap_s: F8,
    omega_s: float,
) -> list[Statistic]:
    """Statistic what §2.3, §3.2 and §4.5.3 report."""
    edges = hops.dependencies
    return [
        *_overview(logs, hops, tables, omega_s), *_recurring(logs, character, edges),
        *_priorities(logs, character, edges, tables), *_coordination(logs, character),
        *_organisations(logs, character, edges, tables), *_components(tables, logs.n_jobs),
        *_shifting(logs, character, gap_s), *_prediction(tables), *_value(tables),
    ]  # fmt: skip


def _overview(
    logs: Logs, hops: SingleHop, tables: Mapping[str, pa.Table], omega_s: float
) -> list[Statistic]:
    s = Section("overview")
    s.add("jobs", "jobs", logs.n_jobs, "count")
    s.add("operations", "operations on files", hops.n_operations, "count")
    s.add("files", "files", hops.n_files, "count")
    s.add("templates", "templates", tables["templates"].num_rows, "count")
    s.add("dependencies", "dependencies", len(hops.dependencies), "count")
    s.add("downloads", "downloads", tables["downloads"]["n"].to_numpy().sum(), "count")
    span = logs.column("finish_s").max() - logs.column("submit_s")[0]
    s.add("days", "days observed", span / DAY_S)
    s.add("omega_s", "multi-hop window ω", omega_s, "seconds")
    return s.found


def _recurring(logs: Logs, character: Character, edges: Dependencies) -> list[Statistic]:
    s = Section("recurring")
    s.share("jobs", "recurring jobs, of all", character.job_recurring)
    s.share("dependencies", "recurring dependencies, of all", character.edge_recurring)
    s.share("depending", "jobs that depend on another", edges.n_upstream() > 0)
    age = edges.read_s - edges.written_s
    s.share("within_week", "dependencies within a week", age <= 7 * DAY_S)
    s.share("periodic", "periodic, of recurring templates", character.periodic, character.recurring)
    s.share("hard", "hard, of all dependencies", character.edge_hard)
    return s.found


def _priorities(
    logs: Logs, character: Character, edges: Dependencies, tables: Mapping[str, pa.Table]
) -> list[Statistic]:
    s = Section("priorities")
    recurring = character.recurring
    inverted = np.zeros(len(recurring), bool)
    inverted[tables["inversions"]["template"].to_numpy()] = True
    s.share(
        "templates_inverted",
        "recurring templates read by ones of higher priority in their queue",
        inverted,
        recurring,
    )
    pairs = tables["template_dependencies"]
    low, high = pairs["upstream_priority"].to_numpy(), pairs["downstream_priority"].to_numpy()
    anywhere = np.zeros(len(recurring), bool)
    anywhere[pairs["upstream"].to_numpy()[high > low]] = True
    s.share("templates_inverted_anywhere", "… in any queue", anywhere, recurring)
    priority, queue = logs.column("priority"), logs.column("queue")
    below = priority[edges.upstream] < priority[edges.downstream]
    for key, label, which in (
        ("jobs_on_lower", "jobs that depend on ones of lower priority", below),
        (
            "jobs_on_lower_in_queue",
            "… in their queue",
            below & (queue[edges.upstream] == queue[edges.downstream]),
        ),
    ):
        hit = np.zeros(logs.n_jobs, bool)
        hit[edges.downstream[which]] = True
        s.share(key, label, hit)
    n = len(logs.names("queue"))
    is_recurring = character.job_recurring
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(queue, priority * is_recurring, n) / np.bincount(queue, is_recurring, n)
    above = priority > mean[queue]
    s.share(
        "adhoc_above",
        "ad hoc jobs above the mean recurring one of their queue",
        above,
        ~is_recurring,
    )
    return s.found


def _coordination(logs: Logs, character: Character) -> list[Statistic]:
    s = Section("coordination")
    is_blind = character.input_mode == INPUT_MODES.index("blind")
    is_recurring = character.job_recurring
    s.share("blind", "recurring jobs blind to their inputs", is_blind, is_recurring)
    s.share("polls", "recurring jobs that poll", character.job_polls, is_recurring)
    s.add(
        "missed",
        "jobs that failed for want of an input",
        int(np.count_nonzero(logs.has("outcome", "missing_input"))),
        "count",
    )
    return s.found


def _organisations(
    logs: Logs, character: Character, edges: Dependencies, tables: Mapping[str, pa.Table]
) -> list[Statistic]:
    s = Section("organisations")
    owner = logs.column("organisation")
    cross = owner[edges.upstream] != owner[edges.downstream]
    ends = np.concatenate([edges.upstream[cross], edges.downstream[cross]])
    involved = np.zeros(logs.n_jobs, bool)
    involved[ends] = True
    n_owners = len(np.unique(owner))
    s.add(
        "organisations",
        "organisations with dependencies across",
        len(np.unique(owner[ends])) / n_owners,
        "share",
    )
    s.share("dependencies", "dependencies across", cross)
    pairs = tables["template_dependencies"]["cross_organisation"].to_numpy(zero_copy_only=False)
    s.share("template_dependencies", "template dependencies across", pairs)
    s.share("jobs", "jobs involved", involved)
    s.share("recurring_jobs", "recurring jobs involved", involved, character.job_recurring)
    return s.found


def _components(tables: Mapping[str, pa.Table], n_jobs: int) -> list[Statistic]:
    s = Section("components")
    size = tables["components"]["n_jobs"].to_numpy()
    heaviness = tables["components"]["bottom_heaviness"].to_numpy()
    s.add("largest", "jobs in the largest component", size[0] / n_jobs, "share")
    s.add("ten", "jobs in components of ten and more", size[size >= 10].sum() / n_jobs, "share")
    s.add("heaviness", "leaves over roots, largest component", heaviness[0], "ratio")
    small = (size >= 2) & (size < 10)
    s.add(
        "heaviness_small",
        "… mean of those below ten jobs",
        float(np.mean(heaviness[small])) if small.any() else np.nan,
        "ratio",
    )
    return s.found


def _shifting(logs: Logs, character: Character, gap_s: F8) -> list[Statistic]:
    s = Section("shifting")
    for hours in SHIFTS_H:
        hit = shiftable(logs, character, gap_s, hours)
        s.share(f"{hours}h", f"jobs that could be shifted by up to {hours} h", hit)
    unused = character.job_recurring & np.isinf(gap_s)
    s.share("unused", "recurring jobs whose output nobody used, not counted above", unused)
    return s.found


def _prediction(tables: Mapping[str, pa.Table]) -> list[Statistic]:
    s = Section("prediction")
    table = tables["predictability"]
    product = table["precision"].to_numpy() * table["recall"].to_numpy()
    if np.isnan(product).all():
        return s.found
    tr = best_threshold(table)
    row = table.filter(pa.array(table["tr"].to_numpy() == tr)).to_pylist()[0]
    s.add("best_tr", "threshold that maximises precision × recall, %", tr)
    s.add("precision", "precision there", row["precision"], "share")
    s.add("recall", "recall there", row["recall"], "share")
    s.add("rmse_s", "error of the time to dependency, root mean square", row["rmse_s"], "seconds")
    s.add("mae_s", "… median", row["mae_s"], "seconds")
    s.add("within_20", "forecast within ± 20 %", row["within_20"], "share")
    s.add("over_2x", "over-estimated twofold or more", row["over_2x"], "share")
    return s.found


def _value(tables: Mapping[str, pa.Table]) -> list[Statistic]:
    s = Section("value")
    table = tables["convergence"]
    found = table["found"].to_numpy()
    per_job = table["found_per_job"].to_numpy()
    s.add("hidden", "value hidden from who looks at jobs alone", 1 - found[0], "share")
    s.add("round_4", "value found by round 4", found[min(4, len(found) - 1)], "share")
    s.add("hidden_per_job", "… hidden, mean over jobs of their shares", 1 - per_job[0], "share")
    round_4 = per_job[min(4, len(per_job) - 1)]
    s.add("round_4_per_job", "… found by round 4, mean over jobs of their shares", round_4, "share")
    s.add("rounds", "rounds to convergence", int(np.argmax(found >= 1 - 1e-9)))
    jobs = tables["jobs"]
    local, recurring = (
        jobs["local_value"].to_numpy(),
        jobs["recurring"].to_numpy(zero_copy_only=False),
    )
    adhoc = local[~recurring].sum()
    s.add(
        "ratio",
        "downloads of recurring jobs over those of ad hoc ones",
        local[recurring].sum() / adhoc if adhoc else np.nan,
        "ratio",
    )
    error = jobs["aggregate_value_error"].to_numpy()
    whole = jobs["aggregate_value"].to_numpy()
    known = ~np.isnan(whole)
    total = whole[known].sum()
    s.add(
        "error",
        "aggregate values known to within, of their sum",
        error[known].sum() / total if total else 0.0,
        "share",
    )
    return s.found
