"""Reader of the SLearn authors' files: jobs, features, and a history without times."""

from __future__ import annotations

import gzip

import pytest

import sim
from sim.check.account import check_account
from tests.sim.traces.accounts import counts

TRACE = """{        "am.type" : "mapreduce",
  "job.start.ms" : 4505, "job.id" : "job_9",
  "job.tasks" : [
{"c.dur" : 2000, "c.nr" : 1, "c.nr" : 1},{"c.dur" : 500, "c.nr" : 1}
]
}
{ "job.start.ms" : 0, "job.id" : "job_12", "job.tasks" : [{"c.dur" : 7000}] }
"""
HEAD = (
    "job_id,application_name,day_of_the_week,hour_of_the_day,job_name,resource_requested,user_name"
)
FEATURES = f"{HEAD}\n12,sort,1,13,night,46:125,ann\n5,grep,0,0,x,1:1,bob\n"
WARM_UP = f"{HEAD},job_runtime\n5,grep,0,0,x,1:1,bob,1500\n3,sort,1,2,night,46:125,ann,500\n"


def written(folder, trace=TRACE, features=FEATURES, warm_up=WARM_UP):
    """Write the three files, one of them gzipped; None for one that is not there."""
    (folder / "test.trace").write_text(trace)
    if features is not None:
        (folder / "test.3SigmaFeatures").write_text(features)
    if warm_up is not None:
        (folder / "test.3SigmaWarmUp.csv.gz").write_bytes(gzip.compress(warm_up.encode()))
    return folder


def load(path, **options):
    return sim.read_trace("slearn_authors", path, **options)


def test_jobs_come_by_submission_with_their_features(tmp_path):
    w = load(written(tmp_path), stretch=2.0)
    assert w.jobs["job_id"].to_pylist() == ["job_12", "job_9"]
    assert w.jobs["submit_s"].to_pylist() == [0.0, 9.01]
    assert w.tasks["duration_s"].to_pylist() == [7.0, 2.0, 0.5]
    assert w.jobs["application"].to_pylist() == w.jobs["template"].to_pylist() == ["sort", ""]
    assert w.jobs["user"].to_pylist() == ["ann", ""]
    assert w.jobs["requested"].to_pylist() == ["46:125", ""]
    assert (w.jobs["day"].to_pylist(), w.jobs["hour"].to_pylist()) == ([1, -1], [13, -1])
    check_account(w)
    assert counts(w) == {
        "rows": 2, "jobs": 2, "dropped": {}, "noticed": {"no features": 1}, "bad_rows": {},
    }  # fmt: skip


def test_the_past_keeps_its_order_and_has_no_times(tmp_path):
    w = load(written(tmp_path))
    assert w.history["application"].to_pylist() == ["grep", "sort"]
    assert w.history["mean_task_s"].to_pylist() == [1.5, 0.5]
    assert w.history["finish_s"].to_pylist() == [None, None]
    assert w.columns.features.untimed.tolist() == [True, True]
    assert w.columns.features.codes[0][0].tolist() == [1, 1, 1, 1, 13, 1]
    assert w.columns.features.codes[1].tolist() == [[0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 2, 1]]


def test_the_file_of_jobs_alone_is_enough(tmp_path):
    w = load(written(tmp_path, features=None, warm_up=None) / "test.trace")
    assert "application" not in w.jobs.column_names
    assert w.history.num_rows == 0


def test_a_repeated_job_counts_once(tmp_path):
    w = load(written(tmp_path, TRACE + TRACE))
    assert w.meta["report"]["dropped"] == {"repeated job": 2}
    assert w.n_jobs == 2
    check_account(w, jobs=2)


def test_a_job_id_with_other_tasks_is_another_job(tmp_path):
    w = load(written(tmp_path, TRACE + TRACE.replace("4505", "4507")))
    assert w.meta["report"]["dropped"] == {"repeated job": 1}
    assert [name for name in w.jobs["job_id"].to_pylist() if "#" in name] == ["job_9#2"]
    check_account(w, jobs=3)


@pytest.mark.parametrize(
    ("was", "now", "rule"),
    [
        ('"c.dur" : 7000', '"c.dur" : -1', "number out of range"),
        ('"c.dur" : 7000', '"c.dur" : "x"', "wrong type"),
        ('"c.dur" : 7000', '"c.mem" : 1', "missing value"),
        ('[{"c.dur" : 7000}]', "[]", "no tasks"),
        ('"job.start.ms" : 0', '"job.begin" : 0', "missing value"),
    ],
    ids=["negative", "text", "no duration", "no tasks", "no start"],
)
def test_a_bad_job_is_an_error_or_dropped(tmp_path, was, now, rule):
    folder = written(tmp_path, TRACE.replace(was, now))
    with pytest.raises(sim.InputError) as caught:
        load(folder)
    assert (caught.value.rule, caught.value.line) == (rule, 7)
    w = load(folder, on_bad_row="skip")
    assert w.jobs["job_id"].to_pylist() == ["job_9"]
    assert w.meta["report"]["bad_rows"] == {rule: 1}


def test_invalid_json_is_an_error_with_its_line(tmp_path):
    with pytest.raises(sim.InputError, match="invalid JSON") as caught:
        load(written(tmp_path, TRACE[:-4]), on_bad_row="skip")
    assert (caught.value.rule, caught.value.line) == ("wrong line", 7)


def test_a_missing_column_and_a_folder_of_two_traces_are_refused(tmp_path):
    folder = written(tmp_path, features=FEATURES.replace("user_name", "username"))
    with pytest.raises(sim.InputError, match="no column user_name"):
        load(folder)
    (folder / "other.trace").write_text(TRACE)
    with pytest.raises(sim.InputError, match=r"other\.trace, test\.trace"):
        load(folder)


def test_the_authors_workload(shared_traces):
    w = load(shared_traces / "slearn_authors", stretch=27.42)
    assert (w.n_jobs, w.n_tasks, w.history.num_rows) == (1251, 24154, 2502)
    assert w.meta["report"]["noticed"] == {}
    load_then = w.columns.job_work.sum() / 150 / w.columns.job_submit[-1]
    assert load_then == pytest.approx(1.10, abs=0.005)
