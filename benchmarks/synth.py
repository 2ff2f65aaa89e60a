"""Speed of the synthesis of Alibaba-like workloads, on one core.

Run as ``python -m benchmarks.synth [--jobs N] [--write]``. The published generator makes 3,400
DAGs a second on a machine like ours, without the Parquet.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import sim
from sim.base.random import stream
from sim.dags import compact_levels
from sim.synth.alibaba2018.fit import fit_workload
from sim.synth.alibaba2018.tables_file import read_tables
from sim.synth.alibaba2018.tian_algorithm2 import synthesize_dags

PUBLISHED_DAGS_PER_S = 3_400


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=200_000)
    parser.add_argument("--write", action="store_true", help="write the workload to Parquet too")
    args = parser.parse_args()
    n = args.jobs
    tables = read_tables()
    sim.synthesize("alibaba2018", jobs=100)  # compiles
    sizes = tables.n_stages.draw(stream(0, "benchmark").random(n)).astype(np.int64)

    print(f"{n:,} jobs")
    made = measure("Algorithm 2 alone", n, lambda: synthesize_dags(tables, sizes, 0))
    compact_levels(made.graph)
    measure("compact levels of those", n, lambda: compact_levels(made.graph))
    workload = measure("whole workload", n, lambda: sim.synthesize("alibaba2018", jobs=n))
    print(f"  {workload.n_stages:,} stages, {workload.n_tasks:,} tasks")
    measure("fit of that workload", n, lambda: fit_workload(workload))
    if args.write:
        with tempfile.TemporaryDirectory() as folder:
            measure("written to Parquet", n, lambda: workload.write(folder))
            size = sum(path.stat().st_size for path in Path(folder).iterdir())
            print(f"  {size / 1e6:,.0f} MB")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory {peak:,.0f} MiB")


def measure(name: str, n: int, function: Callable[[], Any]) -> Any:
    begin = time.perf_counter()
    result = function()
    took = time.perf_counter() - begin
    ratio = n / took / PUBLISHED_DAGS_PER_S
    print(f"{name:24} {took:8.2f} s {n / took:12,.0f} DAGs/s {ratio:8.0f} x the published one")
    return result


if __name__ == "__main__":
    main()
