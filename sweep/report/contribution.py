"""Contribution of a plug-in to a finished sweep: to its report, its verdict and its folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from sweep.report.section import Section
from sweep.store.folder import SweepFolder


@dataclass(frozen=True)
class Finished:
    """A finished sweep, as plug-ins are given it."""

    folder: SweepFolder
    cells: pa.Table  # ``cells.parquet``, narrow; see `sweep.execution.cells_table`
    config: Mapping[str, Any]  # ``config.yaml``
    provenance: Mapping[str, Any]
    recorded: SweepFolder | None = None
    """Folder of which this is made anew: what followed from other sweeps is in its verdict."""
    name: str = ""  # of the sweep that has the cells, where the folder is that of another report


@dataclass(frozen=True)
class Contribution:
    """Additions to a sweep's report and verdict; by default none."""

    cells: pa.Table | None = None  # for tables of means and plots; None: all
    sections: tuple[Section, ...] = ()
    beside_answers: tuple[Section, ...] = ()  # shown if a section answers, in place of the verdict
    remarks: Mapping[str, str] = field(default_factory=dict)  # by trace: they end its first verdict
    verdict: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Fields of ``verdict.json`` by trace."""
    lead: tuple[str, ...] = ()  # sentences before any answer, on the terminal and in the report
    answer: Mapping[str, Any] = field(default_factory=dict)  # fields of ``answer.json``


def joined(contributions: Iterable[Contribution]) -> Contribution:
    """Join contributions, in their order."""
    whole = Contribution()
    for added in contributions:
        verdict = {
            trace: {**whole.verdict.get(trace, {}), **added.verdict.get(trace, {})}
            for trace in {**whole.verdict, **added.verdict}
        }
        whole = Contribution(
            whole.cells if added.cells is None else added.cells,
            whole.sections + added.sections,
            whole.beside_answers + added.beside_answers,
            {**whole.remarks, **added.remarks},
            verdict,
            whole.lead + added.lead,
            {**whole.answer, **added.answer},
        )
    return whole
