"""The page of all sweeps, newest first: what each found, its report, and where MLflow has it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from sim.base import html
from sweep.store.folder import CELLS, HTML, TABLE
from sweep.store.sweep_summaries import summarize

_TEMPLATES = Path(__file__).parent / "templates"
MAX_SENTENCES = 4


def to_html(results: Path, mlflow: str = "", runs: Mapping[str, str] | None = None) -> str:
    """Write the page.

    Parameters
    ----------
    results : Path
        Folder of results, which the page's links start from.
    mlflow : str
        Address of the MLflow UI; empty if there is none.
    runs : mapping of str to str, optional
        Address of each sweep's run there, by its id.
    """
    sweeps = []
    for each in summarize(results):
        place = f"sweeps/{quote(each.sweep)}"
        files = ((HTML, "report"), (TABLE, "table"), (CELLS, "cells"))
        links = [(f"{place}/{name}", words) for name, words in files if each.is_over]
        run = (runs or {}).get(each.sweep)
        sweeps.append({"it": each, "links": [*links, *([(run, "MLflow")] if run else [])]})
    comparisons = sorted(path.name for path in (results / "comparisons").glob("*.html"))
    context = {
        "results": str(results),
        "sweeps": sweeps,
        "comparisons": [(f"comparisons/{quote(n)}", n.removesuffix(".html")) for n in comparisons],
        "mlflow": mlflow,
        "most": MAX_SENTENCES,
        "css": html.css(),
    }
    text: str = html.environment(_TEMPLATES).get_template("index.html.j2").render(context)
    return text
