"""How steadily progress indicators foretell the end of a job (Jockey, Fig. 10)."""

from __future__ import annotations

from sweep.report.findings import Finding, Finished

PAPER = {
    "totalworkWithQ": ("2.0", "8.5"),
    "totalwork": ("2.3", "9.3"),
    "vertexfrac": ("2.2", "10.1"),
    "cp": ("3.0", "15.2"),
    "minstage": ("3.3", "19.9"),
    "minstage-inf": ("3.9", "26.7"),
}
"""ΔT and the longest constant interval, % of a job's duration."""

METRICS = {"delta_t": "ΔT, %", "longest_constant": "longest constant interval, %"}


def find(finished: Finished) -> list[Finding]:
    """Give both metrics of each indicator, in percent, over jobs and seeds."""
    found = []
    for place, (metric, title) in enumerate(METRICS.items()):
        for name, paper in PAPER.items():
            values = [100.0 * row[f"{metric}.{name}"] for row in finished.cells]
            found.append(Finding.of(title, name, values, paper=paper[place]))
    return found
