"""The answer to "why does it lose?": sentences, tables and a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sim.base import files
from sim.base.errors import InputError
from sim.base.extras import require
from sweep.driver.captured_run import Captured, capture_cell
from sweep.grid import plugins
from sweep.questions.why import page, pairing, recorded, sentences, waits, waits_page
from sweep.questions.why.explanation import Explanation
from sweep.questions.why.rows import JobRow, rows
from sweep.questions.why.waits import Waits
from sweep.store.folder import SweepFolder

if TYPE_CHECKING:
    import pandas as pd

TIMELINES = "timelines"


@dataclass(frozen=True)
class Answer:
    """Why the policy of a cell loses, or wins, against that of another; a notebook shows its page.

    Attributes
    ----------
    why : Explanation
        The two runs, compared.
    folder : SweepFolder
        The sweep.
    numbers : (int, int)
        Rows of the two cells.
    """

    why: Explanation
    folder: SweepFolder
    numbers: tuple[int, int]

    @cached_property
    def sentences(self) -> tuple[str, str]:
        """Two sentences: whose loss it is, and behind whom they waited."""
        return sentences.summary(self.why)

    @property
    def summary(self) -> str:
        """Both sentences."""
        return " ".join(self.sentences)

    @property
    def rows(self) -> list[JobRow]:
        """The jobs that lost most, then those that won most."""
        return rows(self.why, self.why.losers + self.why.winners)

    @property
    def jobs(self) -> pd.DataFrame:
        """A row a job that lost or won most, with its wait by reason under both policies.

        ``wait_<reason>_s`` is under the policy of the cell, ``other_wait_<reason>_s`` under the
        other one; ``overtaken`` the share of what stood before it, under the slower of the two,
        that came later than it did.
        """
        return _frame([_columns(row) for row in self.rows])

    @property
    def behind(self) -> pd.DataFrame:
        """A row for each of those jobs, policy and job in front: ``how``, and ``seconds``."""
        records = []
        for row in self.rows:
            for policy, name in enumerate(self.why.names):
                for other, how, front_s in row.in_front(policy, len(row.splits[policy].behind)):
                    front = {"in_front": other, "how": how, "seconds": front_s}
                    records.append({"job_id": row.job_id, "policy": name, **front})
        return _frame(records)

    def write(self, path: str | Path) -> None:
        """Write the page alone: one file that needs no network."""
        files.write_text(Path(path).expanduser(), self._page(None))

    def write_pages(self) -> Path:
        """Write the page and both timelines beside it, in the results; return the page's path."""
        folder = self.folder.results / TIMELINES
        both = "-".join(map(str, self.numbers))
        timeline = f"{self.folder.sweep}-{both}.html"
        drawn = _draw(list(self.why.runs))
        if drawn is not None:
            drawn.write(folder / timeline)
        path = folder / f"{self.folder.sweep}-why-{both}.html"
        files.write_text(path, self._page(None if drawn is None else timeline))
        return path

    def _page(self, timeline: str | None) -> str:
        titles = " · ".join(dict.fromkeys(run.title for run in self.why.runs))
        return page.write_text(self.why, f"{self.folder.sweep}: {titles}", timeline)

    def _repr_html_(self) -> str:
        return _frame_of_page(self._page(None))

    def __repr__(self) -> str:
        """Return the summary."""
        return f"<{' against '.join(self.why.names)}: {self.summary}>"


@dataclass(frozen=True)
class WaitAnswer:
    """Why jobs wait in a cell, or in the log's own schedule; a notebook shows its page.

    Attributes
    ----------
    waits : Waits
        The waits of the run by reason.
    folder : SweepFolder
        The sweep.
    number : int
        Row of the cell.
    is_log : bool
        True if it is the log's own schedule.
    notes : tuple of str
        What of the log's schedule is missing or differs.
    """

    waits: Waits
    folder: SweepFolder
    number: int
    is_log: bool = False
    notes: tuple[str, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sentences: length and reasons of the waits, whose they mainly are, and omissions."""
        return (*waits.summary(self.waits), *waits.notes(self.waits), *self.notes)

    @property
    def summary(self) -> str:
        """These sentences."""
        return " ".join(self.sentences)

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """A row a job: ``job_id``, ``wait_s``, and ``wait_<reason>_s``."""
        ids = self.waits.splitter.attempts.run.workload.jobs["job_id"]
        names = ids.take(pa.array(self.waits.jobs)).to_pylist()
        columns = {c: self.waits.labels(c) for c in self.waits.columns}
        return _frame(
            [
                {
                    "job_id": name,
                    **{c: labels[k] for c, labels in columns.items()},
                    "wait_s": split.wait_s,
                    **_waits(split.waits),
                }
                for k, (name, split) in enumerate(zip(names, self.waits.splits, strict=True))
            ]
        )

    def by(self, column: str) -> pd.DataFrame:
        """Return a row a user, queue, value of any column of jobs, ``hour`` or ``day``."""
        return _frame(
            [
                {column: group.name, "jobs": group.n_jobs, "wait_s": group.wait_s,
                 **_waits(group.waits)}
                for group in self.waits.by(column)
            ]
        )  # fmt: skip

    def write(self, path: str | Path) -> None:
        """Write the page: one file that needs no network."""
        files.write_text(Path(path).expanduser(), self._page())

    def write_pages(self) -> Path:
        """Write the page in the results; return its path."""
        name = f"{self.folder.sweep}-waits-{self.number}{'-log' * self.is_log}.html"
        path = self.folder.results / TIMELINES / name
        files.write_text(path, self._page())
        return path

    def _page(self) -> str:
        place = f"{self.folder.sweep}: {self.waits.captured.title}"
        footer = " ".join((*self.notes, recorded.FOOTER)) if self.is_log else None
        return waits_page.write_text(self.waits, place, footer)

    def _repr_html_(self) -> str:
        return _frame_of_page(self._page())

    def __repr__(self) -> str:
        """Return the summary."""
        return f"<{self.waits.name}: {self.summary}>"


def explain_waits(folder: SweepFolder, row: int, *, is_log: bool = False) -> WaitAnswer:
    """Say why jobs wait in a cell, or with `is_log` in the log's own schedule."""
    cell = folder.row(row)
    if is_log:
        run, notes = recorded.schedule(folder, cell)
        return WaitAnswer(Waits(run, recorded.NAME), folder, row, is_log, notes)
    name, _ = pairing.names(folder, [cell, cell])
    return WaitAnswer(Waits(capture_cell(folder, cell), name), folder, row)


def explain(folder: SweepFolder, row: int, other: int | str) -> Answer:
    """Compare a cell with another: its row, or the policy of one that differs in nothing else."""
    if isinstance(other, str):
        other = pairing.counterpart(folder, row, other)
    return Answer(pairing.explain(folder, row, other), folder, (row, other))


def _columns(row: JobRow) -> dict[str, Any]:
    mine, other = row.splits
    both = _waits(mine.waits) | _waits(other.waits, "other_")
    return {**row.facts(), **both, "overtaken": row.overtaken_share}


def _waits(by_reason: Mapping[str, float], prefix: str = "") -> dict[str, float]:
    """Return waits as columns, by reason."""
    return {
        f"{prefix}wait_{reason.replace(' ', '_')}_s": by_reason[reason]
        for reason in sorted(by_reason)
    }


def _frame_of_page(text: str) -> str:
    frame = '<iframe style="width:100%;height:46rem;border:0" srcdoc="{}"></iframe>'
    return frame.format(text.replace("&", "&amp;").replace('"', "&quot;"))


def _frame(records: list[dict[str, Any]]) -> pd.DataFrame:
    require("frames")
    names = dict.fromkeys(name for row in records for name in row)
    columns = {name: [row.get(name) for row in records] for name in names}
    filled = {k: [0.0 if v is None and "wait_" in k else v for v in c] for k, c in columns.items()}
    frame: pd.DataFrame = pa.table(filled).to_pandas()
    return frame


def _draw(runs: list[Captured]) -> Any:
    """Draw both timelines; None if a run is too large, or nothing draws."""
    plug_in = plugins.having(plugins.SECTIONS, "draw")
    try:
        return None if plug_in is None else plug_in.draw(runs)
    except InputError:
        return None
