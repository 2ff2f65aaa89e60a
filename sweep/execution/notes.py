"""What is said on standard error while a sweep runs: notes, and how far it is.

What is done before the cells is a word beside the bar; without a terminal it is said once.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

import policies
from sim.base.text import printable
from sim.measures import NO_POLICY
from sweep.execution.plan import Planned, Prepared

if TYPE_CHECKING:
    from rich.console import Console

LINE_EVERY_S = 5.0
LEFT_EVERY_S = 1.0
_PLURAL = {"policy": "policies", "trace": "traces", "capacity": "capacities", "seed": "seeds"}
_SINGULAR = {plural: singular for singular, plural in _PLURAL.items()}
_SINGULAR |= {"cells": "cell", "searches": "search", "settings": "setting"}


def note(text: str) -> None:
    """Say one thing on standard error."""
    print(printable(text), file=sys.stderr, flush=True)


def console() -> Console:
    """Make the console that progress is drawn on."""
    from rich.console import Console  # 0.1 s: not where nothing runs

    return Console(stderr=True, highlight=False, markup=False, soft_wrap=True)


def grid(prepared: Prepared, n_todo: int) -> None:
    """Say what is about to run."""
    axes = " × ".join(
        count(len(values), _PLURAL.get(key, key))
        for key, values in prepared.grid.request.axes.items()
        if len(values) > 1 or key in _PLURAL
    )
    n_cells = len(prepared.planned)
    n_cached = int(prepared.is_known().sum())
    note(f"{prepared.sweep}: {axes}: {n_cells} cells, {n_cached} cached, {n_todo} to run")
    traces(prepared)


def traces(prepared: Prepared, names: Collection[str] | None = None) -> None:
    """Say what loading the traces left out or filled in; of `names` alone, if they are given.

    Of one that was never made nothing is known.
    """
    if names is not None and not names:
        return
    lines = []
    inputs = prepared.inputs
    kinds: dict[tuple[int, str], Planned] = {}
    for each in prepared.first:
        if names is None or each.input in names:
            kinds.setdefault((id(each.cell.policy), each.input), each)
    chosen = [each for each in kinds.values() if inputs.known(each.input) is not None]
    for name in dict.fromkeys(planned.input for planned in chosen):
        about = inputs.describe(name)
        dropped = _dropped(about["meta"].get("report") or {})
        if dropped:
            trace = about["meta"].get("name", "trace")
            lines.append(f"  {trace}: {about['n_jobs']:,} jobs; {dropped}")
    lines += [line for planned in chosen if (line := _unfounded(prepared, planned))]
    for line in dict.fromkeys(lines):
        note(line)


def _unfounded(prepared: Prepared, planned: Planned) -> str:
    """Word that a policy learns from what the workload does not have; '' if it does not."""
    policy = planned.cell.policy
    if policy["name"] == NO_POLICY:
        return ""
    built = policies.build(policy["name"], module=policy.get("module"), **policy["params"])
    wanted = built.learns_from
    there = prepared.inputs.describe(planned.input).get("learnable", wanted)
    missing = " and ".join(f"no {what}" for what in wanted if what not in there)
    if not missing:
        return ""
    labels = planned.cell.labels
    return (
        f"  {labels['policy']} on {labels['trace']}: the workload has {missing} of jobs to predict "
        "by, so that its estimates tell little (docs/your_own_trace.md)"
    )


INTERRUPTED = "interrupted: what is done is kept; the same command goes on from here"


def interrupted(prepared: Prepared, n_todo: int) -> str:
    """Word how much is kept."""
    left = len(prepared.rows_to_do())
    return (
        f"interrupted: {n_todo - left} of {n_todo} cells are done and kept; "
        "the same command goes on from here"
    )


def count(n: int, plural: str) -> str:
    """Write how many of a thing, such as ``1 cell``."""
    return f"{n:,} {_SINGULAR.get(plural, plural) if n == 1 else plural}"


def _dropped(report: Mapping[str, Any]) -> str:
    """Word what a loader dropped or filled in, by rule."""
    words: list[str] = []
    for happened in ("dropped", "filled", "edges_dropped", "bad_rows", "columns_unused"):
        counts = report.get(happened)
        if isinstance(counts, Mapping) and counts:
            rules = ", ".join(f"{rule} ({n:,})" for rule, n in counts.items())
            words.append(f"{happened.replace('_', ' ')}: {rules}")
    return "; ".join(words)


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
