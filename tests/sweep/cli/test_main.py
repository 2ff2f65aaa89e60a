from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from sim.base import interrupt
from sweep.cli import main
from sweep.cli.main import parser
from sweep.cli.verbs import about, names, takes
from sweep.execution import memory
from sweep.grid.options import GROUPS, Options
from tests.sweep.small import Command


def test_help_begins_with_examples_verbs_and_axes(fake: Command) -> None:
    shown = fake.bare("--help")
    assert shown.code == 0
    for verb in names():
        assert f"\n  {verb} " in shown.out
    for axis in ("policy=", "capacity=", "trace=", "seed="):
        assert axis in shown.out
    parts = ("examples\n", "\nverbs", "\naxes", "\npolicy= (", "\ntrace= (", "\nmore help")
    positions = [shown.out.index(part) for part in parts]
    assert positions == sorted(positions)
    assert shown.out[positions[0] : positions[1]].count("python -m sweep") >= 3
    for name in Options().names("policy"):
        assert (f"\n  {name} " in shown.out) == ("/" not in name)
    assert ": --help policies" in shown.out
    assert all(len(line) <= 120 for line in shown.out.splitlines())


def test_help_shows_every_option_by_topic(fake: Command) -> None:
    shown = fake.bare("--help", "all").out
    whole = " ".join(shown.split())
    for group in GROUPS:
        for name in Options().names(group):
            assert f"\n  {name} " in shown
            assert " ".join(Options().summary(group, name).split()) in whole
    assert all(len(line) <= 120 for line in shown.splitlines())
    policies = fake.bare("--help", "policies").out
    assert "\n  jockey_with/cp " in policies
    assert "trace=" not in policies
    assert re.search(r"\n  srpt  [^[]*\[true\s+durations\]\n", policies)
    assert re.search(r"\n  backfill/easy_predicted [^[]*\[learnt\s+durations\]\n", policies)
    assert re.search(r"\n  fifo  [^[]*\n  gpu_packing ", policies)
    assert fake.bare("help", "policies").out == policies
    assert "unknown topic of --help 'polices'; did you mean 'policies'" in (
        fake.bare("--help", "polices").err
    )
    assert "; --help trace=table has its parameters" in fake.bare("--help", "table").err


def test_traces_that_need_files_are_marked(fake: Command) -> None:
    """Check each mark by the composed option: what is to be given, and what real traces have."""
    entries = re.split(r"\n  (?=\w)", fake.bare("--help", "traces").out.strip())[1:]
    shown = {entry.split()[0]: " ".join(entry.split()) for entry in entries}
    assert {*shown} == {*Options().names("trace")}
    for name, entry in shown.items():
        trace = Options().compose(trace=name)["trace"]
        is_real = str(trace.get("path")).startswith("${paths.traces}")
        assert entry.endswith("[in paths.traces]") == is_real, name
        assert entry.endswith("[your file]") == ("???" in trace.values()), name


def test_the_command_returns_freed_memory_to_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setenv("ARROW_DEFAULT_MEMORY_POOL", "system")
    monkeypatch.setattr(interrupt, "install", lambda *_: calls.append("install"))
    monkeypatch.setattr(interrupt, "finish", lambda *_: calls.append("finish"))
    monkeypatch.setattr(memory, "return_large_blocks", lambda: calls.append("memory"))
    monkeypatch.setattr(main, "main", lambda argv: calls.append(argv[0]))
    monkeypatch.setattr(sys, "argv", ["sweep", "list"])
    runpy.run_module("sweep", run_name="__main__", alter_sys=False)
    assert calls == ["install", "memory", "list", "finish"]


def test_a_verb_may_stand_anywhere(fake: Command) -> None:
    first = fake.bare("plan", *fake.words("policy=fifo", "--all"))
    assert first.code == 0
    words = fake.words("policy=fifo")
    assert fake.bare(*words, "plan", "--all").out == first.out
    assert fake.bare(words[0], "plan", *words[1:], "--all").out == first.out
    assert fake.bare(*words, "--all", "plan").out == first.out
    (fake.results.parent / "list").mkdir()
    folder = ["--config-dir", str(fake.results.parent / "list")]
    assert fake.bare(*folder, "plan", *words, "--all").out == first.out
    twice = fake.bare(*words, "--fail-fast", "plan", "run")
    assert "run: one verb at a time" in twice.err
    folder = fake("policy=fifo").folder
    shown = fake.bare(f"paths.results={fake.results}", folder.name, "show")
    assert shown.out == fake.verb("show").out


def test_help_shows_a_users_own_options(fake: Command, tmp_path: Path) -> None:
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "mine.yaml").write_text("# My very own.\nname: fifo\n")
    (tmp_path / "policy" / "gone.yaml").write_text("# Broken.\nname: gone\nmodule: gone_gone\n")
    shown = fake.bare("--config-dir", str(tmp_path), "--help")
    assert shown.code == 0
    assert "My very own." in shown.out
    assert "Broken." in shown.out


def test_help_shows_the_parameters_of_a_policy(fake: Command) -> None:
    shown = fake.bare("--help", "policy=slearn,list_scheduling/bfs_cpu_mem")
    assert shown.code == 0
    assert (
        "policy.thin_limit=3  A job with fewer tasks than this is thin: it goes first," in shown.out
    )
    assert "policy.fit_resources=['cpu', 'mem']  " in shown.out
    assert "\n  knows learnt durations, declared demands\n" in shown.out
    assert fake.bare("--help", "policy=fiffo").code == 2


def test_help_shows_the_parameters_of_a_trace(fake: Command, tmp_path: Path) -> None:
    shown = fake.bare("--help", "trace=swf,alibaba_synth").out
    assert "\n  trace.format=swf\n  trace.path=FILE\n  trace.begin_s=null\n" in shown
    assert "\n  trace.gang=True  False lets the tasks of a job start one by one. (true" in shown
    assert "\n  trace.jobs=2000  Number of jobs, at least 1. (a whole number" in shown
    assert all(len(line) <= 120 for line in shown.splitlines())
    wrong = fake.bare("--help", "trace=swff")
    assert (wrong.code, wrong.out) == (2, "")
    assert "unknown trace 'swff'; did you mean 'swf'" in wrong.err


def test_help_lists_metrics_and_transforms(fake: Command) -> None:
    shown = fake.bare("--help", "metrics", "transforms").out
    assert "\n  jct_mean_s " in shown
    assert "\n  squeeze " in shown
    assert "policy=" not in shown


def test_help_on_another_option_says_what_to_type(fake: Command) -> None:
    shown = fake.bare("--help", "cluster=slots")
    assert (shown.code, shown.out) == (2, "")
    assert (
        "--help cluster=slots: parameters are listed for policy=NAME and trace=NAME; --help "
        "clusters lists each cluster" in shown.err
    )


@pytest.mark.parametrize("name", Options().names("trace"))
def test_help_shows_every_trace(fake: Command, name: str) -> None:
    assert fake.bare("--help", f"trace={name}").out.startswith(f"trace={name}  ")


@pytest.mark.parametrize("verb", names())
def test_completed_flags_are_those_of_the_parser(verb: str) -> None:
    flags = {name for name in parser(verb)._option_string_actions if name.startswith("--")}
    read = {*about(verb).flags}
    is_sharing = verb in ("check", "lineage")  # those of another verb
    assert read == flags or (is_sharing and read < flags)


def test_usage_of_verbs_that_take_a_sweep() -> None:
    listed = [verb for verb in names() if re.search(r"\bSWEEP\b", parser(verb).format_usage())]
    assert listed == [verb for verb in names() if takes(verb, "SWEEP")]


@pytest.mark.parametrize("verb", names())
def test_every_verb_has_help(fake: Command, verb: str) -> None:
    with pytest.raises(SystemExit) as exit_:
        fake.bare(verb, "--help")
    assert exit_.value.code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["pln"], "unknown verb 'pln'; did you mean 'plan'"),
        (["fifo"], "axes are given as policy=fifo,sjf"),
        (["policy=fifo", "sjf"], "'sjf' is neither a verb nor key=value"),
        (["policy=fifo", "pln"], "did you mean 'plan'"),
        (["list", "policy=fifo"], "takes paths.results=DIR alone"),
        (["report", "policy=fifo"], "takes paths.results=DIR and baseline=... and metrics=..."),
        (["policy=fifo", "name=a/b"], "name=a/b: a name has up to 64"),
        (["policy=fifo", "seeds=auto", "seeds_metric=nope"], "unknown metric 'nope'"),
        (["policy=fifo", "seeds=auto", "seeds_metric=jct_speedup_mean"], "give baseline=POLICY"),
        (["policy=fifo", "--fast"], "--fast"),
        (["policy=fiffo"], "did you mean 'fifo'"),
        (["show", "1", "2", "3"], "show takes a sweep and a cell"),
        (["status", "policy=fifo"], "takes paths.results=DIR alone"),
        (["verify", "--cells=many"], "--cells"),
        (["--config-dir=/nowhere/at/all"], "no such folder"),
    ],
)
def test_an_input_error_is_one_line_and_exit_code_2(
    fake: Command, words: list[str], message: str
) -> None:
    ran = fake.bare(*words)
    assert ran.code == 2
    assert ran.out == ""
    assert message in ran.err
    assert len(ran.err.splitlines()) == 1
    assert ran.err.startswith("error: ")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("missing.csv", None, "no such file"),
        ("empty.csv", b"", "empty.csv"),
        ("text.csv", b"M1,1,j_1,1,Terminated,soon,20,100,0.5\n", "text.csv:1: "),
        ("cut.csv.gz", b"\x1f\x8b\x08\x00\x00\x00\x00\x00", "cut.csv.gz"),
    ],
)
def test_a_bad_trace_is_exit_code_2_with_file_and_line(
    fake: Command, tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    words = fake.words("policy=fifo", "trace=alibaba2018", f"trace.path={file}")
    ran = fake.bare(*words)
    assert ran.code == 2
    assert message in ran.err
    assert not (fake.results / "sweeps").exists()


def test_bare_words_of_the_demonstration_plan(fake: Command) -> None:
    planned = fake.bare("plan", f"paths.results={fake.results}")
    assert planned.code == 0
    assert planned.out.startswith("demo-")


def test_importing_the_command_line_is_light() -> None:
    code = (
        "import sys; import sweep.cli.main, sweep.cli.run; "
        "heavy = {'ray', 'mlflow', 'numba', 'pandas', 'plotly', 'scipy'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_memory_of_arrow_is_the_systems() -> None:
    code = (
        "import runpy, sys; sys.argv = ['sweep', 'help']\n"
        "try: runpy.run_module('sweep', run_name='__main__')\n"
        "except SystemExit: import pyarrow; print(pyarrow.default_memory_pool().backend_name)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "system"


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    command = f"{sys.executable} -m sweep --help | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("usage:")
    assert "Traceback" not in done.stderr
