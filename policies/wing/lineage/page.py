"""HTML page (self-contained) and terminal text of a profile: measures, advice and plots."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from policies.wing.lineage.observations import SECTIONS, published
from policies.wing.lineage.store import Store
from sim.base import html, maths
from sim.base.arrays import F8
from sim.base.files import write_text
from sim.base.html.figures import Figure, line, plot, section_plots
from sim.describe.statistics import Statistic, format_value

_POINTS = 200  # maximum points of a curve over ranks


def figures(store: Store) -> list[Figure]:
    """Build the figures that have at least one point."""
    drawn = [*_prediction(store), *_value(store), *_components(store)]
    return [figure for figure in drawn if any(map(_is_drawn, figure.plot["data"]))]


def _is_drawn(part: dict[str, Any]) -> bool:
    """Test for a point with both coordinates in a trace of a plot."""
    return any(None not in point for point in zip(part["x"], part["y"], strict=True))


def _prediction(store: Store) -> Iterable[Figure]:
    table = store.tables["predictability"]
    curve = line(0, "predictor", table["recall"].to_pylist(), table["precision"].to_pylist())
    curve["text"] = [f"tr = {tr:g} %" for tr in table["tr"].to_pylist()]
    caption = "Prediction of dependents: precision over recall, one point per threshold tr"
    yield Figure("prediction", caption, plot([curve], "recall", "precision"))
    errors = store.tables["forecast_errors"]
    curve = line(0, "errors", errors["percentage_error"].to_pylist(), errors["q"].to_pylist())
    drawn = plot(
        [curve | {"mode": "lines"}], "(forecast − actual) / actual", "share of predictions"
    )
    drawn["layout"]["xaxis"]["range"] = [-1, 2]
    yield Figure(
        "prediction", "Prediction of the time to the first dependent: distribution of errors", drawn
    )


def _value(store: Store) -> Iterable[Figure]:
    table, jobs = store.tables["convergence"], store.tables["jobs"]
    if not np.nansum(jobs["aggregate_value"].to_numpy()) > 0:
        return
    lines = [
        line(color, label, table["round"].to_pylist(), table[column].to_pylist())
        for color, (column, label) in enumerate(
            (("found", "of the total"), ("found_per_job", "mean over jobs"))
        )
    ]
    caption = "Share of aggregate value found by each round, over jobs drawn at random"
    yield Figure("value", caption, plot(lines, "round", "share", legend=True))
    lines = [
        line(color, kind, *_by_rank(jobs[f"{kind}_value"].to_numpy())) | {"mode": "lines"}
        for color, kind in enumerate(("local", "aggregate"))
    ]
    drawn = plot(lines, "rank", store.value_source, x_log=True, y_log=True, legend=True)
    yield Figure("value", "Local and aggregate value of jobs, by rank", drawn)


def _components(store: Store) -> Iterable[Figure]:
    size = store.tables["components"]["n_jobs"].to_numpy()
    curve = line(0, "components", *_by_rank(size.astype(float))) | {"mode": "lines+markers"}
    drawn = plot([curve], "rank", "jobs", x_log=True, y_log=True)
    yield Figure("components", "Number of jobs of each component, by rank", drawn)


def _by_rank(values: F8) -> tuple[list[int], list[float]]:
    ranked = np.sort(values[values > 0])[::-1]
    if not len(ranked):
        return [], []
    rank = np.unique(maths.geomspace(1, len(ranked), _POINTS).astype(np.int64))
    return rank.tolist(), ranked[rank - 1].tolist()


N_LISTED: Final = 20
"""Rows of each list of advice on the page; the Parquet files have all rows."""
N_PRINTED: Final = 3
"""Rows of each list of advice on a terminal."""
_LOCAL_VALUES: Final = {
    "downloads": "the number of downloads of its output", "jobs": "1",
    "compute": "its resource-time",
}  # fmt: skip
_HERE = Path(__file__).parent


def write_page(store: Store, folder: str | os.PathLike[str]) -> Path:
    """Write the page into a profile's folder; return its path."""
    path = Path(folder) / "lineage.html"
    write_text(path, page(store))
    return path


def page(store: Store) -> str:
    """Render the page; the same profile gives the same text."""
    drawn = figures(store)
    sections = []
    for key, section in SECTIONS.items():
        candidates = (_measures(store, key), _advice(store, key, N_LISTED))
        tables = [table for table in candidates if table["body"]]
        if key == "overview" and store.report:
            body = [[rule, f"{n:,}"] for rule, n in store.report.items()]
            heads = ["rule", "count"]
            tables.append(
                {"caption": "Anomalies in the logs", "heads": heads, "body": body, "texts": {0}}
            )
        source = store.value_source
        local_value = _LOCAL_VALUES.get(source, f"its {source}")
        sections.append(
            {
                "id": key,
                "title": section["title"],
                "note": section.get("note", "").format(local_value=local_value),
                "plots": section_plots(drawn, key),
                "tables": tables,
            }
        )
    context = {
        "title": "Dependencies between jobs",
        "lead": lead(store),
        "notes": store.notes,
        "sections": sections,
        **html.embedded([figure.plot for figure in drawn]),
    }
    return html.environment(_HERE).get_template("lineage.html.j2").render(context)


def lead(store: Store) -> str:
    """Return a line with the numbers of jobs, templates, dependencies and downloads."""
    words = ("jobs", "templates", "dependencies", "downloads")
    return ", ".join(f"{store.value('overview', word):,.0f} {word}" for word in words)


def text_lines(store: Store) -> Iterator[str]:
    """Yield the lines for a terminal: measures beside the paper's, and advice."""
    width = max(len(m.label) for m in store.measures) + 2
    for key, section in SECTIONS.items():
        rows = [m for m in store.measures if m.section == key]
        if rows:
            yield f"{section['title']:<{width}}{'this log':>14}{'paper':>14}".rstrip()
            for m, why in zip(rows, _reasons(rows), strict=True):
                values = f"{format_value(m.value, m.kind):>14}{_paper_value(store, m):>14}"
                yield f"  {m.label:<{width - 2}}{values}  {why}".rstrip()
            yield from _advice_lines(_advice(store, key, N_PRINTED))
            yield ""


def _advice_lines(advice: dict[str, Any]) -> Iterator[str]:
    """Yield a list of advice as lines with aligned columns."""
    if not advice["body"]:
        return
    rows = [advice["heads"], *advice["body"]]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    named = [kind is None for kind in advice["kinds"]]
    yield f"  {advice['caption']}"
    for row in rows:
        cells = zip(row, widths, named, strict=True)
        line = "  ".join(f"{t:<{w}}" if left else f"{t:>{w}}" for t, w, left in cells)
        yield f"    {line}".rstrip()


def _reasons(rows: Sequence[Statistic]) -> list[str]:
    """Return the reason of each missing measure, once for neighbours with the same reason."""
    before = ["", *(m.why for m in rows)]
    return ["" if m.why == last else m.why for m, last in zip(rows, before, strict=False)]


def _paper_value(store: Store, measure: Statistic) -> str:
    """Format the paper's number for a measure; the paper's values are downloads."""
    if measure.section == "value" and store.value_source != "downloads":
        return ""
    return format_value(published().get((measure.section, measure.key)), measure.kind)


def _measures(store: Store, section: str) -> dict[str, Any]:
    rows = [m for m in store.measures if m.section == section]
    columns = {
        "": [m.label for m in rows],
        "this log": [format_value(m.value, m.kind) for m in rows],
        "paper": [_paper_value(store, m) for m in rows],
        "why": _reasons(rows),
    }
    non_empty = {head: texts for head, texts in columns.items() if any(texts)}
    body = [list(row) for row in zip(*non_empty.values(), strict=True)]
    texts = {i for i, head in enumerate(non_empty) if head in ("", "why")}
    return {"caption": "", "heads": list(non_empty), "body": body, "texts": texts}


def _advice(store: Store, section: str, n: int) -> dict[str, Any]:
    """Return the first `n` rows of a section's list of advice as a table model."""
    if "advice" not in SECTIONS[section]:
        return {"body": []}
    name, caption, columns = (
        SECTIONS[section]["advice"][k] for k in ("table", "caption", "columns")
    )
    pick = {"template_dependencies": _cross_organisation, "components": _multi_job_components}.get(
        name
    )
    table = pick(store) if pick else store.tables[name]
    body = [
        [
            row[f"{c['column']}_name"]
            if c["kind"] is None
            else format_value(float(row[c["column"]]), c["kind"])
            for c in columns
        ]
        for row in table.slice(0, n).to_pylist()
    ]
    if table.num_rows > len(body):
        caption += f" (the first {len(body)} of {table.num_rows:,}; all in {name}.parquet)"
    kinds = [c["kind"] for c in columns]
    return {
        "caption": caption, "heads": [c["head"] for c in columns], "body": body, "kinds": kinds,
        "texts": {i for i, kind in enumerate(kinds) if kind is None},
    }  # fmt: skip


def _multi_job_components(store: Store) -> pa.Table:
    """Return the components of more than one job."""
    table = store.tables["components"]
    return table.filter(pa.array(table["n_jobs"].to_numpy() > 1))


def _cross_organisation(store: Store) -> pa.Table:
    table = store.tables["template_dependencies"]
    across = table.filter(table["cross_organisation"])
    return across.sort_by(
        [("n", "descending"), ("upstream", "ascending"), ("downstream", "ascending")]
    )
