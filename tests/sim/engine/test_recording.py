"""Task records of a job that runs alone."""

from __future__ import annotations

import numpy as np

import sim
from sim.engine.recording import record_alone


def job(parents_of_b: object, parents_of_c: object) -> sim.Workload:
    return sim.Workload.from_jobs(
        [
            {
                "submit_s": 0.0,
                "stages": [
                    {"name": "a", "durations_s": [3.0, 4.0, 5.0]},
                    {"name": "b", "durations_s": [1.0, 1.0, 1.0], "parents": parents_of_b},
                    {"name": "c", "durations_s": [2.0], "parents": parents_of_c},
                ],
            }
        ]
    )


def test_tasks_that_wait_one_for_one_and_for_all():
    record = record_alone(job({"a": "one_to_one"}, ["b"]), 2, np.full(7, 0.5))
    # two slots, stages in order: a0 0-3, a1 0-4, a2 3-8, b0 4-5, b1 5-6, b2 8-9, c 9-11
    assert record["stage"].tolist() == [0, 0, 0, 1, 1, 1, 2]
    assert record["task"].tolist() == [0, 1, 2, 0, 1, 2, 0]
    assert record["start_s"].tolist() == [0, 0, 3, 4, 5, 8, 9]
    assert record["finish_s"].tolist() == [3, 4, 8, 5, 6, 9, 11]
    assert record["ready_s"].tolist() == [0, 0, 0, 3, 4, 8, 9]
    assert record["n_failed"].tolist() == [0] * 7
    assert record["init_s"].tolist() == [0.5] * 7
    trained = job(["a"], ["b"]).with_training({"template": ["x"] * 7, **record})
    assert len(trained.columns.training) == 7


def test_a_task_with_two_parents_waits_for_the_later():
    record = record_alone(job(["a"], {"a": "one_to_one", "b": "barrier"}), 9)
    assert record["ready_s"].tolist() == [0, 0, 0, 5, 5, 5, 6]
    assert record["init_s"].tolist() == [0.0] * 7
