"""Width of jobs: CPUs held at once, by hand."""

import sim
from sim.workload.width import job_widths


def stage(name, n, parents=(), **demand):
    return {"name": name, "durations_s": [1.0] * n, "demand": demand, "parents": list(parents)}


def widths(*jobs):
    return job_widths(
        sim.Workload.from_jobs([{"submit_s": 0.0, "stages": stages} for stages in jobs])
    ).tolist()


def test_stages_that_start_at_once_add_up():
    both = [stage("a", 2, cpu=3, gpu=1), stage("b", 1, cpu=4, gpu=0)]
    chain = [stage("a", 2, cpu=3, gpu=1), stage("b", 8, ["a"], cpu=1, gpu=1)]
    narrow = [stage("a", 2, cpu=3, gpu=1), stage("b", 1, ["a"], cpu=1, gpu=1)]
    assert widths(both, chain, narrow) == [10, 8, 6]


def test_without_cpus_it_is_of_what_is_demanded_or_of_tasks():
    assert widths([stage("a", 3, cpu=0, mem=0, gpu=4)], [stage("a", 1, cpu=0, mem=0, gpu=1)]) == [
        12,
        1,
    ]
    assert widths([stage("a", 3)]) == [3]
