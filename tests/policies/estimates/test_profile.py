"""Profiles of small jobs, worked out by hand."""

import dataclasses

import numpy as np
import pytest

import sim
from policies.estimates.profile import Records, Shape, build_profile, job_shape
from sim.base.errors import InputError


def shape(n_tasks, edges=()):
    parent, child = (np.array([e[i] for e in edges], "i4") for i in (0, 1))
    return Shape(np.array(n_tasks, "i4"), parent, child, np.zeros(len(edges), "i1"))


def records(rows):
    """Rows: run, stage, task, ready_s, start_s, finish_s, init_s, n_failed."""
    types = ["i4"] * 3 + ["f8"] * 4 + ["i4"]
    columns = list(zip(*rows, strict=True))
    return Records(*(np.array(c, t) for c, t in zip(columns, types, strict=True)))


TWO_STAGES = shape([2, 1], [(0, 1)])
ONE_RUN = [
    (0, 1, 0, 7.0, 8.0, 10.0, 0.5, 0),
    (0, 0, 0, 0.0, 1.0, 4.0, 1.0, 0),
    (0, 0, 1, 0.0, 2.0, 7.0, 1.0, 2),
]


def test_one_run():
    p = build_profile(TWO_STAGES, records(ONE_RUN), waits=True)
    assert p.sample0.tolist() == [0, 2, 3]
    assert p.run_s.tolist() == [2.0, 4.0, 1.5]
    assert p.init_s.tolist() == [1.0, 1.0, 0.5]
    assert p.work_s.tolist() == [6.0, 1.5]  # T_s
    assert p.queued_s.tolist() == [5.0, 1.5]  # Q_s
    assert p.longest_s.tolist() == [4.0, 1.5]  # l_s
    assert p.after_s.tolist() == [1.5, 0.0]  # L_s
    assert p.critical_path_s == 5.5
    assert p.begin.tolist() == [0.1, 0.8]
    assert p.end.tolist() == [0.7, 1.0]


def test_queueing_may_be_initialisation_alone():
    """Table 3; the weights of totalworkWithQ follow."""
    both, init = (
        build_profile(TWO_STAGES, records(ONE_RUN), waits=waits) for waits in (True, False)
    )
    assert init.queued_s.sum() == pytest.approx(init.init_s.sum())
    assert (init.queued_s < both.queued_s).any()
    assert init.work_s.tolist() == both.work_s.tolist()
    assert init.digest != both.digest


def test_two_runs_are_pooled_and_totals_are_of_the_tasks_there_are_now():
    second = [
        (3, 0, 0, 0.0, 0.0, 6.0, 0.0, 1),
        (3, 1, 0, 6.0, 6.0, 20.0, 2.0, 0),
    ]
    p = build_profile(shape([6, 2], [(0, 1)]), records(ONE_RUN + second), waits=True)
    assert p.run_s.tolist() == [2.0, 4.0, 6.0, 1.5, 12.0]
    assert p.work_s.tolist() == [12.0 * 6 / 3, 13.5 * 2 / 2]
    assert p.queued_s.tolist() == [5.0 * 6 / 3, 3.5 * 2 / 2]
    assert p.longest_s.tolist() == [6.0, 12.0]
    assert p.begin.tolist() == [(0.1 + 0.0) / 2, (0.8 + 0.3) / 2]
    assert p.end.tolist() == [(0.7 + 0.3) / 2, 1.0]


def test_the_order_of_the_records_does_not_matter():
    turned = build_profile(TWO_STAGES, records(ONE_RUN[::-1]))
    assert turned.digest == build_profile(TWO_STAGES, records(ONE_RUN)).digest
    longer = [*ONE_RUN[:2], (0, 0, 1, 0.0, 2.0, 7.5, 1.0, 2)]
    assert turned.digest != build_profile(TWO_STAGES, records(longer)).digest


def test_longest_paths_go_over_any_dag():
    diamond = shape([1] * 5, [(0, 1), (0, 2), (1, 3), (2, 3), (0, 4)])
    after = diamond.longest_after(np.array([1.0, 2.0, 5.0, 3.0, 20.0]))
    assert after.tolist() == [20.0, 3.0, 3.0, 0.0, 0.0]


def test_the_shape_of_a_job_of_a_workload():
    stages = [
        {"name": "map", "durations_s": [1.0] * 120},
        {"name": "filter", "durations_s": [1.0] * 120, "parents": {"map": "one_to_one"}},
        {"name": "reduce", "durations_s": [1.0] * 12, "parents": ["filter"]},
    ]
    w, job = sim.Workload.from_jobs([{"submit_s": 0.0, "stages": stages}]), 0
    s = job_shape(w.columns, job)
    assert s.n_tasks.tolist() == [120, 120, 12]
    edges = list(zip(s.parent.tolist(), s.child.tolist(), s.kind.tolist(), strict=True))
    assert edges == [(0, 1, 1), (1, 2, 0)]
    assert s.first_task.tolist() == [0, 120, 240, 252]


def test_a_profile_that_lacks_a_stage_is_an_error():
    with pytest.raises(InputError, match=r"sort lack 1 of its 2 stages \(1\)"):
        build_profile(TWO_STAGES, records(ONE_RUN[1:]), "sort")


def test_records_of_another_plan_are_an_error():
    with pytest.raises(InputError, match="is of stage 1; the job has stages 0 to 0"):
        build_profile(shape([3]), records(ONE_RUN))


@pytest.mark.parametrize(
    ("column", "value"),
    [("start_s", 0.5), ("finish_s", 8.2), ("init_s", -1.0), ("n_failed", -1), ("ready_s", np.nan)],
)
def test_times_out_of_order_are_an_error(column, value):
    good = records(ONE_RUN)
    wrong = getattr(good, column).copy()
    wrong[0] = value
    with pytest.raises(InputError, match="training record 0 of the job is out of order"):
        build_profile(TWO_STAGES, dataclasses.replace(good, **{column: wrong}))
