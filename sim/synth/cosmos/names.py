"""What jobs, programs, users and queues are called."""

from __future__ import annotations

import pyarrow as pa

from sim.base.arrays import I8
from sim.synth.cosmos.month import Month
from sim.synth.cosmos.organisations import letters


def job_ids(rows: I8) -> pa.Array:
    """Return the name of each job, by its row in the four weeks."""
    return pa.array([f"job-{row:07d}" for row in rows.tolist()], pa.string())


def programs(month: Month) -> list[str]:
    """Return the name of each recurring program."""
    return [f"program-{letters(number, 4)}" for number in range(int(month.program.max()) + 1)]


def users(month: Month) -> list[str]:
    """Return the name of each user."""
    return [f"user-{number}" for number in range(int(month.user.max()) + 1)]
