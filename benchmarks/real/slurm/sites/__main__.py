"""Run whole sites of Slurm on loopback: ``python -m benchmarks.real.slurm.sites all --out DIR``."""

from __future__ import annotations

import argparse
import shutil
import time
from pathlib import Path

from benchmarks.real import processes
from benchmarks.real.slurm import accounting, batch, cluster
from benchmarks.real.slurm.sites import changes, export, plan, run, shape, submissions
from benchmarks.real.slurm.sites.plan import SiteRun

BETWEEN_S = 90.0
"""Real time between the begins of two runs: daemons that start hold up those that run."""


def main() -> int:
    """Make one run, or all that are missing; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.real.slurm.sites", description=__doc__
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    single = verbs.add_parser("one", help="one run")
    single.add_argument("workload", choices=list(plan.WORKLOADS), help="shape and seed")
    single.add_argument("number", type=int, help="which of the repetitions")
    single.add_argument("--changed", action="store_true", help="with the workload's change")
    every = verbs.add_parser("all", help="all runs that are missing")
    every.add_argument("--workloads", nargs="+", choices=list(plan.WORKLOADS))
    every.add_argument("--runs", type=int, default=plan.N_RUNS, help="repetitions of each")
    every.add_argument("--at-once", type=int, default=2, help="clusters side by side")
    every.add_argument("--hours", type=float, default=24.0, help="begin no run after that")
    copy = verbs.add_parser("keep", help="copy finished runs into the project")
    copy.add_argument("--into", type=Path, default=plan.KEPT)
    for verb in (single, every, copy):
        verb.add_argument("--out", type=Path, required=True, help="folder of the runs")
    words = parser.parse_args()
    if words.verb == "keep":
        print(f"{keep(words.out, words.into)} runs in {words.into}")
        return 0
    if lacking := [*cluster.missing(), *accounting.missing()]:
        print(f"skipped: {', '.join(lacking)} not found")
        print("Debian: slurm-wlm, slurmdbd, mariadb-server, munge, faketime")
        return 0
    processes.interrupt_on_signals()
    if words.verb == "one":
        make(SiteRun(words.workload, words.changed, words.number), words.out)
        return 0

    def begin(a_run: SiteRun) -> batch.Process:
        command = ["benchmarks.real.slurm.sites", "one", a_run.workload, str(a_run.number)]
        command += ["--out", str(words.out), *(["--changed"] if a_run.changed else [])]
        return batch.start(a_run, words.out, command)

    runs = plan.planned(words.workloads or list(plan.WORKLOADS), words.runs)
    until_s = time.time() + 3600 * words.hours
    return int(batch.make(runs, begin, words.out, words.at_once, until_s, BETWEEN_S) > 0)


def keep(out: Path, target: Path) -> int:
    """Copy the finished runs; return how many there are."""
    finished = [a_run for a_run in plan.planned(list(plan.WORKLOADS)) if a_run.is_done(out)]
    for a_run in finished:
        a_run.folder(target).mkdir(parents=True, exist_ok=True)
        for name in (*(f"{file}.gz" for file in export.FILES), export.ABOUT):
            shutil.copyfile(a_run.folder(out) / name, a_run.folder(target) / name)
    return len(finished)


def make(a_run: SiteRun, out: Path) -> None:
    """Make one run."""
    name, _, seed = a_run.workload.partition("-")
    original = shape.read(name)
    jobs = submissions.generate(original, int(seed))
    changed, jobs = changes.apply(a_run.change, original, jobs)
    about: dict[str, object] = {
        "shape": name, "seed": int(seed), "change": a_run.change, "run": a_run.number,
        "nodes": len(changed.node_names), "submissions": len(jobs), "speed": changed.speed,
    }  # fmt: skip
    run.run(changed, jobs, a_run.folder(out), about)


if __name__ == "__main__":
    processes.exit_with(main)
