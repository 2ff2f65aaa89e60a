"""Speed of the synthesis of Alibaba-like workloads, on one core.

Run as ``python -m benchmarks.synth [--jobs N]``. The published generator makes 3,400 DAGs a second
on a machine like ours, without the Parquet.
"""

from __future__ import annotations

import sys
from pathlib import Path

import sim
from benchmarks.common import Row, parse_arguments, peak_memory, row, scratch, show, timed
from benchmarks.worlds import paper_dags
from sim.dags import compact_levels
from sim.synth.fitted.fit import fit_workload
from sim.synth.fitted.tables_file import write_tables

PUBLISHED_DAGS_PER_S = 3_400
MIN_DAGS_PER_S = 1_000_000 / 60


def main() -> int:
    n = parse_arguments(__doc__, jobs=200_000).jobs
    sim.synthesize("alibaba2018", jobs=100)  # compiles
    compact_levels(paper_dags(100))
    seconds, results = {}, {}
    tables = fit_workload(sim.synthesize("alibaba2018", jobs=20_000, joint=True))
    with scratch() as folder:
        fitted = Path(folder, "fitted.json")
        write_tables(tables, fitted)
        for name, run in {
            "Algorithm 2 alone": lambda: paper_dags(n),
            "compact levels of these DAGs": lambda: compact_levels(results["Algorithm 2 alone"]),
            "whole workload": lambda: sim.synthesize("alibaba2018", jobs=n),
            "whole workload, fitted jointly": lambda: sim.synthesize(
                "alibaba2018", jobs=n, tables=fitted, joint=True
            ),
            "fit of that workload": lambda: fit_workload(results["whole workload"]),
            "written to Parquet": lambda: results["whole workload"].write(Path(folder, "workload")),
        }.items():
            seconds[name], results[name] = timed(run)
        size = sum(path.stat().st_size for path in Path(folder, "workload").iterdir())
    rows: list[Row] = []
    for name, elapsed_s in seconds.items():
        at_least = MIN_DAGS_PER_S if name.endswith("jointly") else None
        speed = n / elapsed_s
        rows.append(row(name, speed, "DAGs/s", at_least=at_least))
        rows.append(row("... times the published one", speed / PUBLISHED_DAGS_PER_S, "×"))
    rows.append(row("its Parquet", size / 1e6, "MB"))
    return show("synth", [*rows, peak_memory()])


if __name__ == "__main__":
    sys.exit(main())
