"""Dependencies between jobs: texts such as ``afterok:1701:1702,afterany:1703(unfulfilled)``.

A dependency on the end of another job becomes an edge of its kind, for which the job waits in a
simulation, too (`sim.workload.releases`). Others are left out: on the start or the failure of a
job, on any one of several, or on all jobs of a name.

Source: the manual of sbatch, https://slurm.schedmd.com/sbatch.html (``--dependency``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sim.base.arrays import I8, inverse
from sim.base.reading import Account
from sim.traces.sacct.columns import codes, has_text, take_rows
from sim.traces.sacct.groups import Groups
from sim.traces.sacct.selection import Selection

ENDED = ("afterok", "afterany")
"""Kinds that wait for the end of a job, the stricter first."""
_STRICTER = ENDED.index
ABSENT = "on a job that is not in the workload"
LATER = "on a job that was submitted later"
ONE_ELEMENT = "on an element of an array that is one job"
LEFT_OUT = "of a job that is left out"
ANY = "on any of several jobs"
_ID = re.compile(r"(\d+)(?:_(\d+|\*)|\+\d+)?(?:\(\w+\))?")


@dataclass(frozen=True, eq=False)
class Dependencies:
    """Edges between J jobs, and the number of dependencies by the reason why they are none.

    Attributes
    ----------
    upstream, downstream : (E,) int64
        Rows of jobs.
    kind : tuple of str
        Of each edge, one of `ENDED`.
    left_out : dict of str to int
    """

    upstream: I8
    downstream: I8
    kind: tuple[str, ...]
    left_out: dict[str, int]

    def enter(self, account: Account) -> None:
        """Enter all dependencies of the log into its account."""
        if len(self.upstream):
            account.count(edges=len(self.upstream))
        for reason, n in self.left_out.items():
            account.add(reason, edges=n)

    def edges(self, old_row: I8) -> dict[str, I8 | list[str]] | None:
        """Return the table of edges, where `old_row` gives the former row of each job."""
        if not len(self.upstream):
            return None
        new_row = inverse(old_row)
        return {
            "upstream": new_row[self.upstream],
            "downstream": new_row[self.downstream],
            "kind": [*self.kind],
        }


def read_dependencies(chosen: Selection, groups: Groups) -> Dependencies:
    """Read the dependencies of a log, from the column ``Dependency``, if it has that."""
    edges: dict[tuple[int, int], str] = {}
    left_out: dict[str, set[tuple[int, str]]] = {}
    rows = np.flatnonzero(has_text(chosen.log, "Dependency") & chosen.is_own_job)
    if len(rows):
        jobs = _Jobs(chosen, groups)
        job_of_record = np.full(len(chosen.times.submit_s), -1)
        job_of_record[chosen.heads] = groups.job
        texts = take_rows(chosen.log["Dependency"], rows).to_pylist()
        clusters = codes(chosen.log, "Cluster")[rows].tolist()
        for record, text, cluster in zip(rows.tolist(), texts, clusters, strict=True):
            job = int(job_of_record[record])
            for kind, name in parse(text):
                upstream, reason = jobs.find(kind, name, cluster, job)
                for row in upstream:
                    edges[row, job] = min(kind, edges.get((row, job), kind), key=_STRICTER)
                if reason:
                    left_out.setdefault(reason, set()).add((~record if job < 0 else job, name))
    ordered = sorted(edges)
    pairs = np.array(ordered, np.int64).reshape(-1, 2)
    counts = {reason: len(items) for reason, items in left_out.items()}
    return Dependencies(pairs[:, 0], pairs[:, 1], tuple(edges[pair] for pair in ordered), counts)


def parse(text: str) -> Iterator[tuple[str, str]]:
    """Yield kind and id of each job that a text names; `ANY` for alternatives.

    >>> list(parse("afterok:1:2_*,singleton"))
    [('afterok', '1'), ('afterok', '2_*'), ('singleton', '')]
    """
    if text.lower() in ("(null)", "none"):
        return
    for part in re.split(r"[,?]", text):
        kind, *names = part.split(":")
        kind = ANY if "?" in text else kind.split("(")[0]
        for name in names or [""]:
            yield kind, name


class _Jobs:
    """Jobs by cluster and id."""

    def __init__(self, chosen: Selection, groups: Groups) -> None:
        self._submit_s = chosen.first_run.submit_s[groups.first].tolist()
        self._is_array = np.zeros(len(groups.first), dtype=bool)
        self._is_array[groups.job[groups.is_array]] = True
        self._by_id: dict[tuple[int, str], list[int]] = {}
        self._ids: dict[tuple[int, str], list[str]] = {}  # of arrays and heterogeneous jobs
        clusters = codes(chosen.log, "Cluster")[chosen.heads].tolist()
        names = chosen.head_log["JobID"].to_pylist()
        for name, cluster, job in zip(names, clusters, groups.job.tolist(), strict=True):
            self._by_id.setdefault((cluster, name), []).append(job)
            base = re.split("[_+]", name)[0]
            if base != name:
                self._ids.setdefault((cluster, base), []).append(name)

    def find(self, kind: str, name: str, cluster: int, job: int) -> tuple[set[int], str]:
        """Return the jobs whose end a job waits for; else the reason why that is not expressed."""
        match = _ID.fullmatch(name)
        if job < 0:
            return set(), LEFT_OUT
        if kind not in ENDED or match is None:
            return set(), kind if kind == ANY else f"of kind {kind or 'unknown'}"
        base, element = match.groups()
        ids = [base, *self._ids.get((cluster, base), [])]
        if element not in (None, "*"):
            ids = [f"{base}_{element}"]
        lists = [self._by_id.get((cluster, name), []) for name in dict.fromkeys(ids)]
        rows = {row for rows in lists for row in rows} - {job}
        time_s = self._submit_s[job]  # of the same second, jobs are in the order of the log
        earlier = {row for row in rows if (self._submit_s[row], row) < (time_s, job)}
        if not earlier:
            return set(), LATER if rows else ABSENT
        if any(len({*rows}) > 1 for rows in lists):  # the id was given again
            latest = max(self._submit_s[row] for row in earlier)
            earlier = {row for row in earlier if self._submit_s[row] == latest}
        if len(ids) == 1 and element and self._is_array[[*earlier]].any():
            return set(), ONE_ELEMENT
        return earlier, ""
