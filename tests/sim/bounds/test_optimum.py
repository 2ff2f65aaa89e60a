"""No bound exceeds the optimum, which CP-SAT proves on small random jobs with both edge kinds."""

import numpy as np
import pytest
from ortools.sat.python import cp_model

import sim
from sim.bounds import bound_arrays
from sim.check.makespan import makespan_bound

CAPACITY = {"cpu": 4, "mem": 5}


def random_job(rng, submit_s=0.0, max_stages=4):
    """One job of a few stages of up to three tasks; sizes differ across one-to-one edges."""
    kind_of = rng.choice(["barrier", "one_to_one", "both"])
    stages = []
    for i in range(int(rng.integers(1, max_stages + 1))):
        parents = {}
        for p in range(i):
            if rng.random() < 1.6 / (i + 1):
                is_o2o = kind_of == "one_to_one" or (kind_of == "both" and rng.random() < 0.5)
                parents[f"s{p}"] = "one_to_one" if is_o2o else "barrier"
        durations = rng.integers(1, 7, int(rng.integers(1, 4))).tolist()
        demand = {"cpu": int(rng.integers(1, 5)), "mem": int(rng.integers(0, 6))}
        stages.append(
            {"name": f"s{i}", "durations_s": durations, "parents": parents, "demand": demand}
        )
    return {"submit_s": submit_s, "stages": stages}


def optimum(jobs):
    """Least time from the first submission to the last end, with all capacity in one machine."""
    model = cp_model.CpModel()
    horizon = int(
        max(job["submit_s"] for job in jobs)
        + sum(sum(s["durations_s"]) for job in jobs for s in job["stages"])
    )
    intervals, demands = [], {r: [] for r in CAPACITY}
    end_of_all = model.new_int_var(0, horizon, "")
    for job in jobs:
        tasks = {}
        for stage in job["stages"]:
            tasks[stage["name"]] = []
            for d in stage["durations_s"]:
                start = model.new_int_var(int(job["submit_s"]), horizon, "")
                tasks[stage["name"]].append((start, start + d))
                intervals.append(model.new_fixed_size_interval_var(start, d, ""))
                model.add(end_of_all >= start + d)
                for r in CAPACITY:
                    demands[r].append(stage["demand"][r])
            for parent, kind in stage["parents"].items():
                children, parents = tasks[stage["name"]], tasks[parent]
                if kind == "one_to_one":
                    pairs = list(zip(parents, children, strict=False))
                else:
                    pairs = [(p, t) for p in parents for t in children]
                for p, t in pairs:
                    model.add(t[0] >= p[1])
    for r, capacity in CAPACITY.items():
        model.add_cumulative(intervals, demands[r], capacity)
    model.minimize(end_of_all)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = 20
    assert solver.solve(model) == cp_model.OPTIMAL
    return round(solver.objective_value)


@pytest.mark.parametrize("batch", range(8))
def test_no_bound_exceeds_the_optimum_of_a_job(batch):
    cluster = sim.Cluster.machines(1, **CAPACITY)
    met = 0
    for i in range(20):
        job = random_job(np.random.default_rng([batch, i]))
        best = optimum([job])
        bounds = bound_arrays(sim.Workload.from_jobs([job]).columns, cluster)
        for name, value in bounds.items():
            assert value[0] <= best + 1e-9, (name, value[0], best, job)
        met += bounds["new_lb"][0] > best - 1e-9
    assert met >= 3  # bounds that were far off would pass the rest


@pytest.mark.parametrize("seed", range(20))
def test_makespan_bound_does_not_exceed_the_optimum(seed):
    rng = np.random.default_rng([99, seed])
    jobs = [random_job(rng, float(t), 2) for t in np.sort(rng.integers(0, 25, 2))]
    begin = jobs[0]["submit_s"]
    bound = makespan_bound(sim.Workload.from_jobs(jobs), sim.Cluster.machines(1, **CAPACITY))
    assert bound <= optimum(jobs) - begin + 1e-9
