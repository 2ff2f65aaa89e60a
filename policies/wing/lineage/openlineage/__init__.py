"""Reader of OpenLineage events into the two logs.

Events stand in a file (JSON lines, objects one after another, a list, an answer of Marquez) or in a
folder of files, plain or compressed. A run becomes a job: its first ``START`` gives its start
(events have no submission time), the latest ``COMPLETE``, ``FAIL`` or ``ABORT`` its end; without
these it starts at its first event, or ends at its last. A run that contains others by their
``parent`` facets does no work of its own: it is left out. Each input is read at the start, each
output written at the end; runs that stream do so at each ``RUNNING`` event. Outputs of a run that
failed are failed writes, on which nothing depends. Events about a job or a dataset without a run
(JobEvent, DatasetEvent) are only counted. A file's name is the dataset's ``namespace/name``, a
template's name the job's, and the queue is the job's namespace. See https://openlineage.io/spec.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from policies.wing.lineage.job_log import LeftOut
from policies.wing.lineage.logs import Logs, make_logs
from policies.wing.lineage.openlineage.counts import WRAPPERS_RULE, EventCounts, run_counts
from policies.wing.lineage.openlineage.datasets import MalformedError
from policies.wing.lineage.openlineage.runs import Runs
from policies.wing.lineage.openlineage.sources import (
    is_openlineage,
    malformed_reason,
    nothing_read,
    read_values,
    wrapper_key,
)
from policies.wing.lineage.openlineage.tables import build_tables
from policies.wing.lineage.openlineage.values import Malformed
from policies.wing.lineage.openlineage.wrappers import Containment, find_wrappers
from sim.base.errors import InputError
from sim.base.reading import OnBadRow

__all__ = ["Wrappers", "is_openlineage", "read_events"]

Wrappers = Literal["leave_out", "keep"]


def read_events(
    path: str | os.PathLike[str], on_bad_row: OnBadRow = "skip", wrappers: Wrappers = "leave_out"
) -> Logs:
    """Read OpenLineage events as logs.

    Parameters
    ----------
    path : path-like
        A file, or a folder of files.
    on_bad_row : {"error", "skip"}
        Malformed events: raise, or count with the first ones and their reasons.
    wrappers : {"leave_out", "keep"}
        Runs that contain others: leave them out, or keep them as jobs beside those inside. A
        dataset that a wrapper alone names is read by the first run inside it, written by the last.

    Raises
    ------
    InputError
        With the file and rule: "malformed" (with ``on_bad_row="error"``), "no event", "wrapped
        events", "empty file", "missing file".
    """
    source = Path(path)
    runs, counts = Runs(), EventCounts()
    for place, value in read_values(source):
        counts.n_values += 1
        try:
            _add(value, runs, counts.statics)
        except MalformedError as error:
            reason = malformed_reason(value, str(error))
            if on_bad_row == "error":
                file, _, line = place.rpartition(":")
                raise InputError(
                    f"{reason}; fix the event, or skip it",
                    file=source / file if file else source,
                    line=int(line),
                    rule="malformed",
                ) from None
            counts.bad.append((place, reason))
            counts.wrapper = counts.wrapper or wrapper_key(value)
    if not runs.by_key:
        raise nothing_read(source, counts)
    return _logs(runs, wrappers, counts)


def _add(value: Any, runs: Runs, statics: dict[str, int]) -> None:
    if isinstance(value, Malformed):
        raise MalformedError(value.reason)
    static = _static_rule(value, runs)
    if static:
        statics[static] = statics.get(static, 0) + 1
    else:
        runs.add(value)


def _static_rule(event: Any, runs: Runs) -> str:
    """Return the report rule of an event without a run; the empty string for events of runs."""
    if not isinstance(event, dict) or "run" in event or "eventType" in event:
        return ""
    kind = "dataset" if "dataset" in event else "job"
    if not isinstance(event.get(kind), dict):
        return ""
    runs.time_s(event)
    if not isinstance(event[kind].get("name"), str) or not event[kind]["name"]:
        raise MalformedError(f"no {kind} name")
    return f"of a {kind}, not of a run"


def _logs(runs: Runs, wrappers: Wrappers, counts: EventCounts) -> Logs:
    rank, _ = runs.datasets.numbered()
    inside = find_wrappers(runs.by_key, rank) if wrappers == "leave_out" else Containment([])
    left_out = {run.key for run in inside.wrappers}
    jobs = [run for key, run in runs.by_key.items() if key not in left_out]
    logs = make_logs(*build_tables(runs, jobs, inside))
    n_by_rule, notes = run_counts(jobs, inside)
    wrapped = LeftOut(
        WRAPPERS_RULE,
        np.array([run.begin_s for run in inside.wrappers]),
        np.array([run.finish_s - run.begin_s for run in inside.wrappers]),
        by_option=True,
    )
    return replace(
        logs,
        report=counts.report(runs.n_unzoned) | n_by_rule | logs.report,
        notes=(*counts.notes(), *notes),
        left_out=(wrapped,) if inside.wrappers else (),
    )
