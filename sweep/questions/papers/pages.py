"""Pages of reproductions, and the tables that they are rendered from.

A page is a function of its stored table (``tables/NAME.json``: the findings and the words of the
command), of the experiment's texts in ``conf``, of the marks beside a system's studies, and of the
ledger of judgements. So it can be rendered anew without a simulation.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sweep.questions.papers import definitions, ledger, printed, studies
from sweep.questions.papers.excluded import Marks
from sweep.questions.papers.ledger import Entry
from sweep.questions.papers.losses import Losses
from sweep.report import findings
from sweep.report.findings import Finding
from sweep.store.folder import SweepFolder

TABLES = "tables"
_COLUMNS = (
    *("figure", "what", "ours", "low", "high", "paper", "at_least", "at_most", "exact"),
    "number",  # its keys; the text is left out where it is theirs
    "n",  # values that the interval is of, beside such a number
)
_SAME_BITS = ", which gives the same numbers on every machine"


@dataclass(frozen=True)
class Study:
    """An experiment with a study: its texts, and the words that reduce its scale."""

    summary: str
    source: str
    gallery: tuple[str, ...] = ()
    notes: str = ""
    table: str = ""  # title of the whole table, if that is kept beside the page
    name: str = ""  # of the function that makes the findings
    losses: Losses = field(default_factory=Losses)


@dataclass(frozen=True)
class PageTable:
    """Stored table of a page: the findings of a sweep, and the words of its command."""

    words: tuple[str, ...]
    findings: tuple[Finding, ...]
    same_bits: bool = True  # made since the same command gives the same bits on every machine
    workloads: Mapping[str, str] = field(default_factory=dict)  # digest of contents, by trace

    @classmethod
    def from_sweep(cls, folder: SweepFolder) -> PageTable:
        """Take over the findings of a sweep; plotted points that are not tabulated are left out."""
        config, table = folder.config(), folder.findings()
        assert table is not None, "the caller checked that the study did not fail"
        words = [word for word in config["words"] if not word.startswith(("experiment=", "paths."))]
        rows = [
            _finding({**row, "number": printed.parse(row.get("number"))})
            for row in table.to_pylist()
            if row["what"]
        ]
        workloads = ledger.workload_digests(folder.provenance()["inputs"])
        return cls(tuple(words), tuple(rows), workloads=workloads)

    @classmethod
    def read(cls, folder: Path, name: str) -> PageTable | None:
        """Read the table of an experiment's page; None if there is none."""
        path = folder / table_name(name, "json")
        if not path.is_file():
            return None
        content = json.loads(path.read_text(encoding="utf-8"))
        if "rows" not in content:  # the figures of a benchmark
            return None
        rows = [
            dict(zip(content["columns"][: len(row)], row, strict=True)) for row in content["rows"]
        ]
        return cls(
            tuple(content["words"]),
            tuple(map(_finding, rows)),
            content.get("same_bits", True),
            content.get("workloads", {}),
        )

    def rows(self) -> list[dict[str, str]]:
        """Return the rows by column, as texts, each with its figure."""
        header, body = findings.to_text(findings.to_table(self.findings))
        rows, figure = [], ""
        for texts in body:
            row = dict(zip(header, texts, strict=True))
            figure = row.get("figure") or figure
            rows.append({**row, "figure": figure})
        return rows

    def to_json(self) -> str:
        """Write the table: a row a line, without the default values at its end."""
        rows = [_dump(_row(finding)) for finding in self.findings]
        head: dict[str, Any] = {"words": self.words}
        head |= {} if self.same_bits else {"same_bits": False}
        head |= {"workloads": self.workloads} if self.workloads else {}
        lines = [f"{_dump(key)}: {_dump(value)},\n" for key, value in head.items()]
        body = ",\n".join(rows)
        n_columns = max([len(_COLUMNS) - 2, *map(len, map(_row, self.findings))])
        columns = _COLUMNS[:n_columns]
        return f'{{\n{"".join(lines)}"columns": {_dump(columns)},\n"rows": [\n{body}\n]\n}}\n'


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _row(finding: Finding) -> list[Any]:
    ours = finding.ours if math.isfinite(finding.ours) else str(finding.ours)
    optional = (finding.low, finding.high, finding.at_least, finding.at_most)
    low, high, at_least, at_most = (float(x) if math.isfinite(x) else None for x in optional)
    path = list(getattr(finding.paper, "path", ()))
    text = None if path and printed.text(*path) == finding.paper else finding.paper or None
    row: list[Any] = [finding.figure, finding.quantity, ours, low, high, text]
    row += [at_least, at_most, finding.exact or None, path or None]
    row.append(finding.n if path and finding.n else None)
    while row[-1] is None:
        row.pop()
    return row


def _finding(row: dict[str, Any]) -> Finding:
    def number(key: str, default: float) -> float:
        value = row.get(key)
        return default if value is None else float(value)

    return Finding(
        row["figure"],
        row["what"],
        number("ours", math.nan),
        number("low", math.nan),
        number("high", math.nan),
        _paper(row.get("paper") or "", tuple(row.get("number") or ())),
        number("at_least", -math.inf),
        number("at_most", math.inf),
        exact=bool(row.get("exact")),
        n=int(row.get("n") or 0),
    )


def _paper(text: str, path: tuple[str, ...]) -> str:
    """Return a printed number: by its keys, if its text is not in the table."""
    return (printed.with_text(path, text) if text else printed.text(*path)) if path else text


def render(
    name: str, stored: PageTable, study: Study, marks: Marks, judgements: Sequence[Entry] = ()
) -> str:
    """Render the page of an experiment in Markdown: our figures beside those of the source.

    Nothing in it depends on the machine, so that the same numbers give the same page.
    """
    command = " ".join(["python -m sweep reproduce", name, *stored.words])
    title, text = study.table, table_name(name, "md")
    if (page := studies.page(study.name)) is not None:
        body = page(stored.findings, study.losses)
    else:
        body = findings.to_markdown(findings.to_table(stored.findings), marks.reason).rstrip()
    parts = [
        f"# {name}",
        study.summary,
        f"{findings.source_sentence(study.source)} Made by `{command}`"
        f"{_SAME_BITS if stored.same_bits else ''}.",
        body,
        study.notes.strip(),
        definitions.page_text(stored.findings, marks),
        ledger.page_text(judgements, name, stored.workloads),
        f"{title}: [{text}]({text})." if title else "",
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def file_name(name: str) -> str:
    """Return the name of the page of an experiment."""
    return f"{name.replace('/', '-')}.md"


def table_name(name: str, kind: str) -> str:
    """Return the name of a page's table in the page's folder: ``json``, or ``md`` for the whole."""
    return f"{TABLES}/{name.replace('/', '-')}.{kind}"
