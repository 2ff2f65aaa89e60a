"""``python -m sim lineage``: a window of a user's own logs, written as a workload."""

from __future__ import annotations

import pytest

import sim
from policies.wing.lineage import read_logs, workload, write_logs
from sim.cli.main import main
from tests.policies.wing.lineage.small import small_logs
from tests.policies.wing.lineage.test_window import BEGIN, END, daily


@pytest.fixture
def arguments(tmp_path) -> list[str]:
    write_logs(small_logs(*daily()), tmp_path)
    return [
        "lineage",
        str(tmp_path / "operations.parquet"),
        "--jobs",
        str(tmp_path / "jobs.parquet"),
    ]


def test_logs_are_read_as_they_were_written(arguments):
    logs, again = small_logs(*daily()), read_logs(arguments[1], arguments[3])
    assert again.report == logs.report
    assert again.jobs.equals(logs.jobs)
    assert workload(again, BEGIN, END).digest == workload(logs, BEGIN, END).digest


def test_a_window_is_written_as_a_workload_and_said(arguments, tmp_path, capsys):
    folder = str(tmp_path / "week")
    assert main([*arguments, "--workload", folder, "--begin", str(BEGIN), "--end", str(END)]) == 0
    expected = workload(small_logs(*daily()), BEGIN, END)
    assert sim.Workload.read(folder).digest == expected.digest
    printed = capsys.readouterr().out
    assert "28 jobs" in printed
    assert "jobs of recurring programs: 75.0 %" in printed
    assert f"written to {folder}" in printed
    assert not (tmp_path / "jobs.html").exists()
    # someone's questions hold two tokens: ten are the least of which a fifth is enough
    assert (
        f"next: python -m sweep policy=priority,wing_agg trace=parquet trace.path={folder} "
        "cluster=cosmos cluster.queues.mode=global cluster.shape.tokens=10 capacity=1.0,0.4,0.2"
    ) in printed


def test_a_time_may_be_a_date_and_a_profile_may_be_written_too(arguments, tmp_path, capsys):
    folder, out = str(tmp_path / "week"), tmp_path / "profile"
    assert main([*arguments, "--workload", folder, "--begin", "1970-01-15", "--end",
                 "1970-01-22T02:00+02:00", "--out", str(out)]) == 0  # fmt: skip
    assert sim.Workload.read(folder).n_jobs == 28
    assert (out / "lineage.html").exists()


def test_where_every_job_holds_one_slot_slots_are_what_it_needs(tmp_path, capsys):
    jobs, _ = daily()
    write_logs(small_logs([j | {"requested": 1.0} for j in jobs]), tmp_path)
    words = [str(tmp_path / "operations.parquet"), "--jobs", str(tmp_path / "jobs.parquet")]
    assert main(["lineage", *words, "--workload", str(tmp_path / "w"), "--begin", str(BEGIN),
                 "--end", str(END)]) == 0  # fmt: skip
    printed = capsys.readouterr().out
    assert "no downloads of its jobs' output" in printed
    assert f"trace.path={tmp_path / 'w'} capacity=1.0,0.4,0.2" in printed


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--workload", "w"], "--workload DIR, --begin T and --end T must be given together"),
        ([], "give --out PROFILE, or --workload DIR, or both"),
        (["--workload", "w", "--begin", "90e6", "--end", "91e6"], "no job is submitted in"),
        (["--workload", "w", "--begin", "noon", "--end", "1"], "neither a number of seconds nor"),
    ],
)
def test_what_does_not_go_together_is_an_error(arguments, words, message, capsys):
    try:
        code = main([*arguments, *words])
    except SystemExit as end:  # argparse's own
        code = end.code
    assert code == 2
    assert message in capsys.readouterr().err
