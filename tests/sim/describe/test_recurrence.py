"""Isomorphic, periodic and recurring jobs of §6."""

from __future__ import annotations

import numpy as np
import pytest

from sim.describe import recurrence
from sim.describe.recurrence import periodic_groups
from tests.sim.describe.workloads import LARGE, by_key, dataset, job


def groups(times_s, period_s=900.0, kind=None):
    times_s = np.array(times_s, dtype=float)
    kind = np.zeros(len(times_s), np.int64) if kind is None else np.array(kind)
    return periodic_groups(times_s, kind, period_s).tolist()


@pytest.mark.parametrize(
    ("times_s", "expected"),
    [
        ([0, 900, 1800], [0, 0, 0]),
        ([0, 900], [-1, -1]),
        ([0, 855, 1800], [0, 0, 0]),  # 5 % early, then 5 % late
        ([0, 854, 1800], [-1, -1, -1]),
        ([0, 946, 1846], [-1, -1, -1]),
        ([0, 100, 900, 1000, 1800, 1900], [0, 1, 0, 1, 0, 1]),
        ([0, 900, 900, 1800], [0, 0, -1, 0]),
        ([0, 900, 1800, 2700, 3600], [0] * 5),
        ([0, 900, 1800, 9000, 9900, 10800], [0, 0, 0, 1, 1, 1]),
        ([500, 5000], [-1, -1]),
        ([], []),
    ],
)
def test_jobs_that_come_back_after_a_period_are_a_group(times_s, expected):
    assert groups(times_s) == expected


def test_groups_are_of_one_kind_and_rows_need_no_order():
    assert groups([0, 900, 1800], kind=[1, 1, 2]) == [-1, -1, -1]
    assert groups([1800, 0, 900, 0, 1800, 900], kind=[5, 5, 5, 3, 3, 3]) == [1, 1, 1, 0, 0, 0]


def naive_groups(times_s, period_s):
    order = sorted(range(len(times_s)), key=lambda i: times_s[i])
    group, n = [-1] * len(times_s), 0
    for begin in order:
        if group[begin] >= 0:
            continue
        chain = [begin]
        while True:
            last = times_s[chain[-1]]
            after = [
                i
                for i in order
                if group[i] < 0
                and i not in chain
                and 0.95 * period_s <= times_s[i] - last <= 1.05 * period_s
            ]
            if not after:
                break
            chain.append(after[0])
        if len(chain) >= 3:
            for i in chain:
                group[i] = n
            n += 1
    return group


def test_groups_against_a_loop():
    rng = np.random.default_rng(11)
    for _ in range(40):
        times_s = rng.integers(0, 6000, rng.integers(1, 60)).astype(float)
        assert groups(times_s) == naive_groups(times_s, 900.0)


def test_counterparts_and_their_shares():
    kind = np.array([0, 1, 0, 0, 2, *[3] * 14])
    assert recurrence.counterparts(kind).tolist() == [2, 0, 2, 2, 0, *[13] * 14]
    measures = by_key(recurrence.class_measures(kind))
    assert measures == pytest.approx(
        {"jobs": 19, "classes": 4, "alike_1": 17 / 19, "alike_13": 14 / 19, "alike_117": 0.0}
    )
    assert recurrence.class_table(kind).to_pydict() == {
        "counterparts": [0, 2, 13],
        "n": [2, 3, 14],
        "at_least": [1.0, 17 / 19, 14 / 19],
    }
    assert np.isnan(by_key(recurrence.class_measures(np.empty(0, np.int64)))["alike_1"])


@pytest.fixture
def data():
    """Four runs of a large job, an hour apart; the third asks for more; and a small job."""
    runs = [
        job(
            3600.0 * i,
            LARGE,
            b={"durations_s": [10.0] * n, "demand": {"cpu": cpu}},
            f={"durations_s": [duration_s]},
        )
        for i, (n, cpu, duration_s) in enumerate(
            [(1, 2.0, 10.0), (4, 2.0, 40.0), (1, 3.0, 10.0), (2, 2.0, 0.0)]
        )
    ]
    return dataset(*runs, job(50.0, {"a": "", "b": "a"}))


def test_equal_requests_get_one_number(data):
    first, second, third, fourth = recurrence.request_codes(data).tolist()
    assert first == second == fourth != third
    swapped = dataset(
        job(0.0, LARGE, b={"demand": {"cpu": 2.0}}), job(1.0, LARGE, f={"demand": {"cpu": 2.0}})
    )
    assert len(set(recurrence.request_codes(swapped).tolist())) == 1


def test_recurring_jobs_are_matched_stage_by_stage(data):
    table = recurrence.periodic_table(data, np.zeros(4, np.int64))
    assert table["period"].to_pylist() == ["1 h"] * 4
    assert table["submit_s"].to_pylist() == [0.0, 3600.0, 7200.0, 10800.0]
    assert table["job_id"].to_pylist() == ["job-0", "job-1", "job-2", "job-3"]
    shares = by_key(recurrence.periodic_measures(data, table))
    assert shares == {
        "share_15_min": 0.0,
        "groups_15_min": 0,
        "share_1_h": 4 / 5,
        "groups_1_h": 1,
        "share_1_day": 0.0,
        "groups_1_day": 0,
    }
    by_name = {(v.relation, v.metric): v for v in recurrence.recurring_variations(data, table)}
    assert set(by_name) == {(r, m) for r in ("pair", "set") for m in ("duration", "tasks")}
    # runs 0, 1 and 3 have one request: sorted task counts 1 1 1 1 1 n with n = 1, 4, 2
    tasks = by_name["pair", "tasks"].value
    assert sorted(tasks.tolist()) == [0.5, *[1.0] * 10, 4.0]
    assert by_name["set", "tasks"].value == pytest.approx([1.0] * 5 + [2.0])
    # durations 10 (six times); five of 10 and one of 40; one of 0 and five of 10
    duration = by_name["pair", "duration"]
    assert sorted(duration.value.tolist()) == [0.25, *[1.0] * 9, 4.0]
    assert duration.n_left_out == 1
    assert by_name["set", "duration"].n_left_out == 1


def test_nothing_recurs_among_small_jobs():
    data = dataset(*(job(3600.0 * i, {"a": ""}) for i in range(5)))
    table = recurrence.periodic_table(data, np.empty(0, np.int64))
    assert table.num_rows == 0
    assert all(len(v.value) == 0 for v in recurrence.recurring_variations(data, table))
    assert by_key(recurrence.periodic_measures(data, table))["share_1_h"] == 0.0
