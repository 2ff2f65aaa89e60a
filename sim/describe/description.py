"""The outcome: measures and tables of one or several datasets, on paper and on disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import pyarrow as pa

from sim.describe.statistics import Kind, Statistic

SECTIONS = {
    "input": "What was read",
    "overview": "Overview (§3.1, Table 1)",
    "dependencies": "Jobs with dependencies (§3.2)",
    "hourly": "Hour by hour (§3.2)",
    "shapes": "Scatter and gather (§4.1)",
    "structure": "Structure (§4.2)",
    "variability": "Runtime variability (§5)",
    "recurrence": "Recurrence (§6)",
    "levels": "Levels (§7.1)",
}
"""Sections in their order, and their headings; § are of Tian et al., SoCC 2019."""

NOTES = {
    "hourly": "Use is what it would be if nothing ever waited: stages start when their parents are "
    "done. Whole hours only; a thin sample has emptier hours than the trace it is from.",
    "shapes": "Of the jobs read in full.",
    "structure": "Jobs of six and more stages, read in full. Chained stages have one parent and "
    "one child. Maximum parallelism is the exact width of the order. The slopes over sizes' means "
    "are those of Fig. 6's points.",
    "variability": "Jobs of six and more stages. Pairs: a stage and its child, n times apart in "
    "either direction. Sets: three or more children of one stage, or parents of one; the geometric "
    "mean over the smallest. Durations are means over tasks; of a stage whose recorded span is 0 s "
    "nothing is known.",
    "recurrence": "Jobs of six and more stages. Periodic: chains of three or more isomorphic jobs, "
    "each 15 min, 1 h or 1 day (± 5 %) after the one before. Recurring: those with equal requests; "
    "stages are matched by rank. The shares depend on how much of a trace is there.",
    "levels": "Compact levels: the least sum of spans, and of the assignments that reach it the "
    "lowest.",
}


@dataclass(frozen=True)
class Row:
    """One line of a printed table: a number a dataset (None: not measured), and the paper's."""

    group: str
    label: str
    kind: Kind
    values: tuple[float | None, ...]
    paper: float | None


@dataclass(frozen=True, eq=False)
class Description:
    """What is known of some datasets.

    Attributes
    ----------
    names : tuple of str
        The datasets; the first is the one described, the others stand beside it.
    statistics : mapping of str to list of Statistic
        By dataset.
    tables : mapping of str to pyarrow.Table
        Longer ones, of all datasets (column ``dataset``); ``jobs`` is of the first alone.
    paper : mapping of (section, key) to float
        What the paper reports of the first; empty if it is not of the paper's trace.
    """

    names: tuple[str, ...]
    statistics: Mapping[str, Sequence[Statistic]]
    tables: Mapping[str, pa.Table]
    paper: Mapping[tuple[str, str], float]

    def value(self, section: str, key: str, dataset: str | None = None) -> float:
        """Return one number, of the first dataset unless told otherwise.

        Raises
        ------
        KeyError
            If the dataset has no such number.
        """
        for m in self.statistics[dataset or self.names[0]]:
            if (m.section, m.key) == (section, key):
                return m.value
        raise KeyError((section, key))

    def rows(self, section: str) -> list[Row]:
        """Return the lines of a section, groups together: of what the first dataset has.

        Of what was read (section ``input``), every dataset's.
        """
        by_group: dict[str, dict[str, Statistic]] = {}
        by_name = {
            name: {m.key: m for m in self.statistics[name] if m.section == section}
            for name in self.names
        }
        wanted = self.names if section == "input" else self.names[:1]
        for name in wanted:
            for key, m in by_name[name].items():
                by_group.setdefault(m.group, {}).setdefault(key, m)
        return [
            Row(
                m.group,
                m.label,
                m.kind,
                tuple(by_name[n][key].value if key in by_name[n] else None for n in self.names),
                self.paper.get((section, key)),
            )
            for group in by_group.values()
            for key, m in group.items()
        ]

    def groups(self, section: str) -> Iterator[tuple[str, list[Row]]]:
        """Return the lines of a section by sub-heading."""
        for group, rows in groupby(self.rows(section), key=lambda row: row.group):
            yield group, list(rows)
