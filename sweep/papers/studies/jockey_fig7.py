"""What becomes of allocations when deadlines change (Jockey, EuroSys 2012, Fig. 7)."""

from __future__ import annotations

from sweep.report.findings import Finding, Finished

CHANGED = {"halve": "148", "double": "-63", "triple": "-83"}
"""Percent of the allocation."""


def find(finished: Finished) -> list[Finding]:
    """Give the change of the allocation and the deadlines missed, change by change.

    What is wanted is that all new deadlines are met, and that tokens go the right way.
    """
    found = []
    for (change,), cells in finished.by("trace.change").items():
        more = {"at_least": 0.0} if change == "halve" else {"at_most": 0.0}
        values = [100.0 * row["tokens_changed"] for row in cells]
        missed = [100.0 * row["deadlines_missed"] for row in cells]
        found += [
            Finding.of(
                "change of the allocation, %", change, values, paper=CHANGED[change], **more
            ),
            Finding.of("missed deadlines, %", change, missed, paper="0", at_most=0.0),
        ]
    return sorted(found, key=lambda one: one.figure)
