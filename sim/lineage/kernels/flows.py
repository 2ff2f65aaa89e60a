"""Loops along the edges of a DAG, and the join of reads and writes that finds them.

Linear aggregates take one pass against the topological order; how many nodes some sources reach is
counted a bit a source. For both nodes are numbered topologically: edges lead to higher numbers.
"""

from __future__ import annotations

import heapq

import numpy as np

from sim.base.arrays import F8, I1, I4, I8
from sim.base.jit import jit

LANES = 8
"""Cut-offs that one pass serves."""


@jit
def upward(out0: I8, child: I4, weight: F8, value: F8) -> F8:
    """Return value + weight · total of the children, for every node."""
    n = len(out0) - 1
    total = np.empty(n)
    for node in range(n - 1, -1, -1):
        t = value[node]
        for e in range(out0[node], out0[node + 1]):
            t += weight[e] * total[child[e]]
        total[node] = t
    return total


@jit
def upward_cut(
    out0: I8,
    child: I4,
    weight: F8,
    value: F8,
    submit_s: F8,
    first: int,
    end: int,
    cut_s: F8,
    total: F8,
) -> None:
    """Do as `upward` under `LANES` cut-offs at once: a value counts if submitted by then.

    The lanes are written out, as locals: an array of sums would be stored and loaded at each edge.
    """
    for node in range(end - 1, first - 1, -1):
        t0 = t1 = t2 = t3 = t4 = t5 = t6 = t7 = 0.0
        for e in range(out0[node], out0[node + 1]):
            c = child[e]
            if c >= end:
                break
            w = weight[e]
            t0 += w * total[c, 0]
            t1 += w * total[c, 1]
            t2 += w * total[c, 2]
            t3 += w * total[c, 3]
            t4 += w * total[c, 4]
            t5 += w * total[c, 5]
            t6 += w * total[c, 6]
            t7 += w * total[c, 7]
        v, s = value[node], submit_s[node]
        total[node, 0] = t0 + (v if s <= cut_s[0] else 0.0)
        total[node, 1] = t1 + (v if s <= cut_s[1] else 0.0)
        total[node, 2] = t2 + (v if s <= cut_s[2] else 0.0)
        total[node, 3] = t3 + (v if s <= cut_s[3] else 0.0)
        total[node, 4] = t4 + (v if s <= cut_s[4] else 0.0)
        total[node, 5] = t5 + (v if s <= cut_s[5] else 0.0)
        total[node, 6] = t6 + (v if s <= cut_s[6] else 0.0)
        total[node, 7] = t7 + (v if s <= cut_s[7] else 0.0)


@jit
def sums_of_rows(
    out0: I8,
    child: I4,
    weight: F8,
    value: F8,
    submit_s: F8,
    source: I4,
    end: I4,
    cut_s: F8,
    budget: int,
) -> F8:
    """Return what `upward_cut` would for each source under its own cut-off."""
    n = len(out0) - 1
    seen = np.full(n, -1, np.int32)
    total = np.empty(n)
    stack = np.empty(budget + 1, np.int32)
    at = np.empty(budget + 1, np.int64)
    out = np.empty(len(source))
    for i in range(len(source)):
        s, stop, cut = source[i], end[i], cut_s[i]
        depth, n_seen = 0, 1
        stack[0], at[0], total[s], seen[s] = s, out0[s], 0.0, i
        while depth >= 0:
            node = stack[depth]
            e = at[depth]
            if e < out0[node + 1] and child[e] < stop:
                other = child[e]
                if seen[other] == i:
                    total[node] += weight[e] * total[other]
                    at[depth] = e + 1
                elif n_seen == budget:
                    break
                else:
                    seen[other] = i
                    total[other] = 0.0
                    n_seen += 1
                    depth += 1
                    stack[depth], at[depth] = other, out0[other]
            else:
                total[node] += value[node] if submit_s[node] <= cut else 0.0
                depth -= 1
        out[i] = np.nan if depth >= 0 else total[s]
    return out


@jit
def upward_max(out0: I8, child: I4, value: F8) -> F8:
    """Return the greatest value of each node and everything downstream, (N,) float64."""
    n = len(out0) - 1
    most = np.empty(n)
    for node in range(n - 1, -1, -1):
        m = value[node]
        for e in range(out0[node], out0[node + 1]):
            m = max(m, most[child[e]])
        most[node] = m
    return most


@jit
def sums_by_round(
    out0: I8,
    child: I4,
    weight: F8,
    value: F8,
    submit_s: F8,
    source: I4,
    end: I4,
    cut_s: F8,
    n_rounds: int,
) -> F8:
    """Return what each round of Algorithm 1 adds to each source's total: hop after hop."""
    n = len(out0) - 1
    fresh = np.full(n, -1, np.int64)
    here, there = np.empty(n, np.int32), np.empty(n, np.int32)
    now, later = np.zeros(n), np.zeros(n)
    stamp = 0
    out = np.zeros((len(source), n_rounds + 1))
    for i in range(len(source)):
        stop, cut = end[i], cut_s[i]
        out[i, 0] = value[source[i]]
        here[0], now[source[i]], n_here = source[i], 1.0, 1
        hops, reach, k = 0, 2, 1
        while n_here > 0 and k <= n_rounds:
            hops += 1
            if hops > reach:
                reach *= 2
                k += 1
                if k > n_rounds:
                    break
            n_there = 0
            stamp += 1
            for at in range(n_here):
                node = here[at]
                for e in range(out0[node], out0[node + 1]):
                    other = child[e]
                    if other >= stop:
                        break
                    if fresh[other] != stamp:
                        fresh[other] = stamp
                        later[other] = 0.0
                        there[n_there] = other
                        n_there += 1
                    later[other] += now[node] * weight[e]
            total = 0.0
            for at in range(n_there):
                node = there[at]
                if submit_s[node] <= cut:
                    total += later[node] * value[node]
            out[i, k] += total
            here, there = there, here
            now, later = later, now
            n_here = n_there
    return out


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


@jit
def topological_order(out0: I8, child: I4) -> I4:
    """Return the smallest topological order, read as a word over rows."""
    n = len(out0) - 1
    n_waiting = np.zeros(n, np.int32)
    for e in range(len(child)):
        n_waiting[child[e]] += 1
    ready = [np.int64(0)]
    ready.pop()
    order = np.empty(n, np.int32)
    done = 0
    for start in range(n):
        # Rows below `start` that could be taken have been; the heap holds what waited.
        if n_waiting[start] == 0:
            heapq.heappush(ready, np.int64(start))
        while len(ready) > 0:
            node = heapq.heappop(ready)
            order[done] = node
            done += 1
            for e in range(out0[node], out0[node + 1]):
                other = child[e]
                n_waiting[other] -= 1
                if n_waiting[other] == 0 and other < start:
                    heapq.heappush(ready, np.int64(other))
    return order[:done]


WRITE = 1
"""Code of the operation that makes a file; all others take it."""

FOUND, NEVER_WRITTEN, TOO_EARLY, TOO_OLD, OWN = range(5)
"""What became of an operation that takes a file; `FOUND` of writes too."""


@jit
def last_writer(
    file0: I8, order: I8, time_s: F8, job: I4, operation: I1, submit_s: F8, window_s: float
) -> tuple[I4, F8, I1, I8, int]:
    """Join each taking of a file to the latest write before it, by time.

    Of writes at its own instant it follows the last in the log of those jobs' that were submitted
    before its own; of jobs submitted at that very instant, those of earlier rows. A download
    follows them all. `ties` says, by operation, how many takings at the instant of another job's
    write followed one, and how many came before all.
    """
    n, most = len(order), 0
    for f in range(len(file0) - 1):
        most = max(most, file0[f + 1] - file0[f])
    writer = np.full(n, -1, np.int32)
    written_s = np.full(n, np.nan)
    fate = np.zeros(n, np.int8)
    ties = np.zeros((3, 2), np.int64)
    rising = np.empty(most, np.int32)  # the instant's writers, without those a later one hides
    n_simultaneous = 0
    for f in range(len(file0) - 1):
        first, end = file0[f], file0[f + 1]
        is_written = False
        for i in range(first, end):
            if operation[order[i]] == WRITE:
                is_written = True
                break
        known, known_s = -1, 0.0  # the latest write before the present instant
        latest, latest_s = -1, 0.0  # the latest one, the present instant included
        stop, depth, highest = first, 0, -1
        for i in range(first, end):
            o = order[i]
            now = time_s[o]
            if i == stop:  # the instant begins
                if latest >= 0:
                    known, known_s = latest, latest_s
                depth, stop = 0, i + 1
                while stop < end and time_s[order[stop]] == now:
                    stop += 1
                if stop > i + 1:
                    depth, highest = _rising(order[i:stop], job, operation, rising)
            if operation[o] == WRITE:
                if latest >= 0 and latest_s == now and latest != job[o]:
                    n_simultaneous += 1
                latest, latest_s = job[o], now
                continue
            met, met_s = known, known_s
            if depth > 0:
                place = _before(rising, depth, job[o], submit_s, now)
                if place > 0:
                    met, met_s = rising[place - 1], now
                    ties[operation[o], 0] += 1
                elif rising[0] != job[o] or highest != job[o]:  # not its own writes alone
                    ties[operation[o], 1] += 1
            if met < 0:
                fate[o] = TOO_EARLY if is_written else NEVER_WRITTEN
            elif now - met_s > window_s:
                fate[o] = TOO_OLD
            elif met == job[o]:
                fate[o] = OWN
            else:
                writer[o] = met
                written_s[o] = met_s
    return writer, written_s, fate, ties, n_simultaneous


@jit
def _rising(order: I8, job: I4, operation: I1, out_job: I4) -> tuple[int, int]:
    """List the writers of an instant whose rows are below those of all later ones.

    Their number is returned, and the highest row of all that write then.
    """
    depth, highest = 0, -1
    for o in order:
        if operation[o] == WRITE:
            highest = max(highest, job[o])
            while depth > 0 and out_job[depth - 1] >= job[o]:
                depth -= 1
            out_job[depth] = job[o]
            depth += 1
    return depth, highest


@jit
def _before(rising: I4, depth: int, reader: int, submit_s: F8, now: float) -> int:
    """Count those of the rising writers that come before a reader of their instant."""
    if reader < 0:
        return depth
    row = reader
    if submit_s[reader] != now:  # those submitted with it ran beside it
        row = int(np.searchsorted(submit_s, submit_s[reader]))
    return int(np.searchsorted(rising[:depth], row))


@jit
def distinct_pairs(order: I8, a: I4, b: I4, at_s: F8, of_s: F8, n: I4) -> tuple[I8, I4]:
    """Find the earliest of every group of equal pairs."""
    n_groups = 0
    for i in range(len(order)):
        here = order[i]
        if i == 0 or a[here] != a[order[i - 1]] or b[here] != b[order[i - 1]]:
            n_groups += 1
    first = np.empty(n_groups, np.int64)
    count = np.empty(n_groups, np.int32)
    g = -1
    for i in range(len(order)):
        here = order[i]
        if i == 0 or a[here] != a[order[i - 1]] or b[here] != b[order[i - 1]]:
            g += 1
            first[g] = here
            count[g] = n[here]
        else:
            count[g] += n[here]
            last = first[g]
            if at_s[here] < at_s[last] or (at_s[here] == at_s[last] and of_s[here] < of_s[last]):
                first[g] = here
    return first, count
