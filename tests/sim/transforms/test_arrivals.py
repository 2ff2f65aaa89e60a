"""Transforms of arrivals, queues and numbers of tasks."""

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
            {"submit_s": 1000.0 * i, "stages": [{"name": "M1", "durations_s": [10.0 + i]}]}
            for i in range(n)
        ]
    )


def test_hour_of_keeps_each_jobs_time_within_its_hour():
    plain = day_of_jobs()
    hour = hour_of(plain, jobs=40)
    expected = {f"{i}": 1000.0 * i % 3600 for i in range(40)}
    by_length = {s - 10.0: t for s, t in zip(lengths(hour), submits(hour), strict=True)}
    assert by_length == {float(name): time for name, time in expected.items()}
    assert (np.diff(submits(hour)) >= 0).all()


def test_hour_of_repeats_all_jobs_equally_often():
    hour = hour_of(day_of_jobs(), jobs=100, seed=3)
    _, counts = np.unique(lengths(hour), return_counts=True)
    assert hour.n_jobs == 100
    assert set(counts) == {2, 3}
    assert (submits(hour) >= 0).all()
    assert (submits(hour) < 3600).all()
    assert hour.digest == hour_of(day_of_jobs(), jobs=100, seed=3).digest
    assert hour.digest != hour_of(day_of_jobs(), jobs=100, seed=4).digest


def test_hour_of_samples_fewer_jobs():
    assert hour_of(day_of_jobs(), jobs=7).n_jobs == 7


def test_hour_of_drops_long_jobs():
    hour = hour_of(day_of_jobs(), jobs=20, longest_s=19.5)
    assert lengths(hour).max() == 19.0
    with pytest.raises(InputError, match="no job is left"):
        hour_of(day_of_jobs(), longest_s=1)


@pytest.mark.parametrize("jobs", [0, -1, 1.5])
def test_hour_of_refuses_an_invalid_number_of_jobs(jobs):
    with pytest.raises(InputError, match="a whole number of at least 1"):
        hour_of(day_of_jobs(), jobs=jobs)


def test_hour_of_refuses_jobs_that_depend_on_each_other():
    jobs = [{"submit_s": 0.0, "stages": [{"durations_s": [1.0]}]} for _ in range(2)]
    plain = sim.Workload.from_jobs(jobs)
    edges = {"upstream": [0], "downstream": [1], "kind": ["soft"]}
    linked = sim.Workload.from_tables(
        jobs=plain.jobs, stages=plain.stages, tasks=plain.tasks, job_edges=edges
    )
    with pytest.raises(InputError, match="depend on each other"):
        hour_of(linked)


def test_transforms_are_applied_by_name():
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


def test_a_transform_is_a_function_at_each_use():
    """A module of the same name would take its place in the package once it is imported."""
    for name in transforms.names():
        first = getattr(transforms, name)
        assert callable(first), name
        assert getattr(transforms, name) is first


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
                "submit_s": 10.0 * i,
                "template": f"t{i}",
                "stages": [
                    stage("a", [3.0, 4.0 + i], 0.5),
                    stage("b", [5.0, 6.0, 7.0], 0.25, parents=["a"]),
                    stage("c", [1.0], 0.5, parents=["a"]),
                ],
            }
            for i in range(5)
        ]
    )


def test_arrive_draws_jobs_uniformly_as_a_poisson_process():
    result = arrive(few(), jobs=4000, interval_s=2.0, seed=1)
    templates = np.array(result.jobs["template"].to_pylist())
    counts = [(templates == f"t{i}").sum() for i in range(5)]
    assert np.abs(np.array(counts) - 800).max() < 4 * np.sqrt(800)
    between = np.diff(result.columns.job_submit)
    assert between.mean() == pytest.approx(2.0, rel=0.06)
    assert between.std() == pytest.approx(2.0, rel=0.06)
    assert result.columns.job_submit[0] == 0
    assert len(set(result.jobs["job_id"].to_pylist())) == 4000
    assert result.digest == arrive(few(), jobs=4000, interval_s=2.0, seed=1).digest
    assert result.digest != arrive(few(), jobs=4000, interval_s=2.0, seed=2).digest


def test_arrive_preserves_stages_and_edges():
    plain = few()
    result = arrive(plain, jobs=30, seed=5)
    for row in range(30):
        i = int(result.jobs["template"][row].as_py()[1:])
        job, source = result.take(np.array([row])), plain.take(np.array([i]))
        assert job.columns.task_duration.tolist() == source.columns.task_duration.tolist()
        assert job.stage_edges.equals(source.stage_edges)


def test_arrive_with_interval_0_submits_all_jobs_at_once():
    assert (arrive(few(), jobs=7, interval_s=0.0).columns.job_submit == 0).all()


@pytest.mark.parametrize("options", [{"jobs": 0}, {"jobs": 1.5}, {"interval_s": -1.0}])
def test_arrive_refuses_invalid_options(options):
    with pytest.raises(InputError):
        arrive(few(), **options)


@pytest.mark.parametrize("load", [0.2, 0.9, 7.0])
def test_scale_tasks_reaches_the_load(load):
    result = scale_tasks(arrive(few(), jobs=300, interval_s=5.0), load, 4, SHAPE)
    offered = result.mean_load(sim.Cluster.machines(4, **SHAPE))
    smallest = arrive(few(), jobs=300, interval_s=5.0).mean_load(sim.Cluster.machines(4, **SHAPE))
    if load == 0.2:  # limited by one task per stage
        assert (np.diff(result.stage_task0) == 1).any()
        assert max(offered.values()) < max(smallest.values())
    else:
        assert max(offered.values()) == pytest.approx(load, rel=0.1)


def test_scale_tasks_keeps_the_distribution_of_durations():
    result = scale_tasks(few(), 4.0, 1, SHAPE)
    old, new = few(), result
    for stage in range(old.n_stages):
        before = old.columns.task_duration[slice(*old.stage_task0[stage : stage + 2])]
        after = new.columns.task_duration[slice(*new.stage_task0[stage : stage + 2])]
        assert set(after) == set(before)
        times = [int((after == value).sum()) for value in before]
        assert max(times) - min(times) <= 1


def test_scale_tasks_refuses_an_invalid_load_or_unknown_resource():
    with pytest.raises(InputError, match="load must be a number above 0"):
        scale_tasks(few(), 0.0, 1, SHAPE)
    with pytest.raises(InputError, match="mem"):
        scale_tasks(few(), 1.0, 1, {"cpu": 1.0})


def test_deal_queues_assigns_equally_many_jobs():
    plain = arrive(few(), jobs=101, seed=5)
    result = deal_queues(plain, 2, seed=3)
    queues = result.jobs["queue"].to_pylist()
    assert sorted([queues.count("q0"), queues.count("q1")]) == [50, 51]
    assert queues != sorted(queues)
    assert result.stages.equals(plain.stages)
    assert result.digest == deal_queues(plain, 2, seed=3).digest
    assert result.digest != deal_queues(plain, 2, seed=4).digest
    with pytest.raises(InputError, match="from 1 to 127, not 0"):
        deal_queues(plain, 0)


def test_squeeze_scales_the_times_between_submissions():
    result = squeeze(few(), 10.0)
    assert result.columns.job_submit.tolist() == [0.0, 2.5, 5.0, 7.5, 10.0]
    assert result.stages.equals(few().stages)
    with pytest.raises(InputError, match="must be a number above 0"):
        squeeze(few(), 0.0)
