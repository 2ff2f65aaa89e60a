"""How alike synthesized and real DAGs are: the six distances of each generator."""

from __future__ import annotations

from sim.dags.properties import PROPERTIES
from sweep.report.findings import Finding, Finished

PUBLISHED = {
    "paper": (0.03, 0.09, 0.04, 0.09, 0.07, 0.11),
    "ideal": (0.035, 0.026, 0.047, 0.031, 0.011, 0.010),
}
"""What was measured before on the 1,278 whole jobs of the sample; the paper prints curves only."""

MOST, ABOVE_IDEAL = 0.065, 0.02
"""What the improved variant is held to: each distance, and its excess over the ideal generator."""


def find(finished: Finished) -> list[Finding]:
    """Average each distance over halvings; its excess over the ideal generator's, paired."""
    found = []
    rows = {
        generator: sorted(of, key=lambda row: row["seed"])
        for (generator,), of in finished.by("measure.generator").items()
    }
    for generator, cells in rows.items():
        published = PUBLISHED.get(generator)
        for at, name in enumerate(PROPERTIES):
            found.append(
                Finding.of(
                    f"KS distance, {generator}",
                    name.replace("_", " "),
                    [row[f"ks_{name}"] for row in cells],
                    paper=f"{published[at]:g}" if published else "",
                    at_most=MOST if generator == "improved" else float("inf"),
                )
            )
    if {"improved", "ideal"} <= rows.keys():
        for name in PROPERTIES:
            ideal = {row["seed"]: row[f"ks_{name}"] for row in rows["ideal"]}
            excess = [
                row[f"ks_{name}"] - ideal[row["seed"]]
                for row in rows["improved"]
                if row["seed"] in ideal
            ]
            found.append(
                Finding.of(
                    "improved less ideal", name.replace("_", " "), excess, at_most=ABOVE_IDEAL
                )
            )
    return found
