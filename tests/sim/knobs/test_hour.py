"""An hour of jobs out of many, and knobs by name."""

from __future__ import annotations

import numpy as np
import pytest

import sim
from sim import knobs
from sim.base.errors import InputError
from sim.knobs import hour_of


def day_of_jobs(n: int = 40) -> sim.Workload:
    return sim.Workload.from_jobs(
        [
            {"submit_s": 1000.0 * at, "stages": [{"name": "M1", "durations_s": [10.0 + at]}]}
            for at in range(n)
        ]
    )


def test_every_job_comes_at_its_time_within_its_hour():
    plain = day_of_jobs()
    hour = hour_of(plain, jobs=40)
    wanted = {f"{at}": 1000.0 * at % 3600 for at in range(40)}
    by_length = {s - 10.0: t for s, t in zip(lengths(hour), submits(hour), strict=True)}
    assert by_length == {float(name): time for name, time in wanted.items()}
    assert (np.diff(submits(hour)) >= 0).all()


def test_jobs_are_repeated_as_often_as_each_other():
    hour = hour_of(day_of_jobs(), jobs=100, seed=3)
    _, counts = np.unique(lengths(hour), return_counts=True)
    assert hour.n_jobs == 100
    assert set(counts) == {2, 3}
    assert (submits(hour) >= 0).all()
    assert (submits(hour) < 3600).all()
    assert hour.digest == hour_of(day_of_jobs(), jobs=100, seed=3).digest
    assert hour.digest != hour_of(day_of_jobs(), jobs=100, seed=4).digest


def test_a_sample_of_the_jobs_is_taken_where_fewer_are_wanted():
    assert hour_of(day_of_jobs(), jobs=7).n_jobs == 7


def test_long_jobs_are_left_out():
    hour = hour_of(day_of_jobs(), jobs=20, longest_s=19.5)
    assert lengths(hour).max() == 19.0
    with pytest.raises(InputError, match="no job is left"):
        hour_of(day_of_jobs(), longest_s=1)


@pytest.mark.parametrize("jobs", [0, -1, 1.5])
def test_a_number_of_jobs_that_makes_no_sense_is_an_error(jobs):
    with pytest.raises(InputError, match="whole number of jobs from 1 on"):
        hour_of(day_of_jobs(), jobs=jobs)


def test_jobs_that_depend_on_each_other_are_an_error():
    jobs = [{"submit_s": 0.0, "stages": [{"durations_s": [1.0]}]} for _ in range(2)]
    plain = sim.Workload.from_jobs(jobs)
    edges = {"upstream": [0], "downstream": [1], "kind": ["soft"]}
    linked = sim.Workload.from_tables(
        jobs=plain.jobs, stages=plain.stages, tasks=plain.tasks, job_edges=edges
    )
    with pytest.raises(InputError, match="depend on each other"):
        hour_of(linked)


def test_knobs_are_turned_by_name():
    plain = day_of_jobs()
    assert knobs.turn(plain, "hour_of", jobs=9).digest == hour_of(plain, jobs=9).digest
    assert {"amplify", "change_load", "fit_machines", "hour_of", "rewire"} <= {*knobs.names()}
    assert {"seed", "variant"} <= knobs.options("rewire").keys()
    with pytest.raises(InputError, match="did you mean 'rewire'"):
        knobs.turn(plain, "rewires")
    with pytest.raises(InputError, match="did you mean 'jobs'"):
        knobs.turn(plain, "hour_of", job=9)


def lengths(workload: sim.Workload) -> np.ndarray:
    return workload.columns.task_duration


def submits(workload: sim.Workload) -> np.ndarray:
    return workload.columns.job_submit
