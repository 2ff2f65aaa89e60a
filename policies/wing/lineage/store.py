"""WingStore: statistics of past jobs, to schedule the next ones by (§4.1)."""

from __future__ import annotations

import json
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
from sim.base.table_files import write_tables
from sim.describe.statistics import Statistic, to_table

TABLES = (
    "jobs", "dependencies", "downloads", "templates", "users", "template_dependencies",
    "predictions", "predictability", "forecast_errors", "convergence", "inversions", "blind",
    "costliest", "components",
)  # fmt: skip
"""The tables of a profile; each is a Parquet file of its name."""


@dataclass(frozen=True, eq=False)
class Store:
    """A profile: columns in memory, Parquet on disk. An unknown name raises InputError with a hint.

    Attributes
    ----------
    tables : mapping of str to pyarrow.Table
        By the names in `TABLES`; they refer to each other by rows of ``jobs`` and ``templates``.
    measures : list of Statistic
        The numbers of the report.
    report : dict of str to int
        Counts of anomalies in the logs, by rule.
    value_source : str
        Source of a job's value, see `policies.wing.lineage.options.Options`.
    notes : sequence of str
        What to know of the logs before all else, a sentence each.
    """

    tables: Mapping[str, pa.Table]
    measures: Sequence[Statistic] = ()
    report: Mapping[str, int] = field(default_factory=dict)
    value_source: str = "downloads"
    notes: Sequence[str] = ()

    def value(self, section: str, key: str) -> float:
        """Return a measure by section and key; KeyError if it does not exist."""
        for m in self.measures:
            if (m.section, m.key) == (section, key):
                return m.value
        raise KeyError((section, key))

    def job(self, job_id: str) -> dict[str, Any]:
        """Return one past job as a dict: a value per column of ``jobs``."""
        return self._row("jobs", "job_id", job_id)

    def template(self, name: str) -> dict[str, Any]:
        """Return one template as a dict: its kind and its distributions."""
        return self._row("templates", "template", name)

    def user(self, name: str) -> dict[str, Any]:
        """Return the distributions of a user's ad hoc jobs."""
        return self._row("users", "user", name)

    def jobs_of(self, template: str) -> pa.Table:
        """Return the past runs of a template as a table: the whole distribution of each column."""
        return self.tables["jobs"].take(
            pa.array(self._runs(self._find_row("templates", "template", template)))
        )

    def dependents(self, template: str) -> list[dict[str, Any]]:
        """Return the templates that regularly read a template's output, the most frequent first.

        ``share`` and ``time_s`` are None where the log was too short to learn them.
        """
        return self._neighbours(template, "upstream", "downstream")

    def inputs(self, template: str) -> list[dict[str, Any]]:
        """Return the templates whose output a template regularly reads; see `dependents`."""
        return self._neighbours(template, "downstream", "upstream")

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write one Parquet file per table, with ``measures`` and ``report``; return the files.

        The same profile gives the same bytes. Files of other names in the folder stay.
        `policies.wing.lineage.page.write_page` writes the HTML page.

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
        rules = rules.replace_schema_metadata({"notes": json.dumps(list(self.notes))})
        measures = to_table(("", m) for m in self.measures)
        whys = pa.array([m.why for m in self.measures], pa.string())
        measures = measures.append_column("why", whys)
        measures = measures.replace_schema_metadata({"value": self.value_source})
        return write_tables({**self.tables, "measures": measures, "report": rules}, folder)[1]

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> Store:
        """Read a profile written by `write`; InputError if a table is missing or broken."""
        import pyarrow.parquet as pq

        source = Path(folder)
        tables = {}
        for name in (*TABLES, "measures", "report"):
            path = source / f"{name}.parquet"
            try:
                tables[name] = pq.read_table(path)
            except (OSError, pa.ArrowInvalid) as error:
                raise InputError(
                    f"is not a table of a profile ({error}); make one with python -m sim lineage",
                    file=path,
                ) from error
        measures = [
            Statistic(*(r[k] for k in ("section", "key", "label", "value", "kind", "group", "why")))
            for r in tables["measures"].to_pylist()
        ]
        value_source = tables.pop("measures").schema.metadata[b"value"].decode()
        report = tables.pop("report")
        notes = tuple(json.loads((report.schema.metadata or {}).get(b"notes", b"[]")))
        counts = dict(zip(report["rule"].to_pylist(), report["n"].to_pylist(), strict=True))
        return cls(tables, measures, counts, value_source, notes)

    def _neighbours(self, template: str, side: str, other_side: str) -> list[dict[str, Any]]:
        row = self._find_row("templates", "template", template)
        names = self.tables["templates"]["template"]
        predictions = {
            (p["upstream"], p["downstream"]): p
            for p in self._matching_rows("predictions", side, row)
        }
        neighbours = []
        for pair in self._matching_rows("template_dependencies", side, row):
            prediction = predictions.get((pair["upstream"], pair["downstream"]), {})
            neighbours.append(
                {
                    "template": names[pair[other_side]].as_py(),
                    **{k: pair[k] for k in ("n", "hard", "polls")},
                    **{k: prediction.get(k) for k in ("share", "time_s")},
                }
            )
        return sorted(neighbours, key=lambda pair: (-pair["n"], pair["template"]))

    def _matching_rows(self, table: str, column: str, value: int) -> list[dict[str, Any]]:
        whole = self.tables[table]
        rows = np.flatnonzero(whole[column].to_numpy() == value)
        out: list[dict[str, Any]] = whole.take(pa.array(rows)).to_pylist()
        return out

    def _row(self, table: str, column: str, name: str) -> dict[str, Any]:
        place = self._find_row(table, column, name)
        out: dict[str, Any] = self.tables[table].slice(place, 1).to_pylist()[0]
        return out

    def _find_row(self, table: str, column: str, name: str) -> int:
        index = self._index[table, column]
        if name not in index:
            kind = column.removesuffix("_id")
            raise InputError(
                f"the profile has no {kind} {name!r}; {did_you_mean(name, list(index)[:10_000])}"
                f"it has {len(index):,} {kind}s",
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
        template = self.tables["jobs"]["template"].to_numpy()
        order = np.argsort(template, kind="stable")
        return order, np.searchsorted(
            template[order], np.arange(self.tables["templates"].num_rows + 1)
        )

    def _runs(self, template: int) -> I8:
        order, first = self._by_template
        return order[first[template] : first[template + 1]]
