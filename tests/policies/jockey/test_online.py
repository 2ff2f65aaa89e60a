"""The rest of a job as a job of its own, and Jockey with refreshed models."""

import dataclasses

import numpy as np
import pytest

import policies
from policies.estimates.profile import build_profile
from policies.jockey.model import Amdahl, Effort, simulated_model
from policies.jockey.online import JockeyOnline, RemainderModel, remainder_profile
from sim.base.errors import InputError
from tests.policies.estimates.test_profile import ONE_RUN, TWO_STAGES, records
from tests.policies.jockey.test_job_simulator import profile
from tests.policies.jockey.test_policy import latency, run
from tests.policies.jockey.worlds import world


def test_the_rest_of_a_job_that_has_done_nothing_is_the_job():
    p = profile(1)
    rest, stages = remainder_profile(p, p.shape.n_tasks, np.ones(3))
    assert rest.digest == p.digest
    assert stages.tolist() == [0, 1, 2]


def test_the_rest_by_hand():
    """Stages of 2 tasks and 1: T = 6, 1.5; Q = 5, 1.5; l = 4, 1.5."""
    p = build_profile(TWO_STAGES, records(ONE_RUN), waits=True)
    half, stages = remainder_profile(p, np.array([1, 1], "i4"), np.array([2.0, 1.0]))
    assert stages.tolist() == [0, 1]
    assert half.shape.n_tasks.tolist() == [1, 1]
    assert half.work_s.tolist() == [6.0, 1.5]
    assert half.queued_s.tolist() == [5.0, 1.5]
    assert half.longest_s.tolist() == [8.0, 1.5]
    assert half.run_s.tolist() == [4.0, 8.0, 1.5]
    assert half.init_s.tolist() == [2.0, 2.0, 0.5]
    last, stages = remainder_profile(p, np.array([0, 1], "i4"), np.ones(2))
    assert stages.tolist() == [1]
    assert last.sample0.tolist() == [0, 1]
    assert last.n_failed.tolist() == [0]
    assert len(last.shape.parent) == 0
    assert last.critical_path_s == 1.5


def test_a_stage_of_the_rest_lags_if_a_parent_is_left():
    job = dataclasses.replace(TWO_STAGES, lag_s=np.array([0.0, 9.0]))
    p = build_profile(job, records(ONE_RUN))
    half, _ = remainder_profile(p, np.array([1, 1], "i4"), np.ones(2))
    assert half.shape.lag_s.tolist() == [0.0, 9.0]
    last, _ = remainder_profile(p, np.array([0, 1], "i4"), np.ones(2))
    shortest_s = [
        simulated_model(rest, "totalwork", 1.0, 2, Effort(2, 2), keep=False).shortest_s
        for rest in (half, last)
    ]
    assert shortest_s[1] == 2.0
    assert shortest_s[0] > 2.0 + 9.0


def test_a_model_of_the_rest_answers_for_the_whole_job():
    p = profile()
    left = np.array([0, 3, 3], "i4")
    rest, stages = remainder_profile(p, left, np.ones(3))
    model = RemainderModel(Amdahl(rest, 4), stages, left[stages] / p.shape.n_tasks[stages])
    whole = Amdahl(p, 4)
    for done in ([1.0, 6 / 9, 0.0], [1.0, 8 / 9, 0.0], [1.0, 1.0, 2 / 3], [1.0, 1.0, 1.0]):
        with_1, with_2 = model.left_s(np.array(done))[:2]
        whole_1, whole_2 = whole.left_s(np.array(done))[:2]
        assert with_1 - with_2 == pytest.approx(whole_1 - whole_2)  # half of the parallel work
    assert (model.left_s(np.ones(3)) == 0).all()


def test_a_rest_of_slower_tasks_takes_as_many_times_as_long():
    p = profile()
    fast = simulated_model(p, "totalworkWithQ", 1.0, 5, Effort(10, 4))
    slow, stages = remainder_profile(p, p.shape.n_tasks, np.full(3, 3.0))
    slower = RemainderModel(
        simulated_model(slow, "totalworkWithQ", 1.0, 5, Effort(200, 4)), stages, np.ones(3)
    )
    reference = simulated_model(p, "totalworkWithQ", 1.0, 5, Effort(200, 4))
    start = np.zeros(3)
    np.testing.assert_allclose(slower.left_s(start), 3 * reference.left_s(start), rtol=0.1)
    assert (fast.left_s(start) < slower.left_s(start)).all()


@pytest.fixture
def refreshed(monkeypatch):
    factors = []
    real = JockeyOnline._refresh_model
    monkeypatch.setattr(JockeyOnline, "_refresh_model", lambda *a: factors.append(a[3]) or real(*a))
    return factors


def test_a_job_as_predicted_keeps_its_model(refreshed):
    workload = world(1800.0, n_background=60)
    online, plain = run("jockey_online", workload, tolerance=0.5), run("jockey", workload)
    np.testing.assert_array_equal(online.task_finish, plain.task_finish)
    assert refreshed == []


def test_a_job_of_twice_the_work_is_detected_and_meets_its_deadline(refreshed):
    workload = world(3600.0, factor=2.0, n_background=60)
    online, plain = run("jockey_online", workload), run("jockey", workload)
    assert 1.1 < refreshed[0] < 2.6
    assert 1.4 < refreshed[-1] < 2.6  # nearer, the longer it is seen
    assert latency(plain)[0] > 3600
    assert latency(online)[0] <= 3600


def test_parameters_out_of_range_are_refused():
    for params in ({"tolerance": 0.0}, {"refresh_runs": 0}, {"slack": 0.0}):
        with pytest.raises(InputError):
            policies.build("jockey_online", **params)
    assert dataclasses.asdict(policies.build("jockey_online"))["tolerance"] == 0.2
