"""A week of two logs as a workload: known by what came before, scheduled by what is in it."""

from __future__ import annotations

import numpy as np
import pytest

import policies
import sim
from policies.wing.lineage import Options, workload
from policies.wing.lineage.templates import Thresholds
from policies.wing.lineage.worth import COLUMNS
from tests.policies.wing.lineage.small import small_logs

HOUR, DAY = 3600.0, 86_400.0
BEGIN, END = 14 * DAY, 21 * DAY


def daily(n=28, lag_s=300.0):
    """Each day a load, a sum that polls for it, a report by the clock, and somebody's question.

    The sum starts some minutes after the load's end, which varies by hours; the report reads the
    sum, and the report of the day before.
    """
    jobs, downloads = [], []
    for day in range(n):
        index = day * DAY
        run_s = 600.0 + 1800.0 * (day % 5)
        jobs.append(
            job("load 2020-01-01", index, index + run_s, writes=[f"raw/{day}"], priority=3.0)
        )
        start_s = index + run_s + lag_s - 10.0 * (day % 3)
        jobs.append(
            job("sum", start_s, start_s + 60.0, reads=[f"raw/{day}"], writes=[f"sum/{day}"])
        )
        noon = index + 12 * HOUR
        reads = [f"sum/{day}", *([f"report/{day - 1}"] if day else [])]
        jobs.append(job("report", noon, noon + 60.0, reads=reads, writes=[f"report/{day}"]))
        requested = index + 15 * HOUR
        jobs.append(job(f"ask {'abcdefghijklmnopqrstuvwxyz?!'[day]}", requested, requested + 30.0,
                        reads=[f"report/{day}"], user="bob", requested=2.0))  # fmt: skip
        downloads.append((noon + HOUR, f"report/{day}", 5))
    return jobs, downloads


def job(name, submit, finish, **more):
    return {"name": name, "submit": submit, "finish": finish, "user": "ann", "queue": "q", **more}


@pytest.fixture(scope="module")
def week():
    return workload(small_logs(*daily()), BEGIN, END)


def kinds(week):
    template, edges = week.jobs["template"].to_pylist(), week.job_edges.to_pylist()
    return {(template[e["upstream"]], template[e["downstream"]]): e["kind"] for e in edges}


def test_the_jobs_are_those_of_the_window_with_their_own_times(week):
    assert week.n_jobs == 4 * 7
    submit = week.jobs["submit_s"].to_numpy()
    assert (submit[0], submit[-1]) == (0.0, 6 * DAY + 15 * HOUR)
    assert week.jobs["job_id"][0].as_py() == str(14 * 4)
    assert week.jobs["priority"].to_pylist()[:4] == [3.0, 0.0, 0.0, 0.0]
    assert week.stages["demand_tokens"].to_pylist()[:4] == [1.0, 1.0, 1.0, 2.0]
    assert week.meta["begin_s"] == BEGIN
    assert week.meta["peak_tokens"] == 2.0
    assert week.meta["queue_share"] == {"q": 1.0}
    assert week.downloads["n"].to_pylist() == [5] * 7


def test_programs_and_dependencies_are_as_table_1_has_them(week):
    assert week.jobs["template"].to_pylist()[:4] == ["load #", "sum", "report", ""]
    assert week.jobs["input_mode"].to_pylist()[:4] == ["none", "poll", "blind", "blind"]
    # its own last run is not hard: the first one did without
    assert kinds(week) == {
        ("load #", "sum"): "hard", ("sum", "report"): "hard", ("report", "report"): "soft",
        ("report", ""): "hard",
    }  # fmt: skip


def test_who_polls_comes_as_long_after_its_input_as_usual_but_no_later_than_it_came(week):
    polls = np.array(week.jobs["input_mode"].to_pylist()) == "poll"
    lag = week.jobs["poll_lag_s"].to_numpy()
    traced = 300.0 - 10.0 * (np.arange(14, 21) % 3)
    assert lag[polls] == pytest.approx(np.minimum(traced, 290.0))
    assert not lag[~polls].any()


def test_the_history_ends_where_the_window_begins(week):
    past = week.history
    assert past.num_rows == 4 * 14
    assert past["finish_s"].to_numpy().max() < 0
    reports = np.array(past["template"].to_pylist()) == "report"
    value = past["value"].to_numpy()[reports]
    # what a job was worth is known a week later
    assert value[past["finish_s"].to_numpy()[reports] <= -7 * DAY].tolist() == [5.0] * 7
    assert np.isnan(value).sum() == 7
    truth = week.jobs.select(list(COLUMNS))
    assert truth["value"].to_pylist()[:4] == [0.0, 0.0, 5.0, 0.0]
    # half of a report's value is its sum's, which is all the load's; so is half of the next one's
    assert truth["agg_value"][0].as_py() == 2.5 * sum(0.5**k for k in range(7))


def test_nothing_that_comes_later_changes_what_is_known(week):
    jobs, downloads = daily()
    early = [j for j in jobs if j["submit"] < BEGIN]
    # the report reads the load from now on, is late, is worth more, and a new program comes
    late = [dict(j) for j in jobs if j["submit"] >= BEGIN]
    for j in late:
        if j["name"] == "report":
            day = int(j["submit"] // DAY)
            j["reads"] = [f"raw/{day}"]
            j["finish"] += HOUR
    late += [job("new", d * DAY + 9 * HOUR, d * DAY + 10 * HOUR) for d in range(14, 28)]
    other = workload(
        small_logs(sorted(early + late, key=lambda j: j["submit"]),
                   [(t, f, n if t < BEGIN else 100 * n) for t, f, n in downloads]),
        BEGIN, END,
    )  # fmt: skip
    assert other.history.to_pandas().equals(week.history.to_pandas())  # where NaN is NaN
    assert kinds(other)["load #", "report"] == "soft"  # it never read it before
    assert "new" not in other.jobs["template"].to_pylist()


def test_with_room_for_all_it_goes_as_it_went(week):
    run = sim.simulate(week, sim.Cluster.machines(1, tokens=10), policies.build("wing_agg"))
    assert run.metrics["jobs_failed"] == 0
    assert run.metrics["value_attained"] == 1.0
    assert np.array_equal(run.job_submit, week.columns.job_submit)


def test_an_input_that_was_late_fails_who_is_blind_and_holds_up_who_polls():
    jobs, downloads = daily()
    jobs.append(job("x", 15 * DAY - 1.0, 15 * DAY + 14 * HOUR, requested=2.0))
    w = workload(small_logs(jobs, downloads), BEGIN, END)
    run = sim.simulate(w, sim.Cluster.machines(1, tokens=2), policies.build("fifo"))
    outcome = dict(
        zip(run.jobs["job_id"].to_pylist(), run.jobs["outcome"].to_pylist(), strict=True)
    )
    # x held all until two in the afternoon of day 15: the load was late, and so was the sum
    first = w.jobs["job_id"].to_pylist().index(str(15 * 4))
    assert [outcome[str(15 * 4 + k)] for k in range(4)] == ["done", "done", "failed", "failed"]
    assert run.jobs["submit_s"].to_pylist()[first] == DAY
    assert sum(o == "failed" for o in outcome.values()) == 2


def test_inputs_made_after_the_submission_are_not_hard():
    jobs, downloads = daily()
    for j in jobs:
        if j["name"] == "report":  # it is submitted the evening before, and reads once it runs
            j["start"], j["submit"] = j["submit"], j["submit"] - 18 * HOUR
    w = workload(small_logs(jobs, downloads), BEGIN, END)
    assert kinds(w)["sum", "report"] == "soft"
    assert w.meta["report"]["inputs written after their reader's submission, not hard"] == 28
    run_s = w.tasks["duration_s"].to_numpy()[np.array(w.jobs["template"].to_pylist()) == "report"]
    assert run_s == pytest.approx(60.0)


def test_what_did_not_run_is_left_out_and_what_failed_runs():
    jobs, downloads = daily()
    jobs[15 * 4 + 2]["outcome"] = "missing_input"
    jobs[16 * 4 + 2]["outcome"] = "failed"
    w = workload(small_logs(jobs, downloads), BEGIN, END)
    assert w.n_jobs == 27
    assert str(15 * 4 + 2) not in w.jobs["job_id"].to_pylist()
    assert w.meta["report"]["jobs that failed because an input was missing, left out"] == 1
    assert w.meta["report"]["jobs that failed in the logs, run as if they had succeeded"] == 1


def test_a_short_past_has_a_short_window_of_worth():
    w = workload(small_logs(*daily()), 6 * DAY, 8 * DAY)
    value = w.history["value"].to_numpy()
    assert np.isfinite(value).sum() == np.isfinite(w.history["agg_value"].to_numpy()).sum() > 0


def test_thresholds_are_options():
    never = Options(thresholds=Thresholds(min_submissions=1000))
    w = workload(small_logs(*daily()), BEGIN, END, never)
    assert set(w.jobs["template"].to_pylist()) == {""}


def test_what_is_not_valued_by_downloads_is_attained_within_the_window_of_worth():
    logs = small_logs(*daily())
    w = workload(logs, BEGIN, END, Options(value="jobs"))
    assert w.downloads["n"].to_pylist() == [1] * 28
    ends = w.jobs["submit_s"].to_numpy() + w.tasks["duration_s"].to_numpy()
    assert w.downloads["time_s"].to_numpy() == pytest.approx(ends + 7 * DAY)
    assert w.jobs["value"].to_pylist() == [1.0] * 28
    assert np.isfinite(w.history["value"].to_numpy()).sum() == 4 * 7
    costs = workload(logs, BEGIN, END, Options(value="compute")).jobs
    assert costs["value"].to_numpy() == pytest.approx(costs["compute_s"].to_numpy())
    parts = small_logs([j | {"requested": 1 / 7} for j in daily()[0]], daily()[1])
    jobs = workload(parts, BEGIN, END, Options(value="compute"))
    assert jobs.jobs["value"].to_numpy().max() == 1e6
    assert jobs.stages["demand_tokens"].to_numpy() == pytest.approx(1 / 7)


@pytest.mark.parametrize(
    ("begin", "end", "words"),
    [
        (BEGIN, BEGIN, "a finite begin before its end, not .*submissions from 0 to"),
        (np.nan, 1.0, "a finite begin before its end"),
        (90 * DAY, 91 * DAY, "no job is submitted in"),
        (0.0, DAY, "no job ended before 0 s.*choose a later begin"),
    ],
)
def test_windows_that_can_not_be_are_errors(begin, end, words):
    with pytest.raises(sim.InputError, match=words):
        workload(small_logs(*daily()), begin, end)
