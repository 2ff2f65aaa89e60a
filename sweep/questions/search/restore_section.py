"""Report section of what-ifs: today, each change, and the machines that restore today's waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from sweep.grid.changes import PREFIX
from sweep.questions.search import change_plots
from sweep.questions.search.restore import RANGE, SHOWN
from sweep.questions.search.section_builder import Row, SectionPart, build_section
from sweep.questions.search.waits_section import PLACE, whole_sentences
from sweep.report.section import Section
from sweep.report.wording import names
from sweep.stats.arrange import month_text
from sweep.stats.cell_columns import text
from sweep.stats.metric_format import format_value, style, value_text

TODAY = "today"
ONE_RUN = (
    "one run each: a change may move the mean of a log by the order of a few jobs; seeds=bootstrap "
    "(of a log of 8 hours or more) or seed=range(0,10) says how far"
)
"""Note on changes without intervals."""


def build(table: pa.Table, config: Mapping[str, Any], groups: Sequence[Row] = ()) -> Section:
    """Build the section of ``what_if.parquet``; `groups` are rows of ``what_if_groups.parquet``."""
    rows = table.to_pylist()
    metric = rows[0]["metric"]
    notes = [] if metric is None else [_note(metric)]
    if max(row["seeds"] for row in rows) == 1:
        notes.append(ONE_RUN)

    def build_part(members: list[Row], _: str) -> SectionPart:
        unit = members[0]["unit"]
        named = [name for name in config.get("metrics") or () if name in table.column_names]
        shown = list(dict.fromkeys([*SHOWN, *([metric] if metric else []), *named]))
        has_costs = any(row["cost_month"] is not None for row in members)
        header = ["what if", unit, *(("a month",) * has_costs), *shown]
        header += ["restored by", *(("then a month",) * has_costs)] if metric else []
        return SectionPart(
            [
                *whole_sentences(members, _groups_at(groups, members[0])),
                *(_sentence(row, members[0]) for row in members if row["restored_by"] is not None),
                *(f"{row['what_if']}: {row['adds']}." for row in members if row["adds"]),
            ],
            header,
            [_entries(row, shown, has_costs=has_costs) for row in members],
        )

    question = f"What would {_changes(config)} change for {{jobs}} under {{policies}}?"
    options: dict[str, Any] = {"notes": tuple(notes), "is_answer": True, "question": question}
    template = Section("what-if", "What if", (), **options)
    section = build_section(template, rows, [*PLACE], build_part, n_always=1)
    return replace(section, plots=change_plots.draw(rows, groups))


def _groups_at(groups: Sequence[Row], place: Row) -> list[Row]:
    """Return the groups of a row's policy, trace, settings and capacity."""
    return [row for row in groups if all(row[key] == place[key] for key in PLACE)]


def _changes(config: Mapping[str, Any]) -> str:
    """Name the changes that are asked for."""
    changes = [
        f"{key.removeprefix(PREFIX)}={value}"
        for key, values in (config.get("axes") or {}).items()
        if key.startswith(PREFIX) and isinstance(values, list)
        for value in values
        if value is not None
    ]
    return names(changes) or "it"


def _note(metric: str) -> str:
    return (
        f"restored by: the smallest number of machines, of those tried from 1/{RANGE} to {RANGE} "
        f"times as many as in the row of today, at which {style(metric).label} is at most "
        "today's; machines that a change adds are among them."
    )


def _sentence(row: Row, today: Row) -> str:
    metric = row["metric"]
    more = row["restored_by"] - today["machines"]
    count = f"{text(round(row['restored_by'], 4))} {row['unit']}"
    change = f"{abs(more):g} {'more' if more > 0 else 'fewer'}" if more else "as many as today"
    cost = ""
    if row["restored_cost_month"] is not None:
        cost = f", {month_text(row['restored_cost_month'])}"
    at_most = "at most " if row["status"] == "always" else ""
    low, high = row["restored_low"], row["restored_high"]
    ends = ""
    if row["seeds"] > 1 and (low is not None or high is not None) and high != row["restored_by"]:
        surely = [f"more than {low:g}" if low else "", f"at most {high:g}" if high else ""]
        ends = f"; surely {' and '.join(filter(None, surely))}"
    return (
        f"{row['what_if']}: {style(metric).label} {_value(metric, row)} (today "
        f"{_value(metric, today)}); {at_most}{count} restore it ({change}{cost}{ends})"
        f"{_scope(row, today)}."
    )


def _scope(row: Row, today: Row) -> str:
    """Say over which seeds and jobs the numbers are, if not over all."""
    parts = []
    if row["seeds"] < row["seeds_planned"]:
        parts.append(f"on the {row['seeds']} of {row['seeds_planned']} seeds that all have")
    if row["jobs_failed"] or today["jobs_failed"]:
        shares = [100 * (r["jobs_failed"] or 0.0) for r in (row, today)]
        parts.append(f"of the jobs done: {shares[0]:.3g} % fail, today {shares[1]:.3g} %")
    return "".join(f"; {part}" for part in parts)


def _value(metric: str, row: Row) -> str:
    if row["value"] is None:
        return "unknown"
    return value_text(metric, row["value"], row["half"] or 0.0)


def _entries(row: Row, shown: Sequence[str], *, has_costs: bool) -> tuple[str, ...]:
    def count(name: str) -> str:
        return "" if row[name] is None else text(round(row[name], 4))

    def cost(name: str) -> tuple[str, ...]:
        value = month_text(row[name] or 0.0).removesuffix(" a month")
        return (value,) * has_costs

    numbers = [row["value"] if name == row["metric"] else row[name] for name in shown]
    values = [
        "" if number is None else format_value(name, number)[0]
        for name, number in zip(shown, numbers, strict=True)
    ]
    restored = count("restored_by")
    if row["status"] == "never":
        restored = f"more than {RANGE} times as many"
    if row["status"] == "always":
        restored = f"≤ {restored}"
    tail = (restored, *cost("restored_cost_month")) if row["metric"] else ()
    return (row["what_if"] or TODAY, count("machines"), *cost("cost_month"), *values, *tail)
