"""Sections of a backtest, for terminal and report."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from sweep.questions.backtest.plots import BacktestJobs, draw_plots
from sweep.questions.backtest.runs import BACKTEST, BACKTEST_JOBS, BACKTEST_JSON
from sweep.report.section import Section, Table
from sweep.store.folder import SweepFolder

_HEADER = (
    "policy", "mean wait, s", "95 % of runs", "error", "mean abs. error", "within 10 %",
    "pairs in order", "behind the nearest", "p (Holm)",
)  # fmt: skip
NEGLIGIBLE = 5e-6
"""Share that is 0 %: a rounding of times."""


def build_sections(folder: SweepFolder) -> list[Section]:
    """Build the sections of a backtest from its files; none for another sweep."""
    record, policies = folder.read_json(BACKTEST_JSON), folder.table(BACKTEST)
    if not isinstance(record, dict) or policies is None:
        return []
    return [_answer(record, policies), *_plots(record, folder.table(BACKTEST_JOBS))]


def _answer(record: Mapping[str, Any], policies: pa.Table) -> Section:
    # the answer before further findings, as the first screen has room for a few sentences
    first, *further = record["audit"]["sentences"]
    by_policy = [entry["sentence"] for entry in record["policies"]]
    lines = [first, *by_policy, record["sentence"], *further]
    notes = [
        "error: of the mean wait; mean abs. error: of a job's wait, over the recorded mean; within "
        "10 %: share of the jobs that waited; behind the nearest: log-likelihood of a job's "
        "recorded start, nats",
        f"{record['runs']} runs a policy, {record['cluster']}",
        *record["cautions"],
    ]
    return Section(
        "backtest",
        "Backtest",
        tuple(lines),
        tables=(_table(policies),),
        notes=tuple(notes),
        is_answer=True,
        question="Which of {policies} starts {jobs} as the log of the real cluster does?",
        n_column_notes=1,
    )


def _table(policies: pa.Table) -> Table:
    rows = policies.to_pylist()
    recorded = _number(rows[0]["wait_mean_recorded_s"]) if rows else ""
    body = [
        (
            row["label"],
            _number(row["wait_mean_s"]),
            f"{_number(row['low'])} to {_number(row['high'])}",
            _percent(row["error"], "+"),
            _percent(row["mae"]),
            _percent(row["waited_within_10pct"]),
            _percent(row["pairs_in_order"]),
            "nearest" if row["is_nearest"] else _number(row["behind_nearest"]),
            "< 0.001" if 0 <= row["p_holm"] < 0.001 else _number(row["p_holm"]),
        )
        for row in rows
    ]
    return Table(f"Simulated, beside a recorded mean wait of {recorded} s", _HEADER, tuple(body))


def _plots(record: Mapping[str, Any], table: pa.Table | None) -> list[Section]:
    if table is None or not table.num_rows:
        return []
    jobs = BacktestJobs.from_table(table)
    plots = draw_plots(jobs, record["nearest"], record["audit"]["resolution_s"])
    return [Section("recorded", "Recorded and simulated waits", (), plots=plots)]


def _percent(share: float | None, sign: str = "") -> str:
    if share is None or not math.isfinite(share):
        return "–"
    if abs(share) < NEGLIGIBLE:
        return "0 %"
    return (
        f"{100 * share:{sign},.3g} %".replace("-", "−")
        if abs(share) < 10
        else (f"{100 * share:{sign},.0f} %")
    )


def _number(value: float | None) -> str:
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
