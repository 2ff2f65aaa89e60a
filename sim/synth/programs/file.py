"""The file of programs and of the tables that what they are made of is drawn from."""

from __future__ import annotations

import os
from dataclasses import dataclass

from sim.base.dataclass_json import load, save
from sim.synth.fitted.fit import fit_workload
from sim.synth.fitted.tables import Tables
from sim.synth.programs.profiles import Card, fit_cards
from sim.workload.workload import Workload

FORMAT = "programs 2"
"""First entry of the file."""
MADE_BY = "make it with `python -m sim fit WORKLOAD FILE --generator programs`"


@dataclass(frozen=True)
class Fitted:
    """What a workload's jobs are made of, and the programs that they are runs of."""

    source: str
    programs: tuple[Card, ...]
    tables: Tables

    @property
    def n_jobs(self) -> int:
        """How many jobs were fitted."""
        return sum(len(card.at) for card in self.programs)

    def check(self) -> None:
        """Refuse runs that have no place, and inputs of no program."""
        places = sorted(at for card in self.programs for at in card.at)
        if not places or places != list(range(len(places))):
            raise ValueError("must have runs whose places are 0, 1, and so on")
        n = len(self.programs)
        if any(not 0 <= up < n for card in self.programs for up, *_ in card.inputs):
            raise ValueError(f"must have inputs of programs from 0 to {n - 1}")


def fit(workload: Workload) -> Fitted:
    """Fit a workload."""
    tables = fit_workload(workload)
    return Fitted(str(workload.meta.get("name", "unknown")), fit_cards(workload), tables)


def write(fitted: Fitted, path: str | os.PathLike[str]) -> None:
    """Write to a file, whole or not at all."""
    save(path, FORMAT, fitted)


def read(path: str | os.PathLike[str]) -> Fitted:
    """Read what `write` wrote."""
    return load(Fitted, path, FORMAT, MADE_BY)
