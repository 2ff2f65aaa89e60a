"""Data of the HTML report that Markdown does not have: plots, and distributions over jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base import html
from sim.base.html.alt_text import alt_text
from sweep.report import gantt as report_gantt
from sweep.report import job_samples, overview, table
from sweep.report import plots as report_plots
from sweep.report.section import Section
from sweep.stats.cell_columns import text
from sweep.stats.metric_format import style
from sweep.stats.summary import Block, Summary
from sweep.stats.verdict import Verdict
from sweep.store.cache import Cache

JobData = tuple[job_samples.JobSamples, report_gantt.Gantt | None]
"""Data read from the cells' cached files."""


def read_jobs(
    cells: pa.Table,
    cache: Cache | None,
    row: int | None,
    swept: Sequence[str],
    baseline: str | None,
) -> JobData:
    """Read the jobs of sampled cells from a cache; see `sweep.report.write` for the arguments."""
    if cache is None or "key" not in cells.column_names:
        return job_samples.JobSamples([], []), None
    sampled = job_samples.sample_jobs(cells, cache, swept=swept, baseline=baseline)
    return sampled, report_gantt.choose(cells, cache, row)


MAX_FRONTS = 6


class _Plots:
    """Figures of the page with their captions."""

    def __init__(self) -> None:
        self.figures: list[dict[str, Any]] = []

    def add(self, figure: dict[str, Any], caption: str, **fields: str) -> dict[str, str]:
        self.figures.append(figure)
        number = len(self.figures) - 1
        alt = alt_text(figure)
        return {
            "id": f"plot-{number}",
            "caption": caption,
            "alt": alt,
            "code": "",
            "note": "",
            **fields,
        }


def context(
    summary: Summary,
    figures: pa.Table | None,
    job_data: JobData,
    sections: Sequence[Section] = (),
    verdicts: Sequence[Verdict] = (),
) -> dict[str, Any]:
    """Return the template's variables that only the page needs."""
    sampled, schedule = job_data
    plots = _Plots()
    first_plots, sections = _first_plots(plots, summary, sections, verdicts)
    fronts = [
        plots.add(
            report_plots.front(summary, block, k, front), _front_caption(summary, block, k, front)
        )
        for block in summary.blocks
        for k, front in overview.fronts(summary, block)
    ][:MAX_FRONTS]
    curves = {} if figures is None else report_plots.curves(figures, len(summary.columns))
    curve_plots = [plots.add(figure, name) for name, figure in curves.items()]
    blocks = []
    for number, block in enumerate(summary.blocks):
        families = []
        for family, metrics in groupby(summary.eventful, key=lambda name: style(name).family):
            family_plots = [_metric_plot(plots, summary, block, metric) for metric in metrics]
            families.append({"name": family, "plots": family_plots})
        for sample in sampled.samples if families else ():
            if sample.block == number:
                name = f"Jobs at capacity {text(sample.capacity)}"
                job_figures = report_plots.figures(sample, summary.columns)
                family_plots = [
                    plots.add(f, caption, note=note) for caption, note, f in job_figures
                ]
                families.append({"name": name, "plots": family_plots})
        blocks.append(
            {
                "id": f"block-{number}",
                "title": block.title,
                "families": families,
                "table": table.build_table(summary, block, summary.eventful),
            }
        )
    gantt = None
    if schedule is not None:
        note = f"row {schedule.row}; report --gantt ROW draws another"
        gantt = plots.add(report_gantt.figure(schedule), schedule.title, note=note)
    return {
        "sections": [
            {
                **vars(section),
                "plots": [plots.add(dict(p.figure), p.caption, note=p.note) for p in section.plots],
                "table_models": [table_of_section.model for table_of_section in section.tables],
            }
            for section in sections
        ],
        "first_plots": first_plots,
        "blocks": blocks,
        "curves": curve_plots,
        "fronts": fronts,
        "paired": any(not np.isnan(block.paired).all() for block in summary.blocks),
        "gantt": gantt,
        "left_out": sampled.left_out,
        "columns": [
            {
                "label": column.label,
                "is_baseline": column.is_baseline,
                "symbol": html.symbol(index),
                "colour": index % html.N_COLOURS,
            }
            for index, column in enumerate(summary.columns)
        ],
        "legend": table.legend(summary, best="bold"),
        "meanings": {name: style(name).meaning for name in summary.metrics if style(name).meaning},
        **html.embedded(plots.figures),
    }


MAX_FIRST = 3
"""Most plots of the first screen."""


def _first_plots(
    plots: _Plots,
    summary: Summary,
    sections: Sequence[Section],
    verdicts: Sequence[Verdict],
) -> tuple[list[dict[str, str]], list[Section]]:
    """Draw the plots beside the answer; return the sections without them.

    They are the first of the section that answers, or the metric of the verdicts of each world.
    """
    rest = list(sections)
    for number, section in enumerate(rest):
        if section.is_answer and section.plots:
            (first, *further) = section.plots
            rest[number] = replace(section, plots=tuple(further))
            return [plots.add(dict(first.figure), first.caption, note=first.note)], rest
    if any(section.is_answer for section in rest):
        return [], rest
    drawn = []
    for block in summary.blocks[:MAX_FIRST]:
        own = [v for v in verdicts if (v.trace, v.settings) == (block.trace, block.settings)]
        if not own or own[0].metric not in summary.metrics:
            continue
        metric = own[0].metric
        best = {verdict.capacity: verdict.best for verdict in own}
        figure = report_plots.figure(summary, block, metric, best=best)
        is_line = len(block.capacities) > 1
        figure["layout"]["showlegend"] = is_line
        where = f", {block.title}" if len(summary.blocks) > 1 else ""
        notes = ["large marks: the best, or not told from it"] if is_line else []
        if summary.baseline is not None and not np.isnan(block.paired).all():
            notes.append(f"bars: 95% intervals of the difference from {summary.baseline}")
        note = "; ".join(notes)
        drawn.append(plots.add(figure, f"{style(metric).label}{where}", note=note))
    return drawn, rest


def _front_caption(summary: Summary, block: Block, capacity: int, front: Sequence[int]) -> str:
    where = f"{block.title}, " if len(summary.blocks) > 1 else ""
    names = ", ".join(summary.columns[column].label for column in front)
    return f"{where}capacity {table.capacity_text(block, capacity)}; Pareto front: {names}"


def _metric_plot(plots: _Plots, summary: Summary, block: Block, metric: str) -> dict[str, str]:
    metric_style = style(metric)
    note = f"{metric_style.better} is better" if metric_style.better else ""
    note += "; 0 is off the scale" * report_plots.is_log(metric)
    figure = report_plots.figure(summary, block, metric)
    return plots.add(figure, metric_style.label, code=metric, note=note)
