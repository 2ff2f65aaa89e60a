"""Run Slurm on loopback: ``python -m benchmarks.real.slurm all --log KTH.swf.gz --out DIR``."""

from __future__ import annotations

import argparse
import time
from functools import partial
from pathlib import Path

from benchmarks.real import processes
from benchmarks.real.slurm import batch, cluster, configure, keep, replay, workloads


def main() -> int:
    """Make one run, or all; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real.slurm", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    single = verbs.add_parser("one", help="one run")
    single.add_argument("workload", choices=workloads.NAMES)
    single.add_argument("settings", help="SCHEDULER-PRIORITY, such as backfill_short-basic")
    single.add_argument("number", type=int, help="which of the repetitions")
    every = verbs.add_parser("all", help="all runs that are missing")
    every.add_argument("--workloads", nargs="+", choices=workloads.NAMES, default=workloads.NAMES)
    every.add_argument("--settings", nargs="+", help="only these, such as backfill-basic")
    every.add_argument("--runs", type=int, default=batch.N_RUNS, help="repetitions of each")
    every.add_argument("--first", type=int, default=1, help="the first repetition")
    every.add_argument("--at-once", type=int, default=4, help="clusters side by side")
    every.add_argument("--hours", type=float, default=24.0, help="begin no run after that")
    copy = verbs.add_parser("keep", help="copy finished runs into the project")
    copy.add_argument("--out", type=Path, required=True, help="folder of the runs")
    copy.add_argument("--into", type=Path, default=Path("tests/real/slurm"))
    for verb in (single, every):
        verb.add_argument("--log", type=Path, help="KTH-SP2 as an SWF file, for its cuts")
        verb.add_argument("--out", type=Path, required=True, help="folder of the runs")
    words = parser.parse_args()
    if words.verb == "keep":
        print(f"{keep.keep(words.out, words.into)} runs in {words.into}")
        return 0
    if lacking := cluster.missing():
        print(f"skipped: {', '.join(lacking)} not found (Debian: slurm-wlm, munge, faketime)")
        return 0
    processes.interrupt_on_signals()
    if words.verb == "one":
        run = batch.Run(words.workload, words.settings, words.number)
        replayed = workloads.build(run.workload, words.log)
        settings = configure.named(run.settings, replayed.n_nodes, replayed.speed)
        replay.run(replayed, settings, run.folder(words.out), run.stem)
        return 0
    runs = batch.planned(words.workloads, words.runs, words.settings or ())
    runs = [run for run in runs if run.number >= words.first]
    until_s = time.time() + 3600 * words.hours
    begin = partial(batch.begin, log=words.log, out=words.out)
    return int(batch.make(runs, begin, words.out, words.at_once, until_s) > 0)


if __name__ == "__main__":
    processes.exit_with(main)
