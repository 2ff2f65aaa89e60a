"""How near synthesized workloads come to what is published of the real ones."""

from __future__ import annotations

from sweep.report.findings import Finding, Finished


def find(finished: Finished) -> list[Finding]:
    """Give every published number, beside the mean of ours over seeds."""
    tables = [finished.table(row).to_pylist() for row in finished.cells]
    return [
        Finding.of(
            rows[0]["figure"],
            rows[0]["what"],
            [row["ours"] for row in rows],
            paper=f"{rows[0]['paper']:.4g}",
        )
        for rows in zip(*tables, strict=True)
    ]
