"""The file of programs and of the tables that what they are made of is drawn from: JSON."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sim.base.errors import InputError
from sim.base.files import write_text
from sim.synth.fitted.fit import fit_workload
from sim.synth.fitted.tables_file import read_tables, write_tables
from sim.synth.programs.cards import Card, fit_cards
from sim.workload.workload import Workload

FORMAT = "programs 2"
"""First entry of the file."""


@dataclass(frozen=True)
class Fitted:
    """What a workload's jobs are made of, and the programs that they are runs of."""

    tables: dict[str, Any]  # a file of `sim.synth.alibaba2018`
    programs: list[Card]
    source: str

    @property
    def n_jobs(self) -> int:
        """How many jobs were fitted."""
        return sum(len(card.at) for card in self.programs)


def fit(workload: Workload) -> Fitted:
    """Fit a workload."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "tables.json"
        write_tables(fit_workload(workload), file)
        tables = json.loads(file.read_text(encoding="utf-8"))
        try:
            read_tables(file)
        except InputError:  # too few DAGs to tell what attributes have to do with each other
            tables.pop("joint", None)
    return Fitted(tables, fit_cards(workload), str(workload.meta.get("name", "unknown")))


def write(fitted: Fitted, path: str | os.PathLike[str]) -> None:
    """Write to a file, a line a program, whole or not at all."""
    rows = ",\n".join("  " + json.dumps(asdict(card)) for card in fitted.programs)
    write_text(
        Path(path),
        f'{{"format": {json.dumps(FORMAT)},\n "source": {json.dumps(fitted.source)},\n'
        f' "programs": [\n{rows}\n ],\n "tables": {json.dumps(fitted.tables)}}}\n',
    )


def read(path: str | os.PathLike[str]) -> Fitted:
    """Read what `write` wrote."""
    path = Path(path)
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"can't be read as programs: {error}", file=path) from error
    if not isinstance(raw, dict) or raw.get("format") != FORMAT:
        raise InputError(
            f"must be of the form {FORMAT!r}; make it by "
            "`python -m sim fit WORKLOAD FILE --generator programs`",
            file=path,
        )
    try:
        cards = [Card(**{k: _tupled(v) for k, v in each.items()}) for each in raw["programs"]]
        fitted = Fitted(dict(raw["tables"]), cards, str(raw["source"]))
        places = sorted(at for card in cards for at in card.at)
        if not cards or places != list(range(len(places))):
            raise ValueError("the places of the runs must be 0, 1, and so on")
        if any(not 0 <= up < len(cards) for card in cards for up, *_ in card.inputs):
            raise ValueError("a program reads one that there is not")
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise InputError(f"its programs are wrong: {error}", file=path) from error
    return fitted


def drawn_with(fitted: Fitted, use: Any) -> Any:
    """Call `use` with the file of the tables, and with what they hold."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "tables.json"
        write_text(file, json.dumps(fitted.tables))
        return use(file, read_tables(file))


def _tupled(value: Any) -> Any:
    return tuple(_tupled(each) for each in value) if isinstance(value, list) else value
