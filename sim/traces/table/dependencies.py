"""Dependencies between the jobs of a table: ids of jobs whose end a job waits for."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sim.base.acyclic import find_cycle
from sim.base.arrays import F8, I4, I8, Mask
from sim.traces.table.retries import Retries

_BETWEEN = re.compile(r"[\s;,|?\"'\[\]{}]+")
_TYPES = re.compile(r"(after(ok|any|notok|corr|burstbuffer)?|singleton|expand)(\+\d+)?$")
_NO_WAIT = ("after", "expand", "singleton")
"""Types of Slurm's dependencies that do not wait for the end of a job."""
_NOTHING = re.compile(r"(?i)(-+|none|null|n/?a|unknown|\(null\))?$")

_WHOLE = "\0"
"""Key of jobs by the names of which their rows are parts."""

UNKNOWN = "on a job that is not in the log"
LEFT_OUT = "on a row that is left out, or of one"
OTHER = "on a row of another job"
NO_WAIT = "of a kind that waits for no end"
REPEATED = "named twice, or on the job itself"
CIRCLE = "on a later job, in a circle"


@dataclass(frozen=True, eq=False)
class Dependencies:
    """Edges between rows of jobs, the number stated, and the number left out by reason.

    `is_retry` marks those that no row states: from an earlier attempt to its retry.
    """

    upstream: I4
    downstream: I4
    n_stated: int
    left_out: Mapping[str, int]
    is_retry: Mask


def dependencies_of(
    texts: pa.Array,
    ids: pa.Array,
    rows: I8,
    parts: pa.Array | None = None,
    retries: Retries | None = None,
) -> Dependencies:
    """Return the edges that a column of ids states, and those from attempts to their retries.

    Ids are separated by ``;``, ``,``, spaces or ``:``, also as Slurm writes them
    (``afterok:17:18``); an id that holds one of these is found as well. Of several jobs of one id
    the last one before the job is meant. With `parts`, an id is that of a row of the same job, or
    else of another job. Of several attempts the last is meant that had ended when the job started.

    Parameters
    ----------
    texts : (N,) Arrow array of strings
        What each row of the log waits for; null for nothing.
    ids : (N,) Arrow array of strings
        Ids of the rows.
    rows : (J,) int64
        The rows that are jobs, in the jobs' order.
    parts : (N,) Arrow array of strings, optional
        The job that each row is a part of; null: the row is one.
    retries : Retries, optional
        Earlier attempts of the jobs.
    """
    job_of = np.full(len(texts), -1, np.int64)
    job_of[rows] = np.arange(len(rows))
    part_of = [""] * len(texts) if parts is None else parts.to_pylist()
    jobs_of: dict[tuple[str | None, str], list[int]] = {}
    for name, row in zip(ids.take(pa.array(rows)).to_pylist(), rows.tolist(), strict=True):
        jobs_of.setdefault((part_of[row], name), []).append(int(job_of[row]))
    all_ids = set(ids.to_pylist())
    if parts is not None:  # by its name a job is its first row
        for row in rows.tolist():
            jobs_of.setdefault((_WHOLE, part_of[row] or ids[row].as_py()), [int(job_of[row])])
        all_ids |= set(parts.drop_null().to_pylist())
    own_ids = set(zip(part_of, ids.to_pylist(), strict=True))
    left_out = dict.fromkeys((UNKNOWN, OTHER, LEFT_OUT, REPEATED, NO_WAIT, CIRCLE), 0)
    edges: dict[tuple[int, int], None] = {}
    n_stated = 0
    stated = np.flatnonzero(np.asarray(texts.is_valid()))
    for row, text in zip(stated.tolist(), texts.take(pa.array(stated)).to_pylist(), strict=True):
        downstream = int(job_of[row])
        for name, waits in _names(text, all_ids):
            n_stated += 1
            elsewhere = jobs_of.get((_WHOLE, name), [])
            upstream = _last_before(jobs_of.get((part_of[row], name), elsewhere), downstream)
            if upstream is not None and retries is not None and retries.exist:
                upstream = retries.attempt_before(upstream, downstream)
            if not waits:
                left_out[NO_WAIT] += 1
            elif name not in all_ids:
                left_out[UNKNOWN] += 1
            elif upstream is None and (part_of[row], name) not in own_ids:
                left_out[OTHER] += 1
            elif upstream is None or downstream < 0:
                left_out[LEFT_OUT] += 1
            elif upstream == downstream or (upstream, downstream) in edges:
                left_out[REPEATED] += 1
            else:
                edges[upstream, downstream] = None
    n_edges = len(edges)
    if retries is not None:
        again = np.flatnonzero(retries.earlier >= 0)
        pairs_of_retries = zip(retries.earlier[again].tolist(), again.tolist(), strict=True)
        edges |= dict.fromkeys(pairs_of_retries)
    pairs = np.array([*edges], np.int64).reshape(-1, 2)
    forward = _without_circles(pairs, len(rows))
    left_out[CIRCLE] = int((~forward[:n_edges]).sum())
    up, down = pairs[forward].T.astype(np.int32)
    is_retry = (np.arange(len(pairs)) >= n_edges)[forward]
    reasons = {why: n for why, n in left_out.items() if n}
    return Dependencies(up, down, n_stated, reasons, is_retry)


def count_stated(texts: pa.Array) -> int:
    """Count the dependencies that rows state which are no jobs."""
    return sum(1 for text in texts.drop_null().to_pylist() for _ in _names(text, frozenset()))


def wait_ends_s(edges: Dependencies, end_s: F8) -> F8:
    """Return when the last input of each job really ended, s; NaN for none, or unknown."""
    last_s = np.full(len(end_s), np.nan)
    np.fmax.at(last_s, edges.downstream, end_s[edges.upstream])
    return last_s


def _names(text: str, ids: set[str] | frozenset[str]) -> Iterator[tuple[str, bool]]:
    """Yield the ids in a text, and True for those whose end is waited for."""
    if text in ids:
        yield text, True
        return
    waits = True
    for part in _BETWEEN.split(re.sub(r"\(\w*\)", "", text)):
        if part in ids:
            yield part, waits
        elif not _NOTHING.match(part):
            for name in part.split(":"):
                if kind := _TYPES.match(name):
                    waits = kind[1] not in _NO_WAIT
                elif name:
                    yield (name if name in ids else re.sub(r"\+\d+$", "", name)), waits


def _last_before(jobs: Sequence[int], job: int) -> int | None:
    """Return the last of ascending jobs before another, or else the first; None for none."""
    return jobs[max(bisect.bisect_left(jobs, job) - 1, 0)] if jobs else None


def _without_circles(pairs: I8, n_jobs: int) -> Mask:
    """Mark the edges to keep: all, or only those from earlier jobs if the others close circles."""
    tail, head = pairs.T.astype(np.int32)
    if find_cycle(tail, head, n_jobs):
        forward: Mask = pairs[:, 0] < pairs[:, 1]
        return forward
    return np.ones(len(pairs), dtype=bool)
