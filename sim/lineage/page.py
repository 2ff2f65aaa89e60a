"""The HTML page of a profile: findings, advice and plots, in one file that needs nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from sim.base import html, maths
from sim.base.arrays import F8
from sim.base.files import write_text
from sim.base.html.figures import Figure, line, plot, section_plots
from sim.describe.statistics import Statistic, shown
from sim.lineage.observations import WORDS, published
from sim.lineage.store import Store

_POINTS = 200  # of a curve over ranks


def figures(of: Store) -> list[Figure]:
    """Draw everything that has something to draw."""
    drawn = [*_prediction(of), *_value(of), *_components(of)]
    return [figure for figure in drawn if any(map(_is_drawn, figure.plot["data"]))]


def _is_drawn(part: dict[str, Any]) -> bool:
    """Whether a part of a plot has a point."""
    return any(None not in point for point in zip(part["x"], part["y"], strict=True))


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
    if not np.nansum(jobs["aggregate_value"].to_numpy()) > 0:
        return
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
    drawn = plot(lines, "rank", of.value_source, x_log=True, y_log=True, legend=True)
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
N_TOLD: Final = 3
"""And on a terminal."""
_OWN: Final = {
    "downloads": "downloads of a job's own output", "jobs": "1 a job",
    "compute": "a job's resource-time",
}  # fmt: skip
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
        both = (_measures(of, key), _advice(of, key, N_LISTED))
        tables = [table for table in both if table["body"]]
        if key == "overview" and of.report:
            body = [[rule, f"{n:,}"] for rule, n in of.report.items()]
            tables.append(
                {"caption": "What was odd", "heads": ["rule", "times"], "body": body, "texts": {0}}
            )
        note = words.get("note", "").format(
            own=_OWN.get(of.value_source, f"{of.value_source} of a job")
        )
        about = {"id": key, "title": words["title"], "note": note}
        sections.append({**about, "plots": section_plots(drawn, key), "tables": tables})
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
    """Give the lines that a terminal shows: measures, with the paper's beside them, and advice."""
    width = max(len(m.label) for m in of.measures) + 2
    for key, words in WORDS.items():
        rows = [m for m in of.measures if m.section == key]
        if rows:
            yield f"{words['title']:<{width}}{'here':>14}{'paper':>14}".rstrip()
            for m, why in zip(rows, _whys(rows), strict=True):
                line = f"  {m.label:<{width - 2}}{shown(m.value, m.kind):>14}{_paper(of, m):>14}"
                yield f"{line}  {why}".rstrip()
            yield from _told(_advice(of, key, N_TOLD))
            yield ""


def _told(advice: dict[str, Any]) -> Iterator[str]:
    """Give a list of advice as lines, its columns below each other."""
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


def _whys(rows: Sequence[Statistic]) -> list[str]:
    """Say why there is nothing to measure, once for neighbours with the same reason."""
    before = ["", *(m.why for m in rows)]
    return ["" if m.why == last else m.why for m, last in zip(rows, before, strict=False)]


def _paper(of: Store, measure: Statistic) -> str:
    """Word what the paper has of a measure; its values are downloads."""
    if measure.section == "value" and of.value_source != "downloads":
        return ""
    return shown(published().get((measure.section, measure.key)), measure.kind)


def _measures(of: Store, section: str) -> dict[str, Any]:
    rows = [m for m in of.measures if m.section == section]
    columns = {
        "": [m.label for m in rows],
        "here": [shown(m.value, m.kind) for m in rows],
        "paper": [_paper(of, m) for m in rows],
        "why": _whys(rows),
    }
    kept = {head: texts for head, texts in columns.items() if any(texts)}
    body = [list(row) for row in zip(*kept.values(), strict=True)]
    texts = {at for at, head in enumerate(kept) if head in ("", "why")}
    return {"caption": "", "heads": list(kept), "body": body, "texts": texts}


def _advice(of: Store, section: str, n: int) -> dict[str, Any]:
    """Return the first rows of a list of advice."""
    if "advice" not in WORDS[section]:
        return {"body": []}
    name, caption, columns = (WORDS[section]["advice"][k] for k in ("table", "caption", "columns"))
    pick = {"template_dependencies": _crossing, "components": _joined}.get(name)
    table = pick(of) if pick else of.tables[name]
    body = [
        [
            row[f"{c['column']}_name"]
            if c["kind"] is None
            else shown(float(row[c["column"]]), c["kind"])
            for c in columns
        ]
        for row in table.slice(0, n).to_pylist()
    ]
    if table.num_rows > len(body):
        caption += f" (the first {len(body)} of {table.num_rows:,}; all in {name}.parquet)"
    kinds = [c["kind"] for c in columns]
    return {
        "caption": caption, "heads": [c["head"] for c in columns], "body": body, "kinds": kinds,
        "texts": {at for at, kind in enumerate(kinds) if kind is None},
    }  # fmt: skip


def _joined(of: Store) -> pa.Table:
    """Return the components that are more than a job by itself."""
    table = of.tables["components"]
    return table.filter(pa.array(table["n_jobs"].to_numpy() > 1))


def _crossing(of: Store) -> pa.Table:
    table = of.tables["template_dependencies"]
    across = table.filter(table["cross_organisation"])
    return across.sort_by(
        [("n", "descending"), ("upstream", "ascending"), ("downstream", "ascending")]
    )
