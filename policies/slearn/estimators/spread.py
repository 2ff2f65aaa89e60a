"""How much tasks of one stage differ, learnt from stages that have ended."""

from __future__ import annotations

import math

import numpy as np

from sim.engine.plan import World
from sim.workload.past import NAMES


class Spread:
    """How much the tasks of a stage differ: the mean of their squared coefficient of variation.

    By the first feature of `sim.workload.past.NAMES` by which three like stages have ended,
    else over all that have; 1, as of an exponential distribution, before any has. Stages of one
    task or of no length say nothing.
    """

    def __init__(self, world: World, codes: list[list[int]]) -> None:
        columns = world.columns
        first, sizes = columns.stage_task0[:-1], np.diff(columns.stage_task0)
        mean = columns.stage_work / sizes
        off = columns.task_duration - np.repeat(mean, sizes)
        variance = np.add.reduceat(off * off, first) / np.maximum(sizes - 1, 1)
        with np.errstate(invalid="ignore", divide="ignore"):
            squared = variance / mean**2
        squared[(sizes < 2) | (mean == 0)] = np.nan
        self._of_ended: list[float] = squared.tolist()
        self._codes = codes
        self._groups: list[dict[int, tuple[int, float]]] = [{} for _ in NAMES]
        self._all = (0, 0.0)

    def learn(self, stage: int) -> None:
        """Take in a stage that has ended."""
        value = self._of_ended[stage]
        if math.isnan(value):
            return
        for groups, code in zip(self._groups, self._codes[stage], strict=True):
            if code >= 0:
                n, total = groups.get(code, (0, 0.0))
                groups[code] = (n + 1, total + value)
        self._all = (self._all[0] + 1, self._all[1] + value)

    def of(self, stage: int) -> float:
        """Return what is expected of a stage whose tasks are not known."""
        for groups, code in zip(self._groups, self._codes[stage], strict=True):
            n, total = groups.get(code, (0, 0.0))
            if n >= 3:
                return total / n
        n, total = self._all
        return total / n if n else 1.0
