"""SWF logs are counted whole: what is read is what ran."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policies
import sim
from sim.check.account import check_account
from sim.traces.swf import FIELDS
from tests.examples import examples
from tests.sim.traces.test_swf import line, load, write

JOB_AGAIN = "job number of an earlier line with other content: another job"


def test_jobs_that_never_got_a_processor_are_none(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.swf",
        line(),
        line(job_number=2, status=5, run_time=0, allocated_processors=0, requested_processors=512),
        line(job_number=3, status=0, run_time=-1, allocated_processors=-1),
        line(job_number=4, status=5, run_time=0, allocated_processors=8),
        line(job_number=5, status=1, run_time=0, allocated_processors=-1),
    )
    w = load(path)
    assert w.jobs["job_id"].to_pylist() == ["1", "4", "5"]
    account = check_account(w, cpu_s=4 * 60, jobs=5)
    assert account["cpu_s"]["changed_by"] == {"0 s becomes 0.5 s": -0.5 * (8 + 8)}
    assert account["jobs"]["left_out_by"] == {"never started": 2}
    assert "unknown" not in account["cpu_s"]


def test_a_requested_time_of_0_is_no_limit(tmp_path: Path) -> None:
    path = write(tmp_path / "t.swf", line(requested_time=0), line(job_number=2, requested_time=-1))
    w = load(path)
    assert w.jobs["requested_s"].to_pylist() == [None, None]
    assert w.meta["report"]["noticed"] == {"requested time of 0: no limit": 1}


def test_a_job_number_with_other_content_is_another_job(tmp_path: Path) -> None:
    path = write(tmp_path / "t.swf", line(), line(submit_time=40, run_time=6), line())
    w = load(path)
    assert w.jobs["job_id"].to_pylist() == ["1", "1#2"]
    check_account(w, cpu_s=4 * 66, jobs=2)
    report = w.meta["report"]
    assert report["dropped"] == {"repeated line": 1}
    assert report["noticed"] == {JOB_AGAIN: 1}


def test_fields_after_the_18th_are_left_out_and_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "t.swf", line() + " {1,2} q 1:ppn=4", line(job_number=2))
    w = load(path)
    check_account(w, cpu_s=2 * 4 * 60)
    assert w.meta["report"]["noticed"] == {"more than 18 fields: the first 18 are read": 1}
    with pytest.raises(sim.InputError, match="run_time is 'x'") as caught:
        load(write(path, line(), line(run_time="x") + " 19"))
    assert caught.value.line == 5


def sections(path: Path, *parts: tuple[str, list[str]]) -> Path:
    """Write logs, each a header and lines, one after the other."""
    path.write_text("\n".join("\n".join([header, *lines]) for header, lines in parts) + "\n")
    return path


@pytest.mark.parametrize("bad", [[], ["1 2 3"], [line(job_number="x")]])
def test_times_behind_a_header_are_of_its_clock(tmp_path: Path, bad: list[str]) -> None:
    begins = {1: 1000, 2: 5000, 3: 900, 4: 1000}
    path = sections(
        tmp_path / "t.swf",
        *(
            (f"; Version: 2.2\n; UnixStartTime: {s}", [*bad, line(job_number=n, submit_time=7)])
            for n, s in begins.items()
        ),
    )
    w = load(path, on_bad_row="skip")
    assert w.jobs["job_id"].to_pylist() == ["3", "1", "4", "2"]
    assert w.jobs["submit_s"].to_pylist() == [0.0, 100.0, 100.0, 4100.0]
    report = w.meta["report"]
    assert report["noticed"]["another log, behind a header of its own"] == 3
    assert "warnings" not in report
    assert w.meta["header"]["UnixStartTime"] == "900"
    assert w.meta["offset_s"] == 7.0
    readable = 4 * sum(len(text.split()) == 18 for text in bad)  # their work is
    check_account(w, cpu_s=4 * 60 * (4 + readable), jobs=4 + sum(report["bad_rows"].values()))


@pytest.mark.parametrize(
    "headers",
    [
        ("; UnixStartTime: 1000", "; Version: 2"),
        ("; Version: 2", "; UnixStartTime: 1000"),
        ("; UnixStartTime: 1000", "; UnixStartTime: unknown"),
        ("; UnixStartTime: 0", "; UnixStartTime: 1000"),
    ],
)
def test_a_header_without_a_start_is_told(tmp_path: Path, headers: tuple[str, str]) -> None:
    first, second = headers
    path = sections(tmp_path / "t.swf", (first, [line()]), (second, [line(user_id=9)]))
    w = load(path)
    assert w.jobs["submit_s"].to_pylist() == [0.0, 0.0]
    (warning,) = w.meta["report"]["warnings"]
    assert "1 of 2 headers state no UnixStartTime" in warning


def test_a_log_put_together_with_itself_is_read_once(tmp_path: Path) -> None:
    log = ("; UnixStartTime: 1000", [line(), line(job_number=2, preceding_job=1)])
    w = load(sections(tmp_path / "t.swf", log, log))
    assert w.jobs["job_id"].to_pylist() == ["1", "2"]
    assert w.meta["report"]["dropped"] == {"repeated line": 2}
    check_account(w, cpu_s=2 * 4 * 60, jobs=2, edges=1)


def test_an_error_in_a_second_log_names_its_line(tmp_path: Path) -> None:
    path = sections(
        tmp_path / "t.swf", ("; Version: 2\n;", [line()]), ("; Version: 2", [line(), "1 2 3"])
    )
    with pytest.raises(sim.InputError, match="the row has 3 fields") as caught:
        load(path)
    assert caught.value.line == 6


def test_the_machine_of_several_logs_is_the_largest_one(tmp_path: Path) -> None:
    path = sections(
        tmp_path / "t.swf",
        ("; UnixStartTime: 1\n; MaxProcs: 64", [line()]),
        ("; UnixStartTime: 99\n; MaxProcs: 128", [line(job_number=2, allocated_processors=100)]),
    )
    w = load(path)
    assert w.meta["header"]["MaxProcs"] == "128"
    (warning,) = w.meta["report"]["warnings"]
    assert "MaxProcs 128, 64" in warning


def test_a_size_that_is_no_number_is_left_alone(tmp_path: Path) -> None:
    path = sections(tmp_path / "t.swf", ("; MaxProcs: 1²8", [line()]))
    assert load(path).meta["header"]["MaxProcs"] == "1²8"


def part(number: int, status: int, run_time: float, **changes: Any) -> str:
    values = {"submit_time": -1, "wait_time": 300} | changes
    return line(job_number=number, status=status, run_time=run_time, **values)


def test_parts_without_a_whole_line_are_one_job(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.swf",
        part(1, 2, 100, submit_time=0, wait_time=5),
        part(1, 2, 200),
        part(1, 2, 200),  # no repeated line, but the next part
        part(1, 3, 200),
        line(job_number=2, submit_time=60),
        part(2, 2, 40, submit_time=60, wait_time=5),
        part(2, 4, 20),
    )
    w = load(path)
    first, second = w.jobs.to_pylist()
    assert (first["recorded_start_s"], first["recorded_finish_s"]) == (5.0, 5.0 + 700 + 3 * 300)
    assert second["job_id"] == "2"
    check_account(w, cpu_s=4 * (700 + 60), jobs=2)
    report = w.meta["report"]
    assert report["dropped"] == {
        "partial execution of a job that has its whole line": 2,
        "partial execution, joined to the job's first": 3,
    }
    assert report["noticed"] == {"job of partial executions alone: joined": 1}
    completed = load(path, status="completed")
    assert completed.jobs["job_id"].to_pylist() == ["1", "2"]


def test_parts_of_several_widths_keep_their_work(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.swf",
        part(1, 2, 100, submit_time=0, allocated_processors=2),
        part(1, 3, 100, allocated_processors=8),
    )
    w = load(path)
    assert (w.stages["n_tasks"].to_pylist(), w.tasks["duration_s"].to_pylist()[0]) == ([8], 125.0)
    check_account(w, cpu_s=1000)
    rule = "partial execution on fewer processors than another one"
    assert w.meta["report"]["noticed"][rule] == 1


def test_parts_that_go_on_after_the_log_are_censored(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.swf", part(1, 2, 100, submit_time=0), part(1, 2, 50), line(job_number=2)
    )
    w = load(path)
    assert w.n_jobs == 1
    account = check_account(w, cpu_s=4 * (150 + 60), jobs=2)
    rule = "censored: still ran when the log ended"
    assert account["cpu_s"]["left_out_by"] == {rule: 4 * 150}
    (warning,) = w.meta["report"]["warnings"]
    assert "1 of 2 jobs still ran when the log ended (censored)" in warning


def test_parts_count_if_the_whole_line_has_no_run_time(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.swf", line(run_time=-1), part(1, 2, 100, submit_time=0), part(1, 3, 50)
    )
    w = load(path)
    assert w.n_jobs == 1
    check_account(w, cpu_s=4 * 150)


def test_a_job_waits_for_its_preceding_job_and_its_think_time(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.swf",
        line(submit_time=0),
        line(job_number=2, submit_time=10, preceding_job=1, think_time=20),
        line(job_number=3, submit_time=20, preceding_job=9),
        line(job_number=4, submit_time=30, preceding_job=4),
        line(job_number=5, submit_time=40, preceding_job=1, status=5, run_time=-1),
    )
    w = load(path)
    assert w.job_edges.select(["upstream", "downstream", "kind"]).to_pylist() == [
        {"upstream": 0, "downstream": 1, "kind": "hard"}
    ]
    account = check_account(w, edges=4)
    assert account["edges"]["left_out_by"] == {
        "preceding job of a line that is left out": 1.0,
        "preceding job that is no earlier job": 2.0,
    }
    run = sim.simulate(w, sim.Cluster.slots(100), policies.build("fifo"), seed=0)
    assert run.jobs["start_s"].to_pylist()[1] == 60.0 + 20.0
    ignored = load(path, preceding="ignore")
    assert ignored.job_edges.num_rows == 0
    assert check_account(ignored, edges=4)["edges"]["by_option"] == 3.0


def test_a_preceding_job_is_one_of_the_same_log(tmp_path: Path) -> None:
    pair = [line(submit_time=0), line(job_number=2, submit_time=50, preceding_job=1)]
    path = sections(
        tmp_path / "t.swf", ("; UnixStartTime: 1000", pair), ("; UnixStartTime: 1010", pair)
    )
    w = load(path)
    assert w.jobs["job_id"].to_pylist() == ["1", "1#2", "2", "2#2"]
    edges = w.job_edges.select(["upstream", "downstream"]).to_pylist()
    assert edges == [{"upstream": 0, "downstream": 2}, {"upstream": 1, "downstream": 3}]


@pytest.mark.parametrize("memory", ["requested", "used"])
def test_memory_has_an_account_too(tmp_path: Path, memory: Any) -> None:
    path = write(
        tmp_path / "t.swf",
        line(**{f"{memory}_memory": 2**20}),
        line(job_number=2, run_time=0, **{f"{memory}_memory": 2**19}),
        line(job_number=3, status=5, run_time=-1, allocated_processors=0),
    )
    account = check_account(load(path, memory=memory), mem_gib_s=4 * 60)
    assert account["mem_gib_s"]["changed"] == -0.5 * 4 * 0.5
    if memory == "requested":
        unread = check_account(load(path), mem_gib_s=4 * 60)["mem_gib_s"]
        assert unread["by_option"] == unread["left_out"] == 4 * 60


PROCESSORS = st.sampled_from([-1, 0, 1, 4, 7])
LINES = st.lists(
    st.fixed_dictionaries(
        {
            "job_number": st.integers(1, 4),
            "submit_time": st.sampled_from([-1, 0, 5, 9]),
            "wait_time": st.sampled_from([-1, 0, 3]),
            "run_time": st.sampled_from([-1, 0, 1.5, 60, 60]),
            "allocated_processors": PROCESSORS,
            "requested_processors": PROCESSORS,
            "requested_time": st.sampled_from([-1, 0, 100]),
            "status": st.integers(-1, 5),
            "preceding_job": st.sampled_from([-1, -1, 1, 2]),
        }
    ),
    min_size=1,
    max_size=8,
)
DAMAGES = st.lists(st.sampled_from(["7 0 3", "short", line(user_id="x"), line(wait_time=-9)]))


def never(job: dict[str, float]) -> bool:
    """Tell whether a job got no processor."""
    allocated = job["allocated_processors"]
    is_none = allocated == 0 or (allocated < 0 and job["status"] in (0, 5))
    return job["status"] != 1 and job["run_time"] <= 0 and is_none


def amount(job: dict[str, float]) -> float | None:
    """Return the CPU time that a line states; 0 if its job never ran, None if it is not known."""
    if never(job):
        return 0.0
    allocated = job["allocated_processors"]
    width = allocated if allocated >= 1 else job["requested_processors"]
    return width * job["run_time"] if width >= 1 and job["run_time"] >= 0 else None


def runs(job: dict[str, float]) -> bool:
    """Tell whether the line of a whole job becomes a job."""
    return not never(job) and amount(job) is not None and job["submit_time"] >= 0


def counted(text: str) -> float:
    """Count the CPU time of a log by its lines: parts count if their job has no other line."""
    lines: list[dict[str, float]] = []
    turns: dict[float, int] = defaultdict(int)
    seen = set()
    for words in (row.split() for row in text.splitlines() if not row.startswith(";")):
        job = dict(zip(FIELDS, map(float, words), strict=True))
        number = job["job_number"]
        is_part = job["status"] in (2, 3, 4)
        turns[number] = 0 if job["submit_time"] >= 0 or number not in turns else turns[number] + 1
        content = (*words, turns[number] if is_part else 0)
        if content not in seen:
            seen.add(content)
            lines.append(job)
    whole = {job["job_number"] for job in lines if job["status"] not in (2, 3, 4) and runs(job)}
    total, parts = 0.0, defaultdict(list)
    for job in lines:
        if job["status"] not in (2, 3, 4):
            total += amount(job) or 0.0
        elif job["job_number"] not in whole:
            parts[job["job_number"]].append(amount(job))
    known = [work for work in parts.values() if None not in work]
    return total + sum(sum(filter(None, work)) for work in known)


@settings(max_examples=examples(200))
@given(LINES, DAMAGES, st.sampled_from(["all", "completed"]))
def test_the_account_holds_for_any_log(
    tmp_path_factory: pytest.TempPathFactory, lines: Any, damages: list[str], status: str
) -> None:
    path = write(tmp_path_factory.mktemp("swf") / "t.swf", *(line(**job) for job in lines))
    whole = path.read_text()
    path.write_text(whole + "\n".join(damages))
    readable = sum(len(text.split()) == len(FIELDS) for text in damages)  # their work is
    try:
        w = load(path, on_bad_row="skip", status=status)
    except sim.InputError:
        return
    account = check_account(w, cpu_s=counted(whole) + 4 * 60 * readable)
    assert account["jobs"]["workload"] == len(set(w.jobs["job_id"].to_pylist())) > 0
