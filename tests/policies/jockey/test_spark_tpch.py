"""Reader of TPC-H queries with measured task durations, and predictions across parallelisms."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

import sim
from sim.check.account import check_account
from sim.dags.properties import distance
from sim.evaluators import evaluate
from tests.sim.traces.accounts import counts

TIMES = {
    "first_wave": {"2": [4000, 2000], "4": [1000]},
    "rest_wave": {"2": [1000], "4": [500, 500]},
    "fresh_durations": {"2": [], "4": [1000]},
}
LAST = {
    "first_wave": {"2": [3000], "4": [2500]},
    "rest_wave": {"2": [], "4": []},
    "fresh_durations": {"2": [], "4": []},
}
QUERY = {"adj": [[0, 1], [0, 0]], "dur": {"0": TIMES, "1": LAST}}
FILE = {"2g": {"1": QUERY, "2": {"adj": [[0]], "dur": {"0": LAST}}}, "5g": {"1": QUERY}}


def write(path, content=None):
    path.write_text(json.dumps(FILE if content is None else content))
    return path


def load(path, **options):
    return sim.read_trace("spark_tpch", path, **{"executors": 4, "trained_at": 2} | options)


def broken(**changes):
    content = json.loads(json.dumps(FILE))
    content["2g"]["1"] |= changes
    return content


def test_a_query_over_data_of_one_size_is_a_job(tmp_path):
    w = load(write(tmp_path / "q.json"), every_s=10.0)
    assert w.jobs["job_id"].to_pylist() == ["1-2g", "2-2g", "1-5g"]
    assert w.jobs["template"].to_pylist() == ["1-2g", "2-2g", "1-5g"]
    assert w.jobs["submit_s"].to_pylist() == [0.0, 10.0, 20.0]
    assert w.stages["n_tasks"].to_pylist() == [3, 1, 1, 3, 1]
    assert w.tasks["duration_s"].to_pylist()[:4] == [1.0, 0.5, 0.5, 2.5]
    assert w.stage_edges.to_pylist() == [
        {"parent": 0, "child": 1, "kind": "barrier"},
        {"parent": 3, "child": 4, "kind": "barrier"},
    ]
    check_account(w)
    assert counts(w) == {"rows": 3, "jobs": 3, "stages": 5, "tasks": 9, "dropped": {}}


def test_the_earlier_run_is_the_other_measurement_scheduled(tmp_path):
    w = load(write(tmp_path / "q.json"), sizes=["2g"], queries=["1"], deadline=2.0)
    known = w.columns.training
    assert known.column("stage").tolist() == [0, 0, 0, 1]
    assert known.column("start_s").tolist() == [0.0, 0.0, 2.0, 4.0]  # two slots: 4, 2, then 1 s
    assert known.column("finish_s").tolist() == [4.0, 2.0, 3.0, 7.0]
    assert known.column("ready_s").tolist() == [0.0, 0.0, 0.0, 4.0]
    assert w.jobs["deadline_s"].to_pylist() == [14.0]


def test_it_may_be_gzipped_and_without_earlier_runs(tmp_path):
    packed = tmp_path / "q.json.gz"
    packed.write_bytes(gzip.compress(json.dumps(FILE).encode()))
    assert load(packed).digest == load(write(tmp_path / "q.json")).digest
    assert load(packed, trained_at=None).training.num_rows == 0


def test_unmeasured_queries_are_counted(tmp_path):
    content = json.loads(json.dumps(FILE))
    del content["5g"]["1"]["dur"]["1"]["first_wave"]["4"]
    y = load(write(tmp_path / "all.json"))
    w = load(write(tmp_path / "q.json", content))
    assert w.jobs["job_id"].to_pylist() == ["1-2g", "2-2g"]
    assert w.training.num_rows == y.training.num_rows - 4
    assert w.meta["report"]["dropped"] == {"not measured with 4 executors": 1}
    with pytest.raises(sim.InputError, match="3 × not measured with 7 executors"):
        load(write(tmp_path / "q.json"), executors=7)


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        ([1], "wrong shape"),
        ({"2g": 3}, "wrong shape"),
        (broken(adj=[[0, 1]]), "wrong shape"),
        (broken(dur={"0": TIMES}), "wrong shape"),
        (broken(dur={"0": TIMES, "1": {"first_wave": {"2": [1]}}}), "wrong shape"),
        (broken(dur={"0": TIMES, "1": LAST | {"rest_wave": {"4": [-1]}}}), "number out of range"),
        (broken(adj=[[0, 1], [1, 0]]), "cycle"),
    ],
)
def test_a_broken_file_is_named(tmp_path, content, rule):
    path = write(tmp_path / "q.json", content)
    with pytest.raises(sim.InputError) as caught:
        load(path)
    assert caught.value.rule == rule
    assert caught.value.file == str(path)


def test_invalid_json_is_an_error(tmp_path):
    path = tmp_path / "q.json"
    path.write_text("{")
    with pytest.raises(sim.InputError, match="not JSON"):
        load(path)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"executors": 0}, "executors must be a whole number"),
        ({"trained_at": 2.5}, "trained_at must be a whole number"),
        ({"sizes": ["2"]}, "did you mean '2g'"),
        ({"queries": ["23"]}, "unknown query"),
        ({"deadline": -1.0}, "deadline must be a number above 0"),
        ({"deadline": 2.0, "trained_at": None}, "needs trained_at"),
        ({"every_s": -1.0}, "every_s must be"),
    ],
)
def test_options_out_of_range_are_named(tmp_path, options, text):
    with pytest.raises(sim.InputError, match=text):
        load(write(tmp_path / "q.json"), **options)


def test_the_earlier_run_is_held_against_the_job_by_hand(tmp_path):
    w = load(write(tmp_path / "q.json"), sizes=["2g"])
    metrics, table = evaluate("trained", sim.simulate, w, sim.Cluster.slots(4), None, 0)
    # query 1: 1 + 2.5 s now, 4 + 3 s by the earlier times; query 2: 2.5 and 3 s
    assert table["makespan_s"].to_pylist() == [3.5, 2.5]
    assert table["earlier_s"].to_pylist() == [7.0, 3.0]
    assert metrics["prediction_error_p50"] == pytest.approx((1.0 + 0.2) / 2)
    assert metrics["earlier_over_now_p50"] == pytest.approx((2.0 + 1.2) / 2)
    # means of stages: 7/3 for 2/3, 3 for 2.5 twice
    assert metrics["task_error_p50"] == pytest.approx(0.2)
    assert metrics["task_error_p90"] == pytest.approx(0.2 + 0.8 * (2.5 - 0.2))
    assert metrics["task_distance_p50"] == 1.0


def test_jobs_without_an_earlier_run_are_left_out(tmp_path):
    w = load(write(tmp_path / "q.json"), trained_at=None)
    metrics, table = evaluate("trained", sim.simulate, w, sim.Cluster.slots(4), None, 0)
    assert table.num_rows == 0
    assert all(np.isnan(value) for value in metrics.values())


def test_the_distance_between_samples_is_scipys():
    from scipy.stats import ks_2samp

    rng = np.random.default_rng(0)
    for _ in range(20):
        x, y = rng.integers(0, 9, 12).astype(float), rng.integers(0, 9, 7).astype(float)
        assert distance(x, y) == pytest.approx(ks_2samp(x, y).statistic)


def test_real_runs(shared_traces):
    path = shared_traces / "dags" / "spark_tpch_task_durations.json.gz"
    w = load(path, executors=50, trained_at=20, sizes=["2g", "100g"])
    assert w.n_jobs == 43
    assert w.meta["report"]["dropped"] == {"not measured with 50 executors": 1}
    assert len(w.columns.training) == pytest.approx(w.n_tasks, rel=0.01)
    cluster = sim.Cluster.slots(50)
    metrics, _ = evaluate("trained", sim.simulate, w, cluster, None, 0)
    assert 0.01 < metrics["prediction_error_p50"] < 0.5
    same = load(path, executors=50, trained_at=50, sizes=["100g"])
    metrics, _ = evaluate("trained", sim.simulate, same, cluster, None, 0)
    assert metrics["prediction_error_p90"] == 0.0
    assert metrics["task_distance_p50"] == 0.0
