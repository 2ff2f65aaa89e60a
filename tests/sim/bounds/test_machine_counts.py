"""Machines of each job: log-uniform about the number that keeps its critical path busy."""

from __future__ import annotations

import numpy as np
import pytest

import sim
from sim.bounds import bound_arrays
from sim.bounds.machine_counts import machines_per_job
from tests.sim.bounds.test_bounds import stage, workload

TPC = dict.fromkeys(("cpu", "mem", "io1", "io2", "io3", "io4"), 1.0)


def many(n_jobs, *stages):
    jobs = [{"job_id": f"j{i}", "submit_s": 0.0, "stages": list(stages)} for i in range(n_jobs)]
    return sim.Workload.from_jobs(jobs)


def test_factors_are_log_uniform_about_the_ratio():
    # 1,000 tasks of 10 s, ten at once on a machine, then one of 10 s: 1,001 s of work, 20 s long
    w = many(4_000, stage("a", [10.0] * 1000, cpu=1), stage("b", [10.0], ["a"], cpu=1))
    counts = machines_per_job(w, {"cpu": 10})
    factor = counts / (1001 / 20)
    assert factor.min() == pytest.approx(0.5, rel=0.03)
    assert factor.max() == pytest.approx(4.0, rel=0.03)
    quartiles = np.quantile(np.log2(factor), [0.25, 0.5, 0.75])
    assert quartiles == pytest.approx([-0.25, 0.5, 1.25], abs=0.06)


def test_the_same_seed_gives_the_same_and_fewer_jobs_the_first_of_them():
    stages = [stage("a", [1.0] * 50)]
    counts = machines_per_job(many(60, *stages), {"cpu": 1}, seed=3)
    assert (machines_per_job(many(60, *stages), {"cpu": 1}, seed=3) == counts).all()
    assert (machines_per_job(many(20, *stages), {"cpu": 1}, seed=3) == counts[:20]).all()
    assert (machines_per_job(many(60, *stages), {"cpu": 1}, seed=4) != counts).any()


@pytest.mark.parametrize("durations", [[0.0], [0.0, 0.0], [3.0]], ids=str)
def test_a_job_that_takes_no_time_or_has_one_task_gets_a_machine(durations):
    assert machines_per_job(workload(stage("a", durations)), {"cpu": 1}, high=0.5) == [1]


def test_a_task_that_no_machine_holds_and_a_range_that_is_none_are_errors():
    w = workload(stage("a", [1.0], cpu=5))
    with pytest.raises(sim.InputError, match="demands 5 cpu per task, but the largest machine"):
        machines_per_job(w, {"cpu": 4})
    with pytest.raises(sim.InputError, match="demands cpu, of which the cluster has none"):
        machines_per_job(w, {"mem": 4})
    for low, high in ((0.0, 1.0), (2.0, 1.0), (1.0, np.inf), (np.nan, 1.0)):
        with pytest.raises(sim.InputError, match="low and high must be positive"):
            machines_per_job(w, {"cpu": 5}, low=low, high=high)


@pytest.mark.parametrize("name", ["tpch_17_queries", "tpcds_41_queries", "tpch_fb_mix_399"])
def test_tpc_queries_get_machines_on_which_each_is_bounded_and_runs(shared_traces, name):
    """Six resources, each a part of one machine, exact in quanta; every task fits one machine."""
    import policies

    w = sim.read_trace("tpc", shared_traces / "dags" / f"{name}.txt")
    c = w.columns
    np.testing.assert_allclose(c.stage_demand * c.quantum, c.stage_demand_f, atol=1e-12)
    count = machines_per_job(w, TPC, seed=1)
    on_one_machine = bound_arrays(c, sim.Cluster.machines(1, **TPC))
    factor = count * on_one_machine["cp_len"] / on_one_machine["twork"]
    assert (
        np.abs(count - np.clip(factor, 0.5, 4) * on_one_machine["twork"] / on_one_machine["cp_len"])
        <= 1
    ).all()
    for job in range(0, w.n_jobs, 40):
        alone, cluster = w.take([job]), sim.Cluster.machines(int(count[job]), **TPC)
        run = sim.simulate(alone, cluster, policies.build("tetris"))
        bound = sim.lower_bound(alone, cluster)["tight_lb"][0].as_py()
        jct_s = run.job_finish[0] - alone.columns.job_submit[0]
        assert bound * (1 - 1e-9) <= jct_s <= 4 * bound
