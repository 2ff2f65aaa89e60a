"""Requests above demands: what tasks hold, what they use, and what nobody may see."""

from __future__ import annotations

import numpy as np
import pytest

import policies
import sim
from policies.base import Policy
from sim import transforms
from sim.base.errors import InputError
from sim.check.schedule import check_schedule
from sim.cluster.requests import requested
from sim.cluster.sizing import full_count

MACHINE = sim.Cluster.machines(1, cpu=4, mem=8)


def jobs(n: int = 2, seconds: float = 10.0, **stage) -> sim.Workload:
    """Return jobs of one task, which uses half of the machine and asks for all of it."""
    stage = {
        "durations_s": [seconds], "demand": {"cpu": 2, "mem": 3}, "request": {"cpu": 4}, **stage
    }  # fmt: skip
    return sim.Workload.from_jobs([{"submit_s": float(i), "stages": [stage]} for i in range(n)])


@pytest.fixture(scope="module")
def both() -> dict[str, sim.Result]:
    """Runs of two such jobs, by what a policy allocates."""
    return {
        demands: sim.simulate(jobs(), MACHINE, policies.build("fifo", demands=demands))
        for demands in ("declared", "true")
    }


def test_tasks_hold_what_they_request_unless_the_policy_refines_it(both):
    assert both["declared"].job_finish.tolist() == [10.0, 20.0]
    assert both["true"].job_finish.tolist() == [10.0, 11.0]
    for run in both.values():
        check_schedule(run)


def test_utilization_tells_what_is_held_and_what_is_used(both):
    # jobs arrive from 0 to 1 s
    assert both["declared"].metrics["utilization"] == 1.0
    assert both["declared"].metrics["utilization_used"] == 0.5
    assert both["true"].metrics["utilization"] == both["true"].metrics["utilization_used"] == 0.5
    # work done counts what is used: 2 of 4 cpus for 20 s of 20 and of 11 s
    assert both["declared"].metrics["utilization_makespan"] == 0.5
    assert both["true"].metrics["utilization_makespan"] == pytest.approx(20 / 22)
    plain = sim.simulate(jobs(request={}), MACHINE, policies.build("fifo"))
    assert np.isnan(plain.metrics["utilization_used"])


def test_bounds_count_demands_and_loads_requests():
    workload, plain = jobs(9, seconds=4.0), jobs(9, seconds=4.0, request={})
    assert sim.lower_bound(workload, MACHINE).equals(sim.lower_bound(plain, MACHINE))
    shape = {"cpu": 4, "mem": 8}
    assert full_count(workload, shape, 0.8) > 1.2 * full_count(plain, shape, 0.8)
    assert workload.mean_load(MACHINE)["cpu"] == 2 * plain.mean_load(MACHINE)["cpu"]


@pytest.mark.parametrize("demands", ["declared", "true"])
def test_a_request_that_fits_no_machine_is_an_error(demands):
    with pytest.raises(InputError, match="demands 5 cpu per task"):
        sim.simulate(jobs(request={"cpu": 5}), MACHINE, policies.build("fifo", demands=demands))


def test_a_shared_resource_slows_tasks_down_by_what_they_use():
    cluster = sim.Cluster.machines(1, cpu=4, net=1, fungible=("net",))
    tasks = {"demand": {"cpu": 1, "net": 0.5}, "request": {"net": 1.0}}
    run = sim.simulate(jobs(**tasks), cluster, policies.build("tez"))
    assert run.job_finish.tolist() == [10.0, 11.0]
    assert requested(jobs(**tasks), cluster).columns.stage_demand_f[0].tolist() == [1, 0.5]


@pytest.mark.parametrize(
    ("stage", "message"),
    [
        ({"request": {"cpu": 1}}, "requested_cpu is 1, less than the demand of 2"),
        ({"request": {"cpu": float("inf")}}, "requested_cpu"),
        ({"request": {"cpu": 1e30}}, "2\\^45 quanta"),
    ],
)
def test_wrong_requests_are_refused(stage, message):
    with pytest.raises(InputError, match=message):
        jobs(**stage)


def test_a_request_needs_a_demand_beside_it_and_may_be_unknown(tmp_path):
    tables = {"jobs": {"job_id": ["a"], "submit_s": [0.0]}, "tasks": None}
    stages = {"job": [0, 0], "n_tasks": [1, 1], "duration_s": [1.0, 1.0], "demand_cpu": [1.0, 2.0]}
    with pytest.raises(InputError, match="no demand_mem"):
        sim.Workload.from_tables(**tables, stages=stages | {"requested_mem": [1.0, 1.0]})
    requests = sim.Workload.from_tables(**tables, stages=stages | {"requested_cpu": [None, 3.0]})
    assert requested(requests, MACHINE).columns.stage_demand_f.tolist() == [[1.0], [3.0]]
    assert requests.columns.stage_demand_f.tolist() == [[1.0], [2.0]]
    requests.write(tmp_path / "requests")
    assert sim.Workload.read(tmp_path / "requests").digest == requests.digest
    assert requests.digest != sim.Workload.from_tables(**tables, stages=stages).digest


def test_policies_see_requests_alone():
    class Sees(Policy):
        def prepare(self, world, plan):
            columns = world.columns
            table = columns.features.stages
            seen.append((columns.stage_demand_f[0].tolist(), table["demand_cpu"].to_pylist()[0]))
            assert not [name for name in table.column_names if name.startswith("requested_")]

    seen: list[object] = []
    for options in ({}, {"reads": "all"}, {"demands": "true"}):
        policy = Sees(**options)
        sim.simulate(jobs(1), MACHINE, policy)
        assert policy.may_know.is_oracle == bool(options)
    assert seen == [([4, 3], 4), ([4, 3], 4), ([2, 3], 2)]


def crowd(needs: float) -> sim.Workload:
    """Return DAGs of random requests, of which tasks need a part."""
    rng = np.random.default_rng(5)
    listed = []
    for i in range(14):
        stages = []
        for s in range(2):
            requests = {"cpu": int(rng.integers(1, 5)), "mem": float(rng.integers(1, 8))}
            stages.append(
                {
                    "name": f"s{s}", "parents": ["s0"] if s else [],
                    "durations_s": rng.integers(1, 9, 3).astype(float).tolist(),
                    "demand": {name: needs * amount for name, amount in requests.items()},
                    "request": requests,
                }
            )  # fmt: skip
        names = {"template": f"t{i % 3}", "user": f"u{i % 2}", "queue": f"q{i % 2}"}
        listed.append({"submit_s": float(i), **names, "stages": stages})
    return sim.Workload.from_jobs(listed)


CROWD = crowd(1.0)
CROWD_OF_LESS = crowd(0.5)


@pytest.mark.parametrize("name", ["fifo", "drf", "tez_tetris", "dagps"])
def test_what_tasks_need_beyond_sight_changes_no_start(name):
    cluster = sim.Cluster.machines(2, cpu=6, mem=9)
    full, part = (sim.simulate(w, cluster, policies.build(name)) for w in (CROWD, CROWD_OF_LESS))
    assert np.array_equal(full.task_start, part.task_start)
    assert np.array_equal(full.task_machine, part.task_machine)
    refined = sim.simulate(CROWD_OF_LESS, cluster, policies.build(name, demands="true"))
    assert not np.array_equal(refined.task_start, part.task_start)
    check_schedule(part)
    check_schedule(refined)


def test_the_transform_sets_requests():
    plain = jobs(1, request={})
    for factor, requests in ((1.5, [3.0, 4.5]), ({"mem": 2.0}, [2.0, 6.0])):
        workload = transforms.apply(plain, "requests", factor=factor)
        assert requested(workload, MACHINE).columns.stage_demand_f[0].tolist() == requests
        assert workload.columns.stage_demand_f[0].tolist() == [2.0, 3.0]
    with pytest.raises(InputError, match="factor"):
        transforms.apply(plain, "requests", factor=0.9)
    with pytest.raises(InputError, match="gpu"):
        transforms.apply(plain, "requests", factor={"gpu": 2.0})


def test_the_transform_takes_recorded_use_for_demands():
    plain = jobs(3, request={})
    with pytest.raises(InputError, match="used_cpu"):
        transforms.apply(plain, "requests", used=True)
    stages = plain.stages.append_column("used_cpu", [[0.5, 9.0, None]])
    logged = sim.Workload.from_tables(plain.jobs, stages, plain.tasks)
    workload = transforms.apply(logged, "requests", used=True, factor={"mem": 2.0})
    assert workload.columns.stage_demand_f[:, 0].tolist() == [0.5, 2.0, 2.0]
    requests = requested(workload, MACHINE).columns.stage_demand_f
    assert requests.tolist() == [[2.0, 6.0]] * 3


def test_other_transforms_of_demands_move_requests_along():
    smaller = transforms.fit_machines(jobs(1), {"cpu": 2})
    assert smaller.stages["demand_cpu"].to_pylist() == [1.0]
    assert smaller.stages["requested_cpu"].to_pylist() == [2.0]
    doubled = transforms.amplify(CROWD_OF_LESS, 2.0, ["demand_cpu"])
    ratio = doubled.stages["requested_cpu"].to_numpy() / doubled.stages["demand_cpu"].to_numpy()
    assert ratio == pytest.approx(2.0)


def test_jobs_that_are_taken_or_added_keep_their_requests():
    both = transforms.add(jobs(1, request={}), jobs(2).take([1]))
    assert both.stages["requested_cpu"].to_pylist() == [None, 4.0]
    assert requested(both, MACHINE).columns.stage_demand_f.tolist() == [[2.0, 3.0], [4.0, 3.0]]
