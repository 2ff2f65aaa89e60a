"""Single-hop dependencies: every read joined to the last write of its file (§4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from sim.base.arrays import F8, I4
from sim.lineage.dependencies import EDGE_COLUMNS, Dependencies, without_cycles
from sim.lineage.files import DOWNLOAD, READ
from sim.lineage.logs import Logs

DAY_S: Final = 86_400.0

WINDOW_S: Final = 30 * DAY_S
"""How far back a write may lie (§4.2, rule 3)."""


@dataclass(frozen=True, eq=False)
class Downloads:
    """What people took, by the job that had made it."""

    job: I4  # row of the job that wrote the file last; ascending
    time_s: F8  # when, s; ascending for each job
    n: I4  # how many downloads

    def per_job(self, n_jobs: int) -> F8:
        """Return the downloads of each job: its local value (§4.3)."""
        out = np.bincount(self.job, weights=self.n, minlength=n_jobs)
        return out.astype(np.float64, copy=False)


@dataclass(frozen=True, eq=False)
class SingleHop:
    """The join's outcome."""

    # of `join` and `merged` they may have cycles, of `single_hop` they have none
    dependencies: Dependencies
    downloads: Downloads  # what people took
    report: dict[str, int]  # what was odd, by rule
    n_operations: int  # how many there were
    n_files: int


def single_hop(logs: Logs, window_s: float = WINDOW_S) -> SingleHop:
    """Join reads and downloads to the writes that they saw.

    A read sees the last write of its file strictly before it (last writer wins), if that is at
    most `window_s` old. A job does not depend on itself. Of writes at one instant the later row of
    the log wins.
    """
    return acyclic(join(logs, window_s))


def join(logs: Logs, window_s: float = WINDOW_S) -> SingleHop:
    """Join as `single_hop` does; files are independent of each other here."""
    from sim.lineage.kernels import single_hop as kernel  # loads numba
    from sim.workload.kernels.paths import by_child

    time_s, job, operation, file, n = logs.time_s, logs.job, logs.operation, logs.file, logs.n
    if len(time_s) > 1 and (time_s[1:] < time_s[:-1]).any():
        by_time = np.argsort(time_s, kind="stable")
        time_s, job, operation = time_s[by_time], job[by_time], operation[by_time]
        file, n = file[by_time], n[by_time]
    file0, order = by_child(logs.n_files, file)
    writer, written_s, fate, n_simultaneous = kernel.last_writer(
        file0, order, time_s, job, operation, float(window_s)
    )
    n_files = int(np.count_nonzero(np.diff(file0)))
    del file0, order
    seen = writer >= 0
    report = {"writes at the instant of another job's": int(n_simultaneous)}
    for kind, code in (("reads", READ), ("downloads", DOWNLOAD)):
        fates = np.bincount(fate[operation == code], minlength=5)
        report[f"{kind} of files never written"] = int(fates[kernel.NEVER_WRITTEN])
        report[f"{kind} before the first write"] = int(fates[kernel.TOO_EARLY])
        report[f"{kind} of writes older than the window"] = int(fates[kernel.TOO_OLD])
        if code == READ:
            report["reads of a job's own output"] = int(fates[kernel.OWN])
    report["operations before their job's submission"] = _outside(logs, "submit_s", -1)
    report["operations after their job's end"] = _outside(logs, "finish_s", 1)

    reads = np.flatnonzero(seen & (operation == READ))
    seen_once = np.ones(len(reads), np.int32)
    edges = _pairs(
        logs.n_jobs, writer[reads], job[reads], time_s[reads], written_s[reads], seen_once
    )
    taken = np.flatnonzero(seen & (operation == DOWNLOAD))
    taken = taken[np.argsort(writer[taken], kind="stable")]
    downloads = Downloads(writer[taken], time_s[taken], n[taken])
    odd = {rule: n for rule, n in report.items() if n}
    return SingleHop(edges, downloads, odd, len(time_s), n_files)


def merged(parts: Sequence[SingleHop]) -> SingleHop:
    """Put joins of different files together: what one join of all of them gives."""
    each = [part.dependencies for part in parts]
    columns = (np.concatenate([getattr(e, name) for e in each]) for name in EDGE_COLUMNS)
    edges = _pairs(each[0].n_jobs, *columns)
    job, time_s, n = (
        np.concatenate([getattr(part.downloads, name) for part in parts])
        for name in ("job", "time_s", "n")
    )
    order = np.lexsort((time_s, job))
    report: dict[str, int] = {}
    for part in parts:
        for rule, times in part.report.items():
            report[rule] = report.get(rule, 0) + times
    return SingleHop(
        edges, Downloads(job[order], time_s[order], n[order]), report,
        sum(part.n_operations for part in parts), sum(part.n_files for part in parts),
    )  # fmt: skip


def acyclic(of: SingleHop) -> SingleHop:
    """Drop dependencies that close a cycle, and count them."""
    edges, n_cyclic = without_cycles(of.dependencies)
    report = of.report | ({"dependencies that close a cycle": n_cyclic} if n_cyclic else {})
    return replace(of, dependencies=edges, report=report)


def _pairs(n_jobs: int, up: I4, down: I4, read_s: F8, written_s: F8, n_reads: I4) -> Dependencies:
    """Return each pair once, sorted by downstream, then upstream: two stable counting sorts."""
    from sim.lineage.kernels.single_hop import distinct_pairs  # loads numba
    from sim.workload.kernels.paths import by_child

    _, order = by_child(n_jobs, up)
    _, second = by_child(n_jobs, down[order])
    order = order[second]
    first, count = distinct_pairs(order, up, down, read_s, written_s, n_reads)
    return Dependencies(n_jobs, up[first], down[first], read_s[first], written_s[first], count)


def _outside(logs: Logs, bound: str, sign: int) -> int:
    by_job = logs.job >= 0
    limit = logs.column(bound)[logs.job[by_job]] if logs.n_jobs else np.empty(0)
    return int(np.count_nonzero(sign * (logs.time_s[by_job] - limit) > 0))
