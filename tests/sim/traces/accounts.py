"""Counts of a reader's report."""

from __future__ import annotations

from typing import Any

from sim.workload.workload import Workload


def counts(workload: Workload) -> dict[str, Any]:
    """Return a reader's report without its account, and without the texts of bad rows."""
    report = workload.meta["report"]
    texts = ("account", "bad_examples", "warnings")
    return {key: value for key, value in report.items() if key not in texts}
