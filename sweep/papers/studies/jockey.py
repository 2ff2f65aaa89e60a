"""Jockey's curves, predictions and arbiter (Ferguson et al., EuroSys 2012)."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa

from policies.jockey.arbiter import utility_bound
from policies.jockey.control import POINTS, utility
from sim.base.arrays import F8
from sweep.papers.declared import printed
from sweep.report.findings import Finding, Finished

CASES = {
    "jockey_fig6a": "F, 45 min, 1.85 times the work",
    "jockey_fig6b": "E, 45 min, a slow stage",
    "jockey_fig6c": "G, 60 min, a light run",
}
CURVES = ("raw", "tokens", "running", "oracle")
ALONG = "minutes since the submission"
STEP_MIN = 5

MODELS = {"jockey": "simulator", "jockey_amdahl": "Amdahl's law"}

FAIR, ARBITER, ALONE = "drf", "jockey_arbiter", "jockey"
NEVER_S = 60_000.0
"""How late a job counts that never ends: as the last point of the utility."""
WAY = 90.0
"""Percent of the way from fair sharing to the bound that is wanted of the arbiter."""


def fig6(finished: Finished) -> list[Finding]:
    """Give completion, and the four curves of each run: every five minutes, and as a plot."""
    findings = []
    for row in finished.cells:
        case = CASES.get(row["trace"], row["trace"])
        percent, paper = 100.0 * row["relative_finish"], printed("jockey", "fig6", row["trace"])
        findings.append(Finding(case, "completion, % of the deadline", percent, paper=paper))
        table = finished.table(row)
        minutes = [round(elapsed_s / 60) for elapsed_s in table["elapsed_s"].to_pylist()]
        for curve in CURVES:
            for minute, value in zip(minutes, table[curve].to_pylist(), strict=True):
                if math.isnan(value):
                    continue
                if minute % STEP_MIN == 0:
                    findings.append(Finding(f"{case}, {curve}", f"after {minute} min", value))
                findings.append(Finding(case, "", value, curve=curve, along=ALONG, at=minute))
    return findings


def fig8(finished: Finished) -> list[Finding]:
    """Give how far the largest prediction is from the slowest run, by allocation, over jobs."""
    findings = []
    for policy, model in MODELS.items():
        errors = _errors(finished, policy)
        if not errors:
            continue
        title = f"prediction error, {model}, %"
        by_job = defaultdict(list)
        for of in errors.values():
            for job, error in of.items():
                by_job[job].append(error)
        means = [float(np.mean(of)) for of in by_job.values()]
        paper = printed("jockey", "fig8", policy)
        findings.append(Finding.of(title, "all jobs and allocations", means, paper=paper))
        largest = max(error for of in errors.values() for error in of.values())
        findings.append(Finding(title, "largest", largest))
        for tokens, of in sorted(errors.items()):
            findings.append(Finding.of(title, f"{tokens} tokens", list(of.values())))
    return findings


def _errors(finished: Finished, policy: str) -> dict[int, dict[str, float]]:
    """Return the error of the largest prediction at the slowest run, by allocation and job, %."""
    took: dict[tuple[int, str], float] = {}
    predicted: dict[tuple[int, str], float] = {}
    for row in finished.cells:
        if row["policy"] != policy:
            continue
        for run in finished.table(row).to_pylist():
            key = (run["tokens"], row["trace.job"])
            took[key] = max(run["took_s"], took.get(key, 0.0))
            predicted[key] = max(run["predicted_s"], predicted.get(key, 0.0))
    errors: dict[int, dict[str, float]] = {}
    for (tokens, job), slowest in took.items():
        off = 100.0 * abs(predicted[tokens, job] / slowest - 1.0)
        errors.setdefault(tokens, {})[job] = off
    return errors


def spark(finished: Finished) -> list[Finding]:
    """Give the errors of models by executors trained at and run with (§5.3, on measured tasks)."""
    findings = []
    for policy, model in MODELS.items():
        errors, ratios = [], []
        for row in finished.cells:
            if row["policy"] != policy:
                continue
            between = f"trained with {row['trace.trained_at']}, run with {row['trace.executors']}"
            table = finished.table(row)
            ratio = table["predicted_s"].to_numpy() / table["took_s"].to_numpy()
            off = (100.0 * np.abs(ratio - 1)).tolist()
            errors.append(Finding.of(f"prediction error, {model}, %", between, off))
            title = f"predicted over measured, {model}, median over queries"
            ratios.append(Finding(title, between, float(np.median(ratio))))
        findings += errors + ratios
    return findings


def arbiter(finished: Finished) -> list[Finding]:
    """Give utility and deadlines met of jobs that need more tokens than there are (beyond §4.4).

    The utility of each is that of §5.1. How far a policy gets is (U - U of fair sharing) over
    (bound - U of fair sharing), with the bound of `policies.jockey.arbiter`.
    """
    worth: dict[str, dict[int, float]] = {}
    met: dict[str, dict[int, float]] = {}
    bounds: dict[int, float] = {}
    for (policy,), cells in finished.by("policy").items():
        tables = {row["seed"]: finished.table(row) for row in cells}
        late_s = {seed: _late_s(table) for seed, table in tables.items()}
        worth[policy] = {seed: float(utility(POINTS)(s).sum()) for seed, s in late_s.items()}
        met[policy] = {seed: float((s <= 0).sum()) for seed, s in late_s.items()}
        bounds |= {seed: _bound(table) for seed, table in tables.items() if seed not in bounds}
    worths = {**worth, "bound": bounds}
    findings = [Finding.of("total utility", name, list(of.values())) for name, of in worths.items()]
    findings += [Finding.of("deadlines met", name, list(of.values())) for name, of in met.items()]
    if FAIR in worth:
        for policy in [name for name in worth if name != FAIR]:
            way = [
                100.0 * (worth[policy][seed] - worth[FAIR][seed]) / (limit - worth[FAIR][seed])
                for seed, limit in bounds.items()
                if seed in worth[policy] and seed in worth[FAIR] and limit > worth[FAIR][seed]
            ]
            wanted: dict[str, Any] = {"at_least": WAY} if policy == ARBITER else {}
            findings.append(Finding.of("way from fair to the bound, %", policy, way, **wanted))
    if ARBITER in met and ALONE in met:
        shared = sorted(met[ARBITER].keys() & met[ALONE].keys())
        more = [met[ARBITER][seed] - met[ALONE][seed] for seed in shared]
        what = f"{ARBITER} more than {ALONE}"
        findings.append(Finding.of("deadlines met", what, more, at_least=1e-9))
    return sorted(findings, key=lambda finding: finding.figure)


def _late_s(jobs: pa.Table) -> F8:
    """Return how late each job was, s; one that never ended, `NEVER_S`."""
    submit, finish, due = (jobs[f"{n}_s"].to_numpy() for n in ("submit", "finish", "deadline"))
    late = finish - submit - due
    return np.where(np.isnan(late), NEVER_S, late)


def _bound(jobs: pa.Table) -> float:
    """Return what the jobs can have been worth at most; infinite without jobs."""
    if not jobs.num_rows:
        return math.inf
    names = ("submit_s", "deadline_s", "work_s", "shortest_s")
    submit, due, work, shortest = (jobs[name].to_numpy() for name in names)
    n_tokens = int(jobs["tokens"][0].as_py())
    return utility_bound(submit, due, work, shortest, n_tokens, utility(POINTS))
