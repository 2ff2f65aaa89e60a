"""What part of the value each policy attains, and what it gains on others (Wing, OSDI 2020, §7)."""

from __future__ import annotations

from typing import Any

from sweep.report.findings import Finding, Finished

Row = dict[str, Any]

PAPER: dict[str, dict[tuple[str, float], str]] = {
    "wing/fig10": {
        ("priority", 1.0): "about 100",
        ("priority", 0.6): "80",
        ("priority", 0.4): "62",
        ("priority", 0.2): "35",
        ("wing_agg", 1.0): "about 100",
        ("wing_agg", 0.6): "87",
        ("wing_agg", 0.4): "77",
        ("wing_agg", 0.2): "55",
        ("wing_mil", 0.2): "slightly below 55",
        ("wing_oracle/agg", 0.2): "63",
    },
    "wing/fig11": {
        ("priority", 0.6): "80",
        ("priority", 0.4): "62",
        ("priority", 0.2): "35",
        ("wing_agg", 0.6): "87",
        ("wing_agg", 0.4): "77",
        ("wing_agg", 0.2): "55",
        ("wing_direct", 0.2): "42",
        ("wing_oracle/agg", 0.2): "63",
        ("wing_oracle/direct", 0.2): "45 or more",
    },
    "wing/fig12": {
        ("priority", 0.6): "100",
        ("wing_direct", 0.6): "100",
        ("wing_agg", 0.6): "100",
        ("priority", 0.4): "93",
        ("wing_direct", 0.4): "97",
        ("wing_agg", 0.4): "99",
        ("priority", 0.2): "47",
        ("wing_direct", 0.2): "84",
        ("wing_agg", 0.2): "93",
        ("wing_oracle/agg", 0.2): "98",
    },
    "wing/rounds": {("0", 0.2): "42", ("2", 0.2): "about 50", ("4", 0.2): "55", ("9", 0.2): "55"},
}
"""Value attained, percent, by experiment and policy (or what else is varied) and capacity."""

FAILED: dict[str, dict[tuple[str, float], str]] = {
    "wing/fig10": {("wing_agg", 0.2): "26"},
    "wing/fig12": {
        ("wing_agg", 0.2): "11",
        ("wing_direct", 0.2): "13",
        ("priority", 0.2): "25",
        ("wing_oracle/agg", 0.2): "7",
    },
}
"""Jobs that fail, percent; 26 is the paper's of Wing-Agg in a multi-queued setting (§7.3)."""

KINDS = {
    ("priority", "value_of_recurring"): "90",
    ("wing_agg", "jobs_failed_recurring"): "25",
    ("wing_agg", "jobs_failed_ad_hoc"): "42",
}
"""Of the measure ``kinds``, percent, at capacity 0.2 (§7.1)."""

NOISE = dict.fromkeys(("1.1", "1.25", "1.5", "2.0", "5.0"), "4 at most") | {"10.0": "11"}
"""What errors cost, in points of all value (§7.2)."""

ORDERS = (
    ("wing_agg", "wing_mil"),
    ("wing_agg", "wing_direct"),
    ("wing_agg", "priority"),
    ("wing_direct", "priority"),
    ("wing_dep", "wing_agg"),
    ("wing_oracle/agg", "wing_agg"),
)
"""Pairs of which the first is to attain at least as much as the second, at capacity 0.4 and 0.2."""

TIGHT = 0.4

OPEN = ("wing/bqetl", "wing/hard")
"""Experiments that the paper has not: whatever comes out is reported, and nothing is wanted."""


def find(finished: Finished) -> list[Finding]:
    """Give value attained and jobs failed, and the differences, seed by seed."""
    experiment = finished.config["experiment"]
    varied = [k for k in finished.config["swept"] if k in ("policy.noise", "trace.rounds")]
    found = []
    for (capacity,), cells in finished.by("capacity").items():
        schemes: dict[str, dict[int, Row]] = {}
        for row in cells:
            name = f"{row[varied[0]]}" if varied else row["policy"]
            schemes.setdefault(name, {})[row["seed"]] = row
        of = f"{varied[0]}, " if varied else ""
        at = f"capacity {capacity:g}"
        for figure, metric, paper in (
            ("value attained %", "value_attained", PAPER.get(experiment, {})),
            ("jobs failed %", "jobs_failed", FAILED.get(experiment, {})),
        ):
            found += [
                Finding.of(
                    f"{of}{at}, {figure}",
                    name,
                    [100.0 * row[metric] for row in rows.values()],
                    paper=paper.get((name, capacity), ""),
                )
                for name, rows in schemes.items()
            ]
        kinds = [key for key in cells[0] if key.endswith(("_recurring", "_ad_hoc"))]
        found += [
            Finding.of(
                f"{at}, {key} %",
                name,
                [100.0 * row[key] for row in rows.values()],
                paper=KINDS.get((name, key), ""),
            )
            for key in kinds
            for name, rows in schemes.items()
        ]
        wanted = {"at_least": 0.0} if capacity <= TIGHT and experiment not in OPEN else {}
        found += _gains(f"{of}{at}, points of value gained", schemes, wanted)
    return found


def _gains(
    figure: str, schemes: dict[str, dict[int, Row]], wanted: dict[str, float]
) -> list[Finding]:
    found = []
    for one, other in ORDERS:
        if one in schemes and other in schemes:
            gains = _points(schemes[one], schemes[other])
            found.append(Finding.of(figure, f"{one} over {other}", gains, **wanted))
    if "1.0" in schemes:
        for name, rows in schemes.items():
            if name != "1.0":
                lost = [-gain for gain in _points(rows, schemes["1.0"])]
                found.append(
                    Finding.of(figure, f"lost by noise {name}", lost, paper=NOISE.get(name, ""))
                )
    return found


def _points(one: dict[int, Row], other: dict[int, Row]) -> list[float]:
    shared = sorted(one.keys() & other.keys())
    return [
        100.0 * (one[seed]["value_attained"] - other[seed]["value_attained"]) for seed in shared
    ]
