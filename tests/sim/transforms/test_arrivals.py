"""Streams, bursts and hours of jobs; queues dealt and tasks scaled."""

from __future__ import annotations

import numpy as np
import pytest

import sim
from sim import transforms
from sim.base.errors import InputError
from sim.transforms import arrive, deal_queues, hour_of, scale_tasks, squeeze


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
    with pytest.raises(InputError, match="a whole number of at least 1"):
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


def test_transforms_are_turned_by_name():
    plain = day_of_jobs()
    assert transforms.apply(plain, "hour_of", jobs=9).digest == hour_of(plain, jobs=9).digest
    assert {"amplify", "change_load", "fit_machines", "hour_of", "rewire"} <= {*transforms.names()}
    assert {"seed", "variant"} <= transforms.options("rewire").keys()
    with pytest.raises(InputError, match="did you mean 'rewire'"):
        transforms.apply(plain, "rewires")
    with pytest.raises(InputError, match="did you mean 'jobs'"):
        transforms.apply(plain, "hour_of", job=9)
    with pytest.raises(
        InputError, match="needs seconds; give it, or remove the transform with ~trace"
    ):
        transforms.apply(plain, "stay")


def lengths(workload: sim.Workload) -> np.ndarray:
    return workload.columns.task_duration


def submits(workload: sim.Workload) -> np.ndarray:
    return workload.columns.job_submit


SHAPE = {"cpu": 1.0, "mem": 2.0}


def few() -> sim.Workload:
    def stage(name: str, durations: list[float], cpu: float, **more: object) -> dict[str, object]:
        return {"name": name, "durations_s": durations, "demand": {"cpu": cpu, "mem": 0.5}, **more}

    return sim.Workload.from_jobs(
        [
            {
                "submit_s": 10.0 * at,
                "template": f"t{at}",
                "stages": [
                    stage("a", [3.0, 4.0 + at], 0.5),
                    stage("b", [5.0, 6.0, 7.0], 0.25, parents=["a"]),
                    stage("c", [1.0], 0.5, parents=["a"]),
                ],
            }
            for at in range(5)
        ]
    )


def test_a_stream_is_drawn_evenly_and_comes_as_a_poisson_process():
    made = arrive(few(), jobs=4000, interval_s=2.0, seed=1)
    templates = np.array(made.jobs["template"].to_pylist())
    counts = [(templates == f"t{at}").sum() for at in range(5)]
    assert np.abs(np.array(counts) - 800).max() < 4 * np.sqrt(800)
    between = np.diff(made.columns.job_submit)
    assert between.mean() == pytest.approx(2.0, rel=0.06)
    assert between.std() == pytest.approx(2.0, rel=0.06)
    assert made.columns.job_submit[0] == 0
    assert len(set(made.jobs["job_id"].to_pylist())) == 4000
    assert made.digest == arrive(few(), jobs=4000, interval_s=2.0, seed=1).digest
    assert made.digest != arrive(few(), jobs=4000, interval_s=2.0, seed=2).digest


def test_jobs_keep_what_they_are():
    plain = few()
    made = arrive(plain, jobs=30, seed=5)
    for row in range(30):
        at = int(made.jobs["template"][row].as_py()[1:])
        one, other = made.take(np.array([row])), plain.take(np.array([at]))
        assert one.columns.task_duration.tolist() == other.columns.task_duration.tolist()
        assert one.stage_edges.equals(other.stage_edges)


def test_all_at_once():
    assert (arrive(few(), jobs=7, interval_s=0.0).columns.job_submit == 0).all()


@pytest.mark.parametrize("options", [{"jobs": 0}, {"jobs": 1.5}, {"interval_s": -1.0}])
def test_streams_that_make_no_sense_are_errors(options):
    with pytest.raises(InputError):
        arrive(few(), **options)


@pytest.mark.parametrize("load", [0.2, 0.9, 7.0])
def test_the_load_is_as_wished(load):
    made = scale_tasks(arrive(few(), jobs=300, interval_s=5.0), load, 4, SHAPE)
    offered = made.mean_load(sim.Cluster.machines(4, **SHAPE))
    least = arrive(few(), jobs=300, interval_s=5.0).mean_load(sim.Cluster.machines(4, **SHAPE))
    if load == 0.2:  # a task a stage is the least
        assert (np.diff(made.stage_task0) == 1).any()
        assert max(offered.values()) < max(least.values())
    else:
        assert max(offered.values()) == pytest.approx(load, rel=0.1)


def test_durations_keep_their_distribution():
    made = scale_tasks(few(), 4.0, 1, SHAPE)
    old, new = few(), made
    for stage in range(old.n_stages):
        one = old.columns.task_duration[slice(*old.stage_task0[stage : stage + 2])]
        two = new.columns.task_duration[slice(*new.stage_task0[stage : stage + 2])]
        assert set(two) == set(one)
        times = [int((two == value).sum()) for value in one]
        assert max(times) - min(times) <= 1


def test_loads_that_make_no_sense_are_errors():
    with pytest.raises(InputError, match="load must be a number above 0"):
        scale_tasks(few(), 0.0, 1, SHAPE)
    with pytest.raises(InputError, match="mem"):
        scale_tasks(few(), 1.0, 1, {"cpu": 1.0})


def test_jobs_are_dealt_out_evenly():
    plain = arrive(few(), jobs=101, seed=5)
    made = deal_queues(plain, 2, seed=3)
    queues = made.jobs["queue"].to_pylist()
    assert sorted([queues.count("q0"), queues.count("q1")]) == [50, 51]
    assert queues != sorted(queues)
    assert made.stages.equals(plain.stages)
    assert made.digest == deal_queues(plain, 2, seed=3).digest
    assert made.digest != deal_queues(plain, 2, seed=4).digest
    with pytest.raises(InputError, match="from 1 to 127, not 0"):
        deal_queues(plain, 0)


def test_jobs_are_squeezed_together():
    made = squeeze(few(), 10.0)
    assert made.columns.job_submit.tolist() == [0.0, 2.5, 5.0, 7.5, 10.0]
    assert made.stages.equals(few().stages)
    with pytest.raises(InputError, match="must be a number above 0"):
        squeeze(few(), 0.0)
