"""Reader of scheduled tables: run times, reads, downloads, and invalid files."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

import policies
import sim
from policies.wing import bqetl
from policies.wing.bqetl.files import EDGES, JOBS, is_schedule, run_times
from sim.base.errors import InputError

HOUR, DAY = 3600.0, 86_400.0
HEAD = "job,dag,schedule_interval,dag_start_date,impact_tier,owner_id\n"
ROWS = (
    "load,early,0 2 * * *,2026-08-11,impact/tier_1,0\n"
    "clean,early,0 2 * * *,2026-08-11,impact/tier_2,0\n"
    "sum,late,0 12 * * *,2020-01-01,impact/tier_3,1\n"
    "old,first,once,2019-01-01,impact/tier_3,1\n"
)
READS = "producer_job,consumer_job\nload,clean\nclean,sum\n"


def written(folder, jobs=HEAD + ROWS, reads=READS):
    (folder / JOBS).write_text(jobs)
    (folder / EDGES).write_text(reads)
    return folder


def load(folder, history="truth", **options):
    return sim.read_trace("bqetl", folder, history=history, **options)


def rows(w, template):
    return np.flatnonzero(np.array(w.jobs["template"].to_pylist()) == template)


def test_jobs_run_by_their_schedules_and_wait_inside_them(tmp_path):
    w = load(written(tmp_path))
    submit, duration_s = w.jobs["submit_s"].to_numpy(), w.tasks["duration_s"].to_numpy()
    loads, cleans, sums = (rows(w, name) for name in ("load", "clean", "sum"))
    assert submit[loads].tolist() == [day * DAY + 2 * HOUR for day in range(7)]
    assert submit[sums].tolist() == [day * DAY + 12 * HOUR for day in range(7)]
    assert submit[cleans] == pytest.approx(submit[loads] + duration_s[loads])
    assert [w.jobs["input_mode"][int(r[0])].as_py() for r in (loads, cleans, sums)] == [
        "none", "poll", "blind",
    ]  # fmt: skip
    assert set(w.jobs["priority"].to_numpy()[sums]) == {1.0}
    assert set(w.jobs["queue"].to_pylist()) == {"owner-0", "owner-1"}
    assert w.meta["report"]["jobs that never run"] == 1
    up, down = w.job_edges["upstream"].to_numpy(), w.job_edges["downstream"].to_numpy()
    assert set(zip(up, down, strict=True)) == {
        *zip(loads, cleans, strict=True),
        *zip(cleans, sums, strict=True),
    }


def test_blind_jobs_read_the_latest_complete_run(tmp_path):
    jobs = HEAD + ROWS.replace("0 12 * * *", "0 2 * * *")  # nobody is done at the same time
    blind = load(written(tmp_path, jobs))
    by_name = [rows(blind, name) for name in ("clean", "sum")]
    up, down = (blind.job_edges[c].to_numpy() for c in ("upstream", "downstream"))
    assert set(zip(up, down, strict=True)) >= set(zip(by_name[0][:-1], by_name[1][1:], strict=True))
    polls = load(tmp_path, across="poll")
    by_name = [rows(polls, name) for name in ("clean", "sum")]
    up, down = (polls.job_edges[c].to_numpy() for c in ("upstream", "downstream"))
    assert set(zip(up, down, strict=True)) >= set(zip(*by_name, strict=True))
    submit, duration_s = polls.jobs["submit_s"].to_numpy(), polls.tasks["duration_s"].to_numpy()
    assert submit[by_name[1]] == pytest.approx(submit[by_name[0]] + duration_s[by_name[0]])


def test_downloads_are_of_unread_tables_with_zipf_frequencies(tmp_path):
    many = "".join(f"t{i},d{i},0 * * * *,2026-01-01,impact/tier_1,0\n" for i in range(40))
    w = load(written(tmp_path, HEAD + many, "producer_job,consumer_job\nt0,t1\n"))
    taken = w.downloads["job"].to_numpy()
    n = np.bincount([int(name[1:]) for name in np.array(w.jobs["template"].to_pylist())[taken]])
    assert n[0] == 0
    # a week of 4 x 39 / rank in four weeks
    assert np.sort(n)[::-1][:4] == pytest.approx(39 / np.arange(1, 5), rel=0.4)
    finish = w.jobs["submit_s"].to_numpy() + w.tasks["duration_s"].to_numpy()
    assert (w.downloads["time_s"].to_numpy() > finish[taken]).all()


def test_the_same_seed_gives_the_same_bytes_and_another_does_not(tmp_path):
    written(tmp_path)
    assert load(tmp_path, seed=3).digest == load(tmp_path, seed=3).digest
    assert load(tmp_path, seed=3).digest != load(tmp_path, seed=4).digest


def test_the_profiler_infers_the_graph_of_the_files(tmp_path):
    written(tmp_path)
    inferred, true = load(tmp_path, history="logs"), load(tmp_path)
    assert inferred.jobs["template"].equals(true.jobs["template"])
    assert inferred.job_edges.equals(true.job_edges)
    assert inferred.jobs["input_mode"].equals(true.jobs["input_mode"])
    assert (inferred.meta["history"], true.meta["history"]) == ("logs", "truth")


@pytest.mark.parametrize("history", ["logs", "truth"])
def test_the_real_graph(shared_traces, history):
    w = load(shared_traces / "lineage", history)
    assert (w.meta["report"]["jobs"], w.meta["report"]["edges"]) == (874, 614)
    assert w.n_jobs > 20_000
    assert w.job_edges.num_rows > 20_000
    assert np.mean(np.array(w.jobs["template"].to_pylist()) != "") > 0.99
    modes = dict(zip(*np.unique(w.jobs["input_mode"].to_pylist(), return_counts=True), strict=True))
    # an eighth of those that wait come like clockwork, as their inputs' run times hardly differ
    assert 0.3 < modes["poll"] / w.n_jobs < (0.36 if history == "logs" else 0.42)
    cluster = sim.Cluster.machines(1, tokens=bqetl.TOKENS).with_queues(
        "hard", w.meta["queue_share"]
    )
    done = sim.simulate(w, cluster, policies.build("priority"))
    assert done.metrics["jobs_failed"] == 0
    assert done.metrics["value_attained"] == 1


@pytest.mark.parametrize(
    ("jobs", "reads", "line", "rule"),
    [
        (HEAD + ROWS + ROWS.splitlines()[0], READS, 6, "duplicate id"),
        (HEAD + ROWS.replace("0 12 * * *", "noon"), READS, 4, "unknown schedule"),
        (HEAD + ROWS.replace("impact/tier_2", "high"), READS, 3, "unknown tier"),
        (HEAD + ROWS.replace("2020-01-01", "1.1.2020"), READS, 4, "wrong date"),
        (HEAD + ROWS.replace(",once", ","), READS, 5, "missing value"),
        (HEAD + ROWS, READS + "load,none\n", 4, "unknown job"),
        (HEAD + ROWS, READS + "load,load\n", 4, "job reads itself"),
        (HEAD + ROWS, READS + "load,clean\n", 4, "read is named twice"),
    ],
    ids=["twice", "schedule", "tier", "date", "missing", "unknown", "itself", "again"],
)
def test_a_bad_line_is_an_error_or_dropped(tmp_path, jobs, reads, line, rule):
    written(tmp_path, jobs, reads)
    with pytest.raises(InputError, match=rf":{line}: .*") as caught:
        load(tmp_path)
    assert caught.value.rule == rule
    w = load(tmp_path, on_bad_row="skip")
    assert w.meta["report"]["bad_rows"][rule] == 1


@pytest.mark.parametrize(
    ("jobs", "reads", "rule"),
    [
        (HEAD + ROWS, READS + "sum,load\n", "cycle"),
        (ROWS, READS, "missing column"),
        (HEAD + ROWS.splitlines()[3], READS.splitlines()[0], "empty file"),
    ],
    ids=["cycle", "header", "never"],
)
def test_invalid_files_are_refused(tmp_path, jobs, reads, rule):
    with pytest.raises(InputError) as caught:
        load(written(tmp_path, jobs, reads))
    assert caught.value.rule == rule


def test_the_path_must_be_a_folder(tmp_path):
    with pytest.raises(InputError, match=JOBS):
        load(tmp_path / JOBS)


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("daily", [0, 24]),
        ("@hourly", list(range(48))),
        ("3h", list(range(0, 48, 3))),
        ("once", []),
        ("30 1/3 * * *", [1.5 + 3 * k for k in range(16)]),
        ("0 15 * * 2", [39]),  # the second day is a Tuesday
        ("monthly", []),
    ],
)
def test_run_times_of_schedules(schedule, expected):
    monday = datetime(2026, 8, 17, tzinfo=UTC)
    assert is_schedule(schedule)
    assert (run_times(schedule, monday, 2 * DAY) / HOUR).tolist() == expected


def test_invalid_schedules():
    assert not is_schedule("noon")
    assert not is_schedule("0 25 * * *")
