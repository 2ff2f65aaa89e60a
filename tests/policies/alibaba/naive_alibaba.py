"""Naive reference of the Alibaba reader: one Python loop over the csv module."""

from __future__ import annotations

import csv
import gzip
import re
from pathlib import Path
from typing import Any

ORIGINAL = "task_name instance_num job_name task_type status start_time end_time plan_cpu plan_mem"


def open_rows(path: Path) -> list[dict[str, str]]:
    opener = gzip.open if path.read_bytes()[:2] == b"\x1f\x8b" else open
    with opener(path, "rt", newline="") as stream:
        rows = [row for row in csv.reader(stream) if row]
    if "task_name" in rows[0]:
        header, rows = rows[0], rows[1:]
    else:
        header = ORIGINAL.split()
    return [dict(zip(header, row, strict=True)) for row in rows]


def number(text: str) -> float | None:
    return None if text in ("", "nan") else float(text)


def dag(name: str) -> tuple[int | None, list[int]]:
    match = re.fullmatch(r"[A-Za-z]+(\d+)((?:_(?:Stg)?\d+)*)_?", name)
    if not match:
        return None, []
    return int(match[1]), [int(n) for n in re.findall(r"\d+", match[2])]


def load(path: Path, only_terminated: bool = False) -> dict[str, Any]:
    """Return jobs as [(name, submit_s, stages)], and counts by rule."""
    rows = open_rows(path)
    appeared: dict[str, int] = {}
    stages: dict[str, list[dict[str, Any]]] = {}
    counts = {"dropped": 0, "lost": 0, "cores missing": 0, "not terminated": 0}
    for place, row in enumerate(rows):
        appeared.setdefault(row["job_name"], place)
        start, end = number(row["start_time"]), number(row["end_time"])
        count = number(row["instance_num"])
        if start is None or end is None or end == 0 or end < start or count == 0:
            counts["dropped"] += 1
            continue
        if row["status"] != "Terminated":
            if only_terminated:
                counts["dropped"] += 1
                continue
            counts["not terminated"] += 1
        task_number, parents = dag(row["task_name"])
        job_stages = stages.setdefault(row["job_name"], [])
        if task_number is not None and task_number in [s["number"] for s in job_stages]:
            counts["dropped"] += 1
            continue
        mean = number(row.get("mean_inst_dur", ""))
        duration = end - start if mean is None or not 0 <= mean < float("inf") else mean
        cores = number(row["plan_cpu"])
        counts["cores missing"] += cores is None
        memory = number(row["plan_mem"])
        job_stages.append(
            {
                "name": row["task_name"],
                "number": task_number,
                "parents": parents,
                "n_tasks": 1 if count is None else int(count),
                "duration_s": duration or 0.5,
                "cpu": 1.0 if cores is None else cores / 100,
                "mem": 0.3 if memory is None else memory,
                "start": start,
            }
        )
    order = sorted(stages, key=lambda j: (min(s["start"] for s in stages[j]), appeared[j]))
    first = min(s["start"] for job in stages.values() for s in job)
    jobs = []
    for name in order:
        job_stages = stages[name]
        job_stages.sort(key=lambda s: float("inf") if s["number"] is None else s["number"])
        numbers = {s["number"]: i for i, s in enumerate(job_stages) if s["number"] is not None}
        edges = set()
        for i, stage in enumerate(job_stages):
            for parent in stage["parents"]:
                if parent in numbers and numbers[parent] != i:
                    edges.add((numbers[parent], i))
                else:
                    counts["lost"] += 1
        jobs.append((name, min(s["start"] for s in job_stages) - first, job_stages, sorted(edges)))
    return {"jobs": jobs, "counts": counts, "offset_s": first}


def flat(loaded: dict[str, Any]) -> dict[str, list[Any]]:
    """Return the columns that the workload should have."""
    out: dict[str, list[Any]] = {
        key: [] for key in ("job", "name", "n_tasks", "duration_s", "cpu", "mem", "edges")
    }
    stage0 = 0
    for j, (_, _, stages, edges) in enumerate(loaded["jobs"]):
        out["edges"] += [(stage0 + a, stage0 + b) for a, b in edges]
        for stage in stages:
            out["job"].append(j)
            for key in ("name", "n_tasks", "duration_s", "cpu", "mem"):
                out[key].append(stage[key])
        stage0 += len(stages)
    return out | {
        "job_id": [name for name, *_ in loaded["jobs"]],
        "submit_s": [submit for _, submit, *_ in loaded["jobs"]],
    }
