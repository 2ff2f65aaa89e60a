"""History of past jobs beside a workload, and the features that jobs share."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import sim
from sim.transforms import amplify
from sim.transforms.load import change_load
from sim.workload import history as features
from sim.workload import schema
from tests.sim.workload.tables import build

DAY = 86_400.0

PAST = {
    "submit_s": [-7 * DAY, -10.0, -3700.0],
    "finish_s": [-6 * DAY, -1.0, -5.0],
    "n_tasks": [1, 20, 3],
    "mean_task_s": [0.0, 2.5, 7.0],
    "user": ["u", "", "v"],
    "application": ["sort", "grep", "sort"],
}


def known(**columns) -> sim.Workload:
    jobs = [
        {"submit_s": 0.0, "user": "v", "application": "grep", "stages": [{"durations_s": [1.0]}]},
        {
            "submit_s": DAY + 7200.0,
            "stages": [
                {"durations_s": [1.0], "application": "join", "requested": "cpu=2"},
                {"durations_s": [1.0, 1.0]},
            ],
        },
    ]
    return sim.Workload.from_jobs(jobs).with_history(PAST | columns)


def test_history_is_kept_in_the_order_in_which_its_jobs_end():
    w = known()
    assert w.history["finish_s"].to_pylist() == [-6 * DAY, -5.0, -1.0]
    assert w.history["n_tasks"].to_pylist() == [1, 3, 20]
    assert w.history.column_names == [c.name for c in schema.HISTORY]


def test_features_share_one_vocabulary_and_stages_fall_back_on_their_job():
    now, past = known().columns.features.codes
    column = {name: i for i, name in enumerate(features.NAMES)}
    app, user, requested = (column[n] for n in ("application", "user", "requested"))
    # past: sort, sort, grep; now: grep, join (the stage's own), unknown
    assert past[:, app].tolist() == [0, 0, 1]
    assert now[:, app].tolist() == [1, 2, -1]
    assert past[:, user].tolist() == [0, 1, -1]
    assert now[:, user].tolist() == [1, -1, -1]
    assert now[:, requested].tolist() == [-1, 0, -1]
    assert past[:, requested].tolist() == [-1, -1, -1]
    assert (now[:, column["job_name"]] == -1).all()


def test_day_and_hour_follow_from_the_submission():
    now, past = known().columns.features.codes
    column = {name: i for i, name in enumerate(features.NAMES)}
    assert now[:, column["day"]].tolist() == [0, 1, 1]
    assert now[:, column["hour"]].tolist() == [0, 2, 2]
    assert past[:, column["day"]].tolist() == [0, 6, 6]
    assert past[:, column["hour"]].tolist() == [0, 22, 23]


def test_an_empty_history_is_the_same_as_none(tmp_path):
    plain = build()
    assert plain.history.num_rows == 0
    assert plain.with_history(None).digest == plain.digest
    assert plain.with_history({k: [] for k in PAST}).digest == plain.digest
    plain.write(tmp_path)
    assert not (tmp_path / "history.parquet").exists()


def test_history_is_part_of_the_content(tmp_path):
    w, other = known(), known(mean_task_s=[0.0, 2.5, 8.0])
    assert len({w.digest, other.digest, w.with_history(None).digest}) == 3
    w.write(tmp_path)
    back = sim.Workload.read(tmp_path)
    assert back.digest == w.digest
    assert back.history.equals(w.history)
    w.with_history(None).write(tmp_path)
    assert sim.Workload.read(tmp_path).digest == w.with_history(None).digest


def test_a_history_of_another_write_is_noticed(tmp_path):
    known().write(tmp_path / "a")
    known(n_tasks=[4, 4, 4]).write(tmp_path / "b")
    (tmp_path / "b" / "history.parquet").replace(tmp_path / "a" / "history.parquet")
    with pytest.raises(sim.InputError, match="not written together"):
        sim.Workload.read(tmp_path / "a")


@pytest.mark.parametrize("built", [False, True])
def test_history_travels(built):
    w = known()
    if built:
        w.columns.features.codes  # noqa: B018
    back = pickle.loads(pickle.dumps(w, protocol=5))
    assert back.history.equals(w.history)
    for mine, other in zip(w.columns.features.codes, back.columns.features.codes, strict=True):
        np.testing.assert_array_equal(mine, other)
    assert back.columns.features.history_column("mean_task_s").tolist() == [0.0, 7.0, 2.5]


def test_transforms_keep_the_history():
    w = known()
    cluster = sim.Cluster.slots(2)
    same = [w.take([1]), w.scale_load(0.5, cluster), amplify(w, 2.0), change_load(w, 1.5)]
    for result in same:
        assert result.history.equals(w.history)
        assert "application" in result.jobs.column_names
    late = w.slice_time(100.0, np.inf)
    assert late.history["finish_s"].to_pylist() == [-6 * DAY - 100, -105.0, -101.0]
    assert late.history["submit_s"].to_pylist() == [-7 * DAY - 100, -3800.0, -110.0]


@pytest.mark.parametrize(
    ("columns", "rule"),
    [
        ({"finish_s": [-6 * DAY, -11.0, -5.0]}, "ends before submission"),
        ({"n_tasks": [1, -1, 1]}, "negative number"),
        ({"mean_task_s": [1.0, -2.0, 1.0]}, "negative number"),
        ({"submit_s": [np.inf, 0.0, 0.0]}, "non-finite number"),
        ({"n_tasks": ["a", "b", "c"]}, "wrong type"),
        ({"n_tasks": [1, None, 1]}, "missing value"),
    ],
)
def test_a_broken_rule_names_the_table(columns, rule):
    with pytest.raises(sim.InputError, match="history") as caught:
        known(**columns)
    assert caught.value.rule == rule


def test_the_printed_schema_names_history_and_features():
    text = schema.describe()
    assert "\nhistory (optional)\n" in text
    for column in (*schema.HISTORY, *schema.FEATURES):
        assert f"  {column.name} " in text


def test_of_some_of_the_past_only_the_order_is_known():
    none = {
        "submit_s": [None, 5.0, None],
        "finish_s": [None, 6.0, None],
        "mean_task_s": [1.0, 2.0, 3.0],
    }
    w = known(**none)
    assert w.history["mean_task_s"].to_pylist() == [1.0, 3.0, 2.0]
    assert w.columns.features.untimed.tolist() == [True, True, False]
    assert w.columns.features.history_column("finish_s").tolist() == [0.0, 0.0, 6.0]
    later = w.slice_time(1.0, 1e6)
    assert later.history["submit_s"].to_pylist() == [None, None, 4.0]
    assert later.columns.features.history_column("submit_s").tolist() == [0.0, 0.0, 4.0]


def test_a_record_has_both_times_or_none():
    with pytest.raises(sim.InputError, match="both, or neither"):
        known(finish_s=[None, -1.0, -5.0])


def test_a_history_needs_no_times_and_no_numbers_of_tasks():
    w = known().with_history({"mean_task_s": [3.0, 1.0]})
    assert w.history["mean_task_s"].to_pylist() == [3.0, 1.0]
    assert w.history["n_tasks"].to_pylist() == [0, 0]


def test_day_and_hour_columns_survive_stretched_arrivals():
    jobs = [
        {"submit_s": submit_s, "stages": [{"durations_s": [1.0]}], "day": 3, "hour": hour}
        for submit_s, hour in ((0.0, 23), (10.0, -1))
    ]
    w = sim.Workload.from_jobs(jobs).with_history({"mean_task_s": [1.0], "day": [3]})
    day, hour = (features.NAMES.index(name) for name in ("day", "hour"))
    now, past = w.columns.features.codes
    assert now[:, day].tolist() == [3, 3]
    assert now[:, hour].tolist() == [23, -1]
    assert (past[0, day], past[0, hour]) == (3, -1)
    with pytest.raises(sim.InputError, match="day is -2"):
        w.with_history({"mean_task_s": [1.0], "day": [-2]})
