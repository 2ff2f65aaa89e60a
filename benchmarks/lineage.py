"""Time and memory of the lineage profiler on four weeks at full scale.

Run as ``python -m benchmarks.lineage [--jobs N] [--sources S]``. Algorithm 1 is run to convergence
under ω = 1 week for a sample of jobs, spread evenly, on two threads: the closure as a whole has
some 10^10 pairs, and a block's time does not depend on the others.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from benchmarks.common import Row, parse_arguments, peak_memory, row, show, timed
from benchmarks.lineage_log import make_log
from policies.wing.lineage.aggregates import aggregate, aggregate_bounds
from policies.wing.lineage.analyses import value_functions
from policies.wing.lineage.dependencies import graph, single_hop, window
from policies.wing.lineage.multi_hop import rows

JOBS, SOURCES, THREADS = 1_100_000, 16_384, 2
JOIN_S, FAST_S, PAIRS_S, GIB = 60.0, 30.0, 10.0, 12.0


def main() -> int:
    args = parse_arguments(__doc__, jobs=JOBS, sources=SOURCES)
    run(make_log(20_000), 256)  # compiles
    return show("lineage", run(make_log(args.jobs), args.sources))


def run(logs, n_sources: int) -> list[Row]:  # type: ignore[no-untyped-def]
    results = [row("operations", len(logs.time_s) / 1e6, "million")]
    results.append(row("jobs", logs.n_jobs / 1e6, "million"))
    elapsed_s, hops = timed(partial(single_hop, logs))
    results.append(row("single hop", elapsed_s, "s", at_most=JOIN_S))
    edges, value = hops.dependencies, hops.downloads.per_job(logs.n_jobs)
    results.append(row("dependencies", len(edges) / 1e6, "million"))
    elapsed_s, dag = timed(lambda: graph(edges))
    more, _ = timed(lambda: aggregate(edges, value, dag=dag))
    results.append(row("value, no window", elapsed_s + more, "s", at_most=FAST_S))
    within = window(logs.column("submit_s"), logs.column("finish_s"))
    del logs, hops
    options = {"dag": dag, "jobs_per_cut": 400}
    elapsed_s, enclosed = timed(lambda: aggregate_bounds(edges, value, within, **options))
    results.append(row("value within ω, enclosed", elapsed_s, "s", at_most=FAST_S))
    ok = within.valid
    low, high = enclosed.low[ok], enclosed.high[ok]
    results.append(row("… jobs known exactly", 100 * float((low == high).mean()), "%"))
    results.append(row("… width, of the sum", 100 * float((high - low).sum() / high.sum()), "%"))
    results.extend(_closure(edges, value, within, dag, n_sources))
    return [*results, peak_memory("peak memory, the log included", GIB)]


def _closure(edges, value, within, dag, n_sources):  # type: ignore[no-untyped-def]
    valid = np.flatnonzero(within.valid).astype(np.int32)
    block = 512
    starts = np.linspace(0, len(valid) - block, max(1, n_sources // block)).astype(np.int64)
    blocks = [valid[max(start, 0) : max(start, 0) + block] for start in starts]

    def run_block(sources):  # type: ignore[no-untyped-def]
        functions = value_functions(value)
        n, total = 0, 0.0
        for pairs in rows(edges, functions, within=within, sources=sources, dag=dag):
            n += len(pairs.downstream)
            total += float(functions.ds_op(pairs).sum())
        return n

    begin = time.perf_counter()
    with ThreadPoolExecutor(THREADS) as pool:
        n_pairs = sum(pool.map(run_block, blocks))
    elapsed_s = time.perf_counter() - begin
    share = sum(map(len, blocks)) / len(valid)
    yield row("Algorithm 1 within ω", n_pairs / elapsed_s / 1e6, "M pairs/s", at_least=PAIRS_S)
    yield row("… pairs of the sample", n_pairs / 1e6, "million")
    yield row("… of all, by the sample", n_pairs / share / 1e9, "10^9")


if __name__ == "__main__":
    sys.exit(main())
