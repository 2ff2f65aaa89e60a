"""What jobs are worth, and how well that is foretold (Wing, OSDI 2020, Figs. 6, 8 and 9)."""

from __future__ import annotations

from sweep.findings import Finding, Finished

FIGURES: dict[str, dict[str, tuple[str, str]]] = {
    "wing/fig8": {
        "zipf_value": ("exponent of local value", "1"),
        "zipf_agg_value": ("exponent of aggregate value", ""),
    },
    "wing/fig9": {
        "near_agg": ("aggregate value over resource-time within 20 %, jobs %", "39"),
        "near_own": ("own value over resource-time within 20 %, jobs %", "44"),
    },
}
"""By experiment and metric: what it is, and what the paper has."""

FOUND = {0: "17", 4: "99", 9: "100"}
"""Percent of mean aggregate value that is found after so many rounds (§4.5.3)."""


def find(finished: Finished) -> list[Finding]:
    """Average over seeds; of Fig. 6, of what is found in the most rounds of the same seed."""
    experiment = finished.config["experiment"]
    if experiment == "wing/fig6":
        return _rounds(finished)
    found = []
    for metric, (what, paper) in FIGURES[experiment].items():
        scale = 100.0 if what.endswith("%") else 1.0
        values = [scale * row[metric] for row in finished.cells]
        found.append(Finding.of("all jobs of the week", what, values, paper=paper))
    return found


def _rounds(finished: Finished) -> list[Finding]:
    most = max(row["trace.rounds"] for row in finished.cells)
    whole = {
        row["seed"]: row["agg_value_mean"] for row in finished.cells if row["trace.rounds"] == most
    }
    found = []
    for (rounds,), cells in finished.by("trace.rounds").items():
        part = [100.0 * row["agg_value_mean"] / whole[row["seed"]] for row in cells]
        what = f"{rounds} rounds"
        figure = "mean aggregate value found, %"
        found.append(Finding.of(figure, what, part, paper=FOUND.get(rounds, "")))
    return found
