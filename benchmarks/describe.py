"""Time and memory of ``python -m sim describe``, as a command.

Run as ``python -m benchmarks.describe [--jobs N] [--sample FILE]``. Two workloads: 6,600 jobs (the
sample of Alibaba's trace, or synthesized ones), with an empty and a filled kernel cache; and a
million synthesized jobs, compared with random DAGs of the same sizes.
"""

from __future__ import annotations

import argparse
import sys

import sim
from benchmarks.common import Row, row, run_child, scratch, show

SMALL_S, LARGE_S, LARGE_GIB = 10.0, 300.0, 8.0
SMALL_JOBS, JOBS = 6_600, 1_000_000

COMMAND = """
import json, resource, subprocess, sys, time
begin = time.perf_counter()
subprocess.run([sys.executable, "-m", "sim", "describe", *{argv!r}], check=True,
               stdout=subprocess.DEVNULL)
seconds = time.perf_counter() - begin
used = resource.getrusage(resource.RUSAGE_CHILDREN)
cpu, gib = used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20
print(json.dumps({{"wall": seconds, "cpu": cpu, "gib": gib}}))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--sample", metavar="FILE", help="a batch_task file of Alibaba's trace")
    args = parser.parse_args()
    rows: list[Row] = []
    with scratch() as folder:
        small, large = f"{folder}/small", f"{folder}/large"
        if args.sample:
            small = f"alibaba2018:{args.sample}"
        else:
            sim.synthesize("alibaba2018", jobs=SMALL_JOBS, seed=1).write(small)
        for words in ("compiling first", "compiled"):
            used = run_describe(small, folder, NUMBA_CACHE_DIR=f"{folder}/cache")
            rows += measured(f"{SMALL_JOBS:,} jobs, {words}", used, SMALL_S)
        sim.synthesize("alibaba2018", jobs=args.jobs, seed=1).write(large)
        rows += measured(f"{args.jobs:,} jobs", run_describe(large, folder), LARGE_S, LARGE_GIB)
    return show("describe", rows)


def run_describe(workload: str, folder: str, **environment: str) -> dict[str, float]:
    """Run the command; return its wall time, CPU time and peak memory."""
    argv = [workload, "--beside", "random", "--out", f"{folder}/out"]
    return run_child(COMMAND.format(argv=argv), **environment)


def measured(
    label: str, used: dict[str, float], at_most_s: float, at_most_gib: float | None = None
) -> list[Row]:
    return [
        row(label, used["wall"], "s", at_most=at_most_s),
        row(f"{label}: CPU", used["cpu"], "s"),
        row(f"{label}: peak memory", used["gib"], "GiB", at_most=at_most_gib),
    ]


if __name__ == "__main__":
    sys.exit(main())
