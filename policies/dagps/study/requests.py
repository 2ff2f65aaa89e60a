"""Tables 3 and 4 and Fig. 10 where Tez holds what tasks request, and DAGPS what they need.

The rule is that of policies/dagps/decisions/0059-dagps-requests.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from policies.dagps.study.online import MEDIAN, TEZ, TOO_SLOW, gains
from sweep.questions.papers.figures import Findings, Row, percent_reduction, published
from sweep.report.findings import Finding, FinishedSweep

MEMORY, DEMANDS = "trace.transforms.requests.factor.mem", "policy.demands"
READINGS = {1.25: "configured", 2.29: "measured"}
"""Names of the rule's readings, by the factor of memory."""
DECLARED, TRUE = "declared", "true"
CP, TETRIS, DRF, DAGPS = "tez_cp", "tez_tetris", "tez_drf", "dagps"
SUFFIX = "_requested"
WINDOWS_S = (10, 60, 240)


@dataclass(frozen=True)
class _View:
    """A comparison: the demands that Tez and its variants hold, and those that DAGPS holds."""

    name: str
    tez: str
    dagps: str

    def demands(self, policy: str) -> str:
        return self.dagps if policy == DAGPS else self.tez


VIEWS = (
    _View("requests", DECLARED, TRUE),
    _View("requests, dagps does not refine them", DECLARED, DECLARED),
    _View("all know", TRUE, TRUE),
)

_Cells = Mapping[tuple[str, str, str], Mapping[object, Row]]
"""Cells of a reading by trace, policy and demands, then by seed."""


def requests(finished: FinishedSweep) -> Findings:
    """Compute the gains over Tez, %, and the cost of two queues, by reading and view."""
    for memory, cells in _by_reading(finished).items():
        reading = f"{READINGS[memory]}: cores × 1.25, memory × {memory:g}"
        for view in VIEWS:
            yield from _table3(cells, view, reading)
            yield from _fig10(finished, cells, view, reading)
            yield from _table4(cells, view, reading)


def _by_reading(finished: FinishedSweep) -> dict[float, _Cells]:
    readings: dict[float, dict[tuple[str, str, str], dict[object, Row]]] = {}
    for row in finished.cells:
        trace = str(row["trace"]).removesuffix(SUFFIX)
        key = trace, str(row["policy"]), str(row[DEMANDS]).lower()
        readings.setdefault(float(row[MEMORY]), {}).setdefault(key, {})[row["seed"]] = row
    return dict(readings)


def _schemes(view: _View) -> tuple[str, ...]:
    """Return the schemes of a view that no other has."""
    return (DAGPS,) if view.dagps != TRUE else (CP, TETRIS, DAGPS)


def _compare(
    cells: _Cells, view: _View, trace: str, policy: str, compute: Callable[[Row, Row], float]
) -> list[float]:
    """Compare each run of a scheme with Tez's of the same tasks."""
    base = cells[trace, TEZ, view.tez]
    rows = cells[trace, policy, view.demands(policy)]
    return [compute(rows[seed], base[seed]) for seed in sorted(rows, key=str)]


def _makespan(row: Row, base: Row) -> float:
    return percent_reduction(row["makespan_s"], base["makespan_s"])


def _table3(cells: _Cells, view: _View, reading: str) -> Findings:
    for source in ("tpcds", "tpch"):
        trace = f"{source}_burst"
        figure = f"Table 3, {trace}, {reading}, {view.name}: shorter makespan than tez's, %"
        by_scheme = {p: _compare(cells, view, trace, p, _makespan) for p in _schemes(view)}
        for policy, values in by_scheme.items():
            paper = "" if view.dagps != TRUE else published("dagps", "table3", trace, policy)
            yield Finding.from_seeds(figure, policy, values, paper=paper)
        yield from _order(figure, by_scheme)


def _order(figure: str, by_scheme: Mapping[str, Sequence[float]]) -> Findings:
    """Compute by how many points each scheme is before the next of the paper's order."""
    for first, second in ((DAGPS, TETRIS), (TETRIS, CP)):
        if first in by_scheme and second in by_scheme:
            pairs = zip(by_scheme[first], by_scheme[second], strict=True)
            points = [a - b for a, b in pairs]
            yield Finding.from_seeds(figure, f"{first} less {second}, points", points)


def _fig10(finished: FinishedSweep, cells: _Cells, view: _View, reading: str) -> Findings:
    distances: list[float] = []
    for source in ("tpcds", "tpch"):
        trace = f"{source}_stream"
        figure = f"Fig. 10, {trace}, {reading}, {view.name}: improvement over tez, %"
        medians: dict[str, list[float]] = {}
        for policy in _schemes(view):
            base = cells[trace, TEZ, view.tez]
            rows = cells[trace, policy, view.demands(policy)]
            by_seed = [gains(finished, rows[s], base[s]) for s in sorted(rows, key=str)]
            medians[policy] = [gain[MEDIAN] for gain in by_seed]
            for name in (MEDIAN, "JCT, p75", TOO_SLOW):
                printed = published("dagps", "fig10", trace, policy, name)
                paper = printed if view.dagps == TRUE else ""
                values = [gain[name] for gain in by_seed]
                yield Finding.from_seeds(figure, f"{policy}, {name}", values, paper=paper)
                if paper:
                    distances.append(abs(float(np.mean(values)) - float(paper)))
        yield from _order(figure, medians)
    if distances:
        label = f"{reading}, {view.name}"
        yield Finding("mean distance to Fig. 10 (b), points", label, float(np.mean(distances)))


def _table4(cells: _Cells, view: _View, reading: str) -> Findings:
    single, double = "tpcds_stream", "tpcds_two_queues"
    figure = f"Table 4, {reading}, {view.name}"
    for policy in (DAGPS,) if view.dagps != TRUE else (TEZ, DRF, TETRIS, DAGPS):
        demands = view.demands(policy)
        rows, base = cells[double, policy, demands], cells[single, policy, demands]
        seeds = sorted(rows, key=str)
        cost = [percent_reduction(rows[s]["jct_p50_s"], base[s]["jct_p50_s"]) for s in seeds]
        shows = view.dagps == TRUE
        paper = published("dagps", "table4", policy, "gap") if shows else ""
        label = f"{policy}, two queues against one, %"
        yield Finding.from_seeds(figure, label, cost, paper=paper)
        for window in WINDOWS_S:
            metric = f"jain_{window}s"
            paper = published("dagps", "table4", policy, metric) if shows else ""
            values = [rows[s][metric] for s in seeds]
            label = f"{policy}, Jain's index, windows of {window} s"
            yield Finding.from_seeds(figure, label, values, paper=paper)
    over_tez = _compare(cells, view, double, DAGPS, _median_jct)
    paper = published("dagps", "table4", DAGPS, "over_tez") if view.dagps == TRUE else ""
    label = "dagps, two queues, improvement over tez, %"
    yield Finding.from_seeds(figure, label, over_tez, paper=paper)


def _median_jct(row: Row, base: Row) -> float:
    return percent_reduction(row["jct_p50_s"], base["jct_p50_s"])
