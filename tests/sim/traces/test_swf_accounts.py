"""SWF logs are counted whole: what is read is what ran."""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sim
from tests.sim.traces.accounts import check_account
from tests.sim.traces.test_swf import line, load, write


def test_numbers_of_logs_put_together_are_jobs_of_their_own(tmp_path: Path) -> None:
    path = write(tmp_path / "t.swf", line(), line(submit_time=40, run_time=6), line())
    w = load(path)
    assert w.jobs["job_id"].to_pylist() == ["1", "1#2"]
    check_account(w, cpu_s=4 * 66, jobs=2)
    report = w.meta["report"]
    assert report["dropped"] == {"repeated line": 1}
    assert report["noticed"] == {"job number of an earlier job: another job": 1}


def test_times_behind_a_second_header_are_of_its_clock(tmp_path: Path) -> None:
    path = tmp_path / "t.swf"
    path.write_text(
        f"; UnixStartTime: 1000\n{line(submit_time=0)}\n"
        f"; MaxProcs: 64\n; UnixStartTime: 5000\n{line(job_number=2, submit_time=7)}\n"
    )
    assert load(path).jobs["submit_s"].to_pylist() == [0.0, 4007.0]


def test_a_second_header_without_a_start_is_told(tmp_path: Path) -> None:
    path = tmp_path / "t.swf"
    path.write_text(
        f"; UnixStartTime: 1000\n{line()}\n; UnixStartTime: unknown\n{line(user_id=9)}\n"
    )
    w = load(path)
    assert w.jobs["submit_s"].to_pylist() == [0.0, 0.0]
    (warning,) = w.meta["report"]["warnings"]
    assert "behind 1 jobs has the UnixStartTime 'unknown'" in warning


def test_parts_without_a_whole_line_are_one_job(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.swf",
        line(status=2, submit_time=0, wait_time=5, run_time=100, allocated_processors=4),
        line(status=3, submit_time=-1, wait_time=300, run_time=200, allocated_processors=4),
    )
    w = load(path)
    (job,) = w.jobs.to_pylist()
    assert (job["recorded_start_s"], job["recorded_finish_s"]) == (5.0, 605.0)
    check_account(w, cpu_s=4 * 300, jobs=1)


def test_a_job_waits_for_its_preceding_job_and_its_think_time(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.swf",
        line(submit_time=0),
        line(job_number=2, submit_time=10, preceding_job=1, think_time=20),
        line(job_number=3, submit_time=20, preceding_job=9),
    )
    w = load(path)
    assert w.job_edges.select(["upstream", "downstream", "kind"]).to_pylist() == [
        {"upstream": 0, "downstream": 1, "kind": "hard"}
    ]
    account = check_account(w, edges=2)
    assert account["edges"]["left_out_by"] == {"preceding job that is not in the workload": 1.0}
    run = sim.simulate(w, sim.Cluster.slots(100), sim_policy(), seed=0)
    assert run.jobs["start_s"].to_pylist()[1] == 60.0 + 20.0
    ignored = load(path, preceding="ignore")
    assert ignored.job_edges.num_rows == 0
    assert check_account(ignored)["edges"]["by_option"] == 2.0


def sim_policy() -> Any:
    import policies

    return policies.build("fifo")


NUMBERS = st.sampled_from([-1, 0, 1, 4, 7])
LINES = st.lists(
    st.fixed_dictionaries(
        {
            "job_number": st.integers(1, 4),
            "submit_time": st.sampled_from([-1, 0, 5, 9]),
            "wait_time": st.sampled_from([-1, 0, 3]),
            "run_time": st.sampled_from([-1, 0, 1.5, 60]),
            "allocated_processors": NUMBERS,
            "requested_processors": NUMBERS,
            "status": st.integers(-1, 5),
            "preceding_job": st.sampled_from([-1, 1, 2]),
        }
    ),
    min_size=1,
    max_size=8,
)
DAMAGES = st.sampled_from(["", " 1 2 3", "short", "text"])


def counted(lines: list[dict[str, Any]]) -> float:
    """Count the CPU time of a log by its text's rules, line by line."""
    whole = {record["job_number"] for record in lines if record["status"] not in (2, 3, 4)}
    known, distinct = [], set()
    for record in lines:
        if tuple(record.items()) not in distinct:
            distinct.add(tuple(record.items()))
            known.append(record)
    total, parts = 0.0, defaultdict(list)
    for record in known:
        allocated, requested = record["allocated_processors"], record["requested_processors"]
        processors = allocated if allocated >= 1 else requested if requested >= 1 else math.nan
        run_s = record["run_time"] if record["run_time"] >= 0 else math.nan
        ended = record["status"] in (0, 5)
        is_never = (allocated == 0 or (allocated < 0 and ended)) and not run_s > 0
        if record["status"] in (2, 3, 4):
            if record["job_number"] not in whole:
                parts[record["job_number"]].append(processors * run_s)
        elif not is_never and math.isfinite(processors * run_s):
            total += processors * run_s
    return total + sum(sum(work) for work in parts.values() if math.isfinite(sum(work)))


@settings(max_examples=150, deadline=None)
@given(LINES, st.lists(DAMAGES, max_size=2))
def test_the_account_holds_for_any_log(
    tmp_path_factory: pytest.TempPathFactory, lines: list[dict[str, Any]], damages: list[str]
) -> None:
    texts = [line(**record) for record in lines]
    whole = write(tmp_path_factory.mktemp("swf") / "t.swf", *texts)
    try:
        w = load(whole)
    except sim.InputError:
        return
    check_account(w, cpu_s=counted(lines))
    bad = [
        f"{line(job_number=77)}{damage}" if damage.startswith(" ") else damage for damage in damages
    ]
    read = load(write(whole, *texts, *bad), on_bad_row="skip")
    check_account(read)
