"""Synthesized tasks for a real Ray: when they are submitted, what they ask for, their sleeps.

The rule, fixed before the first run: 3 nodes of 4 CPUs and 1 unit of the custom resource ``disk``,
and 150 tasks. Gaps are exponential, sleeps log-uniform from 0.4 to 4 s, and gaps are stretched so
that the CPU seconds that arrive are 1.1 times what the CPUs can do until the last submission.
``plain``: each task asks for one CPU. ``mixed``: six of ten for one CPU, three for two, one for a
CPU and a disk; to Ray these are three scheduling classes. ``classes``: as many tasks of as many
classes, by the names of their functions, but each asks for one CPU.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim.base import maths
from sim.base.random import stream

N_TASKS = 150
LOAD = 1.1
N_NODES = 3
NODE = {"cpu": 4, "disk": 1}
KINDS = ("plain", "mixed", "classes")
_CLASSES = {
    "plain": (("one", 1, 0),),
    "mixed": (("one", 1, 0), ("two", 2, 0), ("disk", 1, 1)),
    "classes": (("one", 1, 0), ("other", 1, 0), ("third", 1, 0)),
}
_TENTHS = (6, 9, 10)
"""Of ten tasks those with a lower number than this are of the first class, and so on."""


@dataclass(frozen=True)
class SleepingTask:
    """A task: class, submission in s after the start, sleep in s, CPUs and disks."""

    kind: str
    submit_s: float
    sleep_s: float
    cpus: int
    disks: int


def synthesize(kind: str, seed: int) -> list[SleepingTask]:
    """Draw the tasks of a workload, in order of submission."""
    rng = stream(seed, f"sleeping tasks, {kind}")
    sleep_s = np.round(0.4 * maths.exp(rng.random(N_TASKS) * maths.log(10.0)), 3)
    tenth = np.zeros(N_TASKS, np.int64) if kind == "plain" else rng.integers(0, 10, N_TASKS)
    classes = [_CLASSES[kind][i] for i in np.searchsorted(_TENTHS, tenth, side="right").tolist()]
    work_s = sum(s * cpus for s, (_, cpus, _) in zip(sleep_s.tolist(), classes, strict=True))
    gaps = rng.exponential(1.0, N_TASKS)
    arrivals = np.cumsum(gaps) - gaps[0]
    submit_s = np.round(arrivals / arrivals[-1] * work_s / (N_NODES * NODE["cpu"] * LOAD), 3)
    return [
        SleepingTask(name, submit, sleep, cpus, disks)
        for submit, sleep, (name, cpus, disks) in zip(
            submit_s.tolist(), sleep_s.tolist(), classes, strict=True
        )
    ]
