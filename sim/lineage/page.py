"""The HTML page of a profile: findings, advice and plots, in one file that needs nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from sim.base import html, maths
from sim.base.arrays import F8
from sim.base.files import write_text
from sim.base.html.figures import Figure, line, of_section, plot
from sim.describe.statistics import shown
from sim.lineage.observations import WORDS, published
from sim.lineage.store import Store

_POINTS = 200  # of a curve over ranks


def figures(of: Store) -> list[Figure]:
    """Draw everything that has something to draw."""
    drawn = [*_prediction(of), *_value(of), *_components(of)]
    return [figure for figure in drawn if any(part["x"] for part in figure.plot["data"])]


def _prediction(of: Store) -> Iterable[Figure]:
    table = of.tables["predictability"]
    curve = line(0, "predictor", table["recall"].to_pylist(), table["precision"].to_pylist())
    curve["text"] = [f"tr = {tr:g} %" for tr in table["tr"].to_pylist()]
    caption = "Will a dependent come? Precision over recall, a point a threshold"
    yield Figure("prediction", caption, plot([curve], "recall", "precision"))
    errors = of.tables["forecast_errors"]
    curve = line(0, "errors", errors["percentage_error"].to_pylist(), errors["q"].to_pylist())
    drawn = plot([curve | {"mode": "lines"}], "(forecast − actual) / actual", "share at most")
    drawn["layout"]["xaxis"]["range"] = [-1, 2]
    yield Figure("prediction", "When will the first come? Percentage errors", drawn)


def _value(of: Store) -> Iterable[Figure]:
    table, jobs = of.tables["convergence"], of.tables["jobs"]
    lines = [
        line(at, words, table["round"].to_pylist(), table[column].to_pylist())
        for at, (column, words) in enumerate(
            (("found", "of the mean"), ("found_per_job", "mean of jobs' shares"))
        )
    ]
    caption = "Share of aggregate value found by each round, of jobs drawn at random"
    yield Figure("value", caption, plot(lines, "round", "share", legend=True))
    lines = [
        line(at, kind, *_by_rank(jobs[f"{kind}_value"].to_numpy())) | {"mode": "lines"}
        for at, kind in enumerate(("local", "aggregate"))
    ]
    drawn = plot(lines, "rank", "downloads", x_log=True, y_log=True, legend=True)
    yield Figure("value", "Value by rank of job", drawn)


def _components(of: Store) -> Iterable[Figure]:
    size = of.tables["components"]["n_jobs"].to_numpy()
    curve = line(0, "components", *_by_rank(size.astype(float))) | {"mode": "lines+markers"}
    drawn = plot([curve], "rank", "jobs", x_log=True, y_log=True)
    yield Figure("components", "Jobs of each component, by rank", drawn)


def _by_rank(values: F8) -> tuple[list[int], list[float]]:
    ranked = np.sort(values[values > 0])[::-1]
    if not len(ranked):
        return [], []
    rank = np.unique(maths.geomspace(1, len(ranked), _POINTS).astype(np.int64))
    return rank.tolist(), ranked[rank - 1].tolist()


N_LISTED: Final = 20
"""Rows of each list of advice on the page; the Parquet files hold them all."""
_HERE = Path(__file__).parent


def write_page(of: Store, folder: str | os.PathLike[str]) -> Path:
    """Write the page into a profile's folder; return its path."""
    path = Path(folder) / "lineage.html"
    write_text(path, page(of))
    return path


def page(of: Store) -> str:
    """Return the page; the same profile gives the same text."""
    drawn = figures(of)
    sections = []
    for key, words in WORDS.items():
        tables = [table for table in (_measures(of, key), _advice(of, key)) if table["body"]]
        if key == "overview" and of.report:
            body = [[rule, f"{n:,}"] for rule, n in of.report.items()]
            tables.append({"caption": "What was odd", "heads": ["rule", "times"], "body": body})
        about = {"id": key, "title": words["title"], "note": words.get("note", "")}
        sections.append({**about, "plots": of_section(drawn, key), "tables": tables})
    context = {
        "title": "Dependencies between jobs",
        "lead": lead(of),
        "sections": sections,
        **html.embedded([figure.plot for figure in drawn]),
    }
    return html.environment(_HERE).get_template("lineage.html.j2").render(context)


def lead(of: Store) -> str:
    """Say in a line how much there is."""
    words = ("jobs", "templates", "dependencies", "downloads")
    return ", ".join(f"{of.value('overview', word):,.0f} {word}" for word in words)


def text(of: Store) -> Iterator[str]:
    """Give the lines that a terminal shows: each measure, with the paper's beside it."""
    width = max(len(m.label) for m in of.measures) + 2
    for key, words in WORDS.items():
        rows = [m for m in of.measures if m.section == key]
        if rows:
            yield f"{words['title']:<{width}}{'here':>14}{'paper':>14}".rstrip()
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
    if "advice" not in WORDS[section]:
        return {"body": []}
    name, caption, columns = (WORDS[section]["advice"][k] for k in ("table", "caption", "columns"))
    table = _crossing(of) if name == "crossing" else of.tables[name]
    names = of.tables["templates"]["template"]
    body = [
        [
            names[row[c["column"]]].as_py()
            if c["kind"] is None
            else shown(float(row[c["column"]]), c["kind"])
            for c in columns
        ]
        for row in table.slice(0, N_LISTED).to_pylist()
    ]
    more = table.num_rows - len(body)
    if more > 0:
        caption += f" (the first {len(body)} of {table.num_rows:,}; all in {name}.parquet)"
    return {"caption": caption, "heads": [c["head"] for c in columns], "body": body}


def _crossing(of: Store) -> pa.Table:
    table = of.tables["template_dependencies"]
    across = table.filter(table["cross_organisation"])
    return across.sort_by(
        [("n", "descending"), ("upstream", "ascending"), ("downstream", "ascending")]
    )
