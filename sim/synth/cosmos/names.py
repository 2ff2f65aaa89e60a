"""What jobs, programs, users and queues are called."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.synth.cosmos.month import Month
from sim.synth.cosmos.published import letters

Rows = NDArray[np.int64]


def job_ids(rows: Rows) -> pa.Array:
    """Return the name of each job, by its row in the four weeks."""
    return pa.array([f"job-{row:07d}" for row in rows.tolist()], pa.string())


def programs(month: Month) -> list[str]:
    """Return the name of each recurring program."""
    return [f"program-{letters(number, 4)}" for number in range(int(month.program.max()) + 1)]


def templates(month: Month, rows: Rows) -> pa.DictionaryArray:
    """Return the program that each job is a run of; '' for an ad hoc one."""
    return category(month.program[rows] + 1, ["", *programs(month)])


def users(month: Month, rows: Rows) -> pa.DictionaryArray:
    """Return who submits each job."""
    names = [f"user-{number}" for number in range(int(month.user.max()) + 1)]
    return category(month.user[rows], names)


def queues(month: Month, rows: Rows) -> pa.DictionaryArray:
    """Return the queue of each job: that of its organisation."""
    return category(month.organisation[rows], list(month.shares))


def category(codes: Rows, names: list[str]) -> pa.DictionaryArray:
    """Return a column of names, without those that do not occur."""
    used, codes = np.unique(codes, return_inverse=True)
    kept = pa.array([names[code] for code in used.tolist()], pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), kept)
