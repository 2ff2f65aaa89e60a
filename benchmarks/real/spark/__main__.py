"""Run sleeping jobs on Spark and keep its logs: ``python -m benchmarks.real.spark --out DIR``.

The accuracy of the simulator on all logs of that folder is written beside them.
"""

from __future__ import annotations

import argparse
import gzip
import time
from pathlib import Path

from benchmarks.real import processes
from benchmarks.real.spark import accuracy
from benchmarks.real.spark.event_log import reduce_log
from benchmarks.real.spark.run import Mode, missing, run
from benchmarks.real.spark.workload import synthesize

VARIANTS: dict[str, tuple[Mode, bool]] = {
    "fifo": ("FIFO", False), "fair": ("FAIR", False), "fairback": ("FAIR", True),
}  # fmt: skip
"""Scheduling mode, and whether names of pools sort in reverse: Spark breaks ties by name."""
SEEDS = (1, 2, 3)
SLOTS = 16
N_RUNS = 5


def main() -> int:
    """Make the runs that are missing; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.real.spark", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS, help="of the workloads")
    parser.add_argument("--runs", type=int, default=N_RUNS, help="repetitions of each")
    parser.add_argument("--out", type=Path, required=True, help="folder of the event logs")
    words = parser.parse_args()
    if sentence := missing():
        print(sentence)
        return 0
    processes.interrupt_on_signals()
    words.out.mkdir(parents=True, exist_ok=True)
    for number in range(1, words.runs + 1):
        for seed in words.seeds:
            for variant in words.variants:
                path = words.out / f"spark-{variant}-{seed}-{number}.gz"
                if path.exists():
                    continue
                mode, names_reversed = VARIANTS[variant]
                jobs = synthesize(seed, SLOTS, names_reversed=names_reversed)
                log = run(jobs, mode, SLOTS)
                path.write_bytes(gzip.compress(reduce_log(log), mtime=0))
                print(time.strftime("%X"), path.name, flush=True)
    accuracy.write(sorted(words.out.glob("spark-*.gz")), words.out / "accuracy.json")
    return 0


if __name__ == "__main__":
    processes.exit_with(main)
