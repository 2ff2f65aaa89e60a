"""How far a sweep is: a bar on a terminal, a plain line every few seconds without one.

What is done before the cells is a word beside the bar; without a terminal it is said once.
"""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

LINE_EVERY_S = 5.0


class Progress:
    """Counts cells for people, on standard error.

    Parameters
    ----------
    console : rich.console.Console
        Where to draw.
    n_cells : int
        How many cells have to run.
    """

    def __init__(self, console: Console, n_cells: int) -> None:
        self._console = console
        self._n_cells = n_cells
        self._n_done = 0
        self._n_failed = 0
        self._doing = self._said = ""
        self._begin = self._last_line = time.monotonic()
        self._first = self._begin  # when the first cell was done: what came before was starting
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
                progress.TimeRemainingColumn(),
                console=self._console,
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task("cells", total=self._n_cells)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop drawing; without a terminal say where it ended."""
        if self._bar is not None:
            self._bar.stop()
        elif self._n_done:
            self._line()

    def cell(self, *, failed: bool) -> None:
        """Count a cell."""
        self._n_done += 1
        self._n_failed += failed
        self._doing = ""
        if self._n_done == 1:
            self._first = time.monotonic()
        if self._bar is not None:
            self._bar.update(self._task, completed=self._n_done, description=self._words())
        else:
            self.beat()

    def beat(self, doing: str = "") -> None:
        """No cell was done; without a terminal say so from time to time.

        Parameters
        ----------
        doing : str
            What is going on instead, empty if cells are simply running.
        """
        self._doing = doing
        if self._bar is not None:
            self._bar.update(self._task, description=self._words())
        elif not doing or doing != self._said:
            self._now_and_then()

    def _now_and_then(self) -> None:
        if time.monotonic() - self._last_line >= LINE_EVERY_S:
            self._line()

    def _words(self) -> str:
        return self._doing or (f"{self._n_failed} failed" if self._n_failed else "cells")

    def _line(self) -> None:
        self._last_line, self._said = time.monotonic(), self._doing
        elapsed = self._last_line - self._begin
        if not self._n_done:
            note = f"{self._doing or 'starting'}, {elapsed:.0f} s"
            self._console.print(note, highlight=False, markup=False)
            return
        text = f"{self._n_done} of {self._n_cells} cells done"
        if self._n_failed:
            text += f", {self._n_failed} failed"
        text += f", {elapsed:.0f} s"
        if 1 < self._n_done < self._n_cells:
            each = (self._last_line - self._first) / (self._n_done - 1)
            text += f", about {each * (self._n_cells - self._n_done):.0f} s left"
        self._console.print(text, highlight=False, markup=False)
