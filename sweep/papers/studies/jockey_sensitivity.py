"""Jockey with other constants and other indicators (Jockey, EuroSys 2012, Figs. 11 to 13)."""

from __future__ import annotations

from sweep.report.findings import Finding, Finished

FIG_11 = {
    "jockey": (95, -14, 35, 52.9),
    "jockey_with/no_hysteresis_no_dead_zone": (57, -2, 25, 49.7),
    "jockey_with/no_dead_zone": (90, -9, 30, 50.3),
    "jockey_with/no_slack_less_hysteresis": (76, -5, 27, 44.9),
    "jockey_with/period_5_min": (95, -22, 35, 45.7),
    "jockey_with/minstage": (100, -16, 34, 48.2),
    "jockey_with/cp": (95, -16, 31, 44.9),
}
"""Deadlines met, %; completion against the deadline, %; allocation above the oracle's, %; and
median allocation."""

SHOWN = (
    ("deadlines met, %", "deadlines_missed", -100.0, 100.0),
    ("completion against the deadline, %", "relative_finish", 100.0, -100.0),
    ("allocation above the oracle's, %", "allocation_above_oracle", 100.0, 0.0),
    ("median allocation", "tokens_p50", 1.0, 0.0),
    ("first allocation", "tokens_first", 1.0, 0.0),
    ("largest allocation", "tokens_max", 1.0, 0.0),
    ("last allocation", "tokens_last", 1.0, 0.0),
    ("allocated, token hours", "token_hours", 1.0, 0.0),
)
"""Figure, metric, and what it is multiplied by and added to."""


def find(finished: Finished) -> list[Finding]:
    """Give each figure for each policy, or for each value of the constant that is swept."""
    swept = [key for key in finished.config["swept"] if key.startswith("policy.")]
    key = swept[0] if swept else "policy"
    groups = finished.by(key)
    found = []
    for at, (figure, metric, times, plus) in enumerate(SHOWN):
        for (value,), cells in groups.items():
            published = FIG_11.get(value) if key == "policy" else None
            paper = f"{published[at]:g}" if published and at < len(published) else ""
            name = value if key == "policy" else f"{key.partition('.')[2]} {value}"
            values = [times * row[metric] + plus for row in cells]
            found.append(Finding.of(figure, name, values, paper=paper))
    return found
