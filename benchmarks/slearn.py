"""The generic scheduler and its estimators: task completions a second, history included.

Run as ``python -m benchmarks.slearn``. Rates are of whole calls of `sim.simulate` and of CPU
seconds of one core, the median of five. The jobs are like those of Google's trace of 2011 in
number and size: 11,838 of 26 tasks on average, as many before them as history.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

import policies
import sim
from benchmarks.common import interleave, row, run_seconds, show
from sim import Workload

N_JOBS, SLOTS, TIMES = 11_838, 1000, 5
MIN_RATES = {"slearn": 600_000.0, "las": 5_000_000.0, "threesigma": 100_000.0, "bayes": 150_000.0}
UNTIMED = ("oracle", "point")
CELL_JOBS, CELL_HISTORY, CELL_S = 1_250, 6_000, 0.5
DAY_S = 86_400.0


def recurring_jobs(n_jobs: int, n_history: int, seed: int = 0) -> Workload:
    """Make jobs of 200 programs by 40 users over 9.8 hours, and a history of the same length."""
    rng = np.random.default_rng(seed)
    n = n_jobs + n_history
    program = rng.integers(0, 200, n)
    mean_s = rng.lognormal(5, 1, 200)[program] * rng.lognormal(0, 0.5, n)
    n_tasks = np.clip(rng.lognormal(1.5, 1.8, n).astype(int), 1, 150)
    n_tasks[:n_jobs] = _scaled(n_tasks[:n_jobs], 311_896 * n_jobs // N_JOBS)
    stage = np.repeat(np.arange(n_jobs), n_tasks[:n_jobs])
    duration = mean_s[stage] * rng.lognormal(0, 0.4, len(stage))
    span_s = duration.sum() / SLOTS
    past_s = -np.sort(rng.uniform(0, 0.4 * DAY_S, n_history))[::-1]
    names = {
        "application": [f"program-{p}" for p in program],
        "user": [f"user-{p % 40}" for p in program],
        "requested": [f"cpu={1 + p % 4}" for p in program],
    }
    return Workload.from_tables(
        jobs={
            "job_id": [f"job-{i}" for i in range(n_jobs)],
            "submit_s": np.sort(rng.uniform(0, span_s, n_jobs)),
            **{name: column[:n_jobs] for name, column in names.items()},
        },
        stages={"job": np.arange(n_jobs), "n_tasks": n_tasks[:n_jobs]},
        tasks={"stage": stage, "duration_s": duration},
        history={
            "submit_s": past_s - mean_s[n_jobs:],
            "finish_s": past_s,
            "n_tasks": n_tasks[n_jobs:],
            "mean_task_s": mean_s[n_jobs:],
            **{name: column[n_jobs:] for name, column in names.items()},
        },
    )


def main() -> int:
    """Time every policy in turn; return 1 if a required rate is missed."""
    workload = recurring_jobs(N_JOBS, N_JOBS)
    cluster = sim.Cluster.slots(SLOTS)

    def run(name: str) -> Callable[[], float]:
        policy = policies.build(name)
        sim.simulate(workload.take(np.arange(200)), cluster, policy)
        return lambda: workload.n_tasks / run_seconds(workload, cluster, policy)

    rates = interleave({name: run(name) for name in (*MIN_RATES, *UNTIMED)}, TIMES)
    rows = [
        row(f"{name}: tasks", values, "1/s", at_least=MIN_RATES.get(name))
        for name, values in rates.items()
    ]
    small = recurring_jobs(CELL_JOBS, CELL_HISTORY)
    bayes = policies.build("bayes")
    cell_s = [run_seconds(small, cluster, bayes) for _ in range(TIMES)]
    rows += [
        row(
            "slearn: over las",
            [a / b for a, b in zip(rates["slearn"], rates["las"], strict=True)],
            "1",
        ),
        row(f"bayes: a cell of {CELL_JOBS:,} jobs", cell_s, "s", at_most=CELL_S),
    ]
    return show("slearn", rows)


def _scaled(n_tasks: np.ndarray, total: int) -> np.ndarray:
    """Return whole numbers in the same proportions, at least 1, that sum to about `total`."""
    return np.maximum(1, np.rint(n_tasks * (total / n_tasks.sum())).astype(int))


if __name__ == "__main__":
    sys.exit(main())
