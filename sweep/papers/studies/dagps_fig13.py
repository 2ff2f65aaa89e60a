"""How close DAGPS's schedules of single DAGs are to lower bounds (DAGPS, Fig. 13)."""

from __future__ import annotations

import numpy as np

from sweep.report.findings import Finding, Finished

CLOSE = 1e-6
"""A schedule this close to a bound, relatively, is optimal."""

PAPER = {"optimal": "40", "p50": "4", "p75": "13", "p90": "25", "worst": "75"}
PUBLISHED_ON = "production_dags"


def find(finished: Finished) -> list[Finding]:
    """Give the share of DAGs proven optimal and percentiles of the distance, in percent."""
    found = []
    for (trace,), cells in finished.by("trace").items():
        tables = [finished.table(row) for row in cells if row["policy"] == "dagps"]
        paper = PAPER if trace == PUBLISHED_ON else {}
        for bound in ("new_lb", "tight_lb", "best of cp_len and twork"):
            values: dict[str, list[float]] = {}
            for table in tables:
                if bound in table.column_names:
                    least = table[bound].to_numpy()
                else:
                    least = np.maximum(table["cp_len"].to_numpy(), table["twork"].to_numpy())
                gap = 100.0 * (table["built_s"].to_numpy() / least - 1.0)
                values.setdefault("optimal", []).append(float(100 * (gap <= 100 * CLOSE).mean()))
                for q in (50, 75, 90):
                    values.setdefault(f"p{q}", []).append(float(np.percentile(gap, q)))
                values.setdefault("worst", []).append(float(gap.max()))
            for what, of in values.items():
                printed = paper.get(what, "") if bound == "new_lb" else ""
                title = f"{trace}, DAGPS above {bound}, %"
                found.append(Finding.of(title, what, of, paper=printed))
    return found
