"""The HTML page of a profile: findings, advice and plots, in one file that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from sim.base import html
from sim.describe.statistics import Kind, shown
from sim.lineage.figures import figures
from sim.lineage.observations import SECTIONS, published

if TYPE_CHECKING:
    from sim.lineage.store import Store

N_LISTED: Final = 20
"""Rows of each list of advice on the page; the Parquet files hold them all."""

NOTES: Final = {
    "priorities": "Raise each template below to the priority that mends it: the highest of "
    "anything recurring in its queue that depends on it, directly or not.",
    "coordination": "Templates below are submitted without a look at inputs they can't do without. "
    "The margin is the median time from the input's completion to the submission; least of "
    "all inputs.",
    "components": "Roots have dependents and no inputs, leaves the other way round.",
    "shifting": "Recurring jobs that run for less than the time, and whose output is used only "
    "after more than it.",
    "value": "Value is downloads of a job's own output and, by equal shares, of all that is made "
    "from it. The templates below are those whose runs are worth most to others.",
}

_HERE = Path(__file__).parent

_Column = tuple[str, str, Kind | None]  # of the table, of the page, and how it is shown

_ADVICE: Final[dict[str, tuple[str, str, tuple[_Column, ...]]]] = {
    "priorities": (
        "inversions",
        "Priority inversions",
        (
            ("template", "template", None),
            ("priority", "its priority", "number"),
            ("downstream", "read by", None),
            ("downstream_priority", "of priority", "number"),
            ("mended_priority", "mended by", "number"),
        ),
    ),
    "coordination": (
        "blind",
        "Submitted blind",
        (
            ("template", "template", None),
            ("n_jobs", "runs", "count"),
            ("margin_s", "margin", "seconds"),
            ("missed", "runs without input", "count"),
        ),
    ),
    "organisations": (
        "crossing",
        "Most frequent dependencies across organisations",
        (
            ("upstream", "template", None),
            ("downstream", "read by", None),
            ("n", "times", "count"),
            ("hard", "hard", "share"),
        ),
    ),
    "components": (
        "components",
        "Largest components",
        (
            ("n_jobs", "jobs", "count"),
            ("n_roots", "roots", "count"),
            ("n_leaves", "leaves", "count"),
            ("bottom_heaviness", "leaves over roots", "ratio"),
        ),
    ),
    "value": (
        "costliest",
        "Costliest failures",
        (
            ("template", "template", None),
            ("aggregate_value", "a run is worth", "number"),
            ("of_others", "to others", "number"),
            ("n_downstream", "jobs downstream", "number"),
        ),
    ),
}


def page(of: Store) -> str:
    """Return the page; the same profile gives the same text."""
    drawn = figures(of)
    sections = []
    for key, title in SECTIONS.items():
        tables = [table for table in (_measures(of, key), _advice(of, key)) if table["body"]]
        if key == "overview" and of.report:
            body = [[rule, f"{n:,}"] for rule, n in of.report.items()]
            tables.append({"caption": "What was odd", "heads": ["rule", "times"], "body": body})
        plots = [
            {"id": f"plot-{number}", "caption": figure.caption}
            for number, figure in enumerate(drawn)
            if figure.section == key
        ]
        note = NOTES.get(key, "")
        sections.append({"id": key, "title": title, "note": note, "plots": plots, "tables": tables})
    context = {
        "title": "Dependencies between jobs",
        "lead": lead(of),
        "sections": sections,
        **html.embedded([figure.plot for figure in drawn]),
    }
    return html.environment(_HERE / "pages").get_template("lineage.html.j2").render(context)


def lead(of: Store) -> str:
    """Say in a line how much there is."""
    words = ("jobs", "templates", "dependencies", "downloads")
    return ", ".join(f"{of.value('overview', word):,.0f} {word}" for word in words)


def text(of: Store) -> Iterator[str]:
    """Give the lines that a terminal shows: each measure, with the paper's beside it."""
    width = max(len(m.label) for m in of.measures) + 2
    for key, title in SECTIONS.items():
        rows = [m for m in of.measures if m.section == key]
        if rows:
            yield f"{title:<{width}}{'here':>14}{'paper':>14}".rstrip()
            for m in rows:
                paper = shown(published().get((key, m.key)), m.kind)
                yield f"  {m.label:<{width - 2}}{shown(m.value, m.kind):>14}{paper:>14}".rstrip()
            yield ""


def _measures(of: Store, section: str) -> dict[str, Any]:
    rows = [m for m in of.measures if m.section == section]
    has_paper = any((section, m.key) in published() for m in rows)
    body = [
        [m.label, shown(m.value, m.kind)]
        + ([shown(published().get((section, m.key)), m.kind)] if has_paper else [])
        for m in rows
    ]
    return {"caption": "", "heads": ["", "here", *(["paper"] if has_paper else [])], "body": body}


def _advice(of: Store, section: str) -> dict[str, Any]:
    if section not in _ADVICE:
        return {"body": []}
    name, caption, columns = _ADVICE[section]
    table = _crossing(of) if name == "crossing" else of.tables[name]
    names = of.tables["templates"]["template"]
    body = [
        [
            names[row[column]].as_py() if kind is None else shown(float(row[column]), kind)
            for column, _, kind in columns
        ]
        for row in table.slice(0, N_LISTED).to_pylist()
    ]
    more = table.num_rows - len(body)
    if more > 0:
        caption += f" (the first {len(body)} of {table.num_rows:,}; all in {name}.parquet)"
    return {"caption": caption, "heads": [head for _, head, _ in columns], "body": body}


def _crossing(of: Store) -> pa.Table:
    table = of.tables["template_dependencies"]
    across = table.filter(table["cross_organisation"])
    return across.sort_by(
        [("n", "descending"), ("upstream", "ascending"), ("downstream", "ascending")]
    )
