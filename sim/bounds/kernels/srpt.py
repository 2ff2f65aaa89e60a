"""A machine that may leave a job at any instant: it goes on with what has least work left."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8
from sim.base.jit import jit


@jit
def srpt(release_s: F8, work_s: F8) -> F8:
    """Return when each job is done, (N,) s.

    Parameters
    ----------
    release_s : (N,) float64
        When each can begin, ascending, s.
    work_s : (N,) float64
        How long each keeps the machine, s.
    """
    n = release_s.shape[0]
    done = np.zeros(n)
    left = work_s.copy()
    heap = np.empty(n, np.int64)  # of those that can run, by what is left
    size, come, now = 0, 0, 0.0
    while size > 0 or come < n:
        if size == 0:
            now = max(now, release_s[come])
        while come < n and release_s[come] <= now:
            at = size
            while at > 0 and left[heap[(at - 1) >> 1]] > left[come]:
                heap[at] = heap[(at - 1) >> 1]
                at = (at - 1) >> 1
            heap[at] = come
            size += 1
            come += 1
        job = heap[0]
        end = now + left[job]
        if come < n and release_s[come] < end:
            left[job] -= release_s[come] - now  # still the least of those that are there
            now = release_s[come]
            continue
        now = end
        done[job] = end
        size -= 1
        last, at = heap[size], 0
        while 2 * at + 1 < size:
            child = 2 * at + 1
            if child + 1 < size and left[heap[child + 1]] < left[heap[child]]:
                child += 1
            if left[heap[child]] >= left[last]:
                break
            heap[at] = heap[child]
            at = child
        heap[at] = last
    return done
