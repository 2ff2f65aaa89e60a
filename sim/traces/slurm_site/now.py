"""Jobs of a site now: those of its accounting that ended, and those of its queue."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from sim.base.errors import InputError
from sim.base.reading import first_line, read_text
from sim.traces.sacct.json_jobs import is_json
from sim.traces.sacct.ran import NOT_ENDED
from sim.traces.sacct.text import DELIMITERS
from sim.traces.sites.now import with_open_jobs
from sim.traces.slurm_site.folder import Folder
from sim.traces.slurm_site.open_jobs import open_jobs
from sim.traces.slurm_site.shown import time_s
from sim.traces.slurm_site.slurm_conf import packed
from sim.traces.slurm_site.squeue import Queue, read_queue
from sim.workload.workload import Workload

FILES = ("squeue.json", "squeue.txt")
_NOT_ENDED = re.compile("|".join(NOT_ENDED))
_DEFAULT = (
    "JobID|User|Account|Partition|QOS|Submit|Eligible|Start|End|Elapsed|Timelimit|State|AllocCPUS|"
    "ReqCPUS|NNodes|AllocTRES|ReqTRES|NodeList|Priority|Reservation|Constraints|Reason|SubmitLine"
)


def queue_file(folder: Path) -> Path | None:
    """Return the file of the queue; None if there is none."""
    return next(filter(None, (packed(folder / name) for name in FILES)), None)


def read_now(folder: Folder, read: Callable[[Folder], Workload]) -> Workload | None:
    """Read the jobs that ended, run and wait, of a folder, with its reader; None without a queue.

    Without a file of the queue the jobs of the accounting are taken that had not ended when it was
    written. A job that waits has no recorded start, and one that runs no recorded end.

    Raises
    ------
    InputError
        Of the queue's content, or if the accounting is JSON, to which it can't be added.
    """
    path = queue_file(folder.path)
    if path is None and not _may_have_open_jobs(folder):
        return None
    lines, delimiter = _accounting(folder)
    heads = lines[0].split(delimiter)
    rows = [dict(zip(heads, line.split(delimiter), strict=False)) for line in lines[1:]]
    queue = open_jobs(rows) if path is None else read_queue(path, _running_s(rows))
    if queue is None:
        return None
    ids = queue.waiting | queue.running
    not_ended = NOT_ENDED if path is None else ()
    ended = [
        line
        for line, row in zip(lines[1:], rows, strict=True)
        if row.get("JobID", "").partition(".")[0] not in ids
        and row.get("State", "").partition(" ")[0] not in not_ended
    ]
    added = [delimiter.join(_clean(r.get(h, ""), delimiter) for h in heads) for r in queue.records]
    with tempfile.TemporaryDirectory() as name:
        both = Path(name) / "sacct.txt"
        both.write_text("\n".join([lines[0], *ended, *added]) + "\n", encoding="utf-8")
        workload = read(replace(folder, files={**folder.files, "sacct.txt": both}))
    return _with_open_jobs(workload, queue)


def _running_s(rows: Sequence[Mapping[str, str]]) -> dict[str, float]:
    """Return when running jobs of the accounting started."""
    return {
        row["JobID"]: seconds
        for row in rows
        if row.get("State") == "RUNNING" and (seconds := time_s(row.get("Start", "")))
    }


def _may_have_open_jobs(folder: Folder) -> bool:
    """Tell whether there is an accounting, of text, with the word for such a job in it."""
    if "sacct.txt" not in folder.files or is_json(first_line(folder.files["sacct.txt"])):
        return False
    return _NOT_ENDED.search(read_text(folder.files["sacct.txt"])) is not None


def _accounting(folder: Folder) -> tuple[list[str], str]:
    """Return the lines of ``sacct.txt``, or a head alone, and its delimiter."""
    if "sacct.txt" not in folder.files:
        return [_DEFAULT], "|"
    path = folder.files["sacct.txt"]
    head = first_line(path)
    if is_json(head):
        raise InputError(
            "a queue can't be added to sacct --json; write sacct.txt with --parsable2", file=path,
            rule="JSON",
        )  # fmt: skip
    delimiter = next((d for d in DELIMITERS if d in head), "|")
    return read_text(path).splitlines(), delimiter


def _clean(text: str, delimiter: str) -> str:
    return text.replace(delimiter, " ")


def _with_open_jobs(workload: Workload, queue: Queue) -> Workload:
    """Return the workload without the starts and ends that stood in for unknown ones."""
    ids = [name.partition("@")[0].partition("#")[0] for name in workload.jobs["job_id"].to_pylist()]
    waits = np.array([name in queue.waiting for name in ids])
    runs = np.array([name in queue.running for name in ids])
    now_s = queue.now_s - float(workload.meta["offset_s"])
    return with_open_jobs(workload, waits, runs, now_s)
