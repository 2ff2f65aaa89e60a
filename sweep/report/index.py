"""Index page of all sweeps, newest first: verdicts, links to reports and to MLflow."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from sim.base import html
from sweep.store.folder import CELLS, HTML
from sweep.store.sweep_summaries import summarize

_TEMPLATES = Path(__file__).parent / "templates"
MAX_SENTENCES = 4


def to_html(results: Path, mlflow: str = "", runs: Mapping[str, str] | None = None) -> str:
    """Write the page.

    Parameters
    ----------
    results : Path
        Folder of results; the page's links are relative to it.
    mlflow : str
        Address of the MLflow UI; empty if there is none.
    runs : mapping of str to str, optional
        Address of each sweep's run there, by its id.
    """
    sweeps = []
    for sweep in summarize(results):
        folder = f"sweeps/{quote(sweep.sweep)}"
        files = ((HTML, "report"), (f"{HTML}#headline", "table"), (CELLS, "cells"))
        links = [(f"{folder}/{name}", words) for name, words in files if sweep.is_finished]
        run = (runs or {}).get(sweep.sweep)
        sweeps.append({"info": sweep, "links": [*links, *([(run, "MLflow")] if run else [])]})
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
