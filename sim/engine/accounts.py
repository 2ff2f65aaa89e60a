"""The sentence of a checked run whose accounts do not add up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from sim.engine.kernels import conserve
from sim.engine.kernels import state as register

_SENTENCES = {
    conserve.TIME: "time went back",
    conserve.MACHINE: "free and held resources of machine {row} are not its capacity",
    conserve.OVERFULL: "machine {row} gives more than it has",
    conserve.RUNNING: "the count of running tasks of the job in row {row} is wrong",
    conserve.TASKS: "started, done and left tasks of the job in row {row} do not add up",
    conserve.JOB: "the account of the job in row {row} is not what its tasks and slots hold",
    conserve.QUEUE: "the account of queue {row} is not what its jobs hold",
    conserve.ORGANISATION: "the account of organisation {row} is not what its jobs hold",
    conserve.NODE: "the use of node {row} of the quotas is wrong, or exceeds its limit",
    conserve.GROUP: "the counter of group {row} of jobs with a cap is wrong, or exceeds it",
    conserve.CAP: "organisation {row} holds more than its share",
}


def broken_account(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return the sentence of the account that is wrong in the state of a checked run."""
    counts, times = arrays["state_i"], arrays["state_f"]
    sentence = _SENTENCES[counts.item(register.BROKEN)]
    row, now = counts.item(register.BROKEN_ROW), times.item(register.NOW)
    return (
        f"{sentence.format(row=row)}, at {now:g} s: a fault of the simulator, which no workload or "
        "policy should cause; report it with both"
    )
