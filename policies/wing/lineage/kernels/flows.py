"""Linear aggregates over a DAG, counts of reachable nodes, and the join of reads to writes.

A linear aggregate takes one pass in reverse topological order. Reachable nodes are counted with one
bit a source. For both, nodes are numbered topologically: edges lead to higher numbers.
"""

from __future__ import annotations

import heapq

import numpy as np

from sim.base.arrays import F8, I1, I4, I8
from sim.base.jit import jit

LANES = 8
"""Cut-offs served by one pass."""


@jit
def downstream_totals(out0: I8, child: I4, weight: F8, value: F8) -> F8:
    """Compute total = value + Σ weight · total of the children, for every node."""
    n = len(out0) - 1
    total = np.empty(n)
    for node in range(n - 1, -1, -1):
        t = value[node]
        for e in range(out0[node], out0[node + 1]):
            t += weight[e] * total[child[e]]
        total[node] = t
    return total


@jit
def downstream_totals_by_cutoff(
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
    """Compute `downstream_totals` under `LANES` cut-offs at once; later jobs' values don't count.

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
def totals_by_search(
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
    """Compute each source's total under its own cut-off by depth-first search; NaN over budget."""
    n = len(out0) - 1
    seen = np.full(n, -1, np.int32)
    total = np.empty(n)
    stack = np.empty(budget + 1, np.int32)
    next_edge = np.empty(budget + 1, np.int64)
    out = np.empty(len(source))
    for i in range(len(source)):
        s, stop, cut = source[i], end[i], cut_s[i]
        depth, n_seen = 0, 1
        stack[0], next_edge[0], total[s], seen[s] = s, out0[s], 0.0, i
        while depth >= 0:
            node = stack[depth]
            e = next_edge[depth]
            if e < out0[node + 1] and child[e] < stop:
                successor = child[e]
                if seen[successor] == i:
                    total[node] += weight[e] * total[successor]
                    next_edge[depth] = e + 1
                elif n_seen == budget:
                    break
                else:
                    seen[successor] = i
                    total[successor] = 0.0
                    n_seen += 1
                    depth += 1
                    stack[depth], next_edge[depth] = successor, out0[successor]
            else:
                total[node] += value[node] if submit_s[node] <= cut else 0.0
                depth -= 1
        out[i] = np.nan if depth >= 0 else total[s]
    return out


@jit
def downstream_max(out0: I8, child: I4, value: F8) -> F8:
    """Compute the largest value of each node and everything downstream, (N,) float64."""
    n = len(out0) - 1
    largest = np.empty(n)
    for node in range(n - 1, -1, -1):
        m = value[node]
        for e in range(out0[node], out0[node + 1]):
            m = max(m, largest[child[e]])
        largest[node] = m
    return largest


@jit
def added_by_round(
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
    """Compute the value that each round of Algorithm 1 adds to each source's total, hop by hop."""
    n = len(out0) - 1
    last_hop = np.full(n, -1, np.int64)
    frontier, next_frontier = np.empty(n, np.int32), np.empty(n, np.int32)
    frontier_weight, next_weight = np.zeros(n), np.zeros(n)
    hop_id = 0
    out = np.zeros((len(source), n_rounds + 1))
    for i in range(len(source)):
        stop, cut = end[i], cut_s[i]
        out[i, 0] = value[source[i]]
        frontier[0], frontier_weight[source[i]], n_frontier = source[i], 1.0, 1
        hops, reach, round_ = 0, 2, 1
        while n_frontier > 0 and round_ <= n_rounds:
            hops += 1
            if hops > reach:
                reach *= 2
                round_ += 1
                if round_ > n_rounds:
                    break
            n_next = 0
            hop_id += 1
            for k in range(n_frontier):
                node = frontier[k]
                for e in range(out0[node], out0[node + 1]):
                    successor = child[e]
                    if successor >= stop:
                        break
                    if last_hop[successor] != hop_id:
                        last_hop[successor] = hop_id
                        next_weight[successor] = 0.0
                        next_frontier[n_next] = successor
                        n_next += 1
                    next_weight[successor] += frontier_weight[node] * weight[e]
            total = 0.0
            for k in range(n_next):
                node = next_frontier[k]
                if submit_s[node] <= cut:
                    total += next_weight[node] * value[node]
            out[i, round_] += total
            frontier, next_frontier = next_frontier, frontier
            frontier_weight, next_weight = next_weight, frontier_weight
            n_frontier = n_next
    return out


BITS = 62
"""Sources served by one pass."""

_PLANES = 32  # counts are held as bits too: plane i has bit i of every source's count


@jit
def count_reached(
    in0: I8, parent: I4, source: I4, end: int, submit_s: F8, cut_s: F8, reached: I8
) -> I8:
    """Count the nodes that each source reaches and that were submitted by its cut-off."""
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
            next_carry = planes[i] & carry
            planes[i] ^= carry
            carry = next_carry
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
    """Compute the lexicographically smallest topological order (Kahn's algorithm with a heap)."""
    n = len(out0) - 1
    n_waiting = np.zeros(n, np.int32)
    for e in range(len(child)):
        n_waiting[child[e]] += 1
    ready = [np.int64(0)]
    ready.pop()
    order = np.empty(n, np.int32)
    n_ordered = 0
    for start in range(n):
        # All ready rows below `start` are in the order already; the heap holds those that waited.
        if n_waiting[start] == 0:
            heapq.heappush(ready, np.int64(start))
        while len(ready) > 0:
            node = heapq.heappop(ready)
            order[n_ordered] = node
            n_ordered += 1
            for e in range(out0[node], out0[node + 1]):
                successor = child[e]
                n_waiting[successor] -= 1
                if n_waiting[successor] == 0 and successor < start:
                    heapq.heappush(ready, np.int64(successor))
    return order[:n_ordered]


WRITE = 1
"""Code of the operation that writes a file; all others read it."""

MATCHED, NEVER_WRITTEN, TOO_EARLY, TOO_OLD, SELF_READ = range(5)
"""Outcomes of joining a read to a write; `MATCHED` for writes too."""


@jit
def last_writer(
    file0: I8, order: I8, time_s: F8, job: I4, operation: I1, submit_s: F8, window_s: float
) -> tuple[I4, F8, I1, I8, int]:
    """Join each read of a file to the latest write before it, by time.

    Among writes at the read's own instant, it follows the last one in the log by a job that was
    submitted before its own; among jobs submitted at that very instant, by one of an earlier row.
    A download follows them all. `ties` counts, by operation, the reads at the instant of another
    job's write: those that followed one, and those that came before all.
    """
    n, max_operations = len(order), 0
    for f in range(len(file0) - 1):
        max_operations = max(max_operations, file0[f + 1] - file0[f])
    writer = np.full(n, -1, np.int32)
    written_s = np.full(n, np.nan)
    fate = np.zeros(n, np.int8)
    ties = np.zeros((3, 2), np.int64)
    writers = np.empty(
        max_operations, np.int32
    )  # the instant's writers, without those a later one hides
    n_simultaneous = 0
    for f in range(len(file0) - 1):
        first, end = file0[f], file0[f + 1]
        is_written = False
        for i in range(first, end):
            if operation[order[i]] == WRITE:
                is_written = True
                break
        previous, previous_s = -1, 0.0  # the latest write before the present instant
        latest, latest_s = -1, 0.0  # the latest one, the present instant included
        stop, depth, highest = first, 0, -1
        for i in range(first, end):
            o = order[i]
            now = time_s[o]
            if i == stop:  # the instant begins
                if latest >= 0:
                    previous, previous_s = latest, latest_s
                depth, stop = 0, i + 1
                while stop < end and time_s[order[stop]] == now:
                    stop += 1
                if stop > i + 1:
                    depth, highest = _ascending_writers(order[i:stop], job, operation, writers)
            if operation[o] == WRITE:
                if latest >= 0 and latest_s == now and latest != job[o]:
                    n_simultaneous += 1
                latest, latest_s = job[o], now
                continue
            source, source_s = previous, previous_s
            if depth > 0:
                n_before = _n_writers_before(writers, depth, job[o], submit_s, now)
                if n_before > 0:
                    source, source_s = writers[n_before - 1], now
                    ties[operation[o], 0] += 1
                elif writers[0] != job[o] or highest != job[o]:  # not its own writes alone
                    ties[operation[o], 1] += 1
            if source < 0:
                fate[o] = TOO_EARLY if is_written else NEVER_WRITTEN
            elif now - source_s > window_s:
                fate[o] = TOO_OLD
            elif source == job[o]:
                fate[o] = SELF_READ
            else:
                writer[o] = source
                written_s[o] = source_s
    return writer, written_s, fate, ties, n_simultaneous


@jit
def _ascending_writers(order: I8, job: I4, operation: I1, writers: I4) -> tuple[int, int]:
    """List an instant's writers with rows below those of all later writers (a monotonic stack).

    Return their number, and the highest row of all writers of the instant.
    """
    depth, highest = 0, -1
    for o in order:
        if operation[o] == WRITE:
            highest = max(highest, job[o])
            while depth > 0 and writers[depth - 1] >= job[o]:
                depth -= 1
            writers[depth] = job[o]
            depth += 1
    return depth, highest


@jit
def _n_writers_before(writers: I4, depth: int, reader: int, submit_s: F8, now: float) -> int:
    """Count the ascending writers that come before a reader of their instant."""
    if reader < 0:
        return depth
    row = reader
    if submit_s[reader] != now:  # those submitted with it ran beside it
        row = int(np.searchsorted(submit_s, submit_s[reader]))
    return int(np.searchsorted(writers[:depth], row))


@jit
def distinct_pairs(
    order: I8, up: I4, down: I4, read_s: F8, written_s: F8, n_reads: I4
) -> tuple[I8, I4]:
    """Find the earliest row of every group of equal pairs; return rows and read counts."""
    n_groups = 0
    for i in range(len(order)):
        row = order[i]
        if i == 0 or up[row] != up[order[i - 1]] or down[row] != down[order[i - 1]]:
            n_groups += 1
    first = np.empty(n_groups, np.int64)
    count = np.empty(n_groups, np.int32)
    group = -1
    for i in range(len(order)):
        row = order[i]
        if i == 0 or up[row] != up[order[i - 1]] or down[row] != down[order[i - 1]]:
            group += 1
            first[group] = row
            count[group] = n_reads[row]
        else:
            count[group] += n_reads[row]
            earliest = first[group]
            if read_s[row] < read_s[earliest] or (
                read_s[row] == read_s[earliest] and written_s[row] < written_s[earliest]
            ):
                first[group] = row
    return first, count
