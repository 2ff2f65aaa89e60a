"""One run of a site: submissions and an administrator's acts, each at its time, and the export."""

from __future__ import annotations

import heapq
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from benchmarks.real.slurm import accounting, cluster, collect, replay, sprio
from benchmarks.real.slurm.cluster import Cluster
from benchmarks.real.slurm.sites import export
from benchmarks.real.slurm.sites.shape import Closure, Shape
from benchmarks.real.slurm.sites.submissions import Submission

END_S = 12 * 3600.0
"""Jobs that are left then, by the daemons' clock, are cancelled."""
POLL_S = 2.0


@dataclass
class Acts:
    """Acts that wait for their time, and how late those were that were done, s of real time."""

    started: Cluster
    zero_s: float
    """The controller's clock at the first instant, s since the epoch."""
    waiting: list[tuple[float, int, Callable[[], object]]] = field(default_factory=list)
    late_s: list[float] = field(default_factory=list)

    def add(self, at_s: float, act: Callable[[], object]) -> None:
        """Have something done at a time from the first instant, s."""
        heapq.heappush(self.waiting, (at_s, len(self.waiting) + len(self.late_s), act))

    def date(self, at_s: float) -> str:
        """Return the controller's date at a time from the first instant."""
        return datetime.fromtimestamp(self.zero_s + at_s, UTC).strftime("%Y-%m-%dT%H:%M:%S")

    def do_all(self, begun_s: float) -> None:
        """Do all, from the real time `begun_s` on, which is the first instant.

        Raises
        ------
        RuntimeError
            If one is done later than `collect.MAX_LATE_S`: the run counts as disturbed.
        """
        speed = self.started.settings.speed
        while self.waiting:
            at_s, _, act = heapq.heappop(self.waiting)
            time.sleep(max(begun_s + at_s / speed - time.monotonic(), 0.0))
            act()
            self.late_s.append(time.monotonic() - begun_s - at_s / speed)
            if self.late_s[-1] > collect.MAX_LATE_S:
                raise RuntimeError(f"disturbed: an act was {self.late_s[-1]:.1f} s late")


def run(shape: Shape, jobs: Sequence[Submission], target: Path, about: dict[str, object]) -> None:
    """Run a site from empty folder to export; write it into `target`, ``run.json`` last.

    Raises
    ------
    RuntimeError
        If the cluster did not start, or the run was disturbed.
    """
    folder = Path(tempfile.mkdtemp(prefix="site-", dir=replay.memory()))
    target.mkdir(parents=True, exist_ok=True)
    prepare = partial(accounting.prepare, site=shape.site())
    try:
        with cluster.running(shape, folder, prepare) as started:
            accounting.limit(started, shape.site())
            busy, begun_s = replay.busy_s(), time.monotonic()
            acts = Acts(started, float(sprio.clock_s(started)))
            for closure in shape.closures:
                _close(acts, closure, target)
            _submit(acts, jobs)
            acts.do_all(begun_s)
            _wait(started, begun_s)
            took_s = time.monotonic() - begun_s
            about |= {
                "acts": len(acts.late_s), "late_most_s": round(max(acts.late_s), 3),
                "late_mean_s": round(sum(acts.late_s) / len(acts.late_s), 3),
                "took_s": round(took_s, 1),
                "cores_busy": round((replay.busy_s() - busy) / took_s, 2),
                "load": round(os.getloadavg()[1], 2),
            }  # fmt: skip
            begin, end = acts.date(-3600.0), acts.date(shape.speed * took_s + 3600.0)
            export.write(started, target, begin, end, about)
    except Exception:
        if (folder / "slurmctld.log").exists():
            shutil.copy(folder / "slurmctld.log", target / "failed-slurmctld.log")
        raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _submit(acts: Acts, jobs: Sequence[Submission]) -> None:
    numbers: dict[int, str] = {}

    def submit(place: int) -> None:
        job = jobs[place]
        words = [*sbatch(job, f"j{place}"), *_later(acts, job)]
        if job.after >= 0:
            words.append(f"--dependency=afterok:{numbers[job.after]}")
        text = script(job, acts.started.settings.speed)
        numbers[place] = acts.started.command("sbatch", *words, text=text).strip()
        if job.held_s:
            release = partial(acts.started.command, "scontrol", "release", numbers[place])
            acts.add(job.at_s + job.held_s, release)

    for place, job in enumerate(jobs):
        acts.add(job.at_s, partial(submit, place))


def sbatch(job: Submission, name: str) -> list[str]:
    """Return the words of ``sbatch`` for a submission, but for its dependency and begin."""
    words = [
        "--parsable", f"--uid={job.user}", f"--account={job.account}", "-J", name, "-D", "/",
        "-o", "/dev/null", "-p", job.partition, "-t", str(job.limit_min),
    ]  # fmt: skip
    if job.n_nodes:
        words += ["-N", str(job.n_nodes), f"--ntasks-per-node={job.cpus}"]
    else:
        words += ["-n", str(job.cpus)]
    words += [f"--mem={job.mem_mb}" if job.mem_mb else f"--mem-per-cpu={job.mem_per_cpu_mb}"]
    words += [f"--gres=gpu:{job.gpus}"] if job.gpus else []
    words += [f"--qos={job.qos}"] if job.qos else []
    words += [f"--array=0-{len(job.runs_s) - 1}%{job.throttle}"] if job.throttle else []
    words += ["--exclusive"] if job.exclusive else []
    words += ["-C", job.feature] if job.feature else []
    return words + (["--hold"] if job.held_s else [])


def _later(acts: Acts, job: Submission) -> list[str]:
    # a date, as now+N is of the client's clock
    return [f"--begin={acts.date(job.at_s + job.begins_s)}"] if job.begins_s else []


def script(job: Submission, speed: int) -> str:
    """Return the job's script: it sleeps, each element of an array for its time."""
    runs = " ".join(f"{run_s / speed:.4f}" for run_s in job.runs_s)
    return f"#!/bin/sh\nset -- {runs}\nshift ${{SLURM_ARRAY_TASK_ID:-0}}\nexec /bin/sleep $1\n"


def _close(acts: Acts, closure: Closure, target: Path) -> None:
    command, nodes = acts.started.command, ",".join(closure.nodes)
    if closure.announced_s is None:
        drain = partial(
            command, "scontrol", "update", f"nodename={nodes}", "state=drain", "reason=repair"
        )
        acts.add(closure.from_s, drain)
        resume = partial(command, "scontrol", "update", f"nodename={nodes}", "state=resume")
        acts.add(closure.until_s, resume)
        return

    def announce() -> None:
        command(
            "scontrol", "create", "reservation", f"reservationname={closure.name}",
            f"starttime={acts.date(closure.from_s)}", f"endtime={acts.date(closure.until_s)}",
            f"nodes={nodes}", "flags=maint,ignore_jobs", "users=root",
        )  # fmt: skip
        shown = command("scontrol", "show", "reservation", "-o")  # it is gone when it is over
        (target / "reservation.txt").write_text(shown)

    acts.add(closure.announced_s or 0.0, announce)


def _wait(started: Cluster, begun_s: float) -> None:
    """Wait until no job is left; cancel those that can never start, and all at `END_S`."""
    until = begun_s + END_S / started.settings.speed
    while left := started.command("squeue", "-h", "-o", "%A %r").splitlines():
        numbers, reasons = zip(*(line.split(maxsplit=1) for line in left), strict=True)
        if set(reasons) == {"DependencyNeverSatisfied"} or time.monotonic() > until:
            started.command("scancel", *sorted(set(numbers)))
        time.sleep(POLL_S)
