"""Reader of the controller's log: submissions, starts and ends of jobs."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median

from benchmarks.real.slurm.configure import Settings
from benchmarks.real.slurm.workloads import Job, Replayed

_STAMP = re.compile(r"\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3})\] (.*)")
_SUBMITTED = re.compile(r"_slurm_rpc_submit_batch_job: JobId=(\d+) InitPrio=(\d+) usec=(\d+)")
_BY_SCHED = re.compile(r"sched: Allocate JobId=(\d+) NodeList=(\S+)")
_BY_BACKFILL = re.compile(r"sched/backfill: _start_job: Started JobId=(\d+) in \S+ on (\S+)")
_ENDED = re.compile(r"_job_complete: JobId=(\d+) done|Time limit exhausted for JobId=(\d+)")

MAX_LATE_S = 1.0
"""A run in which a job was submitted later than this, in real time, failed: it is made again."""


@dataclass
class Seen:
    """A job in the log; times in seconds of the daemons' clock since the epoch, NaN if unknown."""

    submit_s: float = math.nan
    priority: int = 0
    start_s: float = math.nan
    end_s: float = math.nan
    started_by: str = ""
    nodes: str = ""


def read_log(lines: Iterable[str]) -> dict[int, Seen]:
    """Return the jobs of a controller's log, by Slurm's number.

    A submission is logged when it has been answered, at times after the job's start; what the
    answer took is subtracted. A job that is killed at its limit ends then. Of two starts (the job
    was requeued between) the later counts.
    """
    jobs: dict[int, Seen] = defaultdict(Seen)
    for line in lines:
        if (stamp := _STAMP.match(line)) is None:
            continue
        at_s, message = _seconds(stamp[1]), stamp[2]
        if match := _SUBMITTED.search(message):
            job = jobs[int(match[1])]
            job.submit_s, job.priority = at_s - int(match[3]) / 1e6, int(match[2])
        elif match := _BY_SCHED.search(message) or _BY_BACKFILL.search(message):
            job = jobs[int(match[1])]
            job.start_s, job.nodes = at_s, match[2]
            job.started_by = "backfill" if "backfill" in message else "sched"
        elif match := _ENDED.search(message):
            jobs[int(match[1] or match[2])].end_s = at_s
    return dict(jobs)


def _seconds(stamp: str) -> float:
    return datetime.fromisoformat(f"{stamp}+00:00").timestamp()


def rows(seen: dict[int, Seen], jobs: Sequence[Job], priority: str) -> list[dict[str, str]]:
    """Return a row a submission, times from the first one.

    Raises
    ------
    ValueError
        If a job was not submitted, did not start, or did not end.
    """
    whole = [
        number
        for number, job in seen.items()
        if not math.isnan(job.submit_s + job.start_s + job.end_s)
    ]
    if sorted(whole) != list(range(1, len(jobs) + 1)):
        raise ValueError(f"{len(seen)} of {len(jobs)} jobs in the log; {len(whole)} of them ended")
    first_s = seen[1].submit_s
    table = []
    for number, job in enumerate(jobs):
        job_seen = seen[number + 1]
        row = {
            "job": str(number),
            "submit_s": f"{job_seen.submit_s - first_s:.3f}",
            "start_s": f"{job_seen.start_s - first_s:.3f}",
            "end_s": f"{job_seen.end_s - first_s:.3f}",
            "cpus": str(job.cpus),
            "limit_s": str(job.limit_s),
            "nominal_run_s": f"{job.run_s:g}",
            "started_by": job_seen.started_by,
            "nodes": job_seen.nodes,
        }
        if priority == "multifactor":
            row |= {"priority": str(job_seen.priority), "queue": job.queue}
        table.append(row)
    return table


def latest_s(table: Sequence[dict[str, str]], jobs: Sequence[Job]) -> float:
    """Return by how much the latest submission was late, beside most others, s of their clock."""
    late_s = [float(row["submit_s"]) - job.submit_s for row, job in zip(table, jobs, strict=True)]
    return max(late_s) - median(late_s)


def write(
    cluster: Path,
    replayed: Replayed,
    settings: Settings,
    target: Path,
    stem: str,
    load: dict[str, float],
) -> None:
    """Write ``STEM.csv.gz``, ``STEM.jobcomp.txt.gz`` and ``STEM.json`` from a cluster's folder.

    The controller's whole log lies beside them, but is not kept in the project.

    Raises
    ------
    ValueError
        If a job was not submitted, did not start, or did not end.
    RuntimeError
        If one was submitted late.
    """
    with (cluster / "slurmctld.log").open() as lines:
        table = rows(read_log(lines), replayed.jobs, settings.priority)
    late_s = latest_s(table, replayed.jobs) / settings.speed
    if late_s > MAX_LATE_S:
        raise RuntimeError(f"a job was submitted {late_s:.1f} s late: the machine was too busy")
    target.mkdir(parents=True, exist_ok=True)
    with _zipped(target / f"{stem}.csv.gz") as file:
        writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)
    with _zipped(target / f"{stem}.jobcomp.txt.gz") as file:
        file.write((cluster / "jobcomp.txt").read_text())
    with _zipped(target / "slurmctld.log.gz") as file:
        file.write((cluster / "slurmctld.log").read_text())
    about = {
        "workload": replayed.name,
        "gaps": round(replayed.gaps, 6),
        **settings.described(),
        **load,
    }
    (target / f"{stem}.json").write_text(json.dumps(about, indent=1) + "\n")


def _zipped(path: Path) -> io.TextIOWrapper:
    """Open a file to write into; equal content has equal bytes, as the time is left out."""
    return io.TextIOWrapper(gzip.GzipFile(path, "wb", mtime=0), newline="")
