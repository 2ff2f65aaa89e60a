"""How many nodes of a DAG some sources reach: a bit a source.

Nodes are numbered topologically: every edge leads to a higher number.
"""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I4, I8
from sim.base.jit import jit

BITS = 62
"""Sources that one pass serves."""

_PLANES = 32  # counts are held as bits too: plane i has bit i of every source's count


@jit
def count_reached(
    in0: I8, parent: I4, source: I4, end: int, submit_s: F8, cut_s: F8, reached: I8
) -> I8:
    """Count the nodes that each source reaches and that are submitted by its cut-off."""
    first = source[0]
    first_cut, last_cut = cut_s[0], cut_s[0]
    for k in range(len(source)):
        first_cut = min(first_cut, cut_s[k])
        last_cut = max(last_cut, cut_s[k])
    planes = np.zeros(_PLANES, np.int64)
    lane = 0
    for node in range(first, end):
        bits = np.int64(0)
        for e in range(in0[node], in0[node + 1]):
            if parent[e] >= first:
                bits |= reached[parent[e]]
        carry = bits
        if submit_s[node] > first_cut:
            if submit_s[node] > last_cut:
                carry = np.int64(0)
            else:
                for k in range(len(source)):
                    if submit_s[node] > cut_s[k]:
                        carry &= ~(np.int64(1) << np.int64(k))
        i = 0
        while carry != 0:
            both = planes[i] & carry
            planes[i] ^= carry
            carry = both
            i += 1
        if lane < len(source) and source[lane] == node:
            bits |= np.int64(1) << np.int64(lane)
            lane += 1
        reached[node] = bits
    out = np.zeros(len(source), np.int64)
    for k in range(len(source)):
        for i in range(_PLANES):
            out[k] += ((planes[i] >> np.int64(k)) & np.int64(1)) << np.int64(i)
    return out
