"""Preemptive SRPT on one machine: shortest remaining processing time first."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8
from sim.base.jit import jit


@jit
def srpt(release_s: F8, work_s: F8) -> F8:
    """Return the completion time of each job, (N,) s.

    Parameters
    ----------
    release_s : (N,) float64
        Release time of each job, ascending, s.
    work_s : (N,) float64
        Processing time of each job, s.
    """
    n = release_s.shape[0]
    done = np.zeros(n)
    left = work_s.copy()
    heap = np.empty(n, np.int64)  # of released jobs, by remaining work
    size, next_job, now = 0, 0, 0.0
    while size > 0 or next_job < n:
        if size == 0:
            now = max(now, release_s[next_job])
        while next_job < n and release_s[next_job] <= now:
            i = size
            while i > 0 and left[heap[(i - 1) >> 1]] > left[next_job]:
                heap[i] = heap[(i - 1) >> 1]
                i = (i - 1) >> 1
            heap[i] = next_job
            size += 1
            next_job += 1
        job = heap[0]
        end = now + left[job]
        if next_job < n and release_s[next_job] < end:
            left[job] -= release_s[next_job] - now  # still the least in the heap
            now = release_s[next_job]
            continue
        now = end
        done[job] = end
        size -= 1
        last, i = heap[size], 0
        while 2 * i + 1 < size:
            child = 2 * i + 1
            if child + 1 < size and left[heap[child + 1]] < left[heap[child]]:
                child += 1
            if left[heap[child]] >= left[last]:
                break
            heap[i] = heap[child]
            i = child
        heap[i] = last
    return done
