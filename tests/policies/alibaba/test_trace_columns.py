"""Additional columns of the Alibaba reader, and unfinished rows."""

from __future__ import annotations

import numpy as np
import pytest

from tests.policies.alibaba.test_trace import HEADER, columns, load, row, write


def test_span_s_shows_stages_shorter_than_a_second(tmp_path):
    lines = [row("M1", start=100, end=100, mean="1"), row("R2_1", start=100, end=112, mean="7.5")]
    w = load(write(tmp_path / "t.csv", lines))
    assert w.stage_duration_s.tolist() == [1.0, 7.5]
    assert w.stages["span_s"].to_pylist() == [0.0, 12.0]
    known = ["job", "name", "n_tasks", "demand_cpu", "demand_mem"]
    assert w.stages.column_names == [*known, "guessed", "span_s"]


def test_guessed_marks_filled_values(tmp_path):
    lines = [
        row("M1"),
        row("M2", count=""),
        row("M3", plan_cpu="nan"),
        row("M4", count="", plan_mem=""),
    ]
    w = load(write(tmp_path / "t.csv", lines))
    assert w.stages["guessed"].to_pylist() == [0, 1, 2, 5]


def test_used_resources_are_read_if_present(tmp_path):
    header = HEADER + ",cpu_usage,mem_usage"
    lines = [row("M1") + ",150,0.25", row("R2_1") + ",,", row("R3_2") + ",-1,inf"]
    w = load(write(tmp_path / "t.csv", lines, header=header))
    np.testing.assert_array_equal(w.stages["used_cpu"].to_numpy(), [1.5, np.nan, np.nan])
    np.testing.assert_array_equal(w.stages["used_mem"].to_numpy(), [0.25, np.nan, np.nan])
    empty = load(write(tmp_path / "u.csv", [row("M1") + ",,0.5", row("R2_1") + ",,"], header))
    assert "used_cpu" not in empty.stages.column_names
    assert "used_mem" in empty.stages.column_names


def test_n_lost_counts_dropped_rows_and_dependencies(tmp_path):
    lines = [
        row("M1", job="whole"),
        row("R2_1", job="whole"),
        row("M1", job="edge"),
        row("R2_1_9_8", job="edge"),
        row("M1", job="row"),
        row("M2", job="row", end=0),
        row("J3_1_2", job="row"),
        row("M1", job="twice"),
        row("M1", job="twice"),
        row("M1", job="twice", count="9"),
        row("R2_1_1_2", job="twice"),
    ]
    w = load(write(tmp_path / "t.csv", lines))
    lost = dict(zip(w.jobs["job_id"].to_pylist(), w.jobs["n_lost"].to_pylist(), strict=True))
    assert lost == {"whole": 0, "edge": 2, "row": 2, "twice": 1}


def test_unfinished_rows_are_kept_on_request(tmp_path):
    lines = [
        row("M1", start=100, end=110),
        row("R2_1", start=95, end=0, status="Running", mean="95"),
        row("R3_2", count="", start=0, end=0, status="Waiting"),
        row("M1", job="never", start=0, end=0, status="Waiting"),
        row("M1", job="running", start=97, end=0, status="Running", mean="97"),
    ]
    path = write(tmp_path / "t.csv", lines)
    w = load(path, unfinished="keep")
    assert w.jobs["job_id"].to_pylist() == ["j_1", "running"]
    assert w.jobs["submit_s"].to_pylist() == [0.0, 2.0]
    assert w.jobs["n_lost"].to_pylist() == [0, 0]
    assert w.stage_duration_s.tolist() == [7.5, 0.5, 0.5, 0.5]
    np.testing.assert_array_equal(w.stages["span_s"].to_numpy(), [10, np.nan, np.nan, np.nan])
    assert columns(w)["edges"] == [(0, 1), (1, 2)]
    report = w.meta["report"]
    assert report["dropped"] == {
        "row of a job that never started": 1,
        "job of which no row is left": 1,
    }
    assert report["filled"] == {"instance_num missing: 1": 1, "end is 0: 0.5 s": 4}
    dropped = load(path)
    assert dropped.jobs["n_lost"].to_pylist() == [2]
    assert dropped.meta["report"]["dropped"]["censored: end is 0"] == 4
    (warning,) = dropped.meta["report"]["warnings"]
    assert "tasks still ran when the log ended (censored)" in warning


def test_the_real_sample_is_whole_when_all_rows_are_kept(shared_traces):
    path = shared_traces / "alibaba2018" / "batch_task_6600_jobs.csv.gz"
    w = load(path, unfinished="keep")
    assert (w.n_jobs, w.n_stages) == (6_600, 25_196)
    assert w.meta["offset_s"] == 85_660.0
    n_stages = np.bincount(w.stages["job"].to_numpy())
    lost = w.jobs["n_lost"].to_numpy()
    assert int((lost > 0).sum()) == 5
    assert int(((n_stages >= 6) & (lost == 0)).sum()) == 1_278
    assert int(np.isnan(w.stages["span_s"].to_numpy()).sum()) == 37
    assert int((w.stages["span_s"].to_numpy() == 0).sum()) == 1_596


@pytest.mark.parametrize("unfinished", ["yes", True])
def test_unfinished_refuses_other_values(tmp_path, unfinished):
    with pytest.raises(ValueError, match="unfinished must be 'drop' or 'keep'"):
        load(write(tmp_path / "t.csv", [row()]), unfinished=unfinished)
