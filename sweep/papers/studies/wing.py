"""How value is spread over jobs (Wing, OSDI 2020, Fig. 8)."""

from __future__ import annotations

import numpy as np

from sweep.papers.declared import printed
from sweep.report.findings import Finding, Finished

EXPONENTS = {
    "zipf_value": "exponent of local value",
    "zipf_agg_value": "exponent of aggregate value",
}
VALUES = {"value": "local value", "agg_value": "aggregate value"}
RANKS = (1, 10, 100, 1000, 10_000)
"""Ranks at which value is shown beside Zipf's."""


def fig8(finished: Finished) -> list[Finding]:
    """Show value at some ranks, beside what the most valued job's falls to by Zipf's law, s = 1."""
    findings = []
    for metric, what in EXPONENTS.items():
        values = [row[metric] for row in finished.cells]
        paper = printed("wing", "fig8", metric)
        findings.append(Finding.of("all jobs of the week", what, values, paper=paper))
    tables = [finished.table(row) for row in finished.cells]
    for column, what in VALUES.items():
        ranked = [np.sort(table[column].to_numpy())[::-1] for table in tables]
        least = min(len(values) for values in ranked)
        for rank in [r for r in RANKS if r < least] + [least]:
            part = [values[rank - 1] * rank / values[0] for values in ranked]
            findings.append(Finding.of(f"{what} over Zipf's", f"rank {rank:,}", part))
        top = [100.0 * values[: len(values) // 100].sum() / values.sum() for values in ranked]
        findings.append(Finding.of("value of the first 1 % of jobs, %", what, top))
    return findings
