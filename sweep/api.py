"""Sweeps from Python, for notebooks: `sweep.run`, `sweep.load`, and the `Sweep` that they return.

Tables are pandas frames; figures draw themselves. Everything is read from the sweep's folder, so a
notebook shows the same as the command line.
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
from sweep.store.folder import BACKTEST, SweepFolder

if TYPE_CHECKING:
    import plotly.graph_objects as go


TARGETS = (
    *("policy", "trace", "target", "capacity", "low", "high", "status"),
    *("machines", "seeds", "cells"),
)
LONG = ("reproduce", "config")
"""Columns of long texts, left out of the frame of all cells: there may be very many."""


def run(
    *words: str, config_dir: str | Sequence[str] = (), fail_fast: bool = False, **keys: Any
) -> Sweep:
    """Run a sweep to its end, as ``python -m sweep`` does; cached cells are not run again.

    Parameters
    ----------
    *words : str
        Words of the command line: ``"policy=fifo,srpt"``, ``"seed=range(0,10)"``.
    config_dir : str or sequence of str
        Folders of your own options.
    fail_fast : bool
        Stop at the first failed cell.
    **keys
        The same as keywords: ``baseline="fifo"``, ``capacity=[0.7, 1.0]``, ``seed=range(10)``. A
        string is read as on the command line; several values are an axis. Keys with a dot go as
        ``**{"policy.queues": [5, 10]}``.

    Returns
    -------
    Sweep
        Cells that failed have the status ``failed``.

    Raises
    ------
    InputError
        If the grid is wrong; nothing was started.
    """
    folders = [config_dir] if isinstance(config_dir, str) else list(config_dir)
    arguments = [*words, *(_word(key, value) for key, value in keys.items())]
    for word in arguments:
        if not isinstance(word, str) or not ("=" in word or word.startswith("~")):
            raise InputError(f"{word!r} is not key=value, e.g. policy=fifo,sjf", rule="grammar")
    return Sweep(driver.run(driver.make_request(arguments, folders, fail_fast=fail_fast)).folder)


def load(name: str | Path | None = None, *, results: str | Path | None = None) -> Sweep:
    """Load a finished sweep.

    Parameters
    ----------
    name : str or path, optional
        Its id, its name (the latest of that name) or its folder; left out: the latest begun.
    results : str or path, optional
        Folder of results; ``results`` unless `name` is itself a folder.

    Raises
    ------
    InputError
        If there is none, or it is not finished.
    """
    folder = Options().compose()["paths"]["results"] if results is None else results
    local = sync.fetch(remote_results.working_folder(str(folder)))
    return Sweep(driver.open_intact(local, None if name is None else str(name)))


def _word(key: str, value: Any) -> str:
    """Write a keyword in the command line's grammar."""
    if isinstance(value, str):
        return f"{key}={value}"
    if isinstance(value, range):
        return f"{key}=range({value.start},{value.stop},{value.step})"
    if isinstance(value, Iterable) and not isinstance(value, Mapping):
        parts = [quote(key, _plain(item)).partition("=")[2] for item in value]
        if not parts:
            raise InputError(f"{key} has no values: an axis needs at least one", rule="empty axis")
        return f"{key}={','.join(parts)}"
    return quote(key, _plain(value))


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


class Sweep:
    """A finished sweep.

    Attributes
    ----------
    id : str
        Its id; ``python -m sweep show ID`` and `sweep.load` take it.
    folder : Path
        Folder of its results.
    """

    def __init__(self, folder: SweepFolder) -> None:
        self._folder = folder
        self.id = folder.sweep
        self.folder = folder.path

    @cached_property
    def cells(self) -> pd.DataFrame:
        """A row a cell: policy, trace, capacity, seed, status, swept parameters, every metric.

        Also its key, and the error of a failed cell. `Cell.config` has the configuration.
        """
        names = [name for name in self._folder.schema().names if name not in LONG]
        return _frame(self._folder.cells(names))

    @cached_property
    def config(self) -> dict[str, Any]:
        """Request and resolved configuration (``config.yaml``)."""
        return self._folder.config()

    @property
    def verdict(self) -> list[dict[str, Any]]:
        """Best policies, an entry a trace and capacity; ``sentence`` has it in words."""
        return self._folder.verdict()

    @property
    def targets(self) -> pd.DataFrame:
        """Smallest capacity that meets the target, a row a policy and trace; often no rows."""
        targets = self._folder.targets()
        return pd.DataFrame(columns=list(TARGETS)) if targets is None else _frame(targets)

    @property
    def backtest(self) -> pd.DataFrame:
        """Comparison with the log, a row a policy; no rows without ``backtest.runs=N``."""
        table = self._folder.table(BACKTEST)
        return pd.DataFrame() if table is None else _frame(table)

    def against(self, baseline: str | None = None, metrics: Sequence[str] = ()) -> pd.DataFrame:
        """Compare each policy with a baseline, paired by trace and seed; nothing is run.

        Parameters
        ----------
        baseline : str, optional
            A policy, or a setting of one as the tables name it (``"dagps m=0"``); by default the
            sweep's own baseline.
        metrics : sequence of str
            Metrics to compare; by default the usual ones that differ.

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
        configured = self.config["baseline"]
        baseline = baseline or configured
        if baseline is None:
            labels = [column.label for column in self._summary.columns]
            raise InputError(f"the sweep has no baseline; name one of {', '.join(labels)}")
        names = [metrics] if isinstance(metrics, str) else list(metrics)
        means.choose_metrics(self._summary, names)
        cells = self._narrow
        if baseline != configured:
            cells = baseline_metrics.recompute(cells, self.config["swept"], baseline, self._cache)
        options = {**table_options(self.config), "baseline": baseline}
        comparisons = contrasts.compare(cells, chosen=names, **options)
        return _frame(contrasts.SCHEMA.empty_table() if comparisons is None else comparisons)

    def means(self, *metrics: str) -> pd.DataFrame:
        """Means over seeds with half-widths of intervals, a row a trace, capacity and policy."""
        return pd.DataFrame(means.rows(self._summary, self._metrics(metrics)))

    def to_csv(self, path: str | Path | None = None, *, metrics: Sequence[str] = ()) -> str | None:
        """Write `means` as CSV; return the text if no file is named."""
        text = self.means(*metrics).to_csv(index=False)
        return _write_or_return(text, path)

    def to_latex(
        self, path: str | Path | None = None, *, metrics: Sequence[str] = ()
    ) -> str | None:
        """Write `means` as a LaTeX table (package booktabs); return it if no file is named."""
        return _write_or_return(means.to_latex(self._summary, self._metrics(metrics)), path)

    def plot(self, metric: str = "jct_mean_s", *, to: str | Path | None = None) -> go.Figure:
        """Draw a metric against capacity, a line a policy, with 95 % intervals.

        Parameters
        ----------
        metric : str
            Any of the cells' metrics.
        to : str or path, optional
            File to write: .svg, .pdf, .png or .html.

        Returns
        -------
        plotly.graph_objects.Figure
            A figure that draws itself in a notebook.
        """
        if to is not None:
            drawing.write(self._summary, metric, Path(to).expanduser())
        return drawing.plotly_figure(self._summary, metric)

    def cell(self, **labels: Any) -> Cell:
        """Select one cell: ``cell(policy="srpt", capacity=0.7, trace="alibaba_synth", seed=0)``.

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
        matches = np.ones(self._narrow.num_rows, bool)
        for key, value in labels.items():
            values, codes = columns[key]
            equal = [k for k, v in enumerate(values) if text(v) == text(_as_label(v, value))]
            matches &= np.isin(codes, equal)
        rows = np.flatnonzero(matches)
        if len(rows) != 1:
            candidates = rows if len(rows) else slice(None)
            remaining = {
                key: list(dict.fromkeys(text(values[k]) for k in np.unique(codes[candidates])))
                for key, (values, codes) in columns.items()
            }
            words = [f"{key}={','.join(v[:8])}" for key, v in remaining.items() if len(v) > 1]
            request = ", ".join(f"{key}={value}" for key, value in labels.items()) or "all"
            n = f"{len(rows)} cells" if len(rows) else "no cell"
            raise InputError(f"{request}: {n} of {self.id}; choose by {'; '.join(words)}")
        return Cell(self, int(rows[0]))

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
        shown = [name for name in self.config["metrics"] if name in self._summary.metrics]
        return means.choose_metrics(self._summary, list(named) or shown)

    def __repr__(self) -> str:
        sentences = self._folder.sentences()
        lines = [f"Sweep {self.id}: {self._words()}", *(f"  {line}" for line in sentences[:10])]
        if len(sentences) > 10:
            lines.append(f"  and {len(sentences) - 10} more in .verdict")
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
        words = " × ".join(f"{n} {name if n == 1 else plural}" for n, name, plural in counts)
        cells = f"{summary.n_cells} cell{'s' * (summary.n_cells != 1)}"
        return f"{words}, {cells}" + (f", {n_failed} failed" if n_failed else "")

    def _repr_html_(self) -> str:
        """Return the verdict and the means as HTML for notebooks."""
        head = html.escape(f"Sweep {self.id}: {self._words()}")
        verdict = "".join(f"<p>{html.escape(line)}</p>" for line in self._folder.sentences())
        return f"<p><b>{head}</b></p>{verdict}{self.means().to_html(index=False)}"


class Cell:
    """One cell of a sweep."""

    def __init__(self, sweep: Sweep, row: int) -> None:
        self._sweep = sweep
        self._row = sweep._folder.row(row)

    @property
    def labels(self) -> dict[str, Any]:
        """Policy, trace, capacity, seed, and the other swept parameters."""
        return {key: self._row[key] for key in (*AXES, *self._sweep.config["swept"])}

    @property
    def status(self) -> str:
        """``done``, ``cached`` or ``failed``."""
        return str(self._row["status"])

    @property
    def metrics(self) -> dict[str, float]:
        """Metrics by name."""
        skip = {*NOT_METRICS, *self.labels}
        return {k: v for k, v in self._row.items() if k not in skip and isinstance(v, float)}

    @property
    def config(self) -> dict[str, Any]:
        """Resolved configuration."""
        config: dict[str, Any] = json.loads(self._row["config"])
        return config

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """A row a job: ``submit_s``, ``start_s``, ``finish_s``, ``failed``, ...

        They come from the cache. If they are no longer there, the cell runs again in this process;
        a note on standard error says so.
        """
        if self.status == "failed":
            row = self._row
            reason = f"{row['error_type']} ({row['error_stage']}): {row['error_message']}"
            raise InputError(f"this cell failed: {reason}; {row['reproduce']} shows it")
        cached = self._sweep._cache.get(self._row["key"])
        table = self._run_again() if cached is None else cached.jobs
        assert table is not None
        return _frame(table)

    def _run_again(self) -> Any:
        folder = self._sweep._folder
        notes.note(f"{self!r}: no longer in the cache; running it again")
        prepared, planned = driver.plan_cell(driver.repeat_request(folder), self.labels)
        return rerun.rerun_and_store(prepared, planned, self._row["key"]).jobs

    def __repr__(self) -> str:
        labels = (f"{key}={text(value)}" for key, value in self.labels.items() if value is not None)
        return f"Cell {' '.join(labels)}: {self.status}"


def _as_label(stored: Any, value: Any) -> Any:
    """Convert a label to the column's type: a capacity of 1 is 1.0."""
    value = _plain(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if isinstance(stored, float) and is_number else value


def _frame(table: pa.Table) -> pd.DataFrame:
    frame: pd.DataFrame = table.to_pandas()
    return frame


def _write_or_return(content: str, path: str | Path | None) -> str | None:
    if path is None:
        return content
    files.write_text(Path(path).expanduser(), content)
    return None
