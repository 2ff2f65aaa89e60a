"""Runs of OpenLineage events: wrappers, several starts and ends, streams, unknown run times."""

from __future__ import annotations

import json

import pytest

from policies.wing.lineage import Options, workload
from policies.wing.lineage.dependencies import single_hop
from policies.wing.lineage.openlineage import read_events
from policies.wing.lineage.profiling import profile
from sim.base.errors import InputError
from sim.check.account import check_account
from sim.cli.main import main
from tests.policies.wing.lineage.events import (
    BEGIN,
    DAYS,
    END,
    clock,
    counts,
    daily,
    event,
    load_and_sum,
    pairs,
    profiled,
    run,
    scheduled,
    write,
)


def test_a_daily_log(tmp_path, capsys):
    path = write(tmp_path / "e", daily())
    store, printed = profiled(path, capsys)
    assert counts(store) == (56, 28, 2, 1400.0)
    assert store.notes == ()
    assert printed.startswith("Overview")
    week, _ = scheduled(path, capsys)
    check_account(week, jobs=14, tokens_s=7 * 50 * 60)
    assert week.job_edges.num_rows == 7


def nested():
    """Return the daily log inside DAG runs, tasks and applications: 163 min a day with these."""
    events = []
    for day in range(DAYS):
        dag, task, app = f"dag-{day}", f"submit-{day}", f"app-{day}"
        events += run(clock(day, "01:00"), clock(day, "02:00"), dag, "grove")
        events += run(
            clock(day, "01:00"), clock(day, "01:20"), f"load-{day}", "grove.load", ["raw"], ["stg"],
            parent=(dag, "grove"),
        )  # fmt: skip
        events += run(
            clock(day, "01:25"), clock(day, "01:55"), task, "grove.submit", ["stg"], ["mart"],
            parent=(dag, "grove"),
        )  # fmt: skip
        events += run(
            clock(day, "01:26"), clock(day, "01:54"), app, "app", parent=(task, "grove.submit")
        )
        events += run(
            clock(day, "01:28"), clock(day, "01:53"), f"sum-{day}", "app.sum", ["stg"], ["mart"],
            parent=(app, "another spelling"),
        )  # fmt: skip
    return events


def test_runs_that_contain_others_are_left_out_and_counted(tmp_path, capsys):
    path = write(tmp_path / "e", nested())
    store, printed = profiled(path, capsys)
    assert counts(store) == (56, 28, 2, DAYS * 45.0)
    assert pairs(store) == {("orchard/grove.load", "orchard/app.sum"): 28}
    first = "84 of 140 (60.0 %) runs contain others by their parent facet, and are left out"
    assert printed.startswith(first)
    assert store.notes[0].startswith(first)
    assert first in (tmp_path / "e.profile" / "lineage.html").read_text()
    week, printed = scheduled(path, capsys)
    account = check_account(week, jobs=35, tokens_s=7 * 163 * 60)
    assert account["tokens_s"]["left_out_by"] == {"runs that contain others": 7 * 118 * 60}
    assert account["tokens_s"]["by_option"] == 7 * 118 * 60
    assert first in printed
    with_wrappers, printed = profiled(path, capsys, "--set", "wrappers=keep")
    assert counts(with_wrappers)[0] == 140
    assert not printed.startswith("84 of")
    assert main(["lineage", str(path), "--out", "p", "--set", "wrappers=some"]) == 2
    assert "wrappers must be leave_out or keep, not 'some'" in capsys.readouterr().err


def test_data_that_a_wrapper_alone_names_goes_to_the_runs_inside(tmp_path):
    inner = [
        *run(clock(0, "01:02"), clock(0, "01:05"), "a", "read", ["x"], parent=("w", "wrap")),
        *run(
            clock(0, "01:06"), clock(0, "01:08"), "b", "write", outputs=["x"], parent=("w", "wrap")
        ),
    ]
    wrapper = run(clock(0, "01:00"), clock(0, "01:10"), "w", "wrap", ["raw", "x"], ["out"])
    before = run(clock(0, "00:00"), clock(0, "00:10"), "c", "before", outputs=["raw"])
    after = run(clock(0, "02:00"), clock(0, "02:10"), "d", "after", ["out"])
    logs = read_events(write(tmp_path / "e", [*inner, *wrapper, *before, *after]))
    edges = single_hop(logs).dependencies
    names = logs.jobs["job_id"].to_pylist()
    found_pairs = zip(edges.upstream.tolist(), edges.downstream.tolist(), strict=True)
    assert {(names[up][-1], names[down][-1]) for up, down in found_pairs} == {
        ("c", "a"), ("b", "d"),
    }  # fmt: skip
    read_s = dict(zip(edges.downstream.tolist(), edges.read_s.tolist(), strict=True))
    assert read_s[names.index("orchard/read/a")] == logs.column("start_s")[1]


def test_the_root_of_a_run_contains_it_though_its_parent_is_not_in_the_log(tmp_path):
    child = run(clock(0, "01:02"), clock(0, "01:05"), "a", "query", parent=("lost", "task"))
    for e in child:
        e["run"]["facets"]["parent"]["root"] = {
            "run": {"runId": "d"}, "job": {"namespace": "orchard", "name": "dag"}
        }  # fmt: skip
    root = run(clock(0, "01:00"), clock(0, "02:00"), "d", "dag")
    logs = read_events(write(tmp_path / "e", [*root, *child]))
    assert logs.jobs["job_id"].to_pylist() == ["orchard/query/a"]


def test_runs_that_contain_each_other_are_kept(tmp_path):
    events = [
        *run(clock(0, "01:00"), clock(0, "01:05"), "a", "a", parent=("b", "b")),
        *run(clock(0, "01:00"), clock(0, "01:05"), "b", "b", parent=("a", "a")),
        *run(clock(0, "01:00"), clock(0, "01:05"), "c", "c", parent=("c", "c")),
    ]
    logs = read_events(write(tmp_path / "e", events))
    assert logs.n_jobs == 3
    assert logs.report["events: runs that contain others and are inside these, kept"] == 2


def test_the_latest_end_counts_in_any_order(tmp_path, capsys):
    events = daily()
    for day in range(DAYS):
        events.append(event("COMPLETE", clock(day, "01:30"), f"sum-{day}", "sum"))
        events.append(event("START", clock(day, "01:01"), f"load-{day}", "load"))
        events.append(event("COMPLETE", clock(day, "01:20"), f"load-{day}", "load"))  # once more
    path = write(tmp_path / "e", events)
    store, printed = profiled(path, capsys)
    assert counts(store) == (56, 28, 2, 1400.0)
    assert store.notes == (
        "28 of 56 (50.0 %) runs have several STARTs: the first counts",
        "28 of 56 (50.0 %) runs have several ends: the latest counts",
    )
    assert printed.startswith(store.notes[0])
    week, printed = scheduled(path, capsys)
    check_account(week, jobs=14, tokens_s=7 * 50 * 60)
    assert week.meta["report"]["warnings"] == list(store.notes)
    assert store.notes[1] in printed


def test_of_two_ends_at_one_instant_a_failure_counts(tmp_path):
    ends = [event(kind, clock(0, "01:05"), "a", "a") for kind in ("COMPLETE", "FAIL")]
    start = event("START", clock(0, "01:00"), "a", "a")
    for order in (ends, ends[::-1]):
        logs = read_events(write(tmp_path / "e", [start, *order]))
        assert logs.jobs["outcome"].to_pylist() == ["failed"]


def test_a_run_with_an_end_alone_has_no_known_run_time(tmp_path, capsys):
    path = write(tmp_path / "e", [e for e in daily() if e["eventType"] == "COMPLETE"])
    store, printed = profiled(path, capsys)
    assert counts(store) == (56, 28, 2, 0.0)
    assert printed.startswith("56 of 56 (100.0 %) runs have no START")
    assert "56 of 56 (100.0 %) runs have a single event: their run times are unknown" in printed
    assert store.tables["templates"]["runtime_s_p50"].to_pylist() == pytest.approx(
        [float("nan")] * 2, nan_ok=True
    )
    words = [
        "lineage",
        str(path),
        "--workload",
        str(tmp_path / "w"),
        "--begin",
        BEGIN,
        "--end",
        END,
    ]
    assert main(words) == 2
    text = "the run times of 42 of 42 jobs (100.0 %) are unknown"
    assert text in capsys.readouterr().err
    assert main([*words, "--set", "fill=median"]) == 2
    assert "no run time is known, so there is no median" in capsys.readouterr().err
    assert main([*words, "--set", "fill=soon"]) == 2
    assert "fill must be median or a number of seconds, not 'soon'" in capsys.readouterr().err
    week, _ = scheduled(path, capsys, "--set", "fill=600")
    account = check_account(week, jobs=14, tokens_s=0)
    assert account["tokens_s"]["workload"] == pytest.approx(14 * 600)
    assert week.jobs["submit_s"][0].as_py() == 3600 + 20 * 60 - 600
    assert week.job_edges.num_rows == 7


def test_few_unknown_run_times_are_their_templates_median(tmp_path, capsys):
    events = [
        e for e in daily()
        if not (e["run"]["runId"] in ("load-15", "sum-16") and e["eventType"] == "START")
        and not (e["run"]["runId"] == "load-17" and e["eventType"] == "COMPLETE")
    ]  # fmt: skip
    week, _ = scheduled(write(tmp_path / "e", events), capsys)
    account = check_account(week, jobs=14, tokens_s=7 * 50 * 60 - (20 + 30 + 20) * 60)
    assert account["tokens_s"]["workload"] == pytest.approx(7 * 50 * 60)
    assert account["tokens_s"]["changed_by"] == {
        "run times unknown, filled": pytest.approx(-(20 + 30 + 20) * 60)
    }
    assert sorted(week.tasks["duration_s"].to_numpy()) == pytest.approx([1200] * 7 + [1800] * 7)
    assert week.meta["report"]["jobs: run times unknown, filled"] == 3


def streaming(kind="STREAMING", end=None):
    """Return a stream that writes every six hours for 28 days, and a daily job that reads it."""
    facets = {"jobType": {"processingType": kind}} if kind else {}

    def tick(name, time):
        return event(name, time, "s", "stream", ["orders"], ["picks"], facets=facets)

    events = [tick("START", clock(0, "00:00"))]
    events += [tick("RUNNING", clock(day, f"{hour:02d}:00")) for day in range(DAYS) for hour in
               (6, 12, 18)]  # fmt: skip
    events += [tick(end, clock(DAYS, "00:00"))] if end else []
    for day in range(DAYS):
        events += run(
            clock(day, "07:00"), clock(day, "07:10"), f"l-{day}", "lake", ["picks"], ["lake"]
        )
        events += run(clock(day, "08:00"), clock(day, "08:05"), f"r-{day}", "report", ["lake"])
    return events


@pytest.mark.parametrize(
    ("kind", "end"), [("STREAMING", None), ("STREAMING", "ABORT"), (None, None)]
)
def test_a_stream_has_written_at_each_of_its_events(tmp_path, capsys, kind, end):
    path = write(tmp_path / "e", streaming(kind, end))
    store, printed = profiled(path, capsys)
    assert pairs(store) == {
        ("orchard/stream", "orchard/lake"): 28, ("orchard/lake", "orchard/report"): 28,
    }  # fmt: skip
    outcome = store.job("orchard/stream/s")["outcome"]
    assert outcome == ("failed" if end else "done")
    first = "1 of 57 (1.8 %) runs have not ended (censored); 1 of them stream"
    assert printed.startswith(first) == (end is None)
    week, _ = scheduled(path, capsys)  # the stream began before it
    check_account(week, jobs=14, tokens_s=7 * 15 * 60)
    assert week.job_edges.num_rows == 7


def test_a_batch_run_writes_at_its_end(tmp_path, capsys):
    store, _ = profiled(write(tmp_path / "e", streaming("BATCH", "COMPLETE")), capsys)
    assert pairs(store) == {("orchard/lake", "orchard/report"): 28}


def test_failed_writes_are_kept_and_nothing_depends_on_them(tmp_path):
    events = [
        *run(clock(0, "01:00"), clock(0, "01:20"), "a", "load", outputs=["t"]),
        *run(clock(1, "01:00"), clock(1, "01:20"), "b", "load", outputs=["t"], kind="FAIL"),
        *run(clock(1, "02:00"), clock(1, "02:20"), "c", "sum", ["t"]),
    ]
    logs = read_events(write(tmp_path / "e", events))
    edges = single_hop(logs).dependencies
    assert (edges.upstream.tolist(), edges.downstream.tolist()) == ([0], [2])
    assert logs.operation.tolist() == [1, 6, 0]  # write, failed_write, read
    assert logs.report == {"events: outputs of runs that failed": 1}


def test_runs_that_have_not_ended_are_censored(tmp_path):
    events = [e for e in daily() if e["run"]["runId"] != "sum-20" or e["eventType"] == "START"]
    events.append(event("RUNNING", clock(20, "01:35"), "sum-20", "sum", ["stg.fruit"]))
    logs = read_events(write(tmp_path / "e", events))
    options = Options(value="jobs")
    day = 86_400.0
    begin = float(logs.column("submit_s")[0]) + 14 * day - 3600
    week = workload(logs, begin, begin + 7 * day, options)
    check_account(week, jobs=14, tokens_s=7 * 50 * 60 - 20 * 60)
    censored = "jobs that had not ended (censored), run for as long as seen"
    assert week.meta["report"][censored] == 1
    assert week.meta["report"]["warnings"][-1].startswith("1 of 14 jobs (7.1 %) had not ended")


def test_times_of_java_and_without_a_zone(tmp_path):
    times = {
        "2025-03-03T02:00:00+01:00[Europe/Paris]": "2025-03-03T01:10:00.5Z[UTC]",
        "2025-03-03T01:00:00": "2025-03-03T01:10:00.500",
        "2025-03-03T01:00:00.123456789Z": "2025-03-03 01:10:00.623456700+00",
        "2025-03-03T02:00:00.1234567+0100": "2025-03-03T01:10:00.6234567 UTC",
    }
    events = [
        event(kind, time, f"r{row}", f"form{row}")
        for row, pair in enumerate(times.items())
        for kind, time in zip(("START", "COMPLETE"), pair, strict=True)
    ]
    logs = read_events(write(tmp_path / "e", events))
    assert logs.run_s() == pytest.approx([600.5] * 4, abs=1e-6)
    assert logs.report["events: eventTime without a zone, taken as UTC"] == 2


@pytest.mark.parametrize(
    "time", ["noon", None, 1740963600000, "2025-03-03T08:10:00[Europe/London]", "2025-02-30T01:00"]
)
def test_a_malformed_time_is_named_and_shortens_no_run_in_silence(tmp_path, time):
    events = [event("START", clock(0, "01:00"), "a", "a"), event("COMPLETE", time, "a", "a")]
    path = write(tmp_path / "e", events)
    logs = read_events(path)
    assert logs.notes[0] == f"1 of 2 (50.0 %) events are malformed: line 2: eventTime {time!r}"
    assert logs.jobs["run_time"].to_pylist() == ["no_end"]
    with pytest.raises(InputError, match="eventTime") as caught:
        read_events(path, "error")
    assert caught.value.line == 2


def test_the_account_holds_over_runs(tmp_path):
    """In = counted + left out + changed, beside a count of the file's text."""
    path = write(tmp_path / "e", nested())
    events = [json.loads(line) for line in path.read_text().splitlines()]
    begin_s = 14 * 86_400.0
    logs = read_events(path)
    first = float(logs.column("submit_s")[0])
    week = workload(logs, first + begin_s, first + begin_s + 86_400.0, Options(value="jobs"))
    day = [e for e in events if e["eventTime"].startswith("2025-03-17")]
    minutes = [int(e["eventTime"][11:13]) * 60 + int(e["eventTime"][14:16]) for e in day]
    work = sum(m if e["eventType"] == "COMPLETE" else -m for m, e in zip(minutes, day, strict=True))
    check_account(week, jobs=len(day) / 2, tokens_s=work * 60)


def test_another_days_runs_under_one_id_are_one_run(tmp_path):
    events = load_and_sum(0)
    logs = read_events(write(tmp_path / "e", events))
    assert profile(logs, Options(value="jobs")).tables["dependencies"].num_rows == 1
