"""What was read, dropped, filled in and noticed, counted by rule: nothing goes without a word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sim.describe.dataset import Dataset
from sim.describe.measure import Measure, Section

_TOTALS = ("jobs", "stages", "tasks", "edges")  # of a loader's report: in the overview


def inputs(data: Dataset) -> list[Measure]:
    """Count what the loader reported, and the jobs that some measures leave out."""
    section = Section("input")
    section.group = "jobs"
    graphs = data.every
    section.add("one_stage", "of one stage", (graphs.job_n_stages == 1).sum(), "count")
    section.add("no_edge", "of more stages, without an edge", _unlinked(data), "count")
    section.add(
        "not_whole", "not read in full: left out of structure", (~data.whole).sum(), "count"
    )
    if data.workload is not None:
        report = data.workload.meta.get("report", {})
        for group, rule, count in _counts(report):
            section.group = group
            section.add(f"{group}: {rule}", rule, count, "count")
    return section.found


def _unlinked(data: Dataset) -> int:
    return int(((data.every.job_n_stages > 1) & (data.every.job_n_edges == 0)).sum())


def _counts(report: Mapping[str, Any], group: str = "loading") -> Iterator[tuple[str, str, float]]:
    """Give the counts of a report with the names they are under; those of 0 are left out."""
    nested = {rule: found for rule, found in report.items() if isinstance(found, Mapping)}
    for rule, found in report.items():
        if rule not in nested and rule not in _TOTALS and isinstance(found, (int, float)) and found:
            yield group, rule, float(found)
    for rule, found in nested.items():
        name = rule.replace("_", " ")
        yield from _counts(found, name if group == "loading" else f"{group}: {name}")
