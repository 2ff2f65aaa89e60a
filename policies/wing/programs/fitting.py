"""Fit for ``python -m sim fit --generator programs``."""

from __future__ import annotations

from policies.wing.programs import file
from sim.workload.workload import Workload


def fit_tables(
    source: str, out: str, *, sample: str | None, note: str | None, n_slots: int
) -> list[str]:
    """Fit the workload in a folder, write the tables; return what was counted."""
    fitted = file.fit(Workload.read(source))
    file.write(fitted, out)
    known = sum(card.is_program for card in fitted.programs)
    return [
        f"{fitted.n_jobs:,} jobs; {known:,} kinds of runs of programs, "
        f"{len(fitted.programs) - known:,} of users' other jobs"
    ]
