"""Whether and when jobs come that use a job's output, as foretold (Wing, OSDI 2020, Figs. 2, 3)."""

from __future__ import annotations

from sim.measures.readers import SHOWN
from sweep.report.findings import Finding, Finished

FIGURES: dict[str, dict[str, tuple[str, float]]] = {
    "wing/fig2": {
        "precision": ("precision %", 100.0),
        "recall": ("recall %", 100.0),
    },
    "wing/fig3": {
        "rmse_h": ("error of time, root of mean square, h", 1.0),
        "mae_min": ("error of time, median, min", 1.0),
        "within_20": ("time within 20 %, jobs %", 100.0),
        "over_2x": ("time over-estimated twofold or more, jobs %", 100.0),
    },
}
"""By experiment and metric: what it is, and its unit."""

PAPER = {
    ("recall", 0): "95 at most",
    ("rmse_h", 20): "2.5",
    ("mae_min", 20): "22",
    ("within_20", 20): "50",
    ("over_2x", 20): "7",
}
"""By metric and threshold, %. Nothing is captured beyond what the lowest threshold does."""


def find(finished: Finished) -> list[Finding]:
    """Average over seeds, for each threshold; of Fig. 2 also the best one."""
    experiment = finished.config["experiment"]
    found = [
        Finding.of(
            what,
            f"tr = {tr} %",
            [unit * row[f"{metric}_{tr}"] for row in finished.cells],
            paper=PAPER.get((metric, tr), ""),
        )
        for metric, (what, unit) in FIGURES[experiment].items()
        for tr in SHOWN
    ]
    if experiment == "wing/fig2":
        best = [row["best_tr"] for row in finished.cells]
        found.append(Finding.of("best threshold", "tr %", best, paper="20"))
    return found
