"""Fit for ``python -m sim fit``: tables of any workload, or of published histograms."""

from __future__ import annotations

from policies.alibaba.synth.published import fit
from sim.cli import count_lines
from sim.synth.fitted.tables_file import write_tables


def fit_tables(
    source: str, out: str, *, sample: str | None, note: str | None, n_slots: int
) -> list[str]:
    """Fit the workload in a folder, or histograms and a sample; write; return what was counted."""
    tables = fit(source, sample, note)
    write_tables(tables, out)
    counted = {k: tables.provenance.get(k, {}) for k in ("dropped", "changed", "pooled")}
    lines = [
        f"{tables.n_stages.counts.sum():,} jobs, {tables.n_tasks.counts.sum():,} stages; "
        f"{len(tables.length.parts)} tables of path lengths, {len(tables.level.parts)} of levels",
        *count_lines(counted),
    ]
    if tables.links is None:
        return [
            *lines,
            "  no edges in the input: the tables work with variant=paper only; add --sample FOLDER",
        ]
    return [*lines, *count_lines({"pooled for edges": tables.links.provenance["pooled"]})]
