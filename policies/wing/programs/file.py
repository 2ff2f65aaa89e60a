"""File of fitted programs and of the probability tables from which their jobs are drawn."""

from __future__ import annotations

import os
from dataclasses import dataclass

from policies.wing.programs.profiles import Profile, fit_profiles
from sim.base.dataclass_json import load, save
from sim.synth.fitted.fit import fit_workload
from sim.synth.fitted.tables import Tables
from sim.workload.workload import Workload

FORMAT = "programs 3"
"""First entry of the file."""
MADE_BY = "make it with `python -m sim fit WORKLOAD FILE --generator programs`"


@dataclass(frozen=True)
class Fitted:
    """Programs of a workload, and probability tables of its jobs."""

    source: str
    programs: tuple[Profile, ...]
    tables: Tables

    @property
    def n_jobs(self) -> int:
        """Number of fitted jobs."""
        return sum(len(profile.positions) for profile in self.programs)

    def check(self) -> None:
        """Raise ValueError on missing positions of runs, and on inputs of unknown programs."""
        positions = sorted(i for profile in self.programs for i in profile.positions)
        if not positions or positions != list(range(len(positions))):
            raise ValueError("must have runs with the positions 0, 1, and so on")
        n = len(self.programs)
        if any(not 0 <= up < n for profile in self.programs for up, *_ in profile.inputs):
            raise ValueError(f"must have inputs of programs from 0 to {n - 1}")


def fit(workload: Workload) -> Fitted:
    """Fit programs and tables to a workload."""
    tables = fit_workload(workload)
    return Fitted(str(workload.meta.get("name", "unknown")), fit_profiles(workload), tables)


def write(fitted: Fitted, path: str | os.PathLike[str]) -> None:
    """Write to a file, atomically."""
    save(path, FORMAT, fitted)


def read(path: str | os.PathLike[str]) -> Fitted:
    """Read a file that `write` wrote."""
    return load(Fitted, path, FORMAT, MADE_BY)
