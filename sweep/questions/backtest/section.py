"""Sections of a backtest, for terminal and report."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from sweep.questions.backtest.plots import BacktestJobs, draw_plots
from sweep.questions.backtest.runs import (
    BACKTEST,
    BACKTEST_GROUPS,
    BACKTEST_JOBS,
    BACKTEST_JSON,
    STEPS_TABLE,
)
from sweep.report.section import Plot, Section, Table
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
    drawn = _plots(record, folder.table(BACKTEST_JOBS))
    return [
        _answer(record, policies, drawn[:1]),
        *_steps(record, folder.table(STEPS_TABLE)),
        *_groups(record, folder.table(BACKTEST_GROUPS)),
        *_further_plots(drawn[1:]),
    ]


def _answer(record: Mapping[str, Any], policies: pa.Table, plots: tuple[Plot, ...]) -> Section:
    # the answer before further findings, as the first screen has room for a few sentences
    first, *further = record["audit"]["sentences"]
    by_policy = [entry["sentence"] for entry in record["policies"]]
    lines = [*_headline(record, policies), first, *by_policy, record["sentence"], *further]
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
        plots=plots,
        notes=tuple(notes),
        is_answer=True,
        question="Which of {policies} starts {jobs} as the log of the real cluster does?",
        n_column_notes=1,
    )


def _headline(record: Mapping[str, Any], policies: pa.Table) -> list[str]:
    """Say how near the nearest policy is; nothing if nobody waited."""
    (nearest, *_) = [row for row in policies.to_pylist() if row["label"] == record["nearest"]]
    error = nearest["error"]
    if error is None or not math.isfinite(error):
        return []
    share = _percent(abs(error))
    off = f"{share} {'above' if error > 0 else 'below'} the recorded one"
    if share == "0 %":
        off = "the recorded one"
    return [f"Nearest to the log is {nearest['label']}: its mean wait is {off}."]


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


def _steps(record: Mapping[str, Any], table: pa.Table | None) -> list[Section]:
    """Build the section of a log tried one step at a time."""
    lines = record.get("steps")
    if not lines:
        return []
    tables = [] if table is None else [*_step_tables(table.to_pylist())]
    return [
        Section(
            "steps",
            "One step at a time",
            tuple(lines),
            tables=tuple(tables),
            notes=_STEP_NOTES if tables else (),
            is_answer=True,
        )
    ]


_STEP_NOTES = (
    "The model is put into each state that the log shows, and starts jobs once: found, started in "
    "both; false, in the model alone; quiet moments: something happens, somebody waits and nobody "
    "starts within a cycle of the scheduler",
)
_STEP_HEADER = ("starts", "found", "false starts", "quiet moments", "kept")


def _step_tables(rows: list[dict[str, Any]]) -> Iterator[Table]:
    for policy in dict.fromkeys(row["policy"] for row in rows):
        own = [row for row in rows if row["policy"] == policy]
        parts = [row for row in own if not row["without"] and row["partition"]]
        if parts:
            body = tuple((row["partition"], *_counts(row)) for row in parts)
            yield Table(f"{policy}, by partition", ("partition", *_STEP_HEADER), body)
        without = [row for row in own if not row["partition"]]
        body = tuple((row["without"] or "nothing", *_counts(row)) for row in without)
        yield Table(f"{policy}, without each mechanism", ("without", *_STEP_HEADER), body)


def _counts(row: Mapping[str, Any]) -> tuple[str, ...]:
    found_share = _percent(row["found"] / row["starts"]) if row["starts"] else "–"
    kept_share = _percent(row["quiet_kept"] / row["quiet"]) if row["quiet"] else "–"
    return (
        f"{row['starts']:,}",
        found_share,
        f"{row['false_starts']:,}",
        f"{row['quiet']:,}",
        kept_share,
    )


MAX_GROUPS = 12
"""Most groups of one kind in the table: those of most jobs."""


def _groups(record: Mapping[str, Any], table: pa.Table | None) -> list[Section]:
    """Build the section of groups of jobs, if there are any."""
    if table is None or not table.num_rows:
        return []
    rows = [row for row in table.to_pylist() if row["policy"] == record["nearest"]]
    tables = []
    for by in dict.fromkeys(row["by"] for row in rows):
        own = sorted((row for row in rows if row["by"] == by), key=lambda row: -row["jobs"])
        if len(own) < 2:
            continue
        body = tuple(
            (
                row["group"],
                f"{row['jobs']:,}",
                _number(row["wait_mean_recorded_s"]),
                _number(row["wait_mean_s"]),
                f"{_number(row['low'])} to {_number(row['high'])}",
                _percent(row["error"], "+"),
            )
            for row in own[:MAX_GROUPS]
        )
        more = f", the {MAX_GROUPS} largest of {len(own):,}" if len(own) > MAX_GROUPS else ""
        title = f"{record['nearest']}: mean waits by {_BY.get(by, by)}{more}"
        tables.append(Table(title, (by, *_GROUP_HEADER), body))
    lines = tuple(record.get("groups") or ())
    return [Section("groups", "Waits by group", lines, tables=tuple(tables))]


_BY = {"width": "width (CPUs of a job)", "qos": "QOS"}
_GROUP_HEADER = ("jobs", "recorded, s", "simulated, s", "95 % of runs", "error")


def _plots(record: Mapping[str, Any], table: pa.Table | None) -> tuple[Plot, ...]:
    if table is None or not table.num_rows:
        return ()
    jobs = BacktestJobs.from_table(table)
    return draw_plots(jobs, record["nearest"], record["audit"]["resolution_s"])


def _further_plots(plots: tuple[Plot, ...]) -> list[Section]:
    title = "Recorded and simulated waits"
    return [Section("recorded", title, (), plots=plots)] if plots else []


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
