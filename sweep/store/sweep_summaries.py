"""Summaries of all sweeps for a list: start, cells, state, verdict."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from pathlib import Path

from sweep.store import sweep_list
from sweep.store.folder import DamagedError, SweepFolder
from sweep.store.journal import Journal


@dataclass(frozen=True)
class SweepSummary:
    """Summary of one sweep."""

    sweep: str  # its id
    started: str  # day and time, in this machine's zone
    is_finished: bool
    n_cells: int
    state: str  # empty for a finished sweep without failed cells that was requested once
    sentences: list[str]  # its verdict
    n_bytes: int = 0  # of its folder


def summarize(results: Path) -> list[SweepSummary]:
    """List the sweeps of a results folder, the latest started or requested first."""
    summaries = []
    for entry in reversed(sweep_list.sweeps(results)):
        started, requested = map(_local_time, (entry.started_s, entry.requested_s))
        if entry.is_finished:
            n_cells, state, sentences = _finished_state(SweepFolder.for_sweep(results, entry.sweep))
        else:
            n_cells, state = _unfinished_state(Journal(results, entry.sweep))
            sentences = []
        state = ", ".join(
            filter(None, (state, f"requested again {requested}" * (requested != started)))
        )
        summaries.append(
            SweepSummary(
                entry.sweep,
                started,
                entry.is_finished,
                n_cells,
                state,
                sentences,
                _folder_bytes(SweepFolder.for_sweep(results, entry.sweep).path),
            )
        )
    return summaries


def _finished_state(folder: SweepFolder) -> tuple[int, str, list[str]]:
    """Return the number of cells, the state and the verdict of a finished sweep."""
    try:
        failed, sentences = folder.failed(), folder.sentences()
    except DamagedError:
        way_out = f"damaged: `python -m sweep report {folder.sweep}` rewrites it"
        return 0, way_out, []
    return len(failed), f"{failed.sum()} failed" if failed.any() else "", sentences


def size_text(n_bytes: float) -> str:
    """Write a size for people, such as ``1.3 MB``."""
    units = ["B", "kB", "MB", "GB", "TB"]
    while n_bytes >= 999.5 and len(units) > 1:
        n_bytes /= 1000
        units.pop(0)
    return f"{n_bytes:.3g} {units[0]}"


def _folder_bytes(folder: Path) -> int:
    sizes = []
    for path in folder.glob("*"):
        with contextlib.suppress(OSError):  # another process may replace it
            sizes.append(path.stat().st_size)
    return sum(sizes)


def _local_time(time_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(time_s))


def _unfinished_state(journal: Journal) -> tuple[int, str]:
    """Return the number of cells and the state of a sweep without a folder."""
    n_cells, has_ended = 0, False
    for event in journal.milestones():
        if event["event"] == "begin":
            n_cells, has_ended = event.get("cells", 0), False
        has_ended |= event["event"] == "end"
    if has_ended:
        return n_cells, "its folder is missing"
    return n_cells, "running" if journal.is_running() else "interrupted"
