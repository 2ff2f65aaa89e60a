"""OpenLineage events become the two logs; malformed ones are counted with their lines."""

from __future__ import annotations

import json

import pytest

from policies.wing.lineage.dependencies import single_hop
from policies.wing.lineage.openlineage import is_openlineage, read_events
from policies.wing.lineage.profiling import profile
from sim.base.errors import InputError


def event(kind, minute, run, name, inputs=(), outputs=(), **facets):
    return {
        "eventType": kind,
        "eventTime": f"2024-01-01T00:{minute:02d}:00Z",
        "run": {"runId": run},
        "job": {"namespace": "team", "name": name, "facets": facets},
        "inputs": [{"namespace": "db", "name": n} for n in inputs],
        "outputs": [{"namespace": "db", "name": n} for n in outputs],
    }


EVENTS = [
    event("START", 0, "r1", "load", sql={"query": "copy t"}),
    event("COMPLETE", 5, "r1", "load", outputs=["t"]),
    event("START", 6, "r2", "sum", inputs=["t"]),
    event("RUNNING", 7, "r2", "sum", inputs=["u"]),
    event("FAIL", 9, "r2", "sum"),
    event("START", 10, "r3", "hangs", inputs=["t"], outputs=["v"]),
    event("OTHER", 12, "r3", "hangs"),
]


def write(path, events, form="lines"):
    if form == "lines":
        path.write_text("\n".join(e if isinstance(e, str) else json.dumps(e) for e in events))
    else:
        path.write_text(json.dumps(events, indent=2))
    return path


@pytest.mark.parametrize("form", ["lines", "list"])
def test_runs_become_jobs_and_datasets_files(tmp_path, form):
    path = write(tmp_path / "events", EVENTS, form)
    assert is_openlineage(path)
    logs = read_events(path)
    jobs = logs.jobs.to_pylist()
    begin = jobs[0]["submit_s"]
    assert begin == 1704067200.0
    shown = [
        (j["template_name"], j["queue"], j["outcome"], j["submit_s"] - begin, j["finish_s"] - begin)
        for j in jobs
    ]
    assert shown == [
        ("team/load", "team", "done", 0, 300),
        ("team/sum", "team", "failed", 360, 540),
        ("team/hangs", "team", "done", 600, 720),
    ]
    assert jobs[0]["signature"] == "copy t"
    files = logs.files.to_pylist()
    rows = zip(logs.time_s - begin, logs.job, logs.operation, logs.file, strict=True)
    assert [(t, j, o, files[f]) for t, j, o, f in rows] == [
        (300, 0, 1, "db/t"),
        (360, 1, 0, "db/t"),
        (360, 1, 0, "db/u"),
        (600, 2, 0, "db/t"),
        (720, 2, 1, "db/v"),
    ]
    edges = single_hop(logs).dependencies
    assert list(zip(edges.upstream, edges.downstream, strict=True)) == [(0, 1), (0, 2)]
    assert logs.report == {"events: runs that did not end (censored)": 1}
    assert logs.notes == ("1 of 3 (33.3 %) runs have not ended (censored)",)


@pytest.mark.parametrize("end", ["FAIL", "ABORT"])
def test_what_a_failed_run_would_have_written_is_not_read(tmp_path, end):
    again = [
        event("START", 20, "r4", "load", inputs=["raw"], outputs=["t"]),
        event(end, 25, "r4", "load", outputs=["t", "u"]),
        event("START", 30, "r5", "sum", inputs=["t", "u"]),
        event("COMPLETE", 31, "r5", "sum"),
    ]
    logs = read_events(write(tmp_path / "events", [*EVENTS[:2], *again]))
    edges = single_hop(logs).dependencies
    assert list(zip(edges.upstream, edges.downstream, strict=True)) == [(0, 2)]
    assert logs.report == {"events: outputs of runs that failed": 2}


def test_events_of_jobs_and_of_datasets_tell_of_no_run(tmp_path):
    when = {"eventTime": "2024-01-01T00:00:00Z"}
    job = when | {"job": {"namespace": "team", "name": "load"}, "inputs": [], "outputs": []}
    dataset = when | {"dataset": {"namespace": "db", "name": "t"}}
    broken = [when | {"job": {"namespace": "team"}}, dataset | {"eventTime": "noon"}]
    path = write(tmp_path / "events", [job, dataset, *EVENTS[:2], dataset, *broken])
    logs = read_events(path)
    assert logs.n_jobs == 1
    malformed = "events: malformed, lines 6 (no job name), 7 (eventTime 'noon')"
    counted = {"events: of a job, not of a run": 1, "events: of a dataset, not of a run": 2}
    assert logs.report == counted | {malformed: 2}
    with pytest.raises(InputError, match="no job name"):
        read_events(path, "error")


BROKEN = [
    "{not json",
    {"eventType": "START"},
    event("START", 0, "", "x"),
    event("START", 0, "r", ""),
    event("BEGIN", 0, "r", "x"),
    event("START", 0, "r", "x") | {"inputs": [{"namespace": "db"}]},
    event("START", 0, "r", "x") | {"eventTime": "noon"},
    "[1]",
]


def test_malformed_events_are_counted_with_their_lines(tmp_path):
    path = write(tmp_path / "events", [EVENTS[0], *BROKEN, EVENTS[1]])
    logs = read_events(path)
    assert logs.n_jobs == 1
    (rule, n), _ = next(iter(logs.report.items())), None
    assert n == len(BROKEN)
    assert logs.notes == (
        "8 of 10 (80.0 %) events are malformed: line 2: no JSON: Expecting property name enclosed "
        "in double quotes",
    )
    assert rule.startswith(
        "events: malformed, lines 2 (no JSON: Expecting property name enclosed in double quotes), "
        "3 (eventTime None), 4 (no runId), "
        "5 (no job name), 6 (eventType 'BEGIN'), …"
    )


@pytest.mark.parametrize("place", range(len(BROKEN)))
def test_a_malformed_event_is_an_error_if_asked_for(tmp_path, place):
    path = write(tmp_path / "events", [EVENTS[0], BROKEN[place]])
    with pytest.raises(InputError) as caught:
        read_events(path, "error")
    assert (caught.value.file, caught.value.line) == (str(path), 2)


def test_files_that_hold_no_events(tmp_path):
    (tmp_path / "a").write_text("")
    assert not is_openlineage(tmp_path / "a")
    with pytest.raises(InputError, match="is empty"):
        read_events(tmp_path / "a")
    with pytest.raises(InputError, match="holds no event"):
        read_events(write(tmp_path / "a", ["[]"]))
    (tmp_path / "b").write_text('[{"a": 1}, {')
    with pytest.raises(InputError, match=r"none of 2 .*: 2 malformed, the first in line 1: event"):
        read_events(tmp_path / "b")
    (tmp_path / "c").write_text("time_s,job\n")
    assert not is_openlineage(tmp_path / "c")
    (tmp_path / "d").mkdir()
    assert not is_openlineage(tmp_path / "d")
    with pytest.raises(InputError, match="no file of JSON"):
        read_events(tmp_path / "d")


def test_a_real_build(shared_traces):
    """Of 93 runs 21 contain others; an independent script counts 2.561 s in the others."""
    logs = read_events(shared_traces / "lineage" / "openlineage_dbt_build_ol_events.json")
    assert logs.n_jobs == 72
    assert logs.run_s().sum() == pytest.approx(2.561, abs=1e-3)
    result = profile(logs)
    assert result.tables["dependencies"].num_rows == 19
    families = {rule: n for rule, n in result.report.items() if rule.startswith("names that")}
    assert sorted(families.values()) == [6, 6, 6, 6, 12]  # models and a snapshot: …sql.1, …sql.2
    assert {rule: n for rule, n in result.report.items() if rule not in families} == {
        "events: runs that contain others, left out": 21,
        "jobs: in no operation": 35,
        "reads of files never written": 1,
    }
