"""Run sleeping tasks on Ray and keep the tables: ``python -m benchmarks.real.ray --out DIR``.

The accuracy of the simulator on all tables of that folder is written beside them.
"""

from __future__ import annotations

import argparse
import gzip
import time
from pathlib import Path

from benchmarks.real import processes
from benchmarks.real.ray import accuracy
from benchmarks.real.ray.run import run
from benchmarks.real.ray.workload import KINDS, synthesize

SEEDS = (1, 2)
N_RUNS = 2


def main() -> int:
    """Make the runs that are missing; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.real.ray", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS, help="of the workloads")
    parser.add_argument("--runs", type=int, default=N_RUNS, help="repetitions of each")
    parser.add_argument("--out", type=Path, required=True, help="folder of the tables")
    words = parser.parse_args()
    processes.interrupt_on_signals()
    words.out.mkdir(parents=True, exist_ok=True)
    for number in range(1, words.runs + 1):
        for seed in words.seeds:
            for kind in words.kinds:
                path = words.out / f"ray-{kind}-{seed}-{number}.csv.gz"
                if path.exists():
                    continue
                table = run(synthesize(kind, seed))
                path.write_bytes(gzip.compress(table.encode(), mtime=0))
                print(time.strftime("%X"), path.name, flush=True)
    accuracy.write(sorted(words.out.glob("ray-*.csv.gz")), words.out / "accuracy.json")
    return 0


if __name__ == "__main__":
    processes.exit_with(main)
