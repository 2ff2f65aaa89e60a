"""The account of Spark's event logs against a slow count of their lines, on random applications."""

from __future__ import annotations

import gzip
import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sim
from sim.check.account import check_account
from tests.examples import examples
from tests.sim.traces.spark_applications import CORES, MEMORY_GIB, count, damaged, runs

GUESSED = "a task whose partition is a guess: no Partition ID, and outputs were lost unseen"
MISSING = "a task whose end is not in the log, though its stage completed"
MEDIAN = "a task whose end is not in the log: the median of its stage"
RANDOM = settings(max_examples=examples(120), deadline=None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("applications")


def read(folder, lines, *cuts, **options):
    """Read lines from a new folder, in files that are cut at these lines."""
    folder = folder / str(len(list(folder.iterdir())))
    folder.mkdir()
    bounds = [0, *sorted(cuts), len(lines)]
    for number, (begin, stop) in enumerate(itertools.pairwise(bounds)):
        content = "".join(f"{line}\n" for line in lines[begin:stop]).encode()
        if stop == len(lines):
            (folder / "eventlog").write_bytes(content)
        else:
            (folder / f"eventlog-{number}.gz").write_bytes(gzip.compress(content))
    return sim.read_trace("spark_eventlog", folder, **options)


def by_stage(workload):
    number = workload.stages["spark_stage"].to_pylist()
    result = {}
    for task in workload.tasks.to_pylist():
        result.setdefault(number[task["stage"]], []).append(round(1000 * task["duration_s"], 6))
    return {stage: sorted(durations) for stage, durations in result.items()}


def expected(first):
    result = {}
    for (stage, _), (_, run_ms) in first.items():
        result.setdefault(stage, []).append(max(float(run_ms), 0.5))
    return {stage: sorted(durations) for stage, durations in result.items()}


def texts(run):
    return [json.dumps(event) for event in run.events]


def check(workload, run, total):
    work_s = run.cpus * total.run_ms / 1000
    account = check_account(workload, cpu_s=work_s, mem_gib_s=work_s * MEMORY_GIB / CORES, jobs=1)
    by_option = account["cpu_s"].get("by_option", 0.0)
    assert by_option == pytest.approx(run.cpus * total.repeated_ms / 1000)
    return account


@RANDOM
@given(run=runs(), data=st.data())
def test_an_application_in_files(folder, run, data):
    """Each partition is a task once, with the first success's time, whatever was lost or cut."""
    lines = texts(run)
    cuts = data.draw(st.lists(st.integers(4, len(lines) - 1), max_size=2, unique=True))
    w = read(folder, lines, *cuts)
    total = count(lines, run.partition)
    account = check(w, run, total)
    assert account["tasks"]["log"] == account["tasks"]["workload"] == len(total.first)
    noticed = w.meta["report"]["noticed"]
    if GUESSED not in noticed:
        assert by_stage(w) == expected(total.first)
    assert GUESSED not in noticed or not run.has_partitions
    n_unended = len(run.partition) - len(total.ended)
    assert noticed.get("an attempt whose end is not in the log", 0) == n_unended
    assert account["cpu_s"].get("unknown", 0) == total.n_unknown + n_unended
    assert "warnings" not in w.meta["report"]


@RANDOM
@given(run=runs(), data=st.data())
def test_an_application_with_damage(folder, run, data):
    """The work of all lines is in the account, with events dropped, repeated or damaged."""
    lines = texts(run)
    dropped = data.draw(st.sets(st.integers(3, len(lines) - 1), max_size=6))
    lines = [line for number, line in enumerate(lines) if number not in dropped]
    lines = damaged(data.draw, lines)
    begin = data.draw(st.integers(0, len(lines)))
    lines += lines[begin : begin + data.draw(st.integers(0, 5))]
    total = count(lines, run.partition)
    described = {key: times for key, times in total.first.items() if key[0] in total.n_tasks}
    if not described:
        return
    w = read(folder, lines, on_bad_row="skip")
    report = w.meta["report"]
    assert sum(report["bad_rows"].values()) == total.n_bad
    check(w, run, total)
    if run.has_partitions:
        assert by_stage(w) == expected(described)
    n_missing = report["noticed"].get(MISSING, 0)
    assert any("no end in the log" in warning for warning in report.get("warnings", [])) == (
        n_missing > 0
    )
    filled = read(folder, lines, on_bad_row="skip", missing_tasks="median")
    check(filled, run, total)
    n_filled = filled.n_tasks - w.n_tasks
    assert filled.meta["report"]["filled"].get(MEDIAN, 0) == n_filled <= n_missing


@RANDOM
@given(run=runs(), keep=st.floats(0.2, 0.9))
def test_an_application_that_still_runs(folder, run, keep):
    """The beginning of a log has the tasks that had ended; the others are counted as censored."""
    lines = texts(run)
    lines = lines[: max(int(keep * len(lines)), 4)]
    total = count(lines, run.partition)
    if not total.first:
        return
    w = read(folder, lines)
    account = check(w, run, total)
    if GUESSED not in w.meta["report"]["noticed"]:
        assert by_stage(w) == expected(total.first)
    assert account["edges"]["log"] == len(total.ran) - 1
