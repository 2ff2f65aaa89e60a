"""Limits of the cycles of Slurm's two loops, in plain Python: groups, arrays, and their time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence


class Counts:
    """Jobs that a cycle has tried, by group, and elements of arrays.

    `depths` has the most of each kind of group. `running` are the arrays of the running jobs, one
    entry a job.
    """

    def __init__(self, depths: Sequence[int], running: Iterable[int]) -> None:
        self.depths = depths
        self.groups: Counter[tuple[int, int]] = Counter()
        self.elements = Counter(running)
        self.reserved: Counter[int] = Counter()
        self.closed: set[int] = set()  # arrays of which an element was not started, nor reserved

    def skips(self, job) -> bool:
        """Tell whether a job is an element of an array of which enough were tried, or count it."""
        if job.array < 0:
            return False
        if job.array in self.closed or 0 < job.throttle <= self.elements[job.array]:
            return True
        self.elements[job.array] += 1
        return False

    def exceeds(self, groups: Sequence[int]) -> bool:
        """Tell whether enough jobs of one of these groups were tried, or count one of each."""
        kinds = [(kind, group) for kind, group in enumerate(groups) if group >= 0]
        if any(self.groups[key] >= self.depths[key[0]] for key in kinds):
            return True
        self.groups.update(kinds)
        return False

    def close(self, job) -> None:
        """Let no other element of the job's array be tried."""
        self.closed |= {job.array} - {-1}

    def note_reserved(self, job, at_most: int) -> None:
        """Count a reservation of an array's element, of which there are at most so many."""
        self.reserved[job.array] += 1
        if 0 < at_most <= self.reserved[job.array]:
            self.close(job)


def slice_s(options, factor: float, first: int, end: int) -> float:
    """Return the time that a plan takes for the jobs at positions from `first` to `end`, s."""
    taken_s = options.job_cycle_s * (min(end, options.depth) - min(first, options.depth))
    if first == 0:
        taken_s += options.cycle_s
    return float(taken_s * factor)


def slice_end(options, factor: float, first: int, n: int, left_s: float) -> int:
    """Return before which of `n` jobs a plan yields, or ends as there are `left_s` of its time."""
    end = first + 1
    while end < n and slice_s(options, factor, first, end) < min(options.yield_s, left_s):
        end += 1
    return min(end, n)
