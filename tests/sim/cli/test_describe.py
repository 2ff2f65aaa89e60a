"""``python -m sim describe``."""

from __future__ import annotations

import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest

import sim
from sim.cli.main import main
from tests.sim.describe.workloads import drawn

TRACE = """task_name,instance_num,job_name,status,start_time,end_time,plan_cpu,plan_mem
M1,2,j_1,Terminated,10,14,100,0.5
R2_1,1,j_1,Terminated,14,20,50,0.2
R2_1_9,1,j_2,Terminated,14,20,50,0.2
M1,1,j_2,Running,14,0,50,0.2
M1_2,1,j_3,Terminated,14,20,50,0.2
R2_1,1,j_3,Terminated,14,20,50,0.2
M1,many,j_4,Terminated,14,20,50,0.2
task_x,3,j_5,Terminated,12,13,100,0.5
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    drawn(80, seed=1).write("work/mine")
    (tmp_path / "batch.csv").write_text(TRACE)
    return tmp_path


def described(folder):
    rows = pq.read_table(folder / "measures.parquet").to_pylist()
    return {(r["dataset"], r["section"], r["key"]): r["value"] for r in rows}


def test_a_folder_is_described_and_the_outcome_written(place, capsys):
    assert main(["describe", "work/mine"]) == 0
    printed = capsys.readouterr().out
    folder = place / "results" / "describe" / "mine"
    assert "Scatter and gather (§4.1)" in printed
    assert "written to results/describe/mine/describe.html" in printed
    assert described(folder)["mine", "overview", "jobs"] == 80
    assert (folder / "describe.html").stat().st_size > 500_000


def test_a_half_is_held_against_what_is_made_of_the_other(place, capsys):
    for half in ("first", "second"):
        assert main(["convert", "parquet", "work/mine", f"work/{half}", "--half", half]) == 0
    read = sim.Workload.read
    ids = [set(read(f"work/{half}").jobs["job_id"].to_pylist()) for half in ("first", "second")]
    assert not ids[0] & ids[1]
    assert len(ids[0] | ids[1]) == 80
    argv = ["describe", "work/mine", "--half", "--out", "out"]
    assert main(argv) == 2
    assert "--half needs a workload to compare with" in capsys.readouterr().err
    assert main([*argv, "--beside", "work/first"]) == 0
    assert "Fidelity: first compared with the second half of mine" in capsys.readouterr().out
    assert all(pq.read_table("out/fidelity.parquet")["alike"].to_pylist())


def test_a_trace_is_described_as_it_lies_and_what_is_wrong_in_it_counted(place, capsys):
    assert main(["describe", "alibaba2018:batch.csv", "--out", "out"]) == 0
    printed = capsys.readouterr().out
    values = described(place / "out")
    assert values["batch", "overview", "jobs"] == 3
    assert values["batch", "input", "one_stage"] == 1
    assert values["batch", "input", "bad rows: cycle (whole job)"] == 2
    assert values["batch", "input", "bad rows: text in a number"] == 1
    assert values["batch", "input", "noticed: name not of the DAG form"] == 1
    assert values["batch", "input", "edges dropped: parent is not in the job"] == 1
    assert values["batch", "input", "filled: end is 0: 0.5 s"] == 1
    for words in ("cycle (whole job)", "name not of the DAG form", "of one stage", "paper"):
        assert words in printed
    assert main(["describe", "batch.csv", "--format", "alibaba2018", "--out", "again"]) == 0
    np.testing.assert_equal(described(place / "again"), values)  # which takes NaN for NaN


def test_options_reach_the_reader(place, capsys):
    argv = ["describe", "alibaba2018:batch.csv", "--option", "on_bad_row=error"]
    assert main(argv) == 2
    assert "batch.csv:8: instance_num is 'many'" in capsys.readouterr().err
    argv = ["describe", "alibaba2018:batch.csv", "--option", "unfinished=drop", "--out", "out"]
    assert main(argv) == 0
    assert described(place / "out")["batch", "input", "dropped: censored: end is 0"] == 1


def test_others_stand_beside_it(place, capsys):
    queries = (
        "# 0: TPC-H query1\n2 0\na 1 .1 .1 .1 .1 .1 .1 2\nb 2 .1 .1 .1 .1 .1 .1 1\n1\na b ata\n"
    )
    (place / "dags").mkdir()
    (place / "dags" / "tpch_17_queries.txt").write_text(queries)
    shutil.copytree("work/mine", "other/mine")
    beside = ["random", "tpch", "other/mine", "tpc:dags/tpch_17_queries.txt"]
    argv = ["describe", "work/mine", "--dags", "dags", "--out", "out"]
    assert main(argv + [a for source in beside for a in ("--beside", source)]) == 0
    head = next(line for line in capsys.readouterr().out.splitlines() if "Overview" in line)
    assert head.split("Table 1)")[1].split("  ") != []
    values = described(place / "out")
    assert values["tpch", "overview", "jobs"] == 1
    assert values["tpch_17_queries", "overview", "jobs"] == 1
    assert values["mine (2)", "overview", "jobs"] == 80
    large = values["mine", "structure", "jobs"]
    assert values["random", "overview", "jobs"] == large > 0


def test_the_seed_draws_the_random_dags(place):
    def spans(seed, out):
        argv = ["describe", "work/mine", "--beside", "random", "--seed", seed, "--out", out]
        assert main(argv) == 0
        return described(place / out)["random", "levels", "mean_span"]

    assert spans("0", "a") == spans("0", "b")
    assert (place / "a" / "describe.html").read_bytes() == (
        place / "b" / "describe.html"
    ).read_bytes()
    assert spans("1", "c") != spans("0", "a")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["absent"], "absent: the folder of a workload does not exist"),
        (["batch.csv"], "give its format, e.g. alibaba2018:batch.csv"),
        (["alibaba2081:batch.csv"], "did you mean 'alibaba2018'"),
        (["alibaba2018:absent.csv"], "absent.csv: the trace does not exist"),
        (["work/mine", "--option", "status=all"], "--option needs --format"),
        (["alibaba2018:batch.csv", "--option", "statsu=all"], "did you mean 'status'"),
        (["work/mine", "--beside", "nothing"], "nothing: the folder of a workload"),
        (["work/mine", "--beside", "tpch", "--dags", "no"], "give its folder with --dags"),
        (["work/mine", "--out", "batch.csv"], "batch.csv: can't make the folder"),
    ],
)
def test_wrong_input_is_one_line_on_stderr_and_exit_2(place, argv, message, capsys):
    assert main(["describe", *argv]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert message in err
