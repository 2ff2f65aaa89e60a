"""Sentences and tables of mean waits under each change: of all jobs, and of groups of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sweep.questions.search.group_waits import ALL
from sweep.questions.search.section_builder import Row, SectionPart, build_section
from sweep.report.section import Section
from sweep.stats.metric_format import value_text

METRIC = "wait_mean_s"
PLACE = ("policy", "trace", "settings", "capacity")
KEYS = {"partition": "partition", "queue": "queue", "qos": "QOS", "account": "account",
        "user": "user", "width": "width"}  # fmt: skip
"""Keys of groups in the order of the table, and their names."""
TOLD = ("partition", "queue", "account")
"""Keys whose groups have a sentence: where jobs run, and who submits them."""
MAX_TOLD = 6
"""Largest number of groups in a sentence: those whose jobs' waits change the most in all."""
MAX_ROWS = 12
"""Largest number of groups of a key in the table: those with the most jobs."""


def whole_sentences(rows: Sequence[Row], groups: Sequence[Row]) -> list[str]:
    """Write the mean wait of all jobs under each change, ``half the time limit of long: ...``.

    `rows` are those of ``what_if.parquet``, of one policy, trace and capacity, and `groups` the
    same of ``what_if_groups.parquet``.
    """
    whole = {row["what_if"]: row for row in groups if row["by"] == ALL}
    lines = []
    for row in rows:
        if row["what_if"] in whole:
            lines.append(f"{_change(row)}: mean wait {_beside(whole[row['what_if']])}.")
            lines[-1] += f" {row['note']}" if row["note"] else ""
    return lines


def _change(row: Row) -> str:
    """Write a change in words, with its label unless that says the same."""
    words, label = row["change"], row["what_if"]
    return words if words == label else f"{words} ({label})"


def group_sentences(rows: Sequence[Row], groups: Sequence[Row]) -> list[str]:
    """Write the mean waits by partition and by account under each change, a sentence a key."""
    lines = []
    for row in rows:
        for key in TOLD:
            members = [g for g in groups if g["what_if"] == row["what_if"] and g["by"] == key]
            if len(members) < 2:
                continue
            moved = [g for g in members if g["change"] != 0]
            largest = sorted(moved, key=_total_change, reverse=True)[:MAX_TOLD]
            parts = [f"{g['group']} {_beside(g)}" for g in largest]
            more = len(moved) - len(largest)
            parts += [f"{more:,} more are in the table"] * (more > 0)
            same = len(members) - len(moved)
            parts += [f"{same if moved else 'all'} as today"] * (same > 0)
            lines.append(f"{_change(row)}, by {KEYS[key]}: {'; '.join(parts)}.")
    return lines


def build(rows: Sequence[Row], groups: Sequence[Row]) -> Section:
    """Build the section of the groups, from the rows of both tables."""

    def build_part(members: list[Row], _: str) -> SectionPart:
        place = tuple(members[0][key] for key in PLACE)
        own = [row for row in rows if tuple(row[key] for key in PLACE) == place]
        changes = [row["what_if"] for row in own if row["what_if"]]
        header = ["jobs of", "jobs", "today", *changes]
        return SectionPart(group_sentences(own, members), header, _table(members, changes))

    note = (
        "mean wait of the jobs that start, with the change against today and its 95 % interval "
        "over seeds; width is the CPUs that a job holds at once; partitions are those in which the "
        "log has a job"
    )
    template = Section("what-if-groups", "Mean waits by group", (), notes=(note,))
    return build_section(template, groups, [*PLACE], build_part, n_always=1)


def answer(rows: Sequence[Row], groups: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the entries of ``answer.json``: the change, its label and its sentences."""
    entries = []
    for row in rows:
        own = [g for g in groups if all(g[key] == row[key] for key in (*PLACE, "what_if"))]
        lines = [*whole_sentences([row], own), *group_sentences([row], own)]
        if lines:
            names = {key: row[key] for key in ("policy", "trace", "what_if", "change")}
            entries.append({**names, "sentences": lines})
    return entries


def _table(groups: Sequence[Row], changes: Sequence[str]) -> Iterable[tuple[str, ...]]:
    by_group: dict[tuple[str, str], dict[str, Row]] = {}
    for row in groups:
        by_group.setdefault((row["by"], row["group"]), {})[row["what_if"]] = row
    for key, name in KEYS.items():
        named = {group: row for (by, group), row in by_group.items() if by == key}
        largest = sorted(named, key=lambda group: -_first(named[group])["jobs_today"])[:MAX_ROWS]
        for group in [group for group in named if group in largest]:
            first = _first(named[group])
            entries = [_entry(named[group].get(change)) for change in changes]
            yield (f"{name} {group}", f"{first['jobs_today']:,}", _today(first), *entries)


def _first(by_change: Mapping[str, Row]) -> Row:
    return next(iter(by_change.values()))


def _entry(row: Row | None) -> str:
    if row is None:
        return "–"
    percent = f" ({_change_percent(row)})" if row["change"] else ""
    return f"{value_text(METRIC, row['wait_mean_s'])}{percent}"


def _total_change(row: Row) -> float:
    """Return by how much the waits of all jobs of a group change, s."""
    return float(row["jobs"] * abs(row["wait_mean_s"] - row["wait_mean_today_s"]))


def _beside(row: Row) -> str:
    """Write ``3,205 s [3,100, 3,310], today 17,385 s (−82 % [−83, −80])``."""
    if row["change"] == 0:
        return f"{_today(row)}, as today"
    text = value_text(METRIC, row["wait_mean_s"])
    if row["seeds"] > 1 and row["low"] is not None and row["low"] < row["high"]:
        text += f" [{_number(row['low'])}, {_number(row['high'])}]"
    text += f", today {_today(row)}"
    if row["change"] is None:
        return text
    return f"{text} ({_change_percent(row)})"


def _change_percent(row: Row) -> str:
    """Write the change and its interval, ``−82 % [−83, −80]``."""
    change = _percent(row["change"])
    if row["change_low"] is not None and row["change_low"] < row["change_high"]:
        ends = (_percent(row[name]).removesuffix(" %") for name in ("change_low", "change_high"))
        change += f" [{', '.join(ends)}]"
    return change


def _today(row: Row) -> str:
    return value_text(METRIC, row["wait_mean_today_s"])


def _number(value: float) -> str:
    return value_text(METRIC, value).removesuffix(" s")


def _percent(share: float) -> str:
    digits = 0 if abs(share) >= 0.1 else 1
    percent = round(100 * share, digits) + 0.0  # no −0.0
    return f"{percent:+.{digits}f} %".replace("-", "−")
