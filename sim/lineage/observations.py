"""The numbers of a profile, with those of the paper beside them (§2.3, §3.2, §4.5.3)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8
from sim.describe.statistics import Kind, Section, Statistic, words_of
from sim.lineage.advice import SHIFTS_H, shiftable
from sim.lineage.dependencies import DAY_S, Dependencies, SingleHop
from sim.lineage.logs import Logs
from sim.lineage.predict import best_threshold
from sim.lineage.templates import INPUT_MODES, Classification
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


def _unless(*needed: tuple[bool, str]) -> str:
    """Return why something can't be measured: the first of what is needed that is not there."""
    return next((why for there, why in needed if not there), "")


def observations(
    logs: Logs,
    character: Classification,
    hops: SingleHop,
    tables: Mapping[str, pa.Table],
    gap_s: F8,
    omega_s: float,
    valued: str,
) -> list[Statistic]:
    """Measure what §2.3, §3.2 and §4.5.3 report, or say why it can't be."""
    edges = hops.dependencies
    return [
        *_overview(logs, hops, tables, omega_s), *_recurring(character, edges),
        *_priorities(logs, character, edges, tables), *_coordination(logs, character),
        *_organisations(logs, character, edges, tables), *_components(tables, edges),
        *_shifting(logs, character, gap_s), *_prediction(tables), *_value(tables, valued),
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
    s.add("observed_s", "observed", span, "span")
    s.add("omega_s", "multi-hop window ω", omega_s, "span")
    return s.found


def _recurs(character: Classification) -> tuple[bool, str]:
    return bool(character.recurring.any()), "no template recurs"


def _depends(edges: Dependencies) -> tuple[bool, str]:
    return len(edges) > 0, "no job read what another one wrote"


def _recurring(character: Classification, edges: Dependencies) -> list[Statistic]:
    s = Section("recurring")
    why = _unless(_depends(edges))
    of_both = why or _unless(_recurs(character))
    s.share("jobs", "recurring jobs, of all", character.job_recurring)
    s.share("dependencies", "recurring dependencies, of all", character.edge_recurring, why=of_both)
    s.share("depending", "jobs that depend on another", edges.n_upstream() > 0)
    age = edges.read_s - edges.written_s
    s.share("within_week", "dependencies within a week", age <= 7 * DAY_S, why=why)
    s.share(
        "periodic", "periodic, of recurring templates", character.periodic, character.recurring,
        why=_unless(_recurs(character)),
    )  # fmt: skip
    s.share("hard", "hard, of all dependencies", character.edge_hard, why=why)
    return s.found


def _priorities(
    logs: Logs, character: Classification, edges: Dependencies, tables: Mapping[str, pa.Table]
) -> list[Statistic]:
    s = Section("priorities")
    recurring = character.recurring
    priority, queue = logs.column("priority"), logs.column("queue")
    differ = bool((priority != priority[0]).any()), "all jobs have the same priority"
    of_templates = _unless(differ, _recurs(character))
    of_edges = _unless(differ, _depends(edges))
    inverted = np.zeros(len(recurring), bool)
    inverted[tables["inversions"]["template"].to_numpy()] = True
    s.share(
        "templates_inverted",
        "recurring templates read by ones of higher priority in their queue",
        inverted,
        recurring,
        why=of_templates,
    )
    pairs = tables["template_dependencies"]
    low, high = pairs["upstream_priority"].to_numpy(), pairs["downstream_priority"].to_numpy()
    anywhere = np.zeros(len(recurring), bool)
    anywhere[pairs["upstream"].to_numpy()[high > low]] = True
    s.share("templates_inverted_anywhere", "… in any queue", anywhere, recurring, why=of_templates)
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
        s.share(key, label, hit, why=of_edges)
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
        why=_unless(differ, _recurs(character), (not is_recurring.all(), "no job is ad hoc")),
    )
    return s.found


def _coordination(logs: Logs, character: Classification) -> list[Statistic]:
    s = Section("coordination")
    is_blind = character.input_mode == INPUT_MODES.index("blind")
    is_recurring = character.job_recurring
    why = _unless(_recurs(character))
    s.share("blind", "recurring jobs blind to their inputs", is_blind, is_recurring, why=why)
    s.share("polls", "recurring jobs that poll", character.job_polls, is_recurring, why=why)
    missed = int(np.count_nonzero(logs.has("outcome", "missing_input")))
    s.add(
        "missed", "jobs that failed for want of an input", missed, "count",
        why=_unless((missed > 0, "the log says of no job that an input was missing")),
    )  # fmt: skip
    return s.found


def _organisations(
    logs: Logs, character: Classification, edges: Dependencies, tables: Mapping[str, pa.Table]
) -> list[Statistic]:
    s = Section("organisations")
    owner = logs.column("organisation")
    cross = owner[edges.upstream] != owner[edges.downstream]
    ends = np.concatenate([edges.upstream[cross], edges.downstream[cross]])
    involved = np.zeros(logs.n_jobs, bool)
    involved[ends] = True
    n_owners = len(np.unique(owner))
    several = n_owners > 1, "all jobs are of the same organisation"
    why = _unless(several, _depends(edges))
    s.add(
        "organisations",
        "organisations with dependencies across",
        len(np.unique(owner[ends])) / n_owners,
        "share",
        why=why,
    )
    s.share("dependencies", "dependencies across", cross, why=why)
    pairs = tables["template_dependencies"]["cross_organisation"].to_numpy(zero_copy_only=False)
    s.share(
        "template_dependencies", "template dependencies across", pairs,
        why=_unless(several, (len(pairs) > 0, "no template depends on another")),
    )  # fmt: skip
    s.share("jobs", "jobs involved", involved, why=why)
    s.share(
        "recurring_jobs", "recurring jobs involved", involved, character.job_recurring,
        why=_unless(several, _depends(edges), _recurs(character)),
    )  # fmt: skip
    return s.found


def _components(tables: Mapping[str, pa.Table], edges: Dependencies) -> list[Statistic]:
    s = Section("components")
    why, n_jobs = _unless(_depends(edges)), edges.n_jobs
    size = tables["components"]["n_jobs"].to_numpy()
    heaviness = tables["components"]["bottom_heaviness"].to_numpy()
    large = size[size >= 10].sum() / n_jobs
    s.add("largest", "jobs in the largest component", size[0] / n_jobs, "share", why=why)
    s.add("ten", "jobs in components of ten and more", large, "share", why=why)
    s.add("heaviness", "leaves over roots, largest component", heaviness[0], "ratio", why=why)
    small = (size >= 2) & (size < 10)
    s.add(
        "heaviness_small",
        "… mean of those below ten jobs",
        float(np.mean(heaviness[small])) if small.any() else np.nan,
        "ratio",
        why=_unless(_depends(edges), (bool(small.any()), "no component is of two to nine jobs")),
    )
    return s.found


def _shifting(logs: Logs, character: Classification, gap_s: F8) -> list[Statistic]:
    s = Section("shifting")
    for hours in SHIFTS_H:
        hit = shiftable(logs, character, gap_s, hours)
        why = _unless(_recurs(character), (not np.isinf(gap_s).all(), "nobody used any output"))
        s.share(f"{hours}h", f"jobs that could be shifted by up to {hours} h", hit, why=why)
    unused = character.job_recurring & np.isinf(gap_s)
    s.share(
        "unused", "recurring jobs whose output nobody used, not counted above", unused,
        why=_unless(_recurs(character)),
    )  # fmt: skip
    return s.found


def _prediction(tables: Mapping[str, pa.Table]) -> list[Statistic]:
    s = Section("prediction")
    table = tables["predictability"]
    product = table["precision"].to_numpy() * table["recall"].to_numpy()
    known = not np.isnan(product).all()
    why = _unless((known, "no dependency recurs in the two weeks compared"))
    rows = table.to_pylist()
    row = next(r for r in rows if not known or r["tr"] == best_threshold(table))
    shown: tuple[tuple[str, str, Kind], ...] = (
        ("tr", "threshold that maximises precision × recall, %", "number"),
        ("precision", "precision there", "share"),
        ("recall", "recall there", "share"),
        ("rmse_s", "error of the time to dependency, root mean square", "seconds"),
        ("mae_s", "… median", "seconds"),
        ("within_20", "forecast within ± 20 %", "share"),
        ("over_2x", "over-estimated twofold or more", "share"),
    )
    for name, label, kind in shown:
        s.add("best_tr" if name == "tr" else name, label, row[name], kind, why=why)
    return s.found


def _value(tables: Mapping[str, pa.Table], valued: str) -> list[Statistic]:
    s = Section("value")
    table, jobs = tables["convergence"], tables["jobs"]
    local, whole, error, recurring = (
        jobs[name].to_numpy(zero_copy_only=False)
        for name in ("local_value", "aggregate_value", "aggregate_value_error", "recurring")
    )
    known = ~np.isnan(whole)
    total, adhoc = whole[known].sum(), local[~recurring].sum()
    none = "the log has no downloads" if valued == "downloads" else f"no job has {valued}"
    worth = bool(local.any()), f"{none}; --value ranks by another value"
    found, per_job = (table[name].to_numpy() for name in ("found", "found_per_job"))
    late = bool(total > 0), "what has a value is too near the log's end"
    why = _unless(worth, late)
    at_4 = min(4, len(found) - 1)
    s.add("hidden", "value hidden from who looks at jobs alone", 1 - found[0], "share", why=why)
    s.add("round_4", "value found by round 4", found[at_4], "share", why=why)
    label = "… hidden, mean over jobs of their shares"
    s.add("hidden_per_job", label, 1 - per_job[0], "share", why=why)
    label = "… found by round 4, mean over jobs of their shares"
    s.add("round_4_per_job", label, per_job[at_4], "share", why=why)
    rounds = int(np.argmax(found >= 1 - 1e-9))
    s.add("rounds", "rounds to convergence", rounds, why=why)
    s.add(
        "ratio", "value of recurring jobs over that of ad hoc ones",
        local[recurring].sum() / adhoc if adhoc else np.nan, "ratio",
        why=_unless(
            worth, (bool(recurring.any()), "no template recurs"),
            (bool(adhoc > 0), "no ad hoc job has any"),
        ),
    )  # fmt: skip
    s.add(
        "error", "aggregate values known to within, of their sum",
        error[known].sum() / total if total else np.nan, "share", why=why,
    )  # fmt: skip
    return s.found
