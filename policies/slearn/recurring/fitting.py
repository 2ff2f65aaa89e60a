"""Fit for ``python -m sim fit --generator recurring``."""

from __future__ import annotations

from policies.slearn.recurring.fit import fit
from policies.slearn.recurring.tables import write_tables
from sim.cli import count_lines
from sim.workload.workload import Workload


def fit_tables(
    source: str, out: str, *, sample: str | None, note: str | None, n_slots: int
) -> list[str]:
    """Fit the workload in a folder, write the tables; return what was counted."""
    tables = fit(Workload.read(source), n_slots, note)
    write_tables(tables, out)
    return count_lines({"counted": tables.provenance["counted"]})
