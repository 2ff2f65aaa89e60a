"""Plug-in of timelines: the drawing of runs, and their traces for Perfetto."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sweep.driver.captured_run import Captured
    from sweep.questions.timeline.page import Page

ORDER = 50


def draw(runs: Sequence[Captured]) -> Page:
    """Draw runs, one below the other."""
    from sweep.questions.timeline import columns, page  # brings numba

    return page.draw([columns.build_timeline(run) for run in runs])


def write_perfetto(run: Captured, path: Path) -> None:
    """Write a run in Chrome's trace format."""
    from sweep.questions.timeline import columns, perfetto  # brings numba

    perfetto.write(columns.build_timeline(run), path)
