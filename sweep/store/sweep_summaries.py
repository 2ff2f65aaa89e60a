"""What is to be said of each sweep in a list of them: when, how many cells, what came out."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from sweep.store import sweep_list
from sweep.store.folder import DamagedError, SweepFolder
from sweep.store.journal import Journal


@dataclass(frozen=True)
class SweepSummary:
    """A sweep in a list."""

    sweep: str  # its id
    begun: str  # day and time, of this machine's zone
    is_over: bool
    n_cells: int
    state: str  # how it stands: empty for one that is over, of which no cell failed, asked for once
    sentences: list[str]  # its verdict


def summarize(results: Path) -> list[SweepSummary]:
    """List the sweeps of a folder of results, the latest begun or asked for again first."""
    found = []
    for each in reversed(sweep_list.sweeps(results)):
        begun, asked = map(_at, (each.begun_s, each.asked_s))
        if each.is_over:
            n_cells, state, sentences = _over(SweepFolder.for_sweep(results, each.sweep))
        else:
            n_cells, state = _not_over(Journal(results, each.sweep))
            sentences = []
        state = ", ".join(filter(None, (state, f"asked again {asked}" * (asked != begun))))
        found.append(SweepSummary(each.sweep, begun, each.is_over, n_cells, state, sentences))
    return found


def _over(folder: SweepFolder) -> tuple[int, str, list[str]]:
    """Count the cells of a sweep that is over; return how it stands, and its verdict."""
    try:
        failed, sentences = folder.failed(), folder.sentences()
    except DamagedError:
        way_out = f"damaged: `python -m sweep report {folder.sweep}` writes it anew"
        return 0, way_out, []
    return len(failed), f"{failed.sum()} failed" if failed.any() else "", sentences


def _at(time_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(time_s))


def _not_over(journal: Journal) -> tuple[int, str]:
    """Say how many cells a sweep without a folder has, and how it stands."""
    n_cells, is_over = 0, False
    for event in journal.milestones():
        if event["event"] == "begin":
            n_cells, is_over = event.get("cells", 0), False
        is_over |= event["event"] == "end"
    if is_over:
        return n_cells, "its folder is gone"
    return n_cells, "running" if journal.is_running() else "interrupted"
