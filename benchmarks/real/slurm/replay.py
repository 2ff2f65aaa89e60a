"""Replay of a workload on a cluster: one run, from empty folder to files."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path

from benchmarks.real.slurm import cluster, collect
from benchmarks.real.slurm.cluster import Cluster
from benchmarks.real.slurm.configure import Settings
from benchmarks.real.slurm.workloads import SEED, Job, Replayed
from sim.base.random import stream

POLL_S = 1.0
MOMENTS_S = 60.0
"""Runs begin within this of the daemons' clock: cycles and minutes are shorter."""
AT_MOST = 4.0
"""A run may take so many times the time in which jobs arrive, then it is given up."""


def run(replayed: Replayed, settings: Settings, target: Path, stem: str) -> None:
    """Replay a workload on a cluster of its own; write what happened into `target`.

    Raises
    ------
    RuntimeError
        If the cluster did not start, or jobs did not end in time.
    """
    folder = Path(tempfile.mkdtemp(prefix="slurm-", dir=memory()))
    try:
        with cluster.running(settings, folder) as started:
            time.sleep(moment_s(stem) / settings.speed)
            busy, begun_s = busy_s(), time.monotonic()
            submit(started, replayed.jobs, queues=settings.priority == "multifactor")
            wait(started, replayed)
            took_s = time.monotonic() - begun_s
            load = {
                "took_s": round(took_s, 1),
                "cores_busy": round((busy_s() - busy) / took_s, 2),
            }
            collect.write(folder, replayed, settings, target, stem, load)
    except Exception:
        target.mkdir(parents=True, exist_ok=True)
        if (folder / "slurmctld.log").exists():
            shutil.copy(folder / "slurmctld.log", target / "failed-slurmctld.log")
        raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def moment_s(stem: str) -> float:
    """Return how long a run waits before its first submission, s of the daemons' clock.

    It is drawn. Else submissions would begin as long after the daemons in each run, and so in the
    same phase of their cycles.
    """
    return stream(SEED, stem).uniform(0.0, MOMENTS_S)


def submit(started: Cluster, jobs: tuple[Job, ...], *, queues: bool) -> None:
    """Submit the jobs one after the other, each at its time; to their own partitions if `queues`.

    They take the environment along (as shipped): with ``--export=NIL`` or ``NONE`` each start
    would wait two seconds for a login shell.

    Raises
    ------
    RuntimeError
        If one is late by more than `collect.MAX_LATE_S`.
    """
    speed = started.settings.speed
    begun_s = time.monotonic()
    for number, job in enumerate(jobs):
        time.sleep(max(begun_s + job.submit_s / speed - time.monotonic(), 0.0))
        started.command(
            "sbatch", "-J", f"j{number}", "-n", str(job.cpus), "-t", str(job.limit_s // 60),
            "-p", job.queue if queues else "p", "-D", "/", "-o", "/dev/null",
            text=f"#!/bin/sh\nexec /bin/sleep {job.run_s / speed:.4f}\n",
        )  # fmt: skip
        late_s = time.monotonic() - begun_s - job.submit_s / speed
        if late_s > collect.MAX_LATE_S:
            raise RuntimeError(f"job {number} was submitted {late_s:.1f} s late: a busy machine")


def wait(started: Cluster, replayed: Replayed) -> None:
    """Wait until the log of completed jobs has all jobs."""
    jobcomp = started.folder / "jobcomp.txt"
    until = time.monotonic() + 60 + AT_MOST * replayed.jobs[-1].submit_s / started.settings.speed
    while time.monotonic() < until:
        if jobcomp.exists() and jobcomp.read_text().count("\n") >= len(replayed.jobs):
            return
        time.sleep(POLL_S)
    raise RuntimeError(f"{replayed.name}: jobs did not end in time")


def memory() -> Path | None:
    """Return a folder in memory, where there is one: the controller waits for the disk at times."""
    return folder if os.access(folder := Path("/dev/shm"), os.W_OK | os.X_OK) else None


def busy_s() -> float:
    """Return the seconds in which this machine's cores were busy since it started."""
    fields = [float(field) for field in Path("/proc/stat").read_text().split("\n")[0].split()[1:]]
    return (sum(fields[:8]) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")
