"""Which runs are read: the last ones of a program that are there."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I8, Mask


class Finished:
    """The runs of each program in the order in which they end."""

    def __init__(self, program: I8, finish_s: F8, n_programs: int) -> None:
        self.order = np.lexsort((finish_s, program))
        self.finish_s = finish_s[self.order]
        self.first = np.searchsorted(program[self.order], np.arange(n_programs + 1))

    def last(self, program: I8, by_s: F8, back: I8) -> I8:
        """Return the run of each program that ended as the last by a time, or `back` before it."""
        low, high = self.first[program], self.first[program + 1]
        begin = low.copy()
        while True:  # all queries halve their range at once
            open_ = low < high
            if not open_.any():
                break
            middle = (low + high) // 2
            there = open_ & (self.finish_s[np.minimum(middle, len(self.finish_s) - 1)] <= by_s)
            low = np.where(there, middle + 1, low)
            high = np.where(open_ & ~there, middle, high)
        at = low - 1 - back
        out: I8 = np.where(at >= begin, self.order[np.maximum(at, 0)], -1)
        return out


def distinct(up: I8, down: I8, hard: Mask) -> tuple[I8, I8, Mask]:
    """Return the pairs that name a run, each once, by `down` and `up`."""
    known = np.flatnonzero(up >= 0)
    order = known[np.lexsort((up[known], down[known]))]
    up, down = up[order], down[order]
    new = np.ones(len(up), dtype=bool)
    new[1:] = (up[1:] != up[:-1]) | (down[1:] != down[:-1])
    return up[new], down[new], hard[order][new]
