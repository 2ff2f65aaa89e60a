"""What two queues cost, and how fair they are served (DAGPS, Table 4)."""

from __future__ import annotations

from sweep.report.findings import Finding, Finished

ONE, TWO = "tpcds_stream", "tpcds_two_queues"
PAPER = {
    "tez": (-13, 0.82, 0.86, 0.88),
    "tez_drf": (-12, 0.85, 0.89, 0.90),
    "tez_tetris": (-10, 0.77, 0.81, 0.92),
    "dagps": (2, 0.72, 0.83, 0.89),
}
WINDOWS_S = (10, 60, 240)


def find(finished: Finished) -> list[Finding]:
    """Give the change of the median JCT from one queue to two, and Jain's index with two."""
    found = []
    for (policy,), cells in finished.by("policy").items():
        one = {row["seed"]: row for row in cells if row["trace"] == ONE}
        two = [row for row in cells if row["trace"] == TWO]
        paper = tuple(f"{value:g}" for value in PAPER.get(policy, ())) or ("",) * 4
        gap = [100.0 * (1.0 - row["jct_p50_s"] / one[row["seed"]]["jct_p50_s"]) for row in two]
        found.append(Finding.of(policy, "two queues against one, %", gap, paper=paper[0]))
        for at, window in enumerate(WINDOWS_S):
            name = f"jain_{window}s"
            values = [row[name] for row in two]
            what = f"Jain's index, windows of {window} s"
            found.append(Finding.of(policy, what, values, paper=paper[1 + at]))
    return found
