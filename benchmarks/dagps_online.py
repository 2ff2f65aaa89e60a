"""The online half of DAGPS: 200 jobs of 1,000 tasks on 200 machines of four resources.

Run as ``python -m benchmarks.dagps_online``. Jobs are runs of 20 templates: DAGs of depth 7 over 4
to 20 stages; disk and network are fungible. The offline order is built once per template, from true
durations, and measured separately. Seconds are of one core, the median of three. The machines are
fixed, and arrivals are such that they offer the load. The baselines run on the same jobs. Then
1,000 production-like jobs on 1,000 machines: the time to build their offline schedules, and the
time of a second cell, which finds the schedules in the disk cache, over that of tez_tetris.
"""

from __future__ import annotations

import sys
from copy import deepcopy
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import policies
import sim
from benchmarks.common import Row, cpu_seconds, interleave, row, run_seconds, show
from policies.base import Policy
from policies.dagps.offline_order import offline_order
from sim.base import disk_cache
from sim.engine.plan import Batch, Event, Plan, World

N_JOBS, N_TASKS, MACHINES, TEMPLATES, DEPTH = 200, 1000, 200, 20, 7
SHAPE = {"cpu": 1.0, "mem": 1.0, "disk": 1.0, "net": 1.0}
FUNGIBLE = ("disk", "net")
ORDERED = {"knowledge": "run", "order_from": "true"}
"""Parameters with which all offline orders are built before the run."""


@dataclass(frozen=True)
class Prepared(Policy):
    """A policy whose plan was filled before, so that only the run is measured."""

    name: ClassVar[str] = "prepared"

    def __init__(self, policy: Policy, workload: sim.Workload, cluster: sim.Cluster) -> None:
        c = workload.columns
        filled = Plan(len(c.job_submit), len(c.stage_job), c.n_tasks)
        memory = policy.begin(World(c, cluster, 0, {}), filled)
        for name, value in (("policy", policy), ("filled", filled), ("memory", memory)):
            object.__setattr__(self, name, value)

    @property
    def events(self) -> Event:  # type: ignore[override]
        """Events of the wrapped policy."""
        return self.policy.events

    def begin(self, world: World, plan: Plan) -> object:
        """Copy the filled plan into `plan`."""
        for name, value in vars(self.filled).items():
            copied = {k: v.copy() for k, v in value.items()} if isinstance(value, dict) else value
            setattr(plan, name, copied)
        return deepcopy(self.memory)

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        """Forward the events to the wrapped policy."""
        self.policy.react(memory, batch, world, plan)


def jobs_at_load(load: float, n_jobs: int = N_JOBS, machines: int = MACHINES) -> sim.Workload:
    """Make runs of a few templates that offer `load` to the bottleneck of `machines` machines."""
    rng = np.random.default_rng(0)
    shapes = [_template(rng) for _ in range(TEMPLATES)]
    jobs, work = [], np.zeros(len(SHAPE))
    for i in range(n_jobs):
        t = int(rng.integers(TEMPLATES))
        stages = []
        for s, (n, mean_s, demand, parents) in enumerate(shapes[t]):
            durations = mean_s * rng.lognormal(-0.125, 0.5, n)
            work += durations.sum() * np.array(list(demand.values()))
            stages.append(
                {
                    "name": f"s{s}",
                    "durations_s": durations.tolist(),
                    "demand": demand,
                    "parents": parents,
                }
            )
        jobs.append({"job_id": f"j{i}", "template": f"t{t}", "stages": stages})
    span = work.max() / (machines * load)
    for job, submit_s in zip(jobs, np.sort(rng.uniform(0, span, n_jobs)), strict=True):
        job["submit_s"] = float(submit_s)
    return sim.Workload.from_jobs(jobs)


def _template(rng: np.random.Generator) -> list[tuple[int, float, dict[str, float], list[str]]]:
    n_stages = int(rng.integers(DEPTH, 21))
    level = np.sort(np.concatenate([np.arange(DEPTH), rng.integers(0, DEPTH, n_stages - DEPTH)]))
    size = 1 + rng.multinomial(N_TASKS - n_stages, rng.dirichlet(np.ones(n_stages)))
    stages = []
    for s in range(n_stages):
        before = np.flatnonzero(level == level[s] - 1)
        some = rng.permutation(before)[: rng.integers(1, 3)] if len(before) else []
        demand = {name: round(float(d), 3) for name, d in zip(SHAPE, _demand(rng), strict=True)}
        mean_s = float(rng.lognormal(3, 1))
        stages.append((int(size[s]), mean_s, demand, [f"s{p}" for p in sorted(some)]))
    return stages


def _demand(rng: np.random.Generator) -> np.ndarray:
    return np.clip(rng.gamma(1.0, 0.12, len(SHAPE)), 0.02, 1.0)


def second_cell(n: int = 1000) -> list[Row]:
    """Measure a cell with offline schedules from another cell, beside tez_tetris."""
    w = sim.synthesize("production_dags", jobs=n, seed=0)
    cluster = sim.Cluster.machines(n, fungible=FUNGIBLE, **SHAPE)
    with disk_cache.disabled():
        first_s = cpu_seconds(lambda: offline_order(w.columns, cluster))
    offline_order(w.columns, cluster)
    cached_s = [cpu_seconds(lambda: offline_order(w.columns, cluster)) for _ in range(3)]
    built = {
        "dagps": policies.build("dagps", **ORDERED),
        "tez_tetris": policies.build("tez_tetris"),
    }
    runs = {
        name: lambda policy=policy: run_seconds(w, cluster, policy)
        for name, policy in built.items()
    }
    elapsed_s = interleave(runs, 3)
    jobs = f"{n:,} jobs on {n:,} machines"
    times = [
        ours / other
        for ours, other in zip(elapsed_s["dagps"], elapsed_s["tez_tetris"], strict=True)
    ]
    return [
        row(f"{jobs}: offline schedules, built", first_s, "s"),
        row(f"{jobs}: offline schedules, from the disk cache", cached_s, "s"),
        *(row(f"{jobs}: {name}, again", seconds, "s") for name, seconds in elapsed_s.items()),
        row(f"{jobs}: dagps over tez_tetris, again", times, "×", at_most=2.0),
    ]


def main() -> int:
    """Measure DAGPS and its baselines at the load and at twice the load."""
    cluster = sim.Cluster.machines(MACHINES, fungible=FUNGIBLE, **SHAPE)
    small = jobs_at_load(0.9, n_jobs=3)
    for name in ("dagps", "tez", "tez_tetris"):
        sim.simulate(small, cluster, policies.build(name))  # compiles
    rows: list[Row] = []
    for load in (0.9, 2.0):
        w = jobs_at_load(load)
        built = {name: policies.build(name) for name in ("tez", "tez_cp", "tez_tetris")}
        built = {"dagps": policies.build("dagps", **ORDERED), **built}
        if load < 1:
            with disk_cache.disabled():
                offline = cpu_seconds(lambda w=w, p=built["dagps"]: Prepared(p, w, cluster))
            rows.append(row(f"offline orders of {TEMPLATES} templates", offline, "s"))
        ready = {name: Prepared(policy, w, cluster) for name, policy in built.items()}
        runs = {
            name: lambda w=w, policy=policy: run_seconds(w, cluster, policy)
            for name, policy in ready.items()
        }
        for name, seconds in interleave(runs, 3).items():
            result = sim.simulate(w, cluster, ready[name])
            jct = float(np.mean(result.job_finish - w.columns.job_submit))
            label = f"{name}, load {load:g} (mean JCT {jct:.0f} s)"
            ours = name == "dagps"
            rows.append(row(label, seconds, "s", at_most=5.0 if ours and load < 1 else None))
            rate = [w.n_tasks / s / 1e6 for s in seconds]
            min_rate = 0.3 if ours and load > 1 else None
            rows.append(row(label, rate, "M placements/s", at_least=min_rate))
    return show("dagps_online", rows + second_cell())


if __name__ == "__main__":
    sys.exit(main())
