"""How far predicted latencies are from the slowest runs, by allocation (Jockey, Fig. 8)."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from sweep.report.findings import Finding, Finished

PAPER = {"jockey": "9.8", "jockey_amdahl": "11.8"}
MODELS = {"jockey": "simulator", "jockey_amdahl": "Amdahl's law"}


def find(finished: Finished) -> list[Finding]:
    """Give the mean over jobs of the error, in percent, by model and allocation."""
    found = []
    for policy, model in MODELS.items():
        errors = _errors(finished, policy)
        if not errors:
            continue
        title = f"prediction error, {model}, %"
        of_all = [error for of in errors.values() for error in of.values()]
        by_job = defaultdict(list)
        for of in errors.values():
            for job, error in of.items():
                by_job[job].append(error)
        means = [float(np.mean(of)) for of in by_job.values()]
        found.append(Finding.of(title, "all jobs and allocations", means, paper=PAPER[policy]))
        found.append(Finding(title, "largest", max(of_all)))
        for tokens, of in sorted(errors.items()):
            found.append(Finding.of(title, f"{tokens} tokens", list(of.values())))
    return found


def _errors(finished: Finished, policy: str) -> dict[int, dict[str, float]]:
    """Return the error of the largest prediction at the slowest run, by allocation and job, %."""
    took: dict[tuple[int, str], float] = {}
    predicted: dict[tuple[int, str], float] = {}
    for row in finished.cells:
        if row["policy"] != policy:
            continue
        for one in finished.table(row).to_pylist():
            key = (one["tokens"], row["trace.job"])
            took[key] = max(one["took_s"], took.get(key, 0.0))
            predicted[key] = max(one["predicted_s"], predicted.get(key, 0.0))
    errors: dict[int, dict[str, float]] = {}
    for (tokens, job), slowest in took.items():
        off = 100.0 * abs(predicted[tokens, job] / slowest - 1.0)
        errors.setdefault(tokens, {})[job] = off
    return errors
