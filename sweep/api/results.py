"""`Sweep`: tables, tests, figures and cells of a finished sweep."""

from __future__ import annotations

import html
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sim.base import files
from sim.base.errors import InputError, did_you_mean, unknown
from sweep.api import frames
from sweep.api.cell import Cell
from sweep.execution import baseline_metrics, cells_table
from sweep.grid import plugins
from sweep.report import drawing, figures, job_values, means
from sweep.stats import contrasts, done_jobs
from sweep.stats.cell_columns import AXES, factorize, table_options, text
from sweep.stats.pairwise import pairwise
from sweep.stats.summary import Summary, summarise
from sweep.store.cache import Cache
from sweep.store.folder import DONE_JOBS, SweepFolder

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

LONG = ("reproduce", "config")
"""Columns of long texts, left out of the frame of all cells: there may be very many."""


class Sweep:
    """A finished sweep.

    Attributes
    ----------
    id : str
        Its id; ``python -m sweep show ID`` and `sweep.load` take it.
    folder : Path
        Folder of its results.
    targets, backtest : pandas.DataFrame
        Smallest capacities that meet a target, and the comparison with a log, a row a policy:
        tables of plug-ins (``FRAMES`` of `sweep.grid.plugins`); often without rows.
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
        return frames.from_arrow(self._folder.cells(names))

    @cached_property
    def config(self) -> dict[str, Any]:
        """Request and resolved configuration (``config.yaml``)."""
        return self._folder.config()

    @property
    def verdict(self) -> list[dict[str, Any]]:
        """Best policies, an entry a trace and capacity; ``sentence`` has it in words."""
        return self._folder.verdict()

    def __getattr__(self, name: str) -> pd.DataFrame:
        """Return a table of a plug-in's, such as ``targets``; one without rows if it has none."""
        tables = {} if name.startswith("_") else plugins.frames()
        if name not in tables:
            raise AttributeError(f"a sweep has no {name!r}; {did_you_mean(name, dir(self))}")
        file, columns = tables[name]
        table = self._folder.table(file)
        return frames.from_rows([], columns) if table is None else frames.from_arrow(table)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *plugins.frames()]

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
            ``low``, ``high``, ``p``, ``p_holm``, ``n_pairs``, ``test``; ``same_jobs`` is False
            where some jobs failed and the two numbers are not of the same jobs.

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
        cells = done_jobs.compared(cells, self._folder.table(DONE_JOBS))
        comparisons = contrasts.compare(cells, chosen=names, **options)
        empty = contrasts.SCHEMA.empty_table()
        return frames.from_arrow(empty if comparisons is None else comparisons)

    def sentence(self, policy: str, other: str, metric: str | None = None) -> str:
        """Say how one policy compares with another, paired by seed: a line a trace and capacity.

        Parameters
        ----------
        policy, other : str
            Policies, or settings of one as the tables name them.
        metric : str, optional
            By default the verdict's.

        Raises
        ------
        InputError
            On an unknown policy or metric, or if they have no seed in common.
        """
        cells = done_jobs.compared(self._narrow, self._folder.table(DONE_JOBS))
        return "\n".join(pairwise(cells, self.config, policy, other, metric))

    def means(self, *metrics: str) -> pd.DataFrame:
        """Means over seeds with half-widths of intervals, a row a trace, capacity and policy."""
        return frames.from_rows(means.rows(self._summary, self._metrics(metrics)))

    def to_csv(self, path: str | Path | None = None, *, metrics: Sequence[str] = ()) -> str | None:
        """Write `means` as CSV; return the text if no file is named."""
        text = self.means(*metrics).to_csv(index=False)
        return _write_or_return(text, path)

    def to_latex(
        self,
        path: str | Path | None = None,
        *,
        metrics: Sequence[str] = (),
        policies: figures.Names = None,
    ) -> str | None:
        r"""Write `means` as a LaTeX table (package booktabs); return it if no file is named.

        Bold marks the best policy that can be run and every one that no test tells from it.
        `policies` chooses their order and names, as in `plot`.
        """
        shown = figures.shown_policies(self._policies, policies)
        text = means.to_latex(self._summary, self._metrics(metrics), shown)
        return _write_or_return(text, path)

    def plot(
        self,
        metric: str = "jct_mean_s",
        *,
        to: str | Path | None = None,
        policies: figures.Names = None,
        traces: figures.Names = None,
        size: figures.Size = None,
        log: bool = False,
        share_y: bool = False,
    ) -> go.Figure:
        """Draw a metric against capacity, a panel a trace, a line a policy, with 95 % intervals.

        Parameters
        ----------
        metric : str
            Any of the cells' metrics.
        to : str or path, optional
            File to write: .svg, .pdf (fonts embedded), .png or .html.
        policies : sequence or mapping of str, optional
            Policies to draw, in this order; a mapping gives their names:
            ``{"fifo": "FIFO", "wing_agg": "Wing"}``.
        traces : sequence or mapping of str, optional
            Traces to draw, in the same way.
        size : (float, float), optional
            Width and height in inches.
        log : bool
            Logarithmic y axis.
        share_y : bool
            One y axis for all traces, instead of one for each.

        Returns
        -------
        plotly.graph_objects.Figure
            A figure that draws itself in a notebook. Colours are safe for colour-blind readers.
        """
        options: dict[str, Any] = {"policies": policies, "traces": traces, "size": size}
        chart = figures.by_capacity(self._summary, metric, log=log, share_y=share_y, **options)
        return _draw(chart, to)

    def cdf(
        self,
        quantity: str = "jct_s",
        *,
        capacity: float | None = None,
        to: str | Path | None = None,
        policies: figures.Names = None,
        traces: figures.Names = None,
        size: figures.Size = None,
        log: bool = True,
    ) -> go.Figure:
        """Draw the distribution of a quantity over the jobs of all seeds, a curve a policy.

        Parameters
        ----------
        quantity : str
            ``jct_s``, ``wait_s``, ``slowdown`` (JCT over critical path), ``gap_lb``, or a column of
            numbers that the evaluator's table has of each job.
        capacity : float, optional
            Which of the sweep's capacities; needed if there are several.
        to, policies, traces, size
            As in `plot`.
        log : bool
            Logarithmic x axis.

        Raises
        ------
        InputError
            On an unknown quantity, capacity or policy, or if the jobs are no longer cached.
        """
        capacities = self._summary.capacities
        if capacity is None and len(capacities) == 1:
            capacity = capacities[0]
        if capacity not in capacities:
            known = ", ".join(text(value) for value in capacities)
            raise InputError(f"capacity={capacity}: choose one of {known}", rule="capacity")
        shown = figures.shown_policies(self._policies, policies)
        panels = job_values.panels(
            self._narrow, self._cache, quantity, capacity, shown, self.config["swept"]
        )
        options: dict[str, Any] = {"policies": shown, "traces": traces, "size": size}
        return _draw(figures.distributions(panels, quantity, log=log, **options), to)

    def caption(self, name: str = "jct_mean_s") -> str:
        """Write a caption for `plot` or `cdf`: number of seeds, and the intervals' test."""
        return figures.caption(self._summary, name)

    @property
    def _policies(self) -> list[str]:
        return [column.label for column in self._summary.columns]

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
        return Cell(self._folder, self._cache, self.config["swept"], int(rows[0]))

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


def _as_label(stored: Any, value: Any) -> Any:
    """Convert a label to the column's type: a capacity of 1 is 1.0."""
    value = plain(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if isinstance(stored, float) and is_number else value


def plain(value: Any) -> Any:
    """Convert a NumPy scalar to Python's."""
    return value.item() if isinstance(value, np.generic) else value


def _draw(chart: drawing.Chart, to: str | Path | None) -> go.Figure:
    if to is not None:
        drawing.write(chart, Path(to).expanduser())
    return drawing.plotly_figure(chart)


def _write_or_return(content: str, path: str | Path | None) -> str | None:
    if path is None:
        return content
    files.write_text(Path(path).expanduser(), content)
    return None
