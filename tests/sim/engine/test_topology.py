"""Gangs in racks and blocks: worked by hand, and equal to the naive simulator."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import policies
import sim
from sim.base.errors import InputError
from sim.cluster.faults import Outages
from tests.examples import COMPILED_WIDE
from tests.sim.engine.test_kernel import assert_same

pytestmark = pytest.mark.skipif(COMPILED_WIDE, reason="in no wide variant")

LEVELS = {"block": {"size": 4, "factor": 2.0}, "rack": {"size": 2, "factor": 1.5}}
"""Two blocks of two racks of two machines, where there are eight."""


def gang(n, seconds=10.0, submit_s=0.0, required="", preferred="", cpu=1, **more):
    """Return a gang of n like tasks that asks for levels."""
    stage = {"durations_s": [seconds] * n, "demand": {"cpu": cpu}}
    levels = {"topology_required": required, "topology_preferred": preferred}
    job = {"submit_s": submit_s, "min_tasks": n, "requested_s": 100.0, "stages": [stage]}
    return job | levels | more


def run(jobs, policy="fifo", levels=LEVELS, preferred="", machines=8, **params):
    """Run jobs on machines of two CPUs; return the result, and the machines of each job."""
    cluster = sim.Cluster.machines(machines, cpu=2)
    cluster = cluster.with_topology({"levels": levels, "preferred": preferred})
    workload = sim.Workload.from_jobs(jobs)
    result, _ = assert_same(workload, cluster, policies.build(policy, **params))
    tasks = np.cumsum([0, *(len(job["stages"][0]["durations_s"]) for job in jobs)])
    return result, [result.task_machine[a:b].tolist() for a, b in itertools.pairwise(tasks)]


@pytest.mark.parametrize("policy", ["fifo", "easy", "conservative", "slurm"])
def test_a_gang_takes_the_domain_with_the_least_room_that_holds_it(policy):
    """The first rack has one CPU left. A gang of two goes to the next, and so does another later.

    It has two CPUs left then; the racks behind it have four.
    """
    jobs = [gang(3), gang(2, required="rack", cpu=1), gang(2, submit_s=5.0, required="rack")]
    _, machines = run(jobs, policy)
    assert machines == [[0, 0, 1], [2, 2], [3, 3]]


def test_a_gang_waits_for_a_domain_that_it_requires():
    """Gangs of three have left one CPU of each of four racks until 20.

    A gang of three waits for a rack until then; one that prefers one takes a CPU of three.
    """
    busy = [gang(3, 20.0, required="rack") for _ in range(4)]
    result, machines = run([*busy, gang(3, submit_s=1.0, required="rack")])
    assert machines == [[0, 0, 1], [2, 2, 3], [4, 4, 5], [6, 6, 7], [0, 0, 1]]
    assert result.job_start.tolist() == [0, 0, 0, 0, 20]
    result, machines = run([*busy, gang(3, submit_s=1.0, preferred="rack")])
    assert machines[4] == [1, 3, 5]
    assert result.job_finish.tolist()[4] == 1 + 20


def test_a_gang_runs_slower_by_the_widest_level_that_it_crosses():
    """Of 4 slots in a rack none, of 6 the racks of a block (1.5), of 10 blocks (2)."""
    for n, seconds in ((4, 10.0), (6, 15.0), (10, 20.0)):
        result, _ = run([gang(n, preferred="rack")])
        assert result.job_finish.tolist() == [seconds]


def test_a_gang_that_asks_for_none_crosses_what_it_meets():
    result, machines = run([gang(3, 30.0, cpu=2), gang(2)])
    assert machines[1] == [3, 3]
    assert result.job_finish.tolist() == [45, 10]
    result, machines = run([gang(3, 30.0, cpu=2), gang(4)])
    assert machines[1] == [3, 3, 4, 4]
    assert result.job_finish.tolist()[1] == 20


def test_the_clusters_level_is_preferred_by_those_that_ask_for_none():
    result, machines = run([gang(3, 30.0, cpu=2), gang(4)], preferred="rack")
    assert machines == [[0, 1, 2], [4, 4, 5, 5]]
    assert result.job_finish.tolist() == [45, 10]


def test_a_gang_that_fits_no_domain_fills_the_fewest():
    """Free are 1, 2, 4 and 4 CPUs of the racks: nine go to the last three.

    In the order of the machines one would go to the first.
    """
    jobs = [gang(3, required="rack"), gang(2, required="rack"), gang(9, preferred="rack")]
    _, machines = run(jobs, levels={"rack": {"size": 2}})
    assert machines == [[0, 0, 1], [2, 2], [3, 3, 4, 4, 5, 5, 6, 6, 7]]
    _, machines = run([*jobs[:2], gang(9)], levels={"rack": {"size": 2}})
    assert machines[2] == [1, 3, 3, 4, 4, 5, 5, 6, 6]


def test_a_gang_that_was_stopped_may_cross_another_level():
    """Its machine fails at 4: the gang starts again, across racks, and takes 1.5 times as long."""
    stage = {"durations_s": [10.0, 10.0], "demand": {"cpu": 2}}
    jobs = [
        {"submit_s": 0.0, "min_tasks": 2, "topology_preferred": "rack", "stages": [stage]},
        gang(1, 100.0, cpu=2, submit_s=1.0),
    ]
    workload = sim.Workload.from_jobs(jobs)
    cluster = sim.Cluster.machines(4, cpu=2).with_topology({"levels": LEVELS})
    cluster = cluster.with_outages(Outages.from_columns([0], [4.0], [1000.0]))
    result, _ = assert_same(workload, cluster, policies.build("fifo"))
    assert result.task_machine.tolist() == [1, 3, 2]
    assert result.job_finish.tolist() == [4 + 15, 101]


def test_what_can_not_be_is_refused():
    with pytest.raises(InputError, match=r"in one rack, and the rack with the most room holds 4"):
        run([gang(5, required="rack")])
    with pytest.raises(InputError, match="level 'rak', which the cluster does not have; did you"):
        run([gang(2, required="rak")])
    with pytest.raises(InputError, match=r"does not have; it has none \(cluster\.topology\)"):
        sim.simulate(
            sim.Workload.from_jobs([gang(2, required="rack")]),
            sim.Cluster.machines(2, cpu=2),
            policies.build("fifo"),
        )
    with pytest.raises(InputError, match=r"its 5 slots are in one rack, and the"):
        run([gang(6, required="rack", width_min=5) | {"min_tasks": 5}])


def test_components_of_a_gang_share_a_domain():
    """Workers of 2 CPUs on machines with GPUs, a server on one without: a rack has both."""
    kinds = [{"class": "gpu", "cpu": 2}, {"class": "cpu", "cpu": 2}] * 2
    cluster = sim.Cluster.mixed(kinds).with_topology({"levels": {"rack": {"size": 2}}})
    stages = [
        {"name": "w", "durations_s": [5.0], "demand": {"cpu": 2}, "runs_on": "gpu"},
        {"name": "s", "durations_s": [5.0], "demand": {"cpu": 1}, "runs_on": "cpu"},
    ]
    both = {"submit_s": 1.0, "min_tasks": 2, "topology_required": "rack", "stages": stages}
    first = {
        "submit_s": 0.0,
        "stages": [{"durations_s": [9.0], "demand": {"cpu": 2}, "runs_on": "cpu"}],
    }
    workload = sim.Workload.from_jobs([first, both])
    result, _ = assert_same(workload, cluster, policies.build("fifo"))
    assert result.task_machine.tolist() == [1, 2, 3]
    assert result.job_start.tolist() == [0, 1]
