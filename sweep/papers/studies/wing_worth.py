"""What jobs are worth, and how well that is foretold (Wing, OSDI 2020, Figs. 6, 8 and 9)."""

from __future__ import annotations

import numpy as np

from sweep.report.findings import Finding, Finished

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

RANKS = (1, 10, 100, 1000, 10_000)
"""Ranks at which value is shown beside Zipf's (Fig. 8)."""

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
    return found + (_by_rank(finished) if experiment == "wing/fig8" else [])


def _by_rank(finished: Finished) -> list[Finding]:
    """Show value at some ranks, beside what the most valued job's falls to by Zipf's law, s = 1."""
    found = []
    tables = [finished.table(row) for row in finished.cells]
    for column, what in (("value", "local value"), ("agg_value", "aggregate value")):
        ranked = [np.sort(table[column].to_numpy())[::-1] for table in tables]
        least = min(len(values) for values in ranked)
        for rank in [r for r in RANKS if r < least] + [least]:
            part = [values[rank - 1] * rank / values[0] for values in ranked]
            found.append(Finding.of(f"{what} over Zipf's", f"rank {rank:,}", part))
        top = [100.0 * values[: len(values) // 100].sum() / values.sum() for values in ranked]
        found.append(Finding.of("value of the first 1 % of jobs, %", what, top))
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
