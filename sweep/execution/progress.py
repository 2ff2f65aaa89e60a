"""Progress of a sweep on standard error: a bar on a terminal, else a line every few seconds.

Activities before the first cell are a word beside the bar; without a terminal, one line each.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from sim.base.text import printable

if TYPE_CHECKING:
    from rich.console import Console

LINE_EVERY_S = 5.0
ESTIMATE_EVERY_S = 1.0


def console() -> Console:
    """Create the console for progress."""
    from rich.console import Console  # 0.1 s: not where nothing runs

    return Console(stderr=True, highlight=False, markup=False, soft_wrap=True)


class Line(str):
    """A text to print once, on a line of its own, while cells run."""

    __slots__ = ()


class Progress:
    """Counter of cells on standard error: a bar on a terminal, else a line every few seconds.

    `on_change` receives the estimate (``left_s``) and the ``activity`` for other processes.
    """

    def __init__(
        self,
        console: Console,
        n_cells: int,
        seconds_left: Callable[[], float | None] = lambda: None,
        on_change: Callable[..., None] = lambda **_: None,
    ) -> None:
        self._on_change, self._last_change_s = on_change, -math.inf
        self._console = console
        self._n_cells = n_cells
        self._seconds_left = seconds_left
        self._n_done = self._n_failed = 0
        self._printed_counts = (0, 0)
        self._activity = self._printed_activity = self._left_text = ""
        self._begin = self._last_line = time.monotonic()
        self._bar: Any = None

    def __enter__(self) -> Progress:
        """Start drawing, on a terminal."""
        if self._console.is_terminal:
            from rich import progress

            self._bar = progress.Progress(
                progress.TextColumn("{task.description}"),
                progress.BarColumn(),
                progress.MofNCompleteColumn(),
                progress.TimeElapsedColumn(),
                progress.TextColumn("{task.fields[left]}"),
                console=self._console,
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task("cells", total=self._n_cells, left="")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop drawing; without a terminal print the last state, unless it is printed already."""
        if self._bar is not None:
            self._bar.stop()
        elif (self._n_done, self._n_failed) != self._printed_counts:
            self._print_status()

    def cells(self, n: int, n_failed: int) -> None:
        """Count cells that are done, and how many of them failed."""
        self._n_done += n
        self._n_failed += n_failed
        self._activity = ""
        self._report()
        if self._bar is not None:
            self._draw(completed=self._n_done)
        else:
            self.beat()

    def beat(self, activity: str = "") -> None:
        """Note that no cell finished; show the current activity, if it is not simply cells."""
        self._activity = activity
        self._report()
        if self._bar is not None:
            self._draw()
        elif not activity or activity != self._printed_activity:
            self._print_if_due()

    def print_line(self, line: str) -> None:
        """Print a line above the bar."""
        self._console.print(printable(line), highlight=False, markup=False)

    def _report(self) -> None:
        """Pass on the estimate and the activity, at most once a second."""
        if time.monotonic() - self._last_change_s >= ESTIMATE_EVERY_S:
            left_s = self._seconds_left() if 0 < self._n_done < self._n_cells else None
            self._on_change(left_s=left_s, activity=str(self._activity))
            self._last_change_s = time.monotonic()

    def _draw(self, **fields: Any) -> None:
        if time.monotonic() - self._last_line >= ESTIMATE_EVERY_S:
            self._last_line, self._left_text = time.monotonic(), self._time_left()
        self._bar.update(self._task, description=self._status(), left=self._left_text, **fields)

    def _time_left(self) -> str:
        left_s = self._seconds_left() if self._n_done < self._n_cells else None
        return "" if left_s is None else f"about {left_s:.0f} s left"

    def _print_if_due(self) -> None:
        if time.monotonic() - self._last_line >= LINE_EVERY_S:
            self._print_status()

    def _status(self) -> str:
        return self._activity or (f"{self._n_failed} failed" if self._n_failed else "cells")

    def _print_status(self) -> None:
        self._last_line, self._printed_activity = time.monotonic(), self._activity
        elapsed = self._last_line - self._begin
        if not self._n_done:
            self.print_line(f"{self._activity or 'starting'}, {elapsed:.0f} s")
            return
        self._printed_counts = (self._n_done, self._n_failed)
        text = f"{self._n_done} of {self._n_cells} cells done"
        if self._n_failed:
            text += f", {self._n_failed} failed"
        text += f", {elapsed:.0f} s"
        if left := self._time_left():
            text += f", {left}"
        if self._activity:
            text += f"; {self._activity}"
        self.print_line(text)
