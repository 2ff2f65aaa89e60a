"""Time and memory of ``python -m sim describe``, as a command.

Run as ``python -m benchmarks.describe [--jobs N] [--sample FILE]``. Two workloads: 6,600 jobs (the
sample of Alibaba's trace, or synthesized ones), with the compiled kernels at hand and without; and
a million synthesized jobs, beside random DAGs of the same sizes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import sim

TARGET_SMALL_S, TARGET_S, TARGET_GIB = 10.0, 300.0, 8.0
SMALL_JOBS, JOBS = 6_600, 1_000_000

CHILD = """
import json, resource, subprocess, sys, time
begin = time.perf_counter()
subprocess.run([sys.executable, "-m", "sim", "describe", *sys.argv[1:]], check=True,
               stdout=subprocess.DEVNULL)
seconds = time.perf_counter() - begin
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20]))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--sample", metavar="FILE", help="a batch_task file of Alibaba's trace")
    args = parser.parse_args()
    passed = True
    with tempfile.TemporaryDirectory() as folder:
        small = f"alibaba2018:{args.sample}" if args.sample else f"{folder}/small"
        if not args.sample:
            sim.synthesize("alibaba2018", jobs=SMALL_JOBS, seed=1).write(small)
        cold = {"NUMBA_CACHE_DIR": f"{folder}/cache"}
        for words, environment in (("compiling first", cold), ("compiled", cold)):
            seconds, cpu_s, gib = measure(folder, environment, small, "--beside", "random")
            print(
                f"{SMALL_JOBS:,} jobs, {words}: {seconds:.1f} s ({cpu_s:.1f} s CPU), {gib:.2f} GiB"
            )
            passed &= seconds < TARGET_SMALL_S
        large = f"{folder}/large"
        sim.synthesize("alibaba2018", jobs=args.jobs, seed=1).write(large)
        seconds, cpu_s, gib = measure(folder, {}, large, "--beside", "random")
        print(f"{args.jobs:,} jobs: {seconds:.1f} s ({cpu_s:.1f} s CPU), {gib:.2f} GiB")
        passed &= seconds < TARGET_S and gib < TARGET_GIB
    print("PASS" if passed else "FAIL")
    return 0 if passed else 1


def measure(folder: str, environment: dict[str, str], *argv: str) -> tuple[float, float, float]:
    """Run the command: seconds, seconds of CPU, and peak GiB."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *argv, "--out", f"{folder}/out"],
        stdout=subprocess.PIPE,
        check=True,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(__file__).resolve().parent.parent),
            **environment,
        },
    )
    seconds, cpu_s, gib = json.loads(done.stdout)
    return seconds, cpu_s, gib


if __name__ == "__main__":
    sys.exit(main())
