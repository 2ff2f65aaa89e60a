"""How much shorter DAGPS makes builds and requests than others do (DAGPS, Fig. 16)."""

from __future__ import annotations

import numpy as np

from sweep.papers.studies.dagps_table5 import gains_over
from sweep.report.findings import Finding, Finished

PAPER = {
    ("build_dags", "tetris"): "20",
    ("build_dags", "list_scheduling/critical_path"): "30",
    ("request_dags", "tetris"): "about 24",
    ("request_dags", "list_scheduling/critical_path"): "about 24",
}
"""Median improvement in percent, as §9 words it."""


def find(finished: Finished) -> list[Finding]:
    """Give quartiles over DAGs, averaged over seeds, of DAGPS over every other policy."""
    found = []
    for (trace,), cells in finished.by("trace").items():
        others = dict.fromkeys(row["policy"] for row in cells if row["policy"] != "dagps")
        for other in others:
            gains = gains_over(other, finished, cells)
            for scheme in ("dagps, as built", "dagps"):
                for q in (25, 50, 75):
                    values = [float(np.percentile(gain, q)) for gain, _ in gains[scheme]]
                    found.append(
                        Finding.of(
                            f"{trace}, improvement over {other}, %",
                            f"{scheme}, p{q}",
                            values,
                            paper=PAPER.get((trace, other), "") if q == 50 else "",
                        )
                    )
    return found
