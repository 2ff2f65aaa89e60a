"""Queue of a site as ``squeue`` prints it: jobs that run and wait now, as records of ``sacct``.

Source: the manual https://slurm.schedmd.com/squeue.html (``-o``, ``--json``). A record has no end
yet, so that of its time limit stands in its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from sim.base.errors import InputError
from sim.base.reading import read_text
from sim.traces.sites.now import NO_LIMIT_S
from sim.traces.slurm_site.shown import is_set, span_s, time_s

FORMAT = "%i|%P|%u|%a|%q|%T|%V|%S|%l|%D|%C|%m|%b|%N|%f|%r|%Q|%E|%v|%h"
COMMAND = f"(date +%FT%T; squeue --all -o '{FORMAT}') > squeue.txt"
RUNNING, WAITING = ("RUNNING", "COMPLETING", "SUSPENDED"), ("PENDING",)
_TEXT = {
    "JOBID": "id", "PARTITION": "partition", "USER": "user", "ACCOUNT": "account", "QOS": "qos",
    "STATE": "state", "SUBMIT_TIME": "submit", "START_TIME": "start", "TIME_LIMIT": "limit",
    "NODES": "nodes", "CPUS": "cpus", "MIN_MEMORY": "memory", "TRES_PER_NODE": "gres",
    "GRES": "gres", "NODELIST": "nodelist", "FEATURES": "features", "REASON": "reason",
    "PRIORITY": "priority", "DEPENDENCY": "dependency", "RESERVATION": "reservation",
    "OVER_SUBSCRIBE": "shares", "OVERSUBSCRIBE": "shares", "SHARED": "shares",
}  # fmt: skip
"""Columns of ``squeue -o`` by their heads."""
_AMOUNTS = {
    False: ("tres_alloc_str", "tres_req_str"),
    True: ("tres_req_str", "tres_alloc_str"),
}
"""Amounts of a job, and of one that has whole nodes: what it asked for comes first there."""
_ARRAY = re.compile(r"(\d+)_\[([\d,:-]+)(?:%(\d+))?\]")
_GPUS = re.compile(r"gpu(?::([A-Za-z][^:,()]*))?(?::(\d+))?")


@dataclass(frozen=True)
class Queue:
    """Jobs of a queue.

    Attributes
    ----------
    now_s : float
        When it was written, s since 1970 by the site's clock.
    records : sequence of mapping
        Fields of ``sacct`` by name, a mapping a job.
    waiting, running : frozenset of str
        Their ids.
    """

    now_s: float
    records: Sequence[Mapping[str, str]]
    waiting: frozenset[str]
    running: frozenset[str]


def read_queue(path: Path, started_s: Mapping[str, float]) -> Queue:
    """Read what ``squeue`` printed, as text or JSON.

    Parameters
    ----------
    started_s : mapping of str to float
        When running jobs started by ``sacct``'s clock: times of JSON are those of UTC, and the
        difference is that of the clocks.

    Raises
    ------
    InputError
        If it is neither, or a column is missing.
    """
    text = read_text(path)
    if text.lstrip()[:1] == "{":
        rows, now_s = _json_rows(path, text, started_s)
    else:
        rows, now_s = _text_rows(path, text)
    jobs = [job for row in rows for job in array_elements(row)]
    known = [t for job in jobs for t in (time_s(job["submit"]), time_s(job["start"])) if t]
    starts = [time_s(job["start"]) for job in jobs if job["state"] in RUNNING]
    if now_s is None:
        now_s = max([t for t in starts if t] or known or [0.0])
    records = [_record(job, now_s) for job in jobs if job["state"] in (*RUNNING, *WAITING)]
    ids = {
        states: frozenset(job["id"] for job in jobs if job["state"] in states)
        for states in (WAITING, RUNNING)
    }
    return Queue(now_s, records, ids[WAITING], ids[RUNNING])


def _text_rows(path: Path, text: str) -> tuple[list[dict[str, str]], float | None]:
    lines = [line for line in text.splitlines() if line.strip()]
    now_s = time_s(lines[0].strip()) if lines and "|" not in lines[0] else None
    lines = lines[1:] if now_s is not None else lines
    heads = lines[0].split("|") if lines else []
    names = [_TEXT.get(head.strip().upper(), "") for head in heads]
    missing = [name for name in ("id", "state", "partition", "submit", "cpus") if name not in names]
    if missing:
        raise InputError(
            f"the queue has no column {', '.join(missing)}; write it with {COMMAND}, or with "
            "squeue --json > squeue.json",
            file=path,
            line=1,
            rule="missing column",
        )
    rows = []
    for number, line in enumerate(lines[1:], 2):
        values = line.split("|")
        if len(values) != len(names):
            raise InputError(
                f"{len(values)} fields, where the head has {len(names)}",
                file=path, line=number + (now_s is not None), rule="wrong number of fields",
            )  # fmt: skip
        row = dict.fromkeys(_TEXT.values(), "")
        row |= {name: value.strip() for name, value in zip(names, values, strict=True) if name}
        rows.append({**row, "eligible": "", "tres": "", "throttle": ""})
    return rows, now_s


def _json_rows(
    path: Path, text: str, started_s: Mapping[str, float]
) -> tuple[list[dict[str, str]], float | None]:
    try:
        content = json.loads(text)
    except ValueError as error:
        raise InputError(f"the queue is no JSON: {error}", file=path, rule="not JSON") from error
    jobs = content.get("jobs") if isinstance(content, dict) else None
    if not isinstance(jobs, list) or not all(isinstance(job, dict) for job in jobs):
        raise InputError(
            "there is no list of jobs; write it with squeue --json", file=path, rule="not JSON"
        )
    clock_s = _clock_s(jobs, started_s)
    rows = [_json_row(job, clock_s) for job in jobs]
    now_s = _number(content.get("last_update"))
    return rows, None if now_s is None else now_s + clock_s


def _clock_s(jobs: Sequence[Mapping[str, Any]], started_s: Mapping[str, float]) -> float:
    """Return how far the site's clock is ahead of UTC, in quarters of an hour."""
    ahead = [
        started_s[name] - start_s
        for job in jobs
        if (name := _job_id(job)) in started_s
        and (start_s := _number(job.get("start_time"))) is not None
    ]
    return float(round(np.median(ahead) / 900) * 900) if ahead else 0.0


def _json_row(job: Mapping[str, Any], clock_s: float) -> dict[str, str]:
    def text(*names: str) -> str:
        return next((str(job[name]) for name in names if job.get(name)), "")

    def time(name: str) -> str:
        seconds = _number(job.get(name))
        return written(seconds + clock_s) if seconds else ""

    state = job.get("job_state")
    minutes = _number(job.get("time_limit"))
    shares = job.get("shared") or job.get("oversubscribe") or ""
    is_whole = job.get("exclusive") in (True, ["true"], "true") or "none" in str(shares).lower()
    row = {
        "id": _job_id(job), "partition": text("partition"), "user": text("user_name"),
        "account": text("account"), "qos": text("qos"),
        "state": str(state[0] if isinstance(state, list) and state else state or ""),
        "submit": time("submit_time"), "start": time("start_time"),
        "eligible": time("eligible_time"),
        "limit": "UNLIMITED" if minutes is None else str(int(minutes)),
        "nodes": str(int(_number(job.get("node_count")) or 1)),
        "cpus": str(int(_number(job.get("cpus")) or 1)), "memory": "", "gres": "",
        "tres": text(*_AMOUNTS[is_whole]), "nodelist": text("nodes"),
        "features": text("features"), "reason": text("state_reason"),
        "priority": str(int(_number(job.get("priority")) or 0)),
        "dependency": text("dependency"), "reservation": text("resv_name"),
        "shares": "NO" if is_whole else "",
        "throttle": str(int(_number(job.get("array_max_tasks")) or 0)),
    }  # fmt: skip
    return row


def _job_id(job: Mapping[str, Any]) -> str:
    """Return ``123``, ``123_4``, or ``123_[4-9]`` of elements that wait together."""
    array, task = _number(job.get("array_job_id")), _number(job.get("array_task_id"))
    together = job.get("array_task_string")
    if array and together:
        text = str(together)
        return f"{array:.0f}_[{text.strip('[]')}]"
    if array and task is not None:
        return f"{array:.0f}_{task:.0f}"
    return f"{_number(job.get('job_id')) or 0:.0f}"


def _number(value: Any) -> float | None:
    """Return a number, plain or ``{"set": true, "infinite": false, "number": 4}``."""
    if isinstance(value, Mapping):
        if not value.get("set", True) or value.get("infinite"):
            return None
        value = value.get("number")
    return float(value) if type(value) in (int, float) else None


def array_elements(row: dict[str, str]) -> Iterator[dict[str, str]]:
    """Yield a row for each element of an array that waits."""
    match = _ARRAY.fullmatch(row["id"])
    if match is None:
        yield row
        return
    throttle = match[3] or row["throttle"]
    for part in match[2].split(","):
        ends, _, step = part.partition(":")
        first, _, last = ends.partition("-")
        for number in range(int(first), int(last or first) + 1, int(step or 1)):
            yield row | {"id": f"{match[1]}_{number}", "throttle": throttle}


def _record(job: Mapping[str, str], now_s: float) -> dict[str, str]:
    """Return the fields of ``sacct`` of a job."""
    is_running = job["state"] in RUNNING
    limit_s = span_s(job["limit"])
    submit_s = time_s(job["submit"]) or now_s
    start_s = (time_s(job["start"]) if is_running else None) or now_s
    eligible_s = submit_s
    if not is_running and job["reason"].startswith("BeginTime"):
        begins_s = time_s(job["eligible"]) or time_s(job["start"])
        eligible_s = max(begins_s or now_s, submit_s)
        start_s = max(start_s, eligible_s)
    end_s = max(start_s + (limit_s or NO_LIMIT_S), now_s + 1.0)
    tres = job["tres"] or _tres(job)
    throttle = f"--array=0%{job['throttle']}" if int(job["throttle"] or 0) else ""
    command = " ".join(
        filter(
            None,
            [
                f"sbatch --partition={job['partition']}",
                "--exclusive" if job["shares"] == "NO" else "",
                throttle,
                f"--dependency={job['dependency']}" if is_set(job["dependency"]) else "",
            ],
        )
    )
    return {
        "JobID": job["id"], "JobIDRaw": job["id"], "User": job["user"], "Account": job["account"],
        "Partition": job["partition"].partition(",")[0], "QOS": job["qos"],
        "Submit": written(submit_s), "Eligible": written(eligible_s),
        "Start": written(start_s), "End": written(end_s),
        "Elapsed": str(timedelta(seconds=int(end_s - start_s))).replace(" days, ", "-").replace(
            " day, ", "-"
        ),
        "Timelimit": _limit(limit_s), "State": "COMPLETED", "AllocCPUS": job["cpus"],
        "ReqCPUS": job["cpus"], "NNodes": job["nodes"].partition("-")[0], "AllocTRES": tres,
        "ReqTRES": tres, "NodeList": job["nodelist"] if is_running else "",
        "Priority": job["priority"], "Reservation": _plain(job["reservation"]),
        "Constraints": _plain(job["features"]), "Reason": _plain(job["reason"]),
        "SubmitLine": command,
    }  # fmt: skip


def _tres(job: Mapping[str, str]) -> str:
    """Return what a job asks for: memory and GPUs are of each node."""
    nodes = int(job["nodes"].partition("-")[0] or 1)
    parts = [f"cpu={job['cpus']}", f"node={nodes}"]
    memory = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)", job["memory"])
    if memory is not None and float(memory[1]):
        parts.append(f"mem={float(memory[1]) * nodes:g}{memory[2] or 'M'}")
    for part in job["gres"].split(","):
        match = _GPUS.fullmatch(part.removeprefix("gres/").removeprefix("gres:"))
        if match is not None:
            count = int(match[2] or 1) * nodes
            parts.append(f"gres/gpu={count}")
            parts += [f"gres/gpu:{match[1]}={count}"] if match[1] else []
    return ",".join(parts)


def _limit(limit_s: float | None) -> str:
    if limit_s is None:
        return "UNLIMITED"
    days, rest = divmod(int(limit_s), 86_400)
    return f"{days}-{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"


def _plain(text: str) -> str:
    return text if is_set(text) else ""


def written(seconds: float) -> str:
    """Return a time as ``sacct`` prints it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")[:19]
