"""Measures of a profile, and the paper's values for comparison (§2.3, §3.2, §4.5.3)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from policies.wing.lineage.advice import SHIFTS_H, shiftable
from policies.wing.lineage.dependencies import DAY_S, MAX_UNREAD, Dependencies, SingleHop
from policies.wing.lineage.logs import Logs
from policies.wing.lineage.predict import best_threshold
from policies.wing.lineage.templates import INPUT_MODES, Classification
from sim.base.arrays import F8
from sim.describe.statistics import Kind, Section, Statistic, load_sections
from sim.published import numbers

SECTIONS: Final = load_sections(Path(__file__).with_name("sections.yaml"))
"""Sections in order, with their titles, notes and advice; § are of Chung et al., OSDI 2020."""


@cache
def published() -> dict[tuple[str, str], float]:
    """Return the values that the paper reports for Cosmos, by section and key."""
    paper = numbers("wing")
    tr, time_errors = paper["fig2"]["best_tr"], paper["fig3"]
    numbers_ = {(s, key): paper[s][key] for s in SECTIONS if s in paper for key in paper[s]}
    return numbers_ | {
        ("prediction", "best_tr"): float(tr),
        ("prediction", "rmse_s"): time_errors["rmse_h"][tr] * 3600,
        ("prediction", "mae_s"): time_errors["mae_min"][tr] * 60.0,
        ("prediction", "within_20"): time_errors["within_20"][tr] / 100,
        ("prediction", "over_2x"): time_errors["over_2x"][tr] / 100,
        ("value", "round_4"): paper["fig6"][4] / 100,
    }


def _missing(*conditions: tuple[bool, str]) -> str:
    """Return the reason of the first condition that does not hold; the empty string if all hold."""
    return next((why for holds, why in conditions if not holds), "")


def observations(
    logs: Logs,
    classes: Classification,
    hops: SingleHop,
    tables: Mapping[str, pa.Table],
    gap_s: F8,
    omega_s: float,
    value_source: str,
) -> list[Statistic]:
    """Compute the measures of §2.3, §3.2 and §4.5.3, or the reason why one can't be computed."""
    edges = hops.dependencies
    return [
        *_overview(logs, hops, tables, omega_s), *_recurring(classes, edges),
        *_priorities(logs, classes, edges, tables), *_coordination(logs, classes),
        *_organisations(logs, classes, edges, tables), *_components(tables, edges),
        *_shifting(logs, classes, hops, gap_s), *_prediction(tables), *_value(tables, value_source),
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
    s.add("observed_s", "time covered by the log", span, "span")
    s.add("omega_s", "multi-hop window ω", omega_s, "span")
    return s.statistics


def _needs_recurring(classes: Classification) -> tuple[bool, str]:
    return bool(classes.recurring.any()), "no template recurs"


def _needs_dependencies(edges: Dependencies) -> tuple[bool, str]:
    return len(edges) > 0, "no job read a file that another job wrote"


def _recurring(classes: Classification, edges: Dependencies) -> list[Statistic]:
    s = Section("recurring")
    why = _missing(_needs_dependencies(edges))
    why_recurring = why or _missing(_needs_recurring(classes))
    s.share("jobs", "recurring jobs, of all jobs", classes.job_recurring)
    s.share(
        "dependencies",
        "recurring dependencies, of all dependencies",
        classes.edge_recurring,
        why=why_recurring,
    )
    s.share("depending", "jobs that depend on another", edges.n_upstream() > 0)
    age = edges.read_s - edges.written_s
    s.share("within_week", "dependencies on files at most a week old", age <= 7 * DAY_S, why=why)
    s.share(
        "periodic", "periodic, of recurring templates", classes.periodic, classes.recurring,
        why=_missing(_needs_recurring(classes)),
    )  # fmt: skip
    s.share("hard", "hard, of all dependencies", classes.edge_hard, why=why)
    return s.statistics


def _priorities(
    logs: Logs, classes: Classification, edges: Dependencies, tables: Mapping[str, pa.Table]
) -> list[Statistic]:
    s = Section("priorities")
    recurring = classes.recurring
    priority, queue = logs.column("priority"), logs.column("queue")
    differ = bool((priority != priority[0]).any()), "all jobs have the same priority"
    why_templates = _missing(differ, _needs_recurring(classes))
    why_edges = _missing(differ, _needs_dependencies(edges))
    inverted = np.zeros(len(recurring), bool)
    inverted[tables["inversions"]["template"].to_numpy()] = True
    s.share(
        "templates_inverted",
        "recurring templates read by ones of higher priority in their queue",
        inverted,
        recurring,
        why=why_templates,
    )
    pairs = tables["template_dependencies"]
    low, high = pairs["upstream_priority"].to_numpy(), pairs["downstream_priority"].to_numpy()
    anywhere = np.zeros(len(recurring), bool)
    anywhere[pairs["upstream"].to_numpy()[high > low]] = True
    s.share("templates_inverted_anywhere", "… in any queue", anywhere, recurring, why=why_templates)
    below = priority[edges.upstream] < priority[edges.downstream]
    for key, label, is_inverted in (
        ("jobs_on_lower", "jobs that depend on jobs of lower priority", below),
        (
            "jobs_on_lower_in_queue",
            "… in their queue",
            below & (queue[edges.upstream] == queue[edges.downstream]),
        ),
    ):
        hit = np.zeros(logs.n_jobs, bool)
        hit[edges.downstream[is_inverted]] = True
        s.share(key, label, hit, why=why_edges)
    n = len(logs.names("queue"))
    is_recurring = classes.job_recurring
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(queue, priority * is_recurring, n) / np.bincount(queue, is_recurring, n)
    above = priority > mean[queue]
    s.share(
        "adhoc_above",
        "ad hoc jobs above the mean priority of recurring ones in their queue",
        above,
        ~is_recurring,
        why=_missing(
            differ, _needs_recurring(classes), (not is_recurring.all(), "no job is ad hoc")
        ),
    )
    return s.statistics


def _coordination(logs: Logs, classes: Classification) -> list[Statistic]:
    s = Section("coordination")
    is_blind = classes.input_mode == INPUT_MODES.index("blind")
    is_recurring = classes.job_recurring
    why = _missing(_needs_recurring(classes))
    s.share(
        "blind", "recurring jobs submitted without checking inputs", is_blind, is_recurring, why=why
    )
    s.share(
        "polls", "recurring jobs that poll for inputs", classes.job_polls, is_recurring, why=why
    )
    missed = int(np.count_nonzero(logs.has("outcome", "missing_input")))
    s.add(
        "missed", "jobs that failed because an input was missing", missed, "count",
        why=_missing((missed > 0, "no job in the log has the outcome missing_input")),
    )  # fmt: skip
    return s.statistics


def _organisations(
    logs: Logs, classes: Classification, edges: Dependencies, tables: Mapping[str, pa.Table]
) -> list[Statistic]:
    s = Section("organisations")
    owner = logs.column("organisation")
    cross = owner[edges.upstream] != owner[edges.downstream]
    ends = np.concatenate([edges.upstream[cross], edges.downstream[cross]])
    involved = np.zeros(logs.n_jobs, bool)
    involved[ends] = True
    n_owners = len(np.unique(owner))
    several = n_owners > 1, "all jobs belong to the same organisation"
    why = _missing(several, _needs_dependencies(edges))
    s.add(
        "organisations",
        "organisations with dependencies across",
        len(np.unique(owner[ends])) / n_owners,
        "share",
        why=why,
    )
    s.share("dependencies", "dependencies across organisations", cross, why=why)
    pairs = tables["template_dependencies"]["cross_organisation"].to_numpy(zero_copy_only=False)
    s.share(
        "template_dependencies", "template dependencies across organisations", pairs,
        why=_missing(several, (len(pairs) > 0, "no template depends on another")),
    )  # fmt: skip
    s.share("jobs", "jobs with such dependencies", involved, why=why)
    s.share(
        "recurring_jobs", "recurring jobs with such dependencies", involved, classes.job_recurring,
        why=_missing(several, _needs_dependencies(edges), _needs_recurring(classes)),
    )  # fmt: skip
    return s.statistics


def _components(tables: Mapping[str, pa.Table], edges: Dependencies) -> list[Statistic]:
    s = Section("components")
    why, n_jobs = _missing(_needs_dependencies(edges)), edges.n_jobs
    size = tables["components"]["n_jobs"].to_numpy()
    heaviness = tables["components"]["bottom_heaviness"].to_numpy()
    large = size[size >= 10].sum() / n_jobs
    s.add("largest", "jobs in the largest component", size[0] / n_jobs, "share", why=why)
    s.add("ten", "jobs in components of ten or more", large, "share", why=why)
    s.add("heaviness", "leaves per root, largest component", heaviness[0], "ratio", why=why)
    small = (size >= 2) & (size < 10)
    s.add(
        "heaviness_small",
        "… mean over components of two to nine jobs",
        float(np.mean(heaviness[small])) if small.any() else np.nan,
        "ratio",
        why=_missing(
            _needs_dependencies(edges), (bool(small.any()), "no component has two to nine jobs")
        ),
    )
    return s.statistics


def _shifting(logs: Logs, classes: Classification, hops: SingleHop, gap_s: F8) -> list[Statistic]:
    s = Section("shifting")
    for hours in SHIFTS_H:
        hit = shiftable(logs, classes, gap_s, hours)
        why = _missing(_needs_recurring(classes), (not np.isinf(gap_s).all(), "no output was used"))
        s.share(f"{hours}h", f"jobs that could be shifted by up to {hours} h", hit, why=why)
    unused = classes.job_recurring & np.isinf(gap_s)
    s.share(
        "unused", "recurring jobs whose output was never used, not counted above", unused,
        why=_missing(
            _needs_recurring(classes),
            (hops.unread_share() <= MAX_UNREAD, "writes without a reader may add to their files"),
        ),
    )  # fmt: skip
    return s.statistics


def _prediction(tables: Mapping[str, pa.Table]) -> list[Statistic]:
    s = Section("prediction")
    table = tables["predictability"]
    product = table["precision"].to_numpy() * table["recall"].to_numpy()
    known = not np.isnan(product).all()
    why = _missing((known, "no dependency recurs in the two weeks compared"))
    rows = table.to_pylist()
    row = next(r for r in rows if not known or r["tr"] == best_threshold(table))
    shown: tuple[tuple[str, str, Kind], ...] = (
        ("tr", "threshold that maximises precision × recall, %", "number"),
        ("precision", "precision at that threshold", "share"),
        ("recall", "recall at that threshold", "share"),
        ("rmse_s", "error of the predicted time to dependency, root mean square", "seconds"),
        ("mae_s", "… median", "seconds"),
        ("within_20", "predicted times within ± 20 %", "share"),
        ("over_2x", "predicted times at least twice too long", "share"),
    )
    for name, label, kind in shown:
        s.add("best_tr" if name == "tr" else name, label, row[name], kind, why=why)
    return s.statistics


def _value(tables: Mapping[str, pa.Table], value_source: str) -> list[Statistic]:
    s = Section("value")
    table, jobs = tables["convergence"], tables["jobs"]
    local, aggregate, error, recurring = (
        jobs[name].to_numpy(zero_copy_only=False)
        for name in ("local_value", "aggregate_value", "aggregate_value_error", "recurring")
    )
    known = ~np.isnan(aggregate)
    total, adhoc = aggregate[known].sum(), local[~recurring].sum()
    none = (
        "the log has no downloads"
        if value_source == "downloads"
        else f"no job has a {value_source} above 0"
    )
    has_value = bool(local.any()), f"{none}; choose another value with --value"
    share, per_job = (table[name].to_numpy() for name in ("found", "found_per_job"))
    has_aggregate = bool(total > 0), "all jobs of value end too close to the end of the log"
    why = _missing(has_value, has_aggregate)
    at_4 = min(4, len(share) - 1)
    s.add(
        "hidden",
        "aggregate value not visible in a job's local value",
        1 - share[0],
        "share",
        why=why,
    )
    s.add("round_4", "aggregate value found by round 4", share[at_4], "share", why=why)
    label = "… mean over jobs of their shares not visible"
    s.add("hidden_per_job", label, 1 - per_job[0], "share", why=why)
    label = "… mean over jobs of their shares by round 4"
    s.add("round_4_per_job", label, per_job[at_4], "share", why=why)
    rounds = int(np.argmax(share >= 1 - 1e-9))
    s.add("rounds", "rounds to convergence", rounds, why=why)
    s.add(
        "ratio", "local value of recurring jobs over that of ad hoc jobs",
        local[recurring].sum() / adhoc if adhoc else np.nan, "ratio",
        why=_missing(
            has_value, (bool(recurring.any()), "no template recurs"),
            (bool(adhoc > 0), "no ad hoc job has a value"),
        ),
    )  # fmt: skip
    s.add(
        "error", "uncertainty of aggregate values, of their sum",
        error[known].sum() / total if total else np.nan, "share", why=why,
    )  # fmt: skip
    return s.statistics
