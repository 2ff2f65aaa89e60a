"""Sweeps from Python, for notebooks: `sweep.run`, `sweep.load`, and what they return.

Pandas comes out and plotly draws itself. All of it is made of the sweep's folder, so a notebook
shows what the command line wrote.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from sim.base import files
from sim.base.errors import InputError, unknown
from sweep import driver
from sweep.execution import baseline_metrics, cells_table, notes, rerun
from sweep.grid import remote_results
from sweep.grid.options import Options
from sweep.grid.overrides import quote
from sweep.report import drawing, means
from sweep.stats import contrasts
from sweep.stats.cell_columns import AXES, NOT_METRICS, factorize, table_options, text
from sweep.stats.summary import Summary, summarise
from sweep.store import sync
from sweep.store.cache import Cache
from sweep.store.folder import SweepFolder

if TYPE_CHECKING:
    import plotly.graph_objects as go


TARGETS = (
    *("policy", "trace", "target", "capacity", "low", "high", "status"),
    *("machines", "seeds", "cells"),
)
LONG = ("reproduce", "config")
"""Columns of long texts, which the frame of all cells is without: there may be very many."""


def run(
    *words: str, config_dir: str | Sequence[str] = (), fail_fast: bool = False, **keys: Any
) -> Sweep:
    """Run a sweep to its end, as ``python -m sweep`` does; what is cached is not run again.

    Parameters
    ----------
    *words : str
        What the command line takes: ``"policy=fifo,srpt"``, ``"seed=range(0,10)"``.
    config_dir : str or sequence of str
        Folders of your own options.
    fail_fast : bool
        Stop at the first failed cell.
    **keys
        The same as keywords: ``baseline="fifo"``, ``capacity=[0.7, 1.0]``, ``seed=range(10)``. A
        text is what the command line takes; several values are an axis. Keys with a dot go as
        ``**{"policy.queues": [5, 10]}``.

    Returns
    -------
    Sweep
        Also where cells failed: those have the status ``failed``.

    Raises
    ------
    InputError
        If the grid is wrong; nothing has been started then.
    """
    folders = [config_dir] if isinstance(config_dir, str) else list(config_dir)
    given = [*words, *(_word(key, value) for key, value in keys.items())]
    for word in given:
        if not isinstance(word, str) or not ("=" in word or word.startswith("~")):
            raise InputError(f"{word!r} is not key=value, e.g. policy=fifo,sjf", rule="grammar")
    return Sweep(driver.run(driver.make_request(given, folders, fail_fast=fail_fast)).folder)


def load(name: str | Path | None = None, *, results: str | Path | None = None) -> Sweep:
    """Load a sweep that is over.

    Parameters
    ----------
    name : str or path, optional
        Its id, its name (the latest of that name) or its folder; left out: the latest begun.
    results : str or path, optional
        Folder of results; ``results`` unless `name` is itself a folder.

    Raises
    ------
    InputError
        If there is none, or it is not over.
    """
    where = Options().compose()["paths"]["results"] if results is None else results
    folder = sync.fetch(remote_results.working_folder(str(where)))
    return Sweep(driver.open_intact(folder, None if name is None else str(name)))


def _word(key: str, value: Any) -> str:
    """Write a keyword as the command line has it."""
    if isinstance(value, str):
        return f"{key}={value}"
    if isinstance(value, range):
        return f"{key}=range({value.start},{value.stop},{value.step})"
    if isinstance(value, Iterable) and not isinstance(value, Mapping):
        parts = [quote(key, _plain(each)).partition("=")[2] for each in value]
        if not parts:
            raise InputError(f"{key} sweeps over nothing", rule="empty axis")
        return f"{key}={','.join(parts)}"
    return quote(key, _plain(value))


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


class Sweep:
    """A sweep that is over.

    Attributes
    ----------
    id : str
        Its id; ``python -m sweep show ID`` and `sweep.load` take it.
    folder : Path
        Where all of it lies.
    """

    def __init__(self, folder: SweepFolder) -> None:
        self._folder = folder
        self.id = folder.sweep
        self.folder = folder.path

    @cached_property
    def cells(self) -> pd.DataFrame:
        """A row a cell: policy, trace, capacity, seed, status, swept parameters, every metric.

        And its key, and what went wrong. What it was run with is its ``config``: see `cell`.
        """
        names = [name for name in self._folder.schema().names if name not in LONG]
        return _frame(self._folder.cells(names))

    @cached_property
    def config(self) -> dict[str, Any]:
        """What was asked for, and what it resolved to (``config.yaml``)."""
        return self._folder.config()

    @property
    def verdict(self) -> list[dict[str, Any]]:
        """What is best, an entry a trace and capacity; ``sentence`` says it in words."""
        return self._folder.verdict()

    @property
    def targets(self) -> pd.DataFrame:
        """The least capacity that meets the target, a row a policy and trace; often no rows."""
        found = self._folder.targets()
        return pd.DataFrame(columns=list(TARGETS)) if found is None else _frame(found)

    def against(self, baseline: str | None = None, metrics: Sequence[str] = ()) -> pd.DataFrame:
        """Compare each policy with any of them, paired by trace and seed; nothing is run.

        Parameters
        ----------
        baseline : str, optional
            One of the policies, or of its settings as the tables name it (``"dagps m=0"``); left
            out: the sweep's own baseline.
        metrics : sequence of str
            What to compare; left out: the usual ones that differ.

        Returns
        -------
        pandas.DataFrame
            A row a comparison: ``estimate`` (a ratio above 1 is better than the baseline),
            ``low``, ``high``, ``p``, ``p_holm``, ``n_pairs``, ``test``.

        Raises
        ------
        InputError
            On an unknown policy or metric.
        """
        own = self.config["baseline"]
        baseline = baseline or own
        if baseline is None:
            labels = [column.label for column in self._summary.columns]
            raise InputError(f"the sweep has no baseline; name one of {', '.join(labels)}")
        names = [metrics] if isinstance(metrics, str) else list(metrics)
        means.choose_metrics(self._summary, names)
        cells = self._narrow
        if baseline != own:
            cells = baseline_metrics.recompute(cells, self.config["swept"], baseline, self._cache)
        asked = {**table_options(self.config), "baseline": baseline}
        found = contrasts.compare(cells, chosen=names, **asked)
        return _frame(contrasts.SCHEMA.empty_table() if found is None else found)

    def means(self, *metrics: str) -> pd.DataFrame:
        """Means over seeds, a row a trace, capacity and policy, each with half its interval."""
        return pd.DataFrame(means.rows(self._summary, self._metrics(metrics)))

    def to_csv(self, path: str | Path | None = None, *, metrics: Sequence[str] = ()) -> str | None:
        """Write `means` as CSV; return the text where no file is named."""
        text = self.means(*metrics).to_csv(index=False)
        return _written(text, path)

    def to_latex(
        self, path: str | Path | None = None, *, metrics: Sequence[str] = ()
    ) -> str | None:
        """Write `means` as a LaTeX table (package booktabs); return it where no file is named."""
        return _written(means.to_latex(self._summary, self._metrics(metrics)), path)

    def plot(self, metric: str = "jct_mean_s", *, to: str | Path | None = None) -> go.Figure:
        """Draw a metric against capacity, a line a policy, with 95 % intervals.

        Parameters
        ----------
        metric : str
            Any of the cells' metrics.
        to : str or path, optional
            Write it, too: a file that ends in .svg, .pdf, .png or .html.

        Returns
        -------
        plotly.graph_objects.Figure
            Which draws itself in a notebook.
        """
        if to is not None:
            drawing.write(self._summary, metric, Path(to).expanduser())
        return drawing.plotly_figure(self._summary, metric)

    def cell(self, **labels: Any) -> Cell:
        """Look at one cell: ``cell(policy="srpt", capacity=0.7, trace="alibaba_synth", seed=0)``.

        Labels that all cells share may be left out; those with a dot go as
        ``**{"policy.queues": 5}``.

        Raises
        ------
        InputError
            If no cell has these labels, or several have.
        """
        named = [*AXES, *self.config["swept"]]
        for key in labels:
            if key not in named:
                raise InputError(unknown("label of a cell", key, named))
        columns = {key: factorize(self._narrow[key]) for key in named}
        there = np.ones(self._narrow.num_rows, bool)
        for key, value in labels.items():
            values, which = columns[key]
            same = [k for k, has in enumerate(values) if text(has) == text(_like(has, value))]
            there &= np.isin(which, same)
        found = np.flatnonzero(there)
        if len(found) != 1:
            among = found if len(found) else slice(None)
            left = {
                key: list(dict.fromkeys(text(values[k]) for k in np.unique(which[among])))
                for key, (values, which) in columns.items()
            }
            words = [f"{key}={','.join(v[:8])}" for key, v in left.items() if len(v) > 1]
            asked = ", ".join(f"{key}={value}" for key, value in labels.items()) or "all"
            n = f"{len(found)} cells" if len(found) else "no cell"
            raise InputError(f"{asked}: {n} of {self.id}; choose by {'; '.join(words)}")
        return Cell(self, int(found[0]))

    @cached_property
    def _narrow(self) -> pa.Table:
        return cells_table.read(self._folder)

    @cached_property
    def _summary(self) -> Summary:
        return summarise(self._narrow, **table_options(self.config))

    @property
    def _cache(self) -> Cache:
        return Cache(self._folder.results)

    def _metrics(self, named: Sequence[str]) -> list[str]:
        asked = [name for name in self.config["metrics"] if name in self._summary.metrics]
        return means.choose_metrics(self._summary, list(named) or asked)

    def __repr__(self) -> str:
        found = self._folder.sentences()
        lines = [f"Sweep {self.id}: {self._words()}", *(f"  {line}" for line in found[:10])]
        if len(found) > 10:
            lines.append(f"  and {len(found) - 10} more in .verdict")
        return "\n".join([*lines, f"  {self.folder}"])

    def _words(self) -> str:
        summary = self._summary
        n_failed = summary.n_failed
        counts = (
            (len(dict.fromkeys(column.policy for column in summary.columns)), "policy", "policies"),
            (len(dict.fromkeys(block.trace for block in summary.blocks)), "trace", "traces"),
            (len(summary.capacities), "capacity", "capacities"),
            (len(summary.seeds), "seed", "seeds"),
        )
        words = " × ".join(f"{n} {one if n == 1 else many}" for n, one, many in counts)
        cells = f"{summary.n_cells} cell{'s' * (summary.n_cells != 1)}"
        return f"{words}, {cells}" + (f", {n_failed} failed" if n_failed else "")

    def _repr_html_(self) -> str:
        """Give a notebook the verdict, and the means."""
        head = html.escape(f"Sweep {self.id}: {self._words()}")
        said = "".join(f"<p>{html.escape(line)}</p>" for line in self._folder.sentences())
        return f"<p><b>{head}</b></p>{said}{self.means().to_html(index=False)}"


class Cell:
    """One cell of a sweep."""

    def __init__(self, of: Sweep, row: int) -> None:
        self._of, self._at = of, row
        self._row = of._folder.row(row)

    @property
    def labels(self) -> dict[str, Any]:
        """Its policy, trace, capacity, seed, and whatever else is swept."""
        return {key: self._row[key] for key in (*AXES, *self._of.config["swept"])}

    @property
    def status(self) -> str:
        """``done``, ``cached`` or ``failed``."""
        return str(self._row["status"])

    @property
    def metrics(self) -> dict[str, float]:
        """Its metrics by name."""
        skip = {*NOT_METRICS, *self.labels}
        return {k: v for k, v in self._row.items() if k not in skip and isinstance(v, float)}

    @property
    def config(self) -> dict[str, Any]:
        """Everything that it was run with."""
        config: dict[str, Any] = json.loads(self._row["config"])
        return config

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """A row a job: ``submit_s``, ``start_s``, ``finish_s``, ``failed``, ...

        It is what the cache keeps. Where that is gone the cell is run again in this process, which
        is said on standard error.
        """
        if self.status == "failed":
            row = self._row
            why = f"{row['error_type']} ({row['error_stage']}): {row['error_message']}"
            raise InputError(f"this cell failed: {why}; {row['reproduce']} shows it")
        kept = self._of._cache.get(self._row["key"])
        table = self._again() if kept is None else kept.jobs
        assert table is not None
        return _frame(table)

    def _again(self) -> Any:
        folder = self._of._folder
        notes.note(f"{self!r}: not in the cache any more; running it again")
        prepared, planned = driver.plan_cell(driver.repeat_request(folder), self.labels)
        return rerun.rerun_and_store(prepared, planned, self._row["key"]).jobs

    def __repr__(self) -> str:
        labels = (f"{key}={text(value)}" for key, value in self.labels.items() if value is not None)
        return f"Cell {' '.join(labels)}: {self.status}"


def _like(kept: Any, value: Any) -> Any:
    """Write a label that is given as the column has it: a capacity of 1 is 1.0."""
    value = _plain(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if isinstance(kept, float) and is_number else value


def _frame(table: pa.Table) -> pd.DataFrame:
    frame: pd.DataFrame = table.to_pandas()
    return frame


def _written(content: str, path: str | Path | None) -> str | None:
    if path is None:
        return content
    files.write_text(Path(path).expanduser(), content)
    return None
