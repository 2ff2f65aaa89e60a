"""Reader of a text with a job a line: submission and run time, s."""

from pathlib import Path

import sim


def read(path, *, slots: int = 1):
    """Read the text; each job takes some slots."""
    with Path(path).open(encoding="utf-8") as lines:
        rows = [tuple(map(float, line.split())) for line in lines]
    jobs = [
        {"submit_s": submit_s, "stages": [{"durations_s": [run] * slots}]} for submit_s, run in rows
    ]
    return sim.Workload.from_jobs(jobs)
