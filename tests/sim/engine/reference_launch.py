"""Launches of the naive simulator: the lag between a placement and the start of running."""

from __future__ import annotations

import math

import numpy as np

WORD = 2**32 - 1


def philox(counter: list[int], key: list[int]) -> list[int]:
    """Return Philox4x32-10 of four words by two (Salmon et al., SC 2011)."""
    a, b, c, d = counter
    for i in range(10):
        k, m = (key[0] + i * 0x9E3779B9) & WORD, (key[1] + i * 0xBB67AE85) & WORD
        high, low = divmod(0xD2511F53 * a, 2**32)
        other_high, other_low = divmod(0xCD9E8D57 * c, 2**32)
        a, b, c, d = other_high ^ b ^ k, other_low, high ^ d ^ m, low
    return [a, b, c, d]


class Launching:
    """The part of the simulator that launches tasks and gangs."""

    def _init_launches(self, cluster):
        self.lag = cluster.launch
        self.n_launches = {}  # of each task
        self.gang_start = {}  # when the slots of each gang run
        self.task_placed = np.full(self.c.n_tasks, np.nan)
        self.starts = [[] for _ in range(self.n_jobs)]  # of each job's tasks

    def _draw_lag(self, task):
        """Draw the lag of the next launch of a task: by the task and its earlier launches alone."""
        lag = self._next_lag(task)
        self.n_launches[task] = self.n_launches.get(task, 0) + 1
        return lag

    def _next_lag(self, task):
        words = philox([task, self.n_launches.get(task, 0), 0, 0], self.lag.key.tolist())
        uniform = ((words[0] << 32 | words[1]) >> 11) * 2.0**-53
        values = self.lag.values_s.tolist()
        if self.lag.between:
            return values[0] + (values[1] - values[0]) * uniform
        return values[math.floor(uniform * len(values))]

    def _launch(self, j, task, in_held_slot):
        """Return when `task`, which is placed now, starts to run: that of a gang with the gang."""
        if in_held_slot:
            start = max(self.now, self.gang_start[j])
        else:
            start = self.now + self._draw_lag(task)
        self.starts[j].append(start)
        self.task_placed[task] = self.now
        self.view["start"][j] = min(self.starts[j])
        return start

    def _launch_gang(self, j):
        self.gang_start[j] = self.now + self._draw_lag(self._first_task(j))

    def _first_task(self, j):
        return int(self.c.stage_task0[self.job_stages[j][0]])

    def _forget_launch(self, j, task):
        """Forget the start of a task that is stopped before it."""
        if self.task_start[task] > self.now:
            self.starts[j].remove(self.task_start[task])
            self.view["start"][j] = min(self.starts[j], default=np.nan)
