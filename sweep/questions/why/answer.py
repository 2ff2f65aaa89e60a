"""The answer to "why does it lose?": sentences, tables and a page."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sim.base import files
from sim.base.errors import InputError
from sim.base.extras import require
from sweep.driver.captured_run import Captured
from sweep.grid import plugins
from sweep.questions.why import page, pairing, sentences
from sweep.questions.why.explanation import Explanation
from sweep.questions.why.rows import JobRow, rows
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
        frame = '<iframe style="width:100%;height:46rem;border:0" srcdoc="{}"></iframe>'
        return frame.format(self._page(None).replace("&", "&amp;").replace('"', "&quot;"))

    def __repr__(self) -> str:
        """Return the summary."""
        return f"<{' against '.join(self.why.names)}: {self.summary}>"


def explain(folder: SweepFolder, row: int, other: int | str) -> Answer:
    """Compare a cell with another: its row, or the policy of one that differs in nothing else."""
    if isinstance(other, str):
        other = pairing.counterpart(folder, row, other)
    return Answer(pairing.explain(folder, row, other), folder, (row, other))


def _columns(row: JobRow) -> dict[str, Any]:
    mine, other = row.splits
    waits = {
        f"{prefix}wait_{reason.replace(' ', '_')}_s": seconds
        for prefix, split in (("", mine), ("other_", other))
        for reason, seconds in sorted(split.waits.items())
    }
    return {**row.facts(), **waits, "overtaken": row.overtaken_share}


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
