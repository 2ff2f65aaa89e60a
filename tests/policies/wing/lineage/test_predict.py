"""Prediction, worked out by hand; who used jobs' outputs as columns of a workload."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sim
from policies.wing.cosmos.month import draw_month
from policies.wing.cosmos.workflows import WEEK_S
from policies.wing.lineage.dependencies import edges_from_pairs
from policies.wing.lineage.predict import (
    READERS,
    Uses,
    best_threshold,
    first_uses,
    forecast,
    learn,
    parse_uses,
    percentage_errors,
    reader_columns,
    threshold_table,
)
from sim import evaluators
from sim.base.errors import InputError

# template 0 runs at 0, 10, 20, 30 and (tested) 100, 110; 1 and 2 read what it makes
TEMPLATE = np.array([0, 1, 0, 1, 2, 0, 1, 0, 0, 1, 1, 0, 2], np.int32)
SUBMIT = np.array([0, 2, 10, 14, 15, 20, 28, 30, 100, 105, 106, 110, 118], float)
EDGES = edges_from_pairs(13, [0, 2, 2, 5, 8, 8, 11], [1, 3, 4, 6, 9, 10, 12])
RECURS = np.ones(3, bool)


USES = first_uses(EDGES, TEMPLATE, SUBMIT, RECURS)
TESTED = np.flatnonzero(SUBMIT >= 100)


def model(end=50.0):
    return learn(USES, TEMPLATE, SUBMIT, (0.0, end), 3)


def test_first_uses_take_the_first_job_of_each_template():
    columns = (USES.job, USES.template, USES.first_s, USES.time_s)
    assert list(zip(*(c.tolist() for c in columns), strict=True)) == [
        (0, 1, 2.0, 2.0),
        (2, 1, 14.0, 4.0),
        (2, 2, 15.0, 5.0),
        (5, 1, 28.0, 8.0),
        (8, 1, 105.0, 5.0),
        (11, 2, 118.0, 8.0),
    ]


def test_learnt_shares_and_medians():
    result = model()
    assert result.upstream.tolist() == [0, 0]
    assert result.downstream.tolist() == [1, 2]
    assert result.share.tolist() == [0.75, 0.25]
    assert result.time_s.tolist() == [4.0, 5.0]


def test_what_came_after_the_end_is_not_learnt():
    result = model(22.0)  # the job of 20 is used at 28: it is neither used yet nor missed
    assert result.share.tolist() == [1.0, 0.5]
    assert result.time_s.tolist() == [3.0, 5.0]


def test_a_pair_is_learnt_from_a_whole_week_that_ended_as_long_before_as_a_use_takes():
    submit_s = np.arange(0.0, 20.0)  # of one template; a job is used 5 later, but 2, 9 and 16
    took_s = np.where(np.arange(20) % 7 == 2, np.inf, 5.0)
    used = np.flatnonzero(np.isfinite(took_s)).astype(np.int32)
    uses = Uses(used, np.ones(len(used), np.int32), submit_s[used] + 5.0, took_s[used])
    template = np.zeros(20, np.int32)
    result = learn(uses, template, submit_s, (13.0, 20.0), 2)
    assert result.share.tolist() == [6 / 7]  # of the jobs from 8 to 14
    template[[10, 11]] = -1  # not learnt from
    assert learn(uses, template, submit_s, (13.0, 20.0), 2).share.tolist() == [4 / 5]
    nothing = learn(uses, template, submit_s, (0.0, 5.0), 2)
    assert len(nothing.share) == 0


def test_forecast_against_what_came():
    result = forecast(model(), USES, TEMPLATE, TESTED, 3)
    rows = zip(result.job, result.template, result.share, result.occurred, strict=True)
    assert [tuple(float(x) for x in row) for row in rows] == [
        (8, 1, 0.75, 1),
        (8, 2, 0.25, 0),
        (11, 1, 0.75, 0),
        (11, 2, 0.25, 1),
    ]
    assert result.precision_recall(20) == (0.5, 1.0)
    assert result.precision_recall(50) == (0.5, 0.5)
    assert np.isnan(result.precision_recall(80)[0])
    predicted, actual = result.errors_s(20)
    assert predicted.tolist() == [4, 5]
    assert actual.tolist() == [5, 8]


def test_table_over_thresholds():
    result = forecast(model(), USES, TEMPLATE, TESTED, 3)
    table = threshold_table(result, (0, 25, 30, 75, 80))
    assert table["precision"].to_pylist()[:4] == [0.5, 0.5, 0.5, 0.5]
    assert table["recall"].to_pylist() == [1, 1, 0.5, 0.5, 0]
    first = table.to_pylist()[0]
    assert first["rmse_s"] == pytest.approx(np.sqrt((1 + 9) / 2))
    assert first["mae_s"] == 2  # the median of 1 and 3
    assert first["within_20"] == 0.5
    assert first["over_2x"] == 0
    assert best_threshold(table) == 0


def test_a_pair_that_the_model_does_not_know_is_missed_not_predicted():
    result = forecast(model(5.0), USES, TEMPLATE, TESTED, 3)
    assert result.share.tolist() == [1, 1, -1]
    assert result.precision_recall(0) == (0.5, 0.5)


def test_percentage_errors_and_nothing_to_predict():
    assert percentage_errors(np.array([2.0, 3.0, 1.0]), np.array([1.0, 4.0, 0.0])).tolist() == [
        1.0,
        -0.25,
    ]
    nobody = forecast(model(), USES, TEMPLATE, TESTED[:0], 3)
    with pytest.raises(InputError, match="no dependency recurs"):
        best_threshold(threshold_table(nobody))


@pytest.fixture(scope="module")
def week():
    return sim.synthesize("cosmos", scale=0.02, seed=3, history="truth")


def test_columns_say_what_uses_do():
    uses = Uses(
        np.array([0, 0, 2], np.int32), np.array([0, 1, 1], np.int32),
        np.array([5.0, 3.0, 7.5]), np.array([4.0, 2.0, 1.5]),
    )  # fmt: skip
    result = reader_columns(uses, np.array([0, 1, 2]), ["b", "a"])
    assert result["readers"].to_pylist() == [["b", "a"], [], ["a"]]
    assert result["readers_after_s"].to_pylist() == [[4.0, 2.0], [], [1.5]]
    table = pa.table({"submit_s": [1.0, 2.0, 6.0], **result})
    back = parse_uses(table, {"b": 0, "a": 1})
    for name in ("job", "template", "first_s", "time_s"):
        assert getattr(back, name).tolist() == getattr(uses, name).tolist()
    uses_of_a = parse_uses(table, {"a": 0})  # another numbering, and b isn't known
    assert uses_of_a.job.tolist() == [0, 2]
    assert uses_of_a.time_s.tolist() == [2.0, 1.5]
    assert reader_columns(uses, np.array([2]), ["b", "a"])["readers"].to_pylist() == [["a"]]


@pytest.mark.slow
def test_the_columns_of_a_week_counted_one_by_one(week):
    month = draw_month(0.02, 3)
    program, submit_s = month.program.tolist(), month.submit_s.tolist()
    first: dict[tuple[int, int], float] = {}
    for u, d in zip(month.up.tolist(), month.down.tolist(), strict=True):
        if program[u] >= 0 and program[d] >= 0:
            key = (u, program[d])
            first[key] = min(first.get(key, np.inf), submit_s[d])
    third = [i for i, s in enumerate(submit_s) if 0 <= s < WEEK_S]
    expected: dict[int, list[float]] = {i: [] for i in third}
    for (u, _), first_s in sorted(first.items()):
        if u in expected:
            expected[u].append(first_s - submit_s[u])
    assert week.jobs["readers_after_s"].to_pylist() == list(expected.values())
    past = week.history
    reader_s = [
        submit + after
        for submit, all_ in zip(
            past["submit_s"].to_pylist(), past["readers_after_s"].to_pylist(), strict=True
        )
        for after in all_
    ]
    finished = (month.finish_s < 0.0).tolist()
    seen = [s for (u, _), s in first.items() if s < 0 and finished[u]]
    assert sorted(reader_s) == pytest.approx(sorted(seen))


def test_lists_are_part_of_the_content_and_survive_the_disk(week, tmp_path):
    week.write(tmp_path)
    assert sim.Workload.read(tmp_path).digest == week.digest
    part = week.slice_time(0.0, WEEK_S / 7)
    assert part.jobs["readers"].to_pylist() == week.jobs["readers"].to_pylist()[: part.n_jobs]
    past = week.history
    index = past.column_names.index("readers")
    moved = past["readers"].combine_chunks()
    other = pa.ListArray.from_arrays(moved.offsets, moved.flatten().take(
        pa.array(np.arange(len(moved.flatten()))[::-1])))  # fmt: skip
    changed = week.with_history(past.set_column(index, "readers", other))
    assert changed.digest != week.digest


def test_what_comes_is_foretold_from_the_week_before():
    stages = [{"durations_s": [1.0]}]
    plain = sim.Workload.from_jobs(
        {"job_id": str(i), "submit_s": float(i), "template": t, "stages": stages}
        for i, t in enumerate(("p", "p", "", "q"))
    )
    lists = ([["q"], ["r"], [], []], [[100.0], [50.0], [], []])
    kinds = (pa.list_(pa.string()), pa.list_(pa.float64()))
    jobs = plain.jobs
    for name, values, kind in zip(READERS, lists, kinds, strict=True):
        jobs = jobs.append_column(name, pa.array(values, kind))
    day = 86_400.0
    history = {
        "submit_s": [-8 * day, -2 * day, -1.5 * day, -day],
        "finish_s": [-7.9 * day, -1.9 * day, -1.4 * day, -0.9 * day], "n_tasks": [1] * 4,
        "mean_task_s": [1.0] * 4, "template": pa.array(["p", "p", "p", ""]).dictionary_encode(),
        "readers": [["r"], ["q"], ["q", "s"], []],
        "readers_after_s": [[9.0], [90.0], [140.0, 7.0], []],
    }  # fmt: skip
    tables = {n: getattr(plain, n) for n in ("stages", "tasks")}
    workload = sim.Workload.from_tables(jobs=jobs, history=history, **tables)
    result, table = evaluators.evaluate("readers", None, workload, None, None, 0)
    # p's runs of a week ago: q used both (median 115 s), s one; r used an older one only.
    # Now q uses the first and r the second: 4 things said, 1 of them true, 2 came.
    assert (result["precision_20"], result["recall_20"]) == (0.25, 0.5)
    assert (result["precision_60"], result["recall_60"]) == (0.5, 0.5)
    assert result["best_tr"] == 55.0  # the first of the best
    assert result["rmse_h_20"] == pytest.approx(15 / 3600)
    assert result["mae_min_20"] == pytest.approx(0.25)
    assert result["within_20_20"] == 1.0
    assert table["tr"].to_pylist()[0] == 0.0


def test_a_workload_that_does_not_say_who_read_what_is_refused():
    plain = sim.Workload.from_jobs(
        [{"job_id": "a", "submit_s": 0.0, "stages": [{"durations_s": [1.0]}]}]
    )
    with pytest.raises(InputError, match="readers of each output"):
        evaluators.evaluate("readers", None, plain, None, None, 0)
