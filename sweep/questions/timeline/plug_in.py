"""Plug-in of timelines: a cell run again, its drawing, and its trace for Perfetto."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sweep.questions.timeline.columns import Timeline
    from sweep.questions.timeline.page import Page
    from sweep.store.folder import SweepFolder

ORDER = 50


def rerun(folder: SweepFolder, row: Mapping[str, Any]) -> Timeline:
    """Run a cell again; return its timeline."""
    from sweep.questions.timeline.timelines import timeline  # brings numba

    return timeline(folder, row)


def draw(timelines: Sequence[Timeline]) -> Page:
    """Draw timelines, one below the other."""
    from sweep.questions.timeline import page  # brings numba

    return page.draw(timelines)


def write_perfetto(timeline: Timeline, path: Path) -> None:
    """Write a timeline in Chrome's trace format."""
    from sweep.questions.timeline import perfetto  # brings numba

    perfetto.write(timeline, path)
