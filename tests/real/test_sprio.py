"""Priorities of ``multifactor``, held against ``sprio`` and ``sshare`` of a real Slurm.

The logs in ``sprio`` are made by ``python -m benchmarks.real.slurm.sprio``.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import policies
import sim
from benchmarks.real.slurm import accounting, sprio
from policies.backfill.priorities import Priorities
from sim.engine.plan import Batch, Event, World

LOGS = Path(__file__).parent / "sprio"
NAMES = ("fair_tree", "classic")
COLUMNS = {"age": "AGE", "fair_share": "FAIRSHARE", "job_size": "JOBSIZE"}
COLUMNS |= {"partition": "PARTITION", "qos": "QOS"}


def read(name: str, file: str) -> str:
    return gzip.decompress((LOGS / name / file).read_bytes()).decode()


def rows_of(output: str, command: str) -> list[list[str]]:
    """Return the header and the rows that a command printed, in words."""
    lines = output.split(f"$ {command} ")[1].split("\n$ ")[0].splitlines()[1:]
    return [line.split("|" if "|" in lines[0] else None) for line in lines]


def replayed(name: str, **changes: Any) -> Iterator[tuple[Priorities, list[str], str]]:
    """Yield the priorities at each output, and jobs by row; none where Slurm was calculating."""
    settings = json.loads((LOGS / name / "settings.json").read_text())
    jobs = list(csv.DictReader(read(name, "jobs.csv.gz").splitlines()))
    w = sim.Workload.from_jobs(
        {
            "job_id": job["job"],
            "submit_s": float(job["submit_s"]),
            **{column: job[column] for column in ("user", "account", "qos", "queue")},
            "min_tasks": int(job["cpus"]),
            "stages": [{"durations_s": [1.0] * int(job["cpus"]), "demand": {"cpu": 1}}],
        }
        for job in jobs
    )
    assert w.jobs["job_id"].to_pylist() == [job["job"] for job in jobs]
    view = {"submit": w.columns.job_submit, "done_work": np.zeros(len(jobs))}
    view["start"] = np.full(len(jobs), np.nan)
    # Slurm calculates now and then a second late: at the times of its log, not at ours
    params = settings["policy"] | {"calc_period_s": 1e9} | changes
    world = World(w.columns, sim.Cluster.machines(settings["nodes"], cpu=settings["cpus"]), 0, view)
    policy = policies.build("multifactor", **params)
    priorities = Priorities(policy, world, np.zeros(len(jobs)))

    calculated = [float(s) for s in read(name, "calculations.csv.gz").split()[1:]]
    outputs = read(name, "outputs.txt.gz").split("### ")[1:]
    events = [(s, 0, 0) for s in calculated[1:]]
    for row, job in enumerate(jobs):
        for kind, column in enumerate(("end_s", "submit_s", "start_s"), 1):
            events += [(float(job[column]), kind, row)] if job[column] else []
    for number, output in enumerate(outputs):
        before, after = map(float, output.split("\n")[0].split())
        if not any(before <= s <= after for s in calculated):
            events.append((before, 4, number))
    ids = [job["job"] for job in jobs]
    for time_s, kind, row in sorted(events):
        if kind == 0:
            priorities.calculate(time_s)
        elif kind == 3:
            view["start"][row] = time_s
        elif kind == 4:
            yield priorities, ids, outputs[row]
        else:
            event = Event.JOB_DONE if kind == 1 else Event.JOB_ARRIVED
            event_kind, event_row = np.array([[event], [row]], dtype=np.int32)
            priorities.update(Batch(time_s, event_kind, event_row))


def errors(name: str, **changes: Any) -> list[float]:
    """Return the largest difference from each row of sprio, of a factor or of the priority."""
    largest = []
    for priorities, ids, output in replayed(name, **changes):
        header, *rows = rows_of(output, "sprio")
        partition = len(header) - 1 - header[::-1].index("PARTITION")  # the second is the factor
        for row in rows:
            priority, ours = priorities.weighted(ids.index(row[0]))
            theirs = {
                factor: float(row[partition if factor == "partition" else header.index(column)])
                for factor, column in COLUMNS.items()
            }
            priority -= float(row[header.index("PRIORITY")])
            # factors are printed rounded; the priority is their sum without its fraction
            largest.append(max(abs(priority) / 2, *(abs(ours[k] - theirs[k]) for k in theirs)))
    return largest


@pytest.mark.parametrize("name", NAMES)
def test_priorities_are_those_of_sprio(name: str) -> None:
    differences = errors(name)
    assert len(differences) > 150
    assert max(differences) <= 0.5 + 1e-6


@pytest.mark.parametrize("name", NAMES)
def test_usage_is_that_of_sshare(name: str) -> None:
    n = 0
    for priorities, _, output in replayed(name):
        associations = priorities.associations
        header, *rows = rows_of(output, "sshare")
        for row in rows:
            if row[1]:
                pair = row[0].strip(), row[1]
                usage = priorities.arrays["state_usage"][associations.index(pair)]
                assert usage - 1.5 <= float(row[header.index("RawUsage")]) <= usage + 0.5
                n += usage > 1000
    assert n > 50


@pytest.mark.parametrize(
    "wrong", [{"half_life_s": 3700.0}, {"shares": sprio.SHARES | {"physics/bin": 2}}]
)
def test_a_wrong_setting_is_noticed(wrong: dict[str, Any]) -> None:
    assert max(errors("classic", **wrong)) > 100


def test_jobs_and_calculations_are_read_from_what_slurm_prints() -> None:
    shown = (
        "JobId=2 JobName=a UserId=bin(2) Account=x QOS=low JobState=RUNNING Partition=p NumTasks=3 "
        "SubmitTime=2026-11-25T00:00:05 AccrueTime=2026-11-25T00:00:06 "
        "StartTime=2026-11-25T00:01:00 EndTime=2026-11-25T01:01:00\n"
        "JobId=1 JobName=b UserId=lp(7) Account=y QOS=high JobState=PENDING Partition=p NumTasks=1 "
        "SubmitTime=2026-11-25T00:00:05 AccrueTime=Unknown "
        "StartTime=2026-11-26T00:01:00 EndTime=Unknown\n"
    )
    first_s = sprio.seconds("2026-11-25T00:00:00")
    assert sprio.job_table(shown, first_s).splitlines() == [
        "job,user,account,qos,queue,cpus,submit_s,start_s,end_s",
        "1,lp,y,high,p,1,5,,",
        "2,bin,x,low,p,3,6,60,",
    ]
    log = "x\nDecay factor over 120 seconds\nDecay factor over 121 seconds goes\n"
    assert sprio.calculations(log).split() == ["calculated_s", "0", "120", "241"]


def test_lines_of_slurm_conf_are_replaced() -> None:
    text = accounting.changed("A=1\nAB=2\n", {"A": "3", "C": "4"})
    assert sorted(text.splitlines()) == ["A=3", "AB=2", "C=4"]
