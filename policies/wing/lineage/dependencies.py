"""Dependencies between jobs: every read joined to the last write of its file (§4.2).

Dependencies are edges of a DAG whose nodes are rows of the job table. `Graph` is the same DAG with
topologically numbered nodes, as the kernels need it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from policies.wing.lineage import partial
from policies.wing.lineage.files import (
    APPEND,
    DOWNLOAD,
    FAILED_WRITE,
    OVERWRITE,
    READ,
    TRUNCATE,
    WRITE,
)
from policies.wing.lineage.logs import Logs
from sim.base.acyclic import nodes_on_cycles
from sim.base.arrays import F8, I4, I8, Mask
from sim.base.errors import InputError

EDGE_COLUMNS: Final = ("upstream", "downstream", "read_s", "written_s", "n_reads")


@dataclass(frozen=True, eq=False)
class Dependencies:
    """Edges from the job that wrote a file to each job that read it; every pair once."""

    n_jobs: int  # rows of the job table
    upstream: I4  # rows; edges are sorted by downstream, then upstream
    downstream: I4
    # the first read and the write that it saw, s; among reads at one instant, the earliest write
    read_s: F8
    written_s: F8
    n_reads: I4  # reads behind the edge

    def __len__(self) -> int:
        """Return the number of edges."""
        return len(self.upstream)

    def where(self, keep: NDArray[Any]) -> Dependencies:
        """Return a subset of the edges, by mask or by index."""
        return Dependencies(self.n_jobs, *(getattr(self, name)[keep] for name in EDGE_COLUMNS))

    def n_upstream(self) -> I8:
        """Count the jobs that each job depends on directly."""
        return np.bincount(self.downstream, minlength=self.n_jobs)

    def n_downstream(self) -> I8:
        """Count the jobs that depend on each job directly."""
        return np.bincount(self.upstream, minlength=self.n_jobs)


def edges_from_pairs(n_jobs: int, upstream: Any, downstream: Any) -> Dependencies:
    """Build dependencies from pairs without times, for graphs that no log was joined for."""
    up, down = (np.asarray(a, np.int32) for a in (upstream, downstream))
    order = np.lexsort([up, down])
    unknown = np.full(len(up), np.nan)
    return Dependencies(
        n_jobs, up[order], down[order], unknown, unknown, np.ones(len(up), np.int32)
    )


def without_cycles(edges: Dependencies) -> tuple[Dependencies, int]:
    """Drop backward edges within cycles; return the rest and the number dropped.

    Jobs that run at the same time may read each other's output. Within a strongly connected
    component only edges to jobs submitted later (to later rows) stay, so the result is acyclic.
    """
    cyclic = nodes_on_cycles(edges.upstream, edges.downstream, edges.n_jobs)
    if not len(cyclic):
        return edges, 0
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    local = np.full(edges.n_jobs, -1, np.int64)
    local[cyclic] = np.arange(len(cyclic))
    local_up, local_down = local[edges.upstream], local[edges.downstream]
    inside = (local_up >= 0) & (local_down >= 0)
    shape = (len(cyclic), len(cyclic))
    graph = csr_array(
        (np.ones(inside.sum(), np.int8), (local_up[inside], local_down[inside])), shape=shape
    )
    _, component = connected_components(graph, directed=True, connection="strong")
    backward = inside & (edges.upstream >= edges.downstream)
    backward[backward] = component[local_up[backward]] == component[local_down[backward]]
    return edges.where(~backward), int(backward.sum())


WeightFunction = Callable[[Dependencies], F8]
"""wt_fn: computes a weight for each edge from all edges (so from a job and its in-edges)."""
OMEGA_S: Final = 7 * 86_400.0
"""The multi-hop window (§4.5.1)."""


@dataclass(frozen=True, eq=False)
class Window:
    """Multi-hop window: the pairs of jobs that count (§4.5.1)."""

    submit_s: F8  # submission of each job, s
    cut_s: F8  # cut-off for each job's downstream submissions: its completion + ω, s
    valid: Mask  # jobs that complete at least ω before the end of observation


def window(
    submit_s: F8, finish_s: F8, omega_s: float = OMEGA_S, end_s: float | None = None
) -> Window:
    """Build the window of length `omega_s`; observation ends at `end_s`, or the last completion."""
    end = float(finish_s.max(initial=0.0)) if end_s is None else end_s
    return Window(submit_s, finish_s + omega_s, finish_s + omega_s <= end)


@dataclass(frozen=True, eq=False)
class Graph:
    """Jobs numbered so that every edge leads to a higher number, near the order of submission."""

    row: I4  # row of the job table of each number
    number: I4  # the inverse
    out0: I8  # first index of each number's edges in `child`
    child: I4  # the dependent jobs' numbers, ascending for each job
    edge: I8  # index of each edge in the `Dependencies`

    def end(self, submit_s: F8, cut_s: F8) -> I4:
        """Return, for each cut-off, the number from which on no job is submitted by then.

        Jobs from that number on, and jobs that lead only there, can be skipped under the cut-off.
        """
        latest = np.minimum.accumulate(submit_s[self.row][::-1])[::-1]
        return np.searchsorted(latest, cut_s, side="right").astype(np.int32)


def graph(edges: Dependencies) -> Graph:
    """Assign topological numbers to the jobs."""
    from policies.wing.lineage.kernels.flows import topological_order  # loads numba
    from sim.workload.kernels.paths import by_child

    n = edges.n_jobs
    if (edges.upstream < edges.downstream).all():
        row = np.arange(n, dtype=np.int32)
        number = row
    else:
        out0, order = by_child(n, edges.upstream)
        row = topological_order(out0, edges.downstream[order])
        if len(row) < n:
            raise InputError(
                "the dependencies form a cycle; policies.wing.lineage.without_cycles breaks it",
                rule="cycle",
            )
        number = np.empty(n, np.int32)
        number[row] = np.arange(n, dtype=np.int32)
    child = number[edges.downstream]
    _, first = by_child(n, child)
    out0, second = by_child(n, number[edges.upstream][first])
    edge = first[second]
    return Graph(row, number, out0, child[edge], edge)


def share_of_inputs(edges: Dependencies) -> F8:
    """Return 1/N for each edge into a job that depends on N jobs (§4.5.1, equal contribution)."""
    return 1.0 / edges.n_upstream()[edges.downstream]


DAY_S: Final = 86_400.0

OUTSIDE_RULES: Final = (
    "operations before their job's submission", "operations after their job's end"
)  # fmt: skip
UNREAD_RULE: Final = "writes that nobody read before the next one"
MAX_UNREAD: Final = 0.1
"""Share of such writes above which they are told first: the log may not tell additions apart."""
WINDOW_S: Final = 30 * DAY_S
"""Maximum age of the write that a read depends on (§4.2, rule 3)."""


@dataclass(frozen=True, eq=False)
class Downloads:
    """Downloads by people, each of one job's output."""

    job: I4  # row of the job that wrote the file last; ascending
    time_s: F8  # time of the download, s; ascending for each job
    n: I4  # number of downloads at that time

    def per_job(self, n_jobs: int) -> F8:
        """Sum the downloads of each job: its local value (§4.3)."""
        out = np.bincount(self.job, weights=self.n, minlength=n_jobs)
        return out.astype(np.float64, copy=False)


@dataclass(frozen=True, eq=False)
class SingleHop:
    """Result of the join of reads and downloads to writes."""

    # from `join` and `merge` they may have cycles, from `single_hop` they have none
    dependencies: Dependencies
    downloads: Downloads
    report: dict[str, int]  # counts of anomalies in the logs, by rule
    n_operations: int  # number of operations joined
    n_files: int
    n_writes: int = 0  # writes that may replace their file or add to it

    def unread_share(self) -> float:
        """Return the share of these writes that nobody read before the next one."""
        return self.report.get(UNREAD_RULE, 0) / max(self.n_writes, 1)


ProgramFinder = Callable[[Logs], I4]
"""Return the program of each job."""


def single_hop(logs: Logs, window_s: float = WINDOW_S) -> SingleHop:
    """Join reads and downloads to the writes that they saw, and drop cycles.

    A read sees the last write of its file before it (last writer wins), if that is at most
    `window_s` old. At equal times the write comes first if its job was submitted earlier (or, among
    jobs submitted at that very instant, is an earlier row), and before any download. A job does not
    depend on itself. Among writes at one instant the later row of the log wins. Files that are
    appended to or emptied are joined as `policies.wing.lineage.partial` says.
    """
    return drop_cycles(join(logs, window_s))


def join(
    logs: Logs,
    window_s: float = WINDOW_S,
    *,
    inside: bool = False,
    find_programs: ProgramFinder | None = None,
) -> SingleHop:
    """Join as `single_hop` does, but keep cycles: so files can be joined independently.

    With `inside` a file whose name is inside another's is a part of it. Files that are not replaced
    whole need the program of each job: by default its template name.
    """
    if len(logs.time_s) > 1 and (logs.time_s[1:] < logs.time_s[:-1]).any():
        logs = _operations(logs, np.argsort(logs.time_s, kind="stable"))
    code = logs.operation
    folders = partial.folders_of(logs.files.to_pylist()) if inside else {}
    if not folders and not (code > DOWNLOAD).any():
        return _join_whole(logs, window_s)
    group = np.arange(logs.n_files, dtype=np.int32)
    is_partial = np.zeros(logs.n_files, bool)
    for file, outer in folders.items():
        group[file] = outer[0]
        is_partial[outer[0]] = True
    is_partial[group[logs.file[(code == APPEND) | (code == TRUNCATE)]]] = True
    in_parts = is_partial[group[logs.file]]
    took_place = code != FAILED_WRITE
    hops = _join_whole(_operations(logs, np.flatnonzero(took_place & ~in_parts)), window_s)
    rows = np.flatnonzero(took_place & in_parts)
    program = logs.column("template_name") if find_programs is None else find_programs(logs)
    matches = partial.match(logs, rows, group, folders, program, window_s)
    return merge([hops, _hops_of(logs, rows, matches)])


def _operations(logs: Logs, rows: I8) -> Logs:
    """Return the logs with some of the operations."""
    columns = {name: getattr(logs, name)[rows] for name in _OPERATION_COLUMNS}
    return replace(logs, **columns)


_OPERATION_COLUMNS: Final = ("time_s", "job", "operation", "file", "n")


def _hops_of(logs: Logs, rows: I8, matches: partial.Matches) -> SingleHop:
    """Return the join of the operations `rows` from its matches."""
    writer, reader = (np.array(a, np.int32) for a in (matches.writer, matches.reader))
    read_s, written_s = np.array(matches.read_s), np.array(matches.written_s)
    n = np.array(matches.n, np.int32)
    reads = reader >= 0
    edges = _pairs(
        logs.n_jobs, writer[reads], reader[reads], read_s[reads], written_s[reads], n[reads]
    )
    downloaded = np.flatnonzero(~reads)
    downloaded = downloaded[np.lexsort((read_s[downloaded], writer[downloaded]))]
    downloads = Downloads(writer[downloaded], read_s[downloaded], n[downloaded])
    part = _operations(logs, rows)
    report = matches.report | _outside_jobs(part)
    n_writes = int(np.count_nonzero(part.operation == WRITE))
    return SingleHop(edges, downloads, report, len(rows), len(np.unique(part.file)), n_writes)


def _outside_jobs(logs: Logs) -> dict[str, int]:
    before, after = OUTSIDE_RULES
    counts = {
        before: _outside(logs, "submit_s", -1),
        after: _outside(logs, "finish_s", 1),
    }
    return {rule: n for rule, n in counts.items() if n}


def _join_whole(logs: Logs, window_s: float) -> SingleHop:
    """Join the reads of files whose writes replace them; operations are in order of time."""
    from policies.wing.lineage.kernels import flows  # loads numba
    from sim.workload.kernels.paths import by_child

    time_s, job, operation, file, n = (getattr(logs, name) for name in _OPERATION_COLUMNS)
    file0, order = by_child(logs.n_files, file)
    n_unread = partial.unread_writes(logs, order)
    n_writes = int(np.count_nonzero(operation == WRITE))
    if (operation == OVERWRITE).any():
        operation = np.where(operation == OVERWRITE, WRITE, operation).astype(np.int8)
    writer, written_s, fate, ties, n_simultaneous = flows.last_writer(
        file0, order, time_s, job, operation, logs.column("submit_s"), float(window_s)
    )
    n_files = int(np.count_nonzero(np.diff(file0)))
    del file0, order
    matched = writer >= 0
    report = {"writes at the instant of another job's": int(n_simultaneous)}
    for kind, code in (("reads", READ), ("downloads", DOWNLOAD)):
        fates = np.bincount(fate[operation == code], minlength=5)
        report[f"{kind} {partial.NEVER_WRITTEN}"] = int(fates[flows.NEVER_WRITTEN])
        report[f"{kind} {partial.TOO_EARLY}"] = int(fates[flows.TOO_EARLY])
        report[f"{kind} {partial.TOO_OLD}"] = int(fates[flows.TOO_OLD])
        report[f"{kind} at the instant of a write, taken as after it"] = int(ties[code, 0])
        report[f"{kind} at the instant of a write, taken as before it"] = int(ties[code, 1])
        if code == READ:
            report[f"reads {partial.SELF_READ}"] = int(fates[flows.SELF_READ])
    report |= _outside_jobs(logs)
    report[UNREAD_RULE] = n_unread

    reads = np.flatnonzero(matched & (operation == READ))
    seen_once = np.ones(len(reads), np.int32)
    edges = _pairs(
        logs.n_jobs, writer[reads], job[reads], time_s[reads], written_s[reads], seen_once
    )
    downloaded = np.flatnonzero(matched & (operation == DOWNLOAD))
    downloaded = downloaded[np.argsort(writer[downloaded], kind="stable")]
    downloads = Downloads(writer[downloaded], time_s[downloaded], n[downloaded])
    counted = {rule: n for rule, n in report.items() if n}
    return SingleHop(edges, downloads, counted, len(time_s), n_files, n_writes)


def merge(joins: Sequence[SingleHop]) -> SingleHop:
    """Merge joins of disjoint sets of files; the result equals one join of all of them."""
    edge_sets = [part.dependencies for part in joins]
    columns = (np.concatenate([getattr(e, name) for e in edge_sets]) for name in EDGE_COLUMNS)
    edges = _pairs(edge_sets[0].n_jobs, *columns)
    job, time_s, n = (
        np.concatenate([getattr(part.downloads, name) for part in joins])
        for name in ("job", "time_s", "n")
    )
    order = np.lexsort((time_s, job))
    report: dict[str, int] = {}
    for part in joins:
        for rule, times in part.report.items():
            report[rule] = report.get(rule, 0) + times
    return SingleHop(
        edges, Downloads(job[order], time_s[order], n[order]), report,
        *(sum(getattr(part, name) for part in joins) for name in
          ("n_operations", "n_files", "n_writes")),
    )  # fmt: skip


def drop_cycles(hops: SingleHop) -> SingleHop:
    """Drop dependencies that close a cycle, and count them in the report."""
    edges, n_cyclic = without_cycles(hops.dependencies)
    report = hops.report | ({"dependencies that close a cycle": n_cyclic} if n_cyclic else {})
    return replace(hops, dependencies=edges, report=report)


def _pairs(n_jobs: int, up: I4, down: I4, read_s: F8, written_s: F8, n_reads: I4) -> Dependencies:
    """Merge equal pairs, sorted by downstream, then upstream: two stable counting sorts."""
    from policies.wing.lineage.kernels.flows import distinct_pairs  # loads numba
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
