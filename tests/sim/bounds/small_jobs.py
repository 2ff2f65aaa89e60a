"""Small random jobs whose optimum can be proven, and the clusters they are asked about."""

from __future__ import annotations

from typing import Any

import numpy as np

import sim
from sim.base.random import stream
from sim.bounds import bound_arrays

AMOUNT = {"cpu": 10.0, "mem": 10.0, "disk": 10.0, "net": 10.0}
"""Resources of one machine."""


def small_job(
    seed: int, max_tasks: int = 30, max_stages: int = 8
) -> tuple[sim.Workload, sim.Cluster]:
    """Draw one job and its machines.

    Stages have one to seven tasks, of one duration or of many; about half of the demands are any
    part of a machine, the rest at most a third of it; edges are barriers, one-to-one (between
    stages of different sizes too) or mixed. The number of machines is log-uniform in [1/2, 4] ×
    (work on one machine / critical path), at least 1: the ratio that decides what is hard.
    """
    rng = stream(seed, "tests", "small job", max_tasks)
    stages: list[dict[str, Any]] = []
    n_stages = int(rng.integers(2, max_stages + 1))
    n_left = max_tasks
    share_o2o = float(rng.choice([0.0, 0.5, 1.0]))
    for i in range(n_stages):
        is_o2o = {f"s{p}": rng.random() < share_o2o for p in range(i) if rng.random() < 1.6 / i}
        n = min(int(rng.integers(1, 8)), n_left - (n_stages - 1 - i))
        n_left -= n
        longest = int(rng.integers(1, 15))
        equal = rng.random() < 0.5
        durations = [longest] * n if equal else rng.integers(1, longest + 1, n).tolist()
        large = rng.random(len(AMOUNT)) < 0.5
        demand = {
            r: int(rng.integers(0, 11 if big else 4)) for r, big in zip(AMOUNT, large, strict=True)
        }
        demand["cpu"] = max(1, demand["cpu"])
        parents = {p: "one_to_one" if o2o else "barrier" for p, o2o in is_o2o.items()}
        stages.append(
            {"name": f"s{i}", "durations_s": durations, "parents": parents, "demand": demand}
        )
    workload = sim.Workload.from_jobs([{"submit_s": 0.0, "stages": stages}])
    alone = bound_arrays(workload.columns, sim.Cluster.machines(1, **AMOUNT))
    ratio = float(alone["twork"][0] / alone["cp_len"][0])
    n_machines = max(1, round(float(np.exp(rng.uniform(np.log(0.5), np.log(4.0)))) * ratio))
    return workload, sim.Cluster.machines(n_machines, **AMOUNT)
