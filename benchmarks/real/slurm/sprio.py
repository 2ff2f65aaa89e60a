"""Priorities of a real Slurm: ``python -m benchmarks.real.slurm.sprio --out tests/real/sprio``.

A small cluster with an accounting database gets jobs of several accounts, partitions and QOS, with
Fair Tree and again with classic fair share. What ``sprio`` and ``sshare`` print is kept, with the
jobs' times and those at which Slurm calculated, so that the policy ``multifactor`` can be checked.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import pwd
import re
import shutil
import struct
import tempfile
import time
from calendar import timegm
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.real import processes
from benchmarks.real.slurm import accounting, cluster
from benchmarks.real.slurm.accounting import Site
from benchmarks.real.slurm.cluster import Cluster
from benchmarks.real.slurm.configure import Settings

N_NODES, CPUS_PER_NODE = 4, 4
SPEED = 60
"""Seconds of the daemons' clock a second: usage decays in minutes."""
SAMPLES, BETWEEN_S = 20, 10.0
"""Instants at which priorities are kept, and real seconds between them."""
COMMANDS = (("sprio", "-l"), ("sshare", "-l", "-a", "-P"))
SHARES = {
    "science": 60, "industry": 40, "physics": 30, "chemistry": 10, "physics/daemon": 2,
    "physics/bin": 1, "chemistry/sys": 1, "chemistry/bin": 3, "industry/games": 1,
    "industry/man": 1, "science/lp": 5,
}  # fmt: skip
"""Users are ones that every Debian has."""
PARENTS = {"physics": "science", "chemistry": "science"}
QOS = {"normal": 0, "high": 100, "low": 30}
WEIGHTS = {"age": 100_000, "fair_share": 1_000_000, "job_size": 100_000, "partition": 50_000}
WEIGHTS |= {"qos": 200_000}
HOUR_S = 3600
CALC_PERIOD_S = 120
_KEYS = {"age": "Age", "fair_share": "Fairshare", "job_size": "JobSize", "partition": "Partition"}
_KEYS |= {"qos": "QOS"}


def policy(fair_tree: bool) -> dict[str, Any]:
    """Return the parameters of the policy ``multifactor`` for this site."""
    return {
        **{f"weight_{name}": weight for name, weight in WEIGHTS.items()},
        "max_age_s": HOUR_S, "half_life_s": HOUR_S, "fair_tree": fair_tree,
        "favor_small": not fair_tree, "shares": SHARES, "parents": PARENTS, "qos": QOS,
        "partitions": {"p": 1, "express": 2},
    }  # fmt: skip


def site(fair_tree: bool) -> Site:
    """Return the same as Slurm's settings."""
    lines = {f"PriorityWeight{_KEYS[name]}": str(weight) for name, weight in WEIGHTS.items()}
    lines |= {
        "PriorityMaxAge": "01:00:00", "PriorityDecayHalfLife": "01:00:00",
        "PriorityCalcPeriod": str(CALC_PERIOD_S // 60), "MinJobAge": "86400",
        "SlurmctldDebug": "verbose", "DebugFlags": "Priority",
    }  # fmt: skip
    if not fair_tree:
        lines |= {"PriorityFlags": "NO_FAIR_TREE", "PriorityFavorSmall": "YES"}
    return Site(SHARES, PARENTS, QOS, lines)


def run(target: Path, fair_tree: bool) -> None:
    """Run the cluster once; write what was seen into `target`."""
    folder = Path(tempfile.mkdtemp(prefix="sprio-"))
    settings = Settings("builtin", "", "multifactor", N_NODES, CPUS_PER_NODE, SPEED)
    prepare = partial(accounting.prepare, site=site(fair_tree))
    try:
        with cluster.running(settings, folder, prepare) as started:
            outputs = submit_and_sample(started, np.random.default_rng(int(fair_tree)))
            jobs = started.command("scontrol", "-o", "show", "job")
            state = (folder / "state" / "priority_last_decay_ran").read_bytes()
            log = (folder / "slurmctld.log").read_text()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    first_s = struct.unpack(">QQ", state)[1]  # the last reset of usage: the plugin's start
    target.mkdir(parents=True, exist_ok=True)
    settings_kept = {"policy": policy(fair_tree), "nodes": N_NODES, "cpus": CPUS_PER_NODE}
    (target / "settings.json").write_text(json.dumps(settings_kept, indent=1) + "\n")
    _write(target / "jobs.csv.gz", job_table(jobs, first_s))
    _write(target / "calculations.csv.gz", calculations(log))
    shown = [
        f"### {begin_s - first_s} {end_s - first_s}\n{text}" for begin_s, end_s, text in outputs
    ]
    _write(target / "outputs.txt.gz", "".join(shown))


def submit_and_sample(started: Cluster, rng: np.random.Generator) -> list[tuple[int, int, str]]:
    """Submit jobs and keep what Slurm prints; return it with its time before and after, s."""
    users = list(site(True).users)
    begun_s, submit_s, outputs = time.monotonic(), 0.0, []
    while len(outputs) < SAMPLES:
        now_s = time.monotonic() - begun_s
        if now_s >= (len(outputs) + 1) * BETWEEN_S:
            before_s = clock_s(started)
            text = "".join(f"$ {' '.join(c)}\n{started.command(*c)}" for c in COMMANDS)
            outputs.append((before_s, clock_s(started), text))
        elif now_s >= submit_s and submit_s < 0.75 * SAMPLES * BETWEEN_S:
            account, user = users[int(rng.integers(len(users)))]
            started.command(
                "sbatch", f"--uid={user}", f"--account={account}", f"--qos={rng.choice(list(QOS))}",
                f"--partition={rng.choice(['p', 'p', 'express'])}", "--time=60",
                f"--ntasks={rng.choice([1, 1, 2, 3, 4, 6, 8, 16])}", "-D", "/", "-o", "/dev/null",
                text=f"#!/bin/sh\nexec /bin/sleep {rng.uniform(3, 25):.2f}\n",
            )  # fmt: skip
            submit_s += rng.exponential(3.0)
        time.sleep(0.05)
    return outputs


def job_table(shown: str, first_s: int) -> str:
    """Return the jobs that ``scontrol -o show job`` prints as CSV, times from `first_s` on."""
    rows = []
    for line in shown.splitlines():
        job = dict(word.split("=", 1) for word in line.split() if "=" in word)
        times = {
            "start_s": job["StartTime"] if job["JobState"] != "PENDING" else "Unknown",
            "end_s": job["EndTime"] if job["JobState"] == "COMPLETED" else "Unknown",
        }
        accrue = job["AccrueTime"] if job["AccrueTime"] != "Unknown" else job["SubmitTime"]
        rows.append(
            {
                "job": int(job["JobId"]), "user": job["UserId"].split("(")[0],
                "account": job["Account"], "qos": job["QOS"], "queue": job["Partition"],
                "cpus": job["NumTasks"], "submit_s": seconds(accrue) - first_s,
            }
            | {k: "" if v == "Unknown" else seconds(v) - first_s for k, v in times.items()}
        )  # fmt: skip
    rows.sort(key=lambda row: row["job"])
    text = io.StringIO()
    table = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return text.getvalue()


def calculations(log: str) -> str:
    """Return the times of Slurm's calculations as CSV, s from the first on, by its log."""
    periods = [int(s) for s in re.findall(r"Decay factor over (\d+) seconds", log)]
    times = np.concatenate([[0], np.cumsum(periods)])
    return "calculated_s\n" + "".join(f"{s}\n" for s in times)


def clock_s(started: Cluster) -> int:
    """Return the controller's time, s since 1970."""
    shown = re.search(r"sdiag output at .*\((\d+)\)", started.command("sdiag"))
    assert shown
    return int(shown[1])


def seconds(text: str) -> int:
    """Return a time that Slurm prints, s since 1970."""
    return timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))


def _write(path: Path, text: str) -> None:
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def main() -> int:
    """Make both runs; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder of the runs")
    out: Path = parser.parse_args().out
    known = {entry.pw_name for entry in pwd.getpwall()}
    lacking = [*cluster.missing(), *accounting.missing()]
    lacking += [f"user {user}" for _, user in site(True).users if user not in known]
    if lacking:
        print(f"skipped: {', '.join(lacking)} not found (Debian: slurmdbd, mariadb-server)")
        return 0
    processes.interrupt_on_signals()
    for name, fair_tree in (("fair_tree", True), ("classic", False)):
        run(out / name, fair_tree)
    return 0


if __name__ == "__main__":
    processes.exit_with(main)
