"""What the HTML report shows besides what the Markdown one has: plots, and the cells' own jobs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base import html
from sweep.report import gantt as report_gantt
from sweep.report import job_samples, overview, table
from sweep.report import plots as report_plots
from sweep.report.section import Section
from sweep.stats.cell_columns import text
from sweep.stats.metric_format import style
from sweep.stats.summary import Block, Summary
from sweep.store.cache import Cache

Looked = tuple[job_samples.JobSamples, report_gantt.Gantt | None]
"""What the cells' own files show."""


def look(
    cells: pa.Table,
    cache: Cache | None,
    row: int | None,
    swept: Sequence[str],
    baseline: str | None,
) -> Looked:
    """Look into the cells that a cache keeps; see `sweep.report.write` for the arguments."""
    if cache is None or "key" not in cells.column_names:
        return job_samples.JobSamples([], []), None
    sampled = job_samples.sample_jobs(cells, cache, swept=swept, baseline=baseline)
    return sampled, report_gantt.choose(cells, cache, row)


MOST_FRONTS = 6


class _Plots:
    """The page's figures; each is added with what is written above it."""

    def __init__(self) -> None:
        self.figures: list[dict[str, Any]] = []

    def add(self, figure: dict[str, Any], caption: str, **about: str) -> dict[str, str]:
        self.figures.append(figure)
        number = len(self.figures) - 1
        return {"id": f"plot-{number}", "caption": caption, "code": "", "note": "", **about}


def context(
    summary: Summary, figures: pa.Table | None, looked: Looked, sections: Sequence[Section] = ()
) -> dict[str, Any]:
    """Give the template what only the page has."""
    sampled, schedule = looked
    plots = _Plots()
    fronts = [
        plots.add(report_plots.front(summary, block, k, on), _front_caption(summary, block, k, on))
        for block in summary.blocks
        for k, on in overview.fronts(summary, block)
    ][:MOST_FRONTS]
    curves = {} if figures is None else report_plots.curves(figures, len(summary.columns))
    drawn = [plots.add(figure, name) for name, figure in curves.items()]
    blocks = []
    for number, block in enumerate(summary.blocks):
        families = []
        for family, metrics in groupby(summary.metrics, key=lambda name: style(name).family):
            of_family = [_metric_plot(plots, summary, block, metric) for metric in metrics]
            families.append({"name": family, "plots": of_family})
        for sample in sampled.samples if families else ():
            if sample.block == number:
                name = f"Jobs at capacity {text(sample.capacity)}"
                of_jobs = report_plots.figures(sample, summary.columns)
                of_family = [plots.add(f, caption, note=note) for caption, note, f in of_jobs]
                families.append({"name": name, "plots": of_family})
        blocks.append(
            {
                "id": f"block-{number}",
                "title": block.title,
                "families": families,
                "table": table.build_table(summary, block),
            }
        )
    gantt = None
    if schedule is not None:
        about = f"row {schedule.row}; report --gantt ROW draws another"
        gantt = plots.add(report_gantt.figure(schedule), schedule.title, note=about)
    return {
        "sections": [
            {
                **vars(section),
                "plots": [plots.add(dict(p.figure), p.caption, note=p.note) for p in section.plots],
                "sheets": [one.sheet for one in section.tables],
            }
            for section in sections
        ],
        "blocks": blocks,
        "curves": drawn,
        "fronts": fronts,
        "paired": any(not np.isnan(block.paired).all() for block in summary.blocks),
        "gantt": gantt,
        "left_out": sampled.left_out,
        "columns": [
            {
                "label": column.label,
                "is_baseline": column.is_baseline,
                "symbol": html.symbol(at),
                "colour": at % html.N_COLOURS,
            }
            for at, column in enumerate(summary.columns)
        ],
        "legend": table.legend(summary, best="bold"),
        "meanings": {name: style(name).meaning for name in summary.metrics if style(name).meaning},
        **html.embedded(plots.figures),
    }


def _front_caption(summary: Summary, block: Block, capacity: int, front: Sequence[int]) -> str:
    where = f"{block.title}, " if len(summary.blocks) > 1 else ""
    names = ", ".join(summary.columns[column].label for column in front)
    return f"{where}capacity {table.capacity_text(block, capacity)}: {names} on the front"


def _metric_plot(plots: _Plots, summary: Summary, block: Block, metric: str) -> dict[str, str]:
    look = style(metric)
    note = f"{look.better} is better" if look.better else ""
    note += "; 0 is off the scale" * report_plots.is_log(metric)
    figure = report_plots.figure(summary, block, metric)
    return plots.add(figure, look.label, code=metric, note=note)
