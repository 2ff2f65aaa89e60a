"""Progress of a sweep on standard error: a bar on a terminal, else a line every few seconds.

What is done before the cells is a word beside the bar; without a terminal it is said once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from sim.base.text import printable

if TYPE_CHECKING:
    from rich.console import Console

LINE_EVERY_S = 5.0
LEFT_EVERY_S = 1.0


def console() -> Console:
    """Make the console that progress is drawn on."""
    from rich.console import Console  # 0.1 s: not where nothing runs

    return Console(stderr=True, highlight=False, markup=False, soft_wrap=True)


class Line(str):
    """A text that is said once, on a line of its own, while cells run."""

    __slots__ = ()


class Progress:
    """Counts cells for people: a bar on a terminal, else a plain line every few seconds."""

    def __init__(
        self,
        console: Console,
        n_cells: int,
        seconds_left: Callable[[], float | None] = lambda: None,
    ) -> None:
        self._console = console
        self._n_cells = n_cells
        self._seconds_left = seconds_left
        self._n_done = self._n_failed = 0
        self._doing = self._said = self._left = ""
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
        """Stop drawing; without a terminal say where it ended."""
        if self._bar is not None:
            self._bar.stop()
        elif self._n_done:
            self._line()

    def cells(self, n: int, n_failed: int) -> None:
        """Count cells that are done, and how many of them failed."""
        self._n_done += n
        self._n_failed += n_failed
        self._doing = ""
        if self._bar is not None:
            self._draw(completed=self._n_done)
        else:
            self.beat()

    def beat(self, doing: str = "") -> None:
        """No cell was done; say what is `doing` instead, if not simply cells."""
        self._doing = doing
        if self._bar is not None:
            self._draw()
        elif not doing or doing != self._said:
            self._now_and_then()

    def say(self, line: str) -> None:
        """Say a thing that happened, above the bar."""
        self._console.print(printable(line), highlight=False, markup=False)

    def _draw(self, **changed: Any) -> None:
        if time.monotonic() - self._last_line >= LEFT_EVERY_S:
            self._last_line, self._left = time.monotonic(), self._about_left()
        self._bar.update(self._task, description=self._words(), left=self._left, **changed)

    def _about_left(self) -> str:
        left_s = self._seconds_left() if self._n_done < self._n_cells else None
        return "" if left_s is None else f"about {left_s:.0f} s left"

    def _now_and_then(self) -> None:
        if time.monotonic() - self._last_line >= LINE_EVERY_S:
            self._line()

    def _words(self) -> str:
        return self._doing or (f"{self._n_failed} failed" if self._n_failed else "cells")

    def _line(self) -> None:
        self._last_line, self._said = time.monotonic(), self._doing
        elapsed = self._last_line - self._begin
        if not self._n_done:
            line = f"{self._doing or 'starting'}, {elapsed:.0f} s"
            self._console.print(line, highlight=False, markup=False)
            return
        text = f"{self._n_done} of {self._n_cells} cells done"
        if self._n_failed:
            text += f", {self._n_failed} failed"
        text += f", {elapsed:.0f} s"
        if left := self._about_left():
            text += f", {left}"
        if self._doing:
            text += f"; {self._doing}"
        self._console.print(text, highlight=False, markup=False)
