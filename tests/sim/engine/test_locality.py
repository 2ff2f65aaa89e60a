"""Tasks whose input lies on one machine."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import policies
import sim
from sim import transforms
from sim.workload.columns import task_homes
from tests.examples import examples
from tests.sim.engine.strategies import AnyPlan, clusters, workloads
from tests.sim.engine.test_kernel import FITS, assert_same


def placed(workload, home, factor=1.0):
    """Let the inputs of every stage begin on machine `home`, or on one for each."""
    placed_workload = transforms.place_inputs(workload, remote_factor=factor)
    column_index = placed_workload.stages.column_names.index("input_home")
    column = np.full(placed_workload.n_stages, home, dtype=np.int32)
    stages = placed_workload.stages.set_column(column_index, "input_home", [column])
    return sim.Workload.from_tables(
        jobs=placed_workload.jobs, stages=stages, tasks=placed_workload.tasks
    )


def one_stage(durations_s, cpu=1.0):
    stages = [{"durations_s": durations_s, "demand": {"cpu": cpu}}]
    return sim.Workload.from_jobs([{"submit_s": 0.0, "stages": stages}])


def run(workload, policy, n=3, **params):
    cluster = sim.Cluster.machines(n, cpu=1)
    return sim.simulate(workload, cluster, policies.build(policy, **params), record="tasks")


def test_inputs_lie_side_by_side_from_a_drawn_machine_on():
    placed_workload = transforms.place_inputs(one_stage([1.0] * 5), seed=3)
    home = placed_workload.columns.stage_home[0]
    np.testing.assert_array_equal(task_homes(placed_workload.columns, 4), (home + np.arange(5)) % 4)
    assert task_homes(one_stage([1.0]).columns, 4) is None
    assert transforms.place_inputs(placed_workload, seed=4).columns.stage_home[0] != home


def test_only_stages_without_parents_read_from_somewhere():
    stages = [{"name": "a", "durations_s": [1.0]}, {"durations_s": [1.0], "parents": ["a"]}]
    placed_workload = transforms.place_inputs(
        sim.Workload.from_jobs([{"submit_s": 0.0, "stages": stages}])
    )
    assert (placed_workload.columns.stage_home >= 0).tolist() == [True, False]


@pytest.mark.parametrize("policy", ["tez", "tez_tetris", "dagps"])
def test_a_machine_takes_the_task_of_a_stage_whose_input_it_has(policy):
    result = run(placed(one_stage([1.0] * 3), home=1), policy)
    assert result.task_machine.tolist() == [1, 2, 0]
    assert result.metrics["tasks_local"] == 1


def test_a_policy_without_locality_pays_for_remote_inputs():
    result = run(placed(one_stage([1.0, 2.0, 3.0]), home=1, factor=2.5), "bfs")
    assert result.task_machine.tolist() == [0, 1, 2]
    assert result.task_finish.tolist() == [2.5, 5.0, 7.5]
    assert result.metrics["tasks_local"] == 0


def test_a_task_without_a_home_is_slow_nowhere():
    w = sim.Workload.from_jobs(
        [{"submit_s": 0.0, "stages": [{"durations_s": [1.0], "demand": {"cpu": 1}}]}] * 2
    )
    result = run(placed(w, home=[2, -1], factor=2.5), "bfs")
    assert result.task_machine.tolist() == [0, 1]
    assert result.task_finish.tolist() == [2.5, 1.0]


@pytest.mark.parametrize(("rp", "first"), [(0.4, 1), (0.6, 0)])
def test_a_local_task_goes_first_unless_a_remote_one_is_worth_that_much_more(rp, first):
    stages = [
        {"durations_s": [1.0], "demand": {"cpu": 1.0}},
        {"durations_s": [1.0], "demand": {"cpu": 0.5, "mem": 0.01}},
    ]
    jobs = [{"submit_s": 0.0, "stages": [stage]} for stage in stages]
    placed_workload = transforms.place_inputs(sim.Workload.from_jobs(jobs))
    column_index = placed_workload.stages.column_names.index("input_home")
    stages = placed_workload.stages.set_column(
        column_index, "input_home", [np.array([1, 0], dtype=np.int32)]
    )
    workload = sim.Workload.from_tables(
        jobs=placed_workload.jobs, stages=stages, tasks=placed_workload.tasks
    )
    policy = policies.build("dagps", rp=rp, bundle=1, m=0.0)
    cluster = sim.Cluster.machines(2, cpu=1, mem=1)
    result = sim.simulate(workload, cluster, policy, record="tasks")
    assert result.task_machine[first] == 0


@pytest.mark.parametrize("factor", [0.5, np.nan, np.inf])
def test_a_factor_out_of_its_range_is_an_error(factor):
    with pytest.raises(sim.InputError, match="remote_factor must be a number of at least 1"):
        transforms.place_inputs(one_stage([1.0]), remote_factor=factor)


@pytest.mark.parametrize("fit", FITS)
@given(data=st.data(), plan_seed=st.integers(0, 2**32 - 1), factor=st.sampled_from([1.0, 1.5]))
@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)
def test_same_bits_as_the_naive_simulator(fit, data, plan_seed, factor):
    w = transforms.place_inputs(data.draw(workloads()), remote_factor=factor, seed=plan_seed)
    cluster = data.draw(clusters(w))
    assert_same(w, cluster, AnyPlan(fit=fit, plan_seed=plan_seed, callbacks=False))
