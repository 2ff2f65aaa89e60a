"""Wing's workload and policies at full scale: four weeks synthesized, one of them scheduled.

Run as ``python -m benchmarks.wing [--scale S]``. A cell of Fig. 10 is one call of `sim.simulate` on
the loaded workload with a queue for each of 150 organisations; metrics are timed separately. All
times are CPU seconds of one thread, so that other load on the machine does not count.
"""

from __future__ import annotations

import sys
import time

import policies
import sim
from benchmarks.common import Row, cpu_seconds, parse_arguments, peak_memory, row, show

SCALE = 1.0
MADE_S, CELL_S, GRID_S = 300.0, 2.0, 600.0
CAPACITIES = (1.0, 0.8, 0.6, 0.4, 0.2)
POLICIES = {
    "priority": {},
    "mil": {},
    "wing_mil": {},
    "wing_agg": {},
    "wing_dep": {},
    "mil, oracle": {"knowledge": "true"},
    "wing_agg, oracle": {"knowledge": "true"},
    "wing_dep, oracle": {"knowledge": "true"},
}
"""The policies of Fig. 10."""

SEEDS = 5
CORES = 2


def main() -> int:
    """Measure, and print the limits beside the results."""
    args = parse_arguments(__doc__, scale=SCALE)
    run(0.02)  # compiles
    return show("wing", run(args.scale))


def run(scale: float) -> list[Row]:
    """Synthesize the workload at a scale and simulate one seed's cells of Fig. 10."""
    begin = time.process_time()
    workload = sim.synthesize("cosmos", scale=scale)
    made_s = time.process_time() - begin
    rows = [
        row("jobs of the week", workload.n_jobs / 1e3, "thousand"),
        row("four weeks, made and valued", made_s, "s", at_most=MADE_S),
        row("digest", cpu_seconds(lambda: workload.digest), "s"),
    ]
    _ = workload.columns
    cells = []
    for name, options in POLICIES.items():
        policy = policies.build(name.partition(",")[0], **options)
        spent = [_cell(workload, capacity, policy) for capacity in CAPACITIES]
        rows.append(row(f"a cell, {name}", [cell_s for cell_s, _ in spent], "s", at_most=CELL_S))
        cells += spent
    simulated, measured = (sum(times) for times in zip(*cells, strict=True))
    rows.append(row("metrics of a cell", [metrics for _, metrics in cells], "s"))
    whole = SEEDS * (made_s + (simulated + measured) / CORES)
    rows.append(row(f"the grid of Fig. 10, {SEEDS} seeds", whole, "s", at_most=GRID_S))
    return [*rows, peak_memory()]


def _cell(workload: sim.Workload, capacity: float, policy: policies.Policy) -> tuple[float, float]:
    """Return the CPU times of a cell and of its metrics, s."""
    cluster = sim.Cluster.machines(capacity, tokens=100_000)
    cluster = cluster.with_queues("hard", workload.meta["queue_share"])
    results: list[sim.Result] = []
    cell_s = cpu_seconds(lambda: results.append(sim.simulate(workload, cluster, policy)))
    return cell_s, cpu_seconds(lambda: results[0].metrics)


if __name__ == "__main__":
    sys.exit(main())
