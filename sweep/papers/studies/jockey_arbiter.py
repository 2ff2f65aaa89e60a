"""What jobs are worth together that need more tokens than there are: beyond Jockey's paper (§4.4).

The utility of each is that of §5.1. How far a policy gets is (U - U of fair sharing) over (bound -
U of fair sharing), with the bound of `policies.jockey.arbiter`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa

from policies.jockey.arbiter import utility_bound
from policies.jockey.control import POINTS, utility
from sweep.report.findings import Finding, Finished

FAIR, ARBITER, ALONE = "drf", "jockey_arbiter", "jockey"
NEVER_S = 60_000.0
"""How late a job counts that never ends: as the last point of the utility."""
WAY = 90.0
"""Percent of the way from fair sharing to the bound that is wanted of the arbiter."""


def find(finished: Finished) -> list[Finding]:
    """Give utility and deadlines met by policy, and how far each gets towards the bound."""
    worth: dict[str, dict[int, float]] = {}
    met: dict[str, dict[int, float]] = {}
    bounds: dict[int, float] = {}
    for (policy,), cells in finished.by("policy").items():
        tables = {row["seed"]: finished.table(row) for row in cells}
        worth[policy] = {seed: total_utility(table) for seed, table in tables.items()}
        met[policy] = {seed: n_met(table) for seed, table in tables.items()}
        bounds |= {seed: bound(table) for seed, table in tables.items() if seed not in bounds}
    worths = {**worth, "bound": bounds}
    found = [Finding.of("total utility", name, list(of.values())) for name, of in worths.items()]
    found += [Finding.of("deadlines met", name, list(of.values())) for name, of in met.items()]
    if FAIR in worth:
        for policy in [name for name in worth if name != FAIR]:
            way = [
                100.0 * (worth[policy][seed] - worth[FAIR][seed]) / (limit - worth[FAIR][seed])
                for seed, limit in bounds.items()
                if seed in worth[policy] and seed in worth[FAIR] and limit > worth[FAIR][seed]
            ]
            wanted: dict[str, Any] = {"at_least": WAY} if policy == ARBITER else {}
            found.append(Finding.of("way from fair to the bound, %", policy, way, **wanted))
    if ARBITER in met and ALONE in met:
        shared = sorted(met[ARBITER].keys() & met[ALONE].keys())
        more = [met[ARBITER][seed] - met[ALONE][seed] for seed in shared]
        what = f"{ARBITER} more than {ALONE}"
        found.append(Finding.of("deadlines met", what, more, at_least=1e-9))
    return sorted(found, key=lambda one: one.figure)


def late_s(jobs: pa.Table) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return how late each job was, s; one that never ended, `NEVER_S`."""
    submit, finish, due = (jobs[f"{n}_s"].to_numpy() for n in ("submit", "finish", "deadline"))
    late = finish - submit - due
    return np.where(np.isnan(late), NEVER_S, late)


def total_utility(jobs: pa.Table) -> float:
    """Add up what the jobs were worth."""
    return float(utility(POINTS)(late_s(jobs)).sum())


def n_met(jobs: pa.Table) -> float:
    """Count the deadlines that were met."""
    return float((late_s(jobs) <= 0).sum())


def bound(jobs: pa.Table) -> float:
    """Return what the jobs can have been worth at most; infinite without jobs."""
    if not jobs.num_rows:
        return math.inf
    names = ("submit_s", "deadline_s", "work_s", "shortest_s")
    submit, due, work, shortest = (jobs[name].to_numpy() for name in names)
    n_tokens = int(jobs["tokens"][0].as_py())
    return utility_bound(submit, due, work, shortest, n_tokens, utility(POINTS))
