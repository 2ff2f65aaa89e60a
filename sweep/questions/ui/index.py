"""Index page of all sweeps, newest first: state, verdicts, links to reports and to MLflow.

Served by a verb, it follows running sweeps, tags and deletes; as a file it sorts and filters.
"""

from __future__ import annotations

import base64
import hashlib
import shlex
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sim.base import html
from sweep.grid import overrides
from sweep.grid.remote_results import display_path
from sweep.store.folder import CELLS, HTML
from sweep.store.sweep_summaries import (
    FAILED,
    FINISHED,
    RUNNING,
    STOPPED,
    SweepSummary,
    size_text,
    time_text,
)

_TEMPLATES = Path(__file__).parent / "templates"
MAX_SENTENCES = 3
RESULTS = "results"
"""Folder of results by default, in the working directory."""
_PHASES = (RUNNING, FAILED, STOPPED, FINISHED)
"""Phases in the order in which a list sorted by state has them."""


def to_html(
    results: Path,
    rows: Sequence[tuple[SweepSummary, Sequence[tuple[str, str]]]],
    mlflow: str = "",
    server: Mapping[str, Any] | None = None,
) -> str:
    """Write the page.

    Parameters
    ----------
    results : Path
        Folder of results; the page's links are relative to it.
    rows : sequence of (SweepSummary, links)
        Sweeps, newest first, and the pages of each in MLflow: (address, word).
    mlflow : str
        Address of the MLflow UI; empty if there is none.
    server : mapping, optional
        ``token`` that allows tags and removal, ``id`` of the server and ``version`` of the rows;
        None for a file.
    """
    comparisons = sorted(path.name for path in (results / "comparisons").glob("*.html"))
    script = (_TEMPLATES / "index.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    context = {
        "results": str(results),
        "rows": [row_html(*row, is_served=server is not None) for row in rows],
        "comparisons": [(f"comparisons/{quote(n)}", n.removesuffix(".html")) for n in comparisons],
        "command": _command(results),
        "mlflow": mlflow,
        "server": server,
        "css": html.css() + (_TEMPLATES / "index.css").read_text(encoding="utf-8"),
        "script": script,
        "script_digest": digest,
    }
    text: str = html.environment(_TEMPLATES).get_template("index.html.j2").render(context)
    return text


def _command(results: Path) -> str:
    """Return the command that runs the demonstration in this folder of results."""
    if results.absolute() == Path.cwd() / RESULTS:
        return "python -m sweep"
    folder = display_path(results.absolute()).removeprefix(f"{Path.cwd()}/")
    return shlex.join(["python", "-m", "sweep", overrides.quote("paths.results", folder)])


def row_html(
    summary: SweepSummary, pages: Sequence[tuple[str, str]], *, is_served: bool = False
) -> str:
    """Write the table's row of one sweep; `pages` are its links to MLflow."""
    folder = f"sweeps/{quote(summary.sweep)}"
    files = ((HTML, "report"), (f"{HTML}#block-0-tables", "table"), (CELLS, "cells"))
    links = [(f"{folder}/{name}", words) for name, words in files if summary.is_finished]
    context = {
        "sweep": summary,
        "links": [*links, *pages],
        "report": links[0][0] if links else "",
        "is_served": is_served,
        "most": MAX_SENTENCES,
        "time": time_text(summary.time_s),
        "datetime": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(summary.time_s)),
        "size": size_text(summary.n_bytes),
        "is_running": summary.phase == RUNNING,
        "is_failed": summary.phase == FAILED or summary.n_failed > 0,
        "rank": _PHASES.index(summary.phase),
    }
    text: str = html.environment(_TEMPLATES).get_template("index_row.html.j2").render(context)
    return text
