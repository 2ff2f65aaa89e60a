"""Reads between programs, and downloads of their output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from policies.wserpt.everything.tables import Tables
from sim.base.arrays import F8, I4, I8, Mask
from sim.base.random import stream

DAY_S = 86_400.0
PER_RUN = 1.0
"""Mean number of downloads of a run; an assumption, as no trace has them."""


@dataclass(frozen=True, eq=False)
class Reads:
    """R reads: the runs of program ``down`` read the latest earlier run of program ``up``."""

    up: I8
    down: I8
    own: Mask  # of a program of the same user: the reader needs it, and waits for it

    def edges(self, runs: list[I8]) -> dict[str, Any]:
        """Return the table of job edges; `runs` has the rows of each program's runs, ascending."""
        up, down, hard = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0, bool)]
        for read, (p, q) in enumerate(zip(self.up.tolist(), self.down.tolist(), strict=True)):
            latest = np.searchsorted(runs[p], runs[q]) - 1
            exists = latest >= 0
            up.append(runs[p][latest[exists]])
            down.append(runs[q][exists])
            hard.append(np.full(int(exists.sum()), self.own[read]))
        kind = np.where(np.concatenate(hard), "hard", "soft")
        ends: list[I4] = [np.concatenate(rows).astype(np.int32) for rows in (up, down)]
        return {"upstream": ends[0], "downstream": ends[1], "kind": kind.tolist()}


def draw_reads(joins: Tables, user: I8, runs: list[I8], seed: int) -> Reads:
    """Draw the reads of P programs of the users `user`, (P,).

    Programs are put in a random order, and read earlier ones of it. A program has as many inputs
    as the tables have, if there are so many. Each input is of a program of its user, for the share
    ``own`` of the reads, or of another user's. It is drawn by the program's number of runs times
    its drawn number of readers: output that is renewed often is read often.
    """
    n = len(user)
    rng = stream(seed, "everything", "reads")
    order = rng.permutation(n)
    n_inputs = _draw(joins.inputs, rng.random(n))
    weight = _draw(joins.readers, rng.random(n)) * np.array([len(rows) for rows in runs])
    up: list[int] = []
    down: list[int] = []
    own: list[bool] = []
    for position, program in enumerate(order.tolist()):
        k = int(n_inputs[program])
        earlier, chosen = order[:position], set[int]()
        for is_own, u in zip(rng.random(k) < joins.own, rng.random(k), strict=True):
            candidates = earlier[(user[earlier] == user[program]) == is_own]
            candidates = candidates[~np.isin(candidates, list(chosen))]
            total = np.cumsum(weight[candidates])
            if len(candidates) and total[-1] > 0:
                up.append(int(candidates[np.searchsorted(total, u * total[-1], side="right")]))
                chosen.add(up[-1])
                down.append(program)
                own.append(bool(is_own))
    return Reads(np.array(up, np.int64), np.array(down, np.int64), np.array(own, bool))


def draw_downloads(runs: list[I8], read: I4, finish_s: F8, seed: int) -> dict[str, Any]:
    """Draw downloads of the output of programs that no run reads; return their table.

    `read` has the rows of runs that are read, and `finish_s` when each run ends if none waits. A
    run of the i-th of these programs, in random order, is downloaded in proportion to 1 / i (Wing,
    OSDI 2020, §6.3), `PER_RUN` times on average over all runs. A download takes the latest
    complete run: it comes uniformly between that run's end and the next one's, or within a day
    after the last.
    """
    rng = stream(seed, "everything", "downloads")
    is_read = np.zeros(len(finish_s), dtype=bool)
    is_read[read] = True
    leaves = [rows for rows in runs if len(rows) and not is_read[rows].any()]
    rank = 1.0 + rng.permutation(len(leaves))
    total = np.cumsum([len(rows) / r for rows, r in zip(leaves, rank.tolist(), strict=True)])
    n = round(PER_RUN * len(finish_s))
    u, v = rng.random((2, n))
    leaf = np.searchsorted(total, u * total[-1], side="right")
    job, time_s = np.empty(n, np.int32), np.empty(n)
    for i, number in enumerate(leaf.tolist()):
        rows = leaves[number][np.argsort(finish_s[leaves[number]], kind="stable")]
        k = int(rng.integers(len(rows)))
        begin_s = float(finish_s[rows[k]])
        end_s = float(finish_s[rows[k + 1]]) if k + 1 < len(rows) else begin_s + DAY_S
        job[i], time_s[i] = rows[k], begin_s + v[i] * (end_s - begin_s)
    return {"job": job, "time_s": time_s}


def _draw(histogram: tuple[tuple[int, int], ...], u: F8) -> I8:
    value, count = np.array(histogram, np.int64).T
    drawn: I8 = value[np.searchsorted(np.cumsum(count), u * count.sum(), side="right")]
    return drawn
