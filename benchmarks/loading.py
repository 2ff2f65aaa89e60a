"""Time and memory to load an Alibaba 2018 trace of full size.

``python -m benchmarks.loading`` writes a synthetic ``batch_task`` file of the size of the whole
trace (14.3 M rows, 4.2 M jobs; plain, or gzipped with ``--gzip``) into a temporary folder and loads
it in a child process. Then it does the same with a file of 6,600 jobs, whose target is one second
after imports.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from benchmarks.common import Row, row, run_child, show

N_JOBS, N_ROWS = 4_200_000, 14_300_000
SMALL_JOBS, SMALL_ROWS = 6_600, 22_500
LARGE_S, LARGE_GIB, SMALL_S = 90.0, 4.0, 1.0
DAG_SHARE = 2.86 / 4.2  # jobs with DAG names in the whole trace
TEMPLATES = 5_000
CHUNK_JOBS = 200_000
SPAN_S = 8 * 86_400

LOAD = """
import json, resource, time
import pyarrow.csv, scipy.sparse.csgraph
import sim
from policies.alibaba import trace as alibaba2018
begin = time.perf_counter()
w = alibaba2018.read({path!r})
seconds = time.perf_counter() - begin
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
counts = {{"jobs": w.n_jobs, "stages": w.n_stages, "edges": w.stage_edges.num_rows}}
print(json.dumps({{"seconds": seconds, "gib": peak, **counts, "tasks": w.n_tasks}}))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=N_JOBS)
    parser.add_argument("--rows", type=int, default=N_ROWS)
    parser.add_argument("--gzip", action="store_true", help="write the big file gzipped")
    parser.add_argument("--folder", type=Path, help="where to write (default: a temporary one)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        large = Path(folder) / ("batch_task.csv.gz" if args.gzip else "batch_task.csv")
        rows = measured(large, args.jobs, args.rows, LARGE_S, LARGE_GIB)
        large.unlink()
        rows += measured(Path(folder) / "small.csv.gz", SMALL_JOBS, SMALL_ROWS, SMALL_S)
    return show("loading", rows)


def measured(
    path: Path, n_jobs: int, n_rows: int, at_most_s: float, at_most_gib: float | None = None
) -> list[Row]:
    """Write a file and load it in a child process."""
    written = write_trace(path, n_jobs, n_rows)
    loaded = run_child(LOAD.format(path=str(path)))
    counts = ", ".join(f"{loaded[k]:,} {k}" for k in ("jobs", "stages", "edges", "tasks"))
    return [
        row(counts, loaded["seconds"], "s", at_most=at_most_s),
        row("... of rows of the file", written / loaded["seconds"], "1/s"),
        row("... peak memory", loaded["gib"], "GiB", at_most=at_most_gib),
    ]


def write_trace(path: Path, n_jobs: int, n_rows: int, seed: int = 0) -> int:
    """Write about `n_rows` rows in the original's format, without a header; return their number.

    Seven jobs in ten have DAG names, drawn from templates of 1 to 35 tasks; the others have a
    unique name per task. A job's rows are adjacent, jobs are in random order of time. One row in a
    hundred is not Terminated, and one in a thousand never ended.
    """
    rng = np.random.default_rng(seed)
    mean = n_rows / n_jobs
    pool, first, size = templates(rng, mean)
    options = csv.WriteOptions(include_header=False, quoting_style="none")
    codec = "gzip" if path.suffix == ".gz" else None
    written = 0
    with pa.output_stream(str(path), compression=codec) as stream:
        for begin in range(0, n_jobs, CHUNK_JOBS):
            jobs = np.arange(begin, min(begin + CHUNK_JOBS, n_jobs))
            table = make_rows(rng, jobs, mean, pool, first, size)
            csv.write_csv(table, stream, options)
            written += table.num_rows
    return written


def templates(rng: np.random.Generator, mean: float) -> tuple[pa.Array, np.ndarray, np.ndarray]:
    """Return the task names of `TEMPLATES` DAGs, and each DAG's first name and size."""
    size = np.minimum(rng.geometric(1 / mean, TEMPLATES), 35)
    names: list[str] = []
    for n in size.tolist():
        label = rng.permutation(n) + 1 if rng.random() < 0.1 else np.arange(n) + 1
        for i in range(n):
            k = 0 if i == 0 or rng.random() < 0.25 else int(min(i, rng.geometric(0.7)))
            parents = sorted(label[rng.choice(i, k, replace=False)].tolist()) if k else []
            kind = "M" if k == 0 else "R" if k == 1 else "J"
            names.append("_".join([f"{kind}{label[i]}", *map(str, parents)]))
    return pa.array(names), np.cumsum(size) - size, size


def make_rows(
    rng: np.random.Generator,
    jobs: np.ndarray,
    mean: float,
    pool: pa.Array,
    first: np.ndarray,
    size: np.ndarray,
) -> pa.Table:
    dag = rng.random(len(jobs)) < DAG_SHARE
    template = rng.integers(0, len(size), len(jobs))
    n_tasks = np.where(dag, size[template], rng.geometric(1 / mean, len(jobs)))
    n = int(n_tasks.sum())
    job = np.repeat(np.arange(len(jobs)), n_tasks)
    within = np.arange(n) - np.repeat(np.cumsum(n_tasks) - n_tasks, n_tasks)
    in_dag = dag[job]
    named = pool.take(pa.array(np.where(in_dag, first[template[job]] + within, 0)))
    number = pa.array(rng.integers(10**17, 10**18, n)).cast(pa.string())
    unique = pc.binary_join_element_wise("task_Nzg3ODA", number, "==", "")
    start = np.sort(rng.integers(1, SPAN_S, len(jobs)))[rng.permutation(len(jobs))][job]
    duration = rng.lognormal(2.5, 1.5, n).astype(np.int64)
    end = np.where(rng.random(n) < 0.001, 0, start + duration)
    status = np.where(rng.random(n) < 0.01, "Failed", "Terminated")
    job_number = pa.array(jobs[job]).cast(pa.string())
    return pa.table(
        {
            "task_name": pc.if_else(pa.array(in_dag), named, unique),
            "instance_num": np.maximum(1, rng.lognormal(1.0, 2.0, n)).astype(np.int64),
            "job_name": pc.binary_join_element_wise("j_", job_number, ""),
            "task_type": rng.integers(1, 13, n),
            "status": pa.array(status),
            "start_time": start,
            "end_time": end,
            "plan_cpu": rng.choice([50.0, 100.0, 200.0], n, p=[0.4, 0.59, 0.01]),
            "plan_mem": rng.choice([0.2, 0.3, 0.39, 0.49, 0.59], n),
        }
    )


if __name__ == "__main__":
    sys.exit(main())
