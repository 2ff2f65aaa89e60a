"""What a stage's tasks are expected to last."""

import numpy as np

import sim
from policies.dagps.profiles import StageProfiles
from tests.policies.small import runs_of


def test_a_profile_is_what_earlier_runs_did_refined_by_the_stage_itself():
    workload = sim.Workload.from_jobs(runs_of("t", [2, 4], [1, 1], [9, 9]))
    columns = workload.columns
    known = StageProfiles(columns, first_guess_s=30.0, prior_tasks=2.0)
    view = {"stage_left": np.array([2, 2, 2]), "stage_done_work": np.zeros(3)}
    assert known.expect(np.array([0]), view).tolist() == [30]
    view["stage_left"][0], view["stage_done_work"][0] = 1, 2.0  # one task of 2 s has ended
    assert known.expect(np.array([0]), view).tolist() == [(2 * 30 + 2) / 3]
    view["stage_left"][0], view["stage_done_work"][0] = 0, 6.0
    known.learn(0, view)
    assert known.expect(np.array([1, 2]), view).tolist() == [3, 3]


def test_what_has_no_like_is_expected_to_last_what_all_did():
    jobs = runs_of("t", [2, 4]) + runs_of("", [5], [7])
    workload = sim.Workload.from_jobs(sorted(jobs, key=lambda job: job["submit_s"]))
    known = StageProfiles(workload.columns, first_guess_s=30.0, prior_tasks=2.0)
    known.learn(0, {"stage_done_work": np.array([6.0, 0, 0])})
    known.learn(1, {"stage_done_work": np.array([0, 5.0, 0])})
    assert known.expect(np.array([0, 2])).tolist() == [3, 11 / 3]
