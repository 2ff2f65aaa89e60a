"""WingStore: what is known of past jobs, for whoever schedules the next (§4.1)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import I8
from sim.base.errors import InputError, did_you_mean
from sim.describe.statistics import Statistic, to_table, write_tables

TABLES = (
    "jobs", "dependencies", "downloads", "templates", "users", "template_dependencies",
    "predictions", "predictability", "forecast_errors", "convergence", "inversions", "blind",
    "costliest", "components",
)  # fmt: skip
"""The tables of a profile; each is a Parquet file of its name."""


@dataclass(frozen=True, eq=False)
class Store:
    """A profile: columns in memory, Parquet on disk. Unknown names are an InputError with a hint.

    Attributes
    ----------
    tables : mapping of str to pyarrow.Table
        By the names in `TABLES`; rows of ``jobs`` and ``templates`` are the keys between them.
    measures : list of Statistic
        The numbers of the report.
    report : dict of str to int
        What was odd in the logs, by rule.
    valued : str
        What jobs are valued by, see `sim.lineage.profile.Options`.
    """

    tables: Mapping[str, pa.Table]
    measures: Sequence[Statistic] = ()
    report: Mapping[str, int] = field(default_factory=dict)
    value_source: str = "downloads"

    def value(self, section: str, key: str) -> float:
        """Return one of the measures; KeyError if there is no such."""
        for m in self.measures:
            if (m.section, m.key) == (section, key):
                return m.value
        raise KeyError((section, key))

    def job(self, job_id: str) -> dict[str, Any]:
        """Return what is known of one past job, a value a column of ``jobs``."""
        return self._row("jobs", "job_id", job_id)

    def template(self, name: str) -> dict[str, Any]:
        """Return what is known of a template: its kind and its distributions."""
        return self._row("templates", "template", name)

    def user(self, name: str) -> dict[str, Any]:
        """Return what is known of a user's ad hoc jobs."""
        return self._row("users", "user", name)

    def jobs_of(self, template: str) -> pa.Table:
        """Return the past runs of a template: whole distributions, a column each."""
        return self.tables["jobs"].take(
            pa.array(self._runs(self._place("templates", "template", template)))
        )

    def dependents(self, template: str) -> list[dict[str, Any]]:
        """Return who reads a template's output in a recurring fashion, the most frequent first.

        ``share`` and ``time_s`` are there where a week was there to learn from.
        """
        return self._neighbours(template, "upstream", "downstream")

    def inputs(self, template: str) -> list[dict[str, Any]]:
        """Return whose output a template reads in a recurring fashion; see `dependents`."""
        return self._neighbours(template, "downstream", "upstream")

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write a Parquet file a table, with ``measures`` and ``report``; return the files.

        The same profile gives the same bytes. Files of other names in the folder stay. The HTML
        page is `sim.lineage.page.write_page`'s.

        Raises
        ------
        InputError
            If the folder can't be made.
        """
        rules = pa.table(
            {
                "rule": pa.array(list(self.report), pa.string()),
                "n": pa.array(list(self.report.values()), pa.int64()),
            }
        )
        measures = to_table(("", m) for m in self.measures)
        whys = pa.array([m.why for m in self.measures], pa.string())
        measures = measures.append_column("why", whys)
        measures = measures.replace_schema_metadata({"value": self.value_source})
        return write_tables({**self.tables, "measures": measures, "report": rules}, folder)[1]

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> Store:
        """Read what `write` wrote; InputError if a table is missing or broken."""
        import pyarrow.parquet as pq

        source = Path(folder)
        tables = {}
        for name in (*TABLES, "measures", "report"):
            path = source / f"{name}.parquet"
            try:
                tables[name] = pq.read_table(path)
            except (OSError, pa.ArrowInvalid) as error:
                raise InputError(
                    f"is no table of a profile ({error}); make one with python -m sim lineage",
                    file=path,
                ) from error
        measures = [
            Statistic(*(r[k] for k in ("section", "key", "label", "value", "kind", "group", "why")))
            for r in tables["measures"].to_pylist()
        ]
        valued = tables.pop("measures").schema.metadata[b"value"].decode()
        rules = tables.pop("report").to_pydict()
        return cls(tables, measures, dict(zip(rules["rule"], rules["n"], strict=True)), valued)

    def _neighbours(self, template: str, here: str, there: str) -> list[dict[str, Any]]:
        place = self._place("templates", "template", template)
        names = self.tables["templates"]["template"]
        expected = {
            (r["upstream"], r["downstream"]): r for r in self._where("predictions", here, place)
        }
        neighbours = []
        for row in self._where("template_dependencies", here, place):
            known = expected.get((row["upstream"], row["downstream"]), {})
            neighbours.append(
                {
                    "template": names[row[there]].as_py(),
                    **{k: row[k] for k in ("n", "hard", "polls")},
                    **{k: known.get(k) for k in ("share", "time_s")},
                }
            )
        return sorted(neighbours, key=lambda row: (-row["n"], row["template"]))

    def _where(self, table: str, column: str, value: int) -> list[dict[str, Any]]:
        whole = self.tables[table]
        rows = np.flatnonzero(whole[column].to_numpy() == value)
        out: list[dict[str, Any]] = whole.take(pa.array(rows)).to_pylist()
        return out

    def _row(self, table: str, column: str, name: str) -> dict[str, Any]:
        place = self._place(table, column, name)
        out: dict[str, Any] = self.tables[table].slice(place, 1).to_pylist()[0]
        return out

    def _place(self, table: str, column: str, name: str) -> int:
        index = self._index[table, column]
        if name not in index:
            kind = column.removesuffix("_id")
            raise InputError(
                f"the profile knows no {kind} {name!r}; {did_you_mean(name, list(index)[:10_000])}"
                f"it has {len(index):,}",
                rule="unknown name",
            )
        return index[name]

    @cached_property
    def _index(self) -> dict[tuple[str, str], dict[str, int]]:
        return {
            (table, column): {
                name: row for row, name in enumerate(self.tables[table][column].to_pylist())
            }
            for table, column in (("jobs", "job_id"), ("templates", "template"), ("users", "user"))
        }

    @cached_property
    def _by_template(self) -> tuple[I8, I8]:
        of = self.tables["jobs"]["template"].to_numpy()
        order = np.argsort(of, kind="stable")
        return order, np.searchsorted(of[order], np.arange(self.tables["templates"].num_rows + 1))

    def _runs(self, template: int) -> I8:
        order, first = self._by_template
        return order[first[template] : first[template + 1]]
