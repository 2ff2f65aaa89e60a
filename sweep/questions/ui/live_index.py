"""Rows of the index as they change, numbered so that an open page asks for what is new."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sim.base.masking import mask
from sweep.grid.tracking_uri import sqlite_uri
from sweep.questions.ui import index
from sweep.questions.ui.mlflow_server import DATABASE, sweep_links
from sweep.store.sweep_summaries import Heartbeats, SweepSummary, summarize

REFRESH_EVERY_S = 1.0
Links = tuple[tuple[str, str], ...]
"""Addresses, and a word for each."""


class LiveIndex:
    """All sweeps of a folder of results; each has the version at which its row changed last."""

    def __init__(self, results: Path, mlflow_port: int | None) -> None:
        self._results, self._mlflow_port = results, mlflow_port
        self._heartbeats, self._lock = Heartbeats(), threading.Lock()
        self._version, self._read_s = 0, -REFRESH_EVERY_S
        self._order: list[str] = []
        self._rows: dict[str, tuple[int, SweepSummary, Links]] = {}
        self._removed: dict[str, int] = {}
        self._links: Mapping[str, Links] = {}
        self._database: object = None

    def rows(self, *, fresh: bool = False) -> list[tuple[SweepSummary, Links]]:
        """Return each sweep and its pages in MLflow, newest first."""
        with self._lock:
            self._refresh(fresh=fresh)
            return [self._rows[sweep][1:] for sweep in self._order]

    def changes(self, since: int) -> dict[str, Any]:
        """Return the rows that changed after a version, and the sweeps that were removed."""
        with self._lock:
            self._refresh()
            changed = [
                (sweep, self._rows[sweep]) for sweep in self._order if self._rows[sweep][0] > since
            ]
            return {
                "version": self._version,
                "n": len(self._order),
                "rows": {
                    sweep: index.row_html(summary, links, is_served=True)
                    for sweep, (_, summary, links) in changed
                },
                "removed": sorted(s for s, version in self._removed.items() if version > since),
            }

    @property
    def version(self) -> int:
        """Version of the rows that were returned last."""
        return self._version

    def _refresh(self, *, fresh: bool = False) -> None:
        if time.monotonic() - self._read_s < REFRESH_EVERY_S and not fresh:
            return
        pages = self._pages()
        summaries = summarize(self._results, self._heartbeats.is_alive)
        self._order = [summary.sweep for summary in summaries]
        for summary in summaries:
            links = pages.get(summary.sweep, ())
            if self._rows.get(summary.sweep, (0, None, ()))[1:] != (summary, links):
                self._version += 1
                self._rows[summary.sweep] = self._version, summary, links
                self._removed.pop(summary.sweep, None)
        for sweep in self._rows.keys() - {*self._order}:
            self._version += 1
            del self._rows[sweep]
            self._removed[sweep] = self._version
        self._read_s = time.monotonic()

    def _pages(self) -> Mapping[str, Links]:
        """Return each sweep's pages in MLflow; the database is read when it has changed."""
        if self._mlflow_port is None:
            return {}
        state: list[object] = []
        for suffix in ("", "-wal"):
            with contextlib.suppress(OSError):
                stat = (self._results / f"{DATABASE}{suffix}").stat()
                state += [stat.st_size, stat.st_mtime_ns]
        if state != self._database:
            uri = sqlite_uri(self._results / DATABASE)
            self._links, self._database = sweep_links(uri, self._mlflow_port), state
        return self._links


def error_text(error: Exception) -> str:
    """Return the message of an error, without secrets."""
    return mask(getattr(error, "message", None) or str(error))
