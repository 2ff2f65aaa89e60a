"""``python -m sim``: every verb through `main`, and the process's exit codes."""

from __future__ import annotations

import json
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

import sim
from sim.cli.main import VERBS, main

TRACE = """M1,2,j_1,1,Terminated,10,14,100,0.5
R2_1,1,j_1,1,Terminated,14,20,50,0.2
M1,3,j_2,1,Terminated,12,0,100,0.5
M1,3,j_2,1,Terminated,12,13,100,0.5
"""


@pytest.fixture
def folder(tmp_path) -> str:
    sim.synthesize("alibaba2018", jobs=60, seed=1).write(tmp_path / "w")
    return str(tmp_path / "w")


def test_synth_writes_a_workload_and_says_so(tmp_path, capsys):
    out = str(tmp_path / "out")
    assert main(["synth", "alibaba2018", out, "--jobs", "40", "--seed", "2"]) == 0
    expected = sim.synthesize("alibaba2018", jobs=40, seed=2)
    assert sim.Workload.read(out).digest == expected.digest
    printed = capsys.readouterr().out
    assert f"40 jobs, {expected.n_stages} stages, {expected.n_tasks:,} tasks" in printed
    assert f"written to {out}" in printed
    assert "next: python -m sweep trace=" in printed


def test_synth_takes_tables_and_further_options(tmp_path, folder):
    tables, out = str(tmp_path / "t.json"), str(tmp_path / "out")
    assert main(["fit", folder, tables]) == 0
    arguments = ["--jobs", "30", "--tables", tables, "--set", "max_tasks_per_stage=7"]
    assert main(["synth", "alibaba2018", out, *arguments]) == 0
    written = sim.Workload.read(out)
    assert written.meta["synth"]["tables"] == "t.json"
    assert max(written.stages["n_tasks"].to_pylist()) <= 7


def test_fit_makes_tables_of_recurring_jobs_that_synth_takes(tmp_path, capsys):
    folder, tables, out = (str(tmp_path / name) for name in ("w", "t.json", "more"))
    written = ["synth", "recurring", folder, "--jobs", "60", "--set", "preset=google2011"]
    assert main(written) == 0
    assert main(["fit", folder, tables, "--generator", "recurring", "--slots", "150"]) == 0
    assert f"python -m sim synth recurring OUT --tables {tables}" in capsys.readouterr().out
    assert main(["synth", "recurring", out, "--jobs", "60", "--tables", tables]) == 0
    assert sim.Workload.read(out).n_jobs == 60


def test_fit_prints_what_it_pooled(tmp_path, folder, capsys):
    out = tmp_path / "t.json"
    assert main(["fit", folder, str(out)]) == 0
    printed = capsys.readouterr().out
    assert "60 jobs" in printed
    assert "pooled: level: one table for " in printed
    assert json.loads(out.read_text())["format"] == "probability tables 1"


def test_convert_reports_what_the_reader_dropped(tmp_path, capsys):
    trace, out = tmp_path / "batch_task.csv", str(tmp_path / "out")
    trace.write_text(TRACE)
    assert main(["convert", "alibaba2018", str(trace), out, "--option", "on_bad_row=skip"]) == 0
    workload = sim.Workload.read(out)
    assert workload.n_jobs == 2
    assert workload.n_tasks == 6
    printed = capsys.readouterr().out
    assert f"read {trace} as alibaba2018" in printed
    assert ": 1" in printed  # the row that ends at 0


def test_programs_are_fitted_and_synthesized(tmp_path, capsys):
    jobs = [
        {
            "submit_s": 9.0 * index,
            "template": f"t{index % 4}",
            "stages": [{"durations_s": [1.0 + index % 4]}],
        }
        for index in range(40)
    ]
    sim.Workload.from_jobs(jobs).write(tmp_path / "real")
    tables, out = str(tmp_path / "t.json"), str(tmp_path / "out")
    assert main(["fit", str(tmp_path / "real"), tables, "--generator", "programs"]) == 0
    assert "40 jobs; 4 kinds of runs of programs, 0 of users' other jobs" in capsys.readouterr().out
    assert main(["synth", "programs", out, "--tables", tables, "--jobs", "30"]) == 0
    written = sim.Workload.read(out)
    assert (written.n_jobs, written.history.num_rows) == (30, 30)
    assert set(written.jobs["template"].to_pylist()) == {"t0", "t1", "t2", "t3"}


def test_convert_turns_transforms(tmp_path, folder, capsys):
    out = str(tmp_path / "out")
    transform = ["--transform", "amplify:ratio=2", "--transform", "rewire:seed=3,variant=paper"]
    assert main(["convert", "parquet", folder, out, *transform]) == 0
    written = sim.Workload.read(out).meta
    assert written["transforms"][-1]["heterogeneity"] == 2.0
    assert written["rewired"] == {"seed": 3, "variant": "paper"}


def test_bound_prints_quantiles_and_writes_rows(tmp_path, folder, capsys):
    out = tmp_path / "bounds.parquet"
    shape = ["--machines", "50", "--shape", "cpu=96,mem=100"]
    assert main(["bound", folder, str(out), *shape]) == 0
    workload = sim.Workload.read(folder)
    expected = sim.lower_bound(workload, sim.Cluster.machines(50, cpu=96, mem=100))
    assert pq.read_table(out).equals(expected)
    printed = capsys.readouterr().out
    assert "50 machines: cpu 96, mem 100" in printed
    for name in ("cp_len", "twork", "mod_cp", "new_lb", "tight_lb"):
        assert f"{name} " in printed


def test_bound_on_slots_needs_no_file(folder, capsys):
    assert main(["bound", folder, "--slots", "100"]) == 0
    assert "on 100 slots" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["synth", "alibaba2081", "OUT"], "did you mean 'alibaba2018'"),
        (["synth", "alibaba2018", "OUT", "--jobs", "0"], "at least 1, not 0"),
        (["synth", "alibaba2018", "OUT", "--set", "jbos=3"], "did you mean 'jobs'"),
        (["synth", "alibaba2018", "OUT", "--set", "jobs=3"], "give --jobs 3, not --set jobs=3"),
        (["synth", "alibaba2018", "OUT", "--set", "tables=x"], "give --tables x"),
        (["synth", "alibaba2018", "OUT", "--set", "jobs"], "takes key=value, not 'jobs'"),
        (["synth", "alibaba2018", "OUT", "--set", "a=1", "--set", "a=2"], "gives 'a' twice"),
        (["synth", "alibaba2018", "OUT", "--tables", "absent"], "absent: there is no such file"),
        (["synth", "alibaba2018", "FILE"], "FILE"),
        (["fit", "absent", "OUT"], "absent: no such file or folder"),
        (["fit", "WORKLOAD", "FILE/t.json"], "FILE"),
        (["convert", "alibaba2081", "FILE", "OUT"], "alibaba2018"),
        (["convert", "alibaba2018", "absent.csv", "OUT"], "absent.csv"),
        (["bound", "absent", "--slots", "5"], "absent"),
        (["bound", "WORKLOAD", "--slots", "0"], "slots >= 1, not 0"),
        (["bound", "WORKLOAD", "--slots", "5", "--shape", "cpu=1"], "--shape needs --machines"),
        (["bound", "WORKLOAD", "--machines", "5"], "--machines needs --shape"),
        (["bound", "WORKLOAD", "--machines", "5", "--shape", "cpu=x"], "cpu must be a number"),
        (["bound", "WORKLOAD", "--machines", "5", "--shape", "cpu"], "takes key=value, not 'cpu'"),
        (["bound", "WORKLOAD", "--machines", "5", "--shape", "cpu=96"], "mem"),
    ],
)
def test_wrong_input_is_one_line_on_stderr_and_exit_2(tmp_path, folder, argv, message, capsys):
    (tmp_path / "file").write_text("not a trace\n")
    places = {"OUT": tmp_path / "out", "FILE": tmp_path / "file", "WORKLOAD": folder}
    for word, place in places.items():
        argv = [a.replace(word, str(place)) for a in argv]
        message = message.replace(word, str(place))
    assert main(argv) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert printed.err.count("\n") == 1
    assert message in printed.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "argv", [[], ["convrt"], ["synth"], ["bound", "w"], ["synth", "a", "b", "-x"]]
)
def test_a_wrong_command_shows_the_usage_and_exits_with_2(argv, capsys):
    with pytest.raises(SystemExit) as caught:
        main(argv)
    assert caught.value.code == 2
    assert "usage: python -m sim" in capsys.readouterr().err


@pytest.mark.parametrize("verb", [verb.name for verb in VERBS])
def test_help_of_a_verb_has_an_example(verb, capsys):
    with pytest.raises(SystemExit) as caught:
        main([verb, "--help"])
    assert caught.value.code == 0
    assert f"python -m sim {verb} " in capsys.readouterr().out.split("example")[1]


def test_an_interrupt_exits_with_130(monkeypatch, capsys, folder):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("sim.bounds.lower_bound", interrupted)
    assert main(["bound", folder, "--slots", "5"]) == 130
    assert "interrupted" in capsys.readouterr().err


def run(*argv: str, **arguments) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sim", *argv]
    return subprocess.run(command, capture_output=True, text=True, check=False, **arguments)


def test_the_process_exits_with_the_code(tmp_path):
    done = run("synth", "alibaba2018", str(tmp_path / "w"), "--jobs", "5")
    assert (done.returncode, done.stderr) == (0, "")
    wrong = run("bound", str(tmp_path / "absent"), "--slots", "5")
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("error: ")
    assert "Traceback" not in wrong.stderr


def test_help_is_quick_because_it_imports_nothing_heavy():
    code = (
        "import sys; from sim.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'numba', 'numpy', 'pandas', 'pyarrow', 'ray'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    for verb in VERBS:
        assert verb.name in done.stdout
