from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sweep.cli.main import VERBS
from sweep.grid.options import GROUPS, Options
from tests.sweep.small import Command


def test_help_shows_verbs_axes_options_and_examples(fake: Command) -> None:
    shown = fake.bare("--help")
    assert shown.code == 0
    whole = " ".join(shown.out.split())
    for verb in VERBS:
        assert f"\n  {verb} " in shown.out
    for axis in ("policy=", "capacity=", "trace=", "seed="):
        assert axis in shown.out
    for group in GROUPS:
        for name in Options().names(group):
            assert f"\n  {name} " in shown.out
            assert " ".join(Options().summary(group, name).split()) in whole
    examples = shown.out.partition("examples\n")[2]
    assert examples.count("python -m sweep") >= 3
    assert all(len(line) <= 120 for line in shown.out.splitlines())


def test_help_shows_a_users_own_options(fake: Command, tmp_path: Path) -> None:
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "mine.yaml").write_text("# My very own.\nname: fifo\n")
    shown = fake.bare("--config-dir", str(tmp_path), "--help")
    assert shown.code == 0
    assert "My very own." in shown.out


def test_help_shows_what_parameters_a_policy_has(fake: Command) -> None:
    shown = fake.bare("--help", "policy=slearn,list_scheduling/bfs_cpu_mem")
    assert shown.code == 0
    assert (
        "policy.thin_limit=3  Jobs of fewer tasks are thin. (a whole number of at least 0)"
        in shown.out
    )
    assert "policy.fit_resources=['cpu', 'mem']  " in shown.out
    assert fake.bare("--help", "policy=fiffo").code == 2


@pytest.mark.parametrize("verb", VERBS)
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
        (["policy=fifo", "--fast"], "--fast"),
        (["policy=fiffo"], "did you mean 'fifo'"),
        (["show", "1", "2", "3"], "show takes a sweep and a cell"),
        (["status", "policy=fifo"], "takes paths.results=DIR alone"),
        (["verify", "--cells=many"], "--cells"),
        (["--config-dir=/nowhere/at/all"], "no such folder"),
    ],
)
def test_what_is_wrong_is_one_line_and_exit_code_2(
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


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    command = f"{sys.executable} -m sweep --help | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("usage:")
    assert "Traceback" not in done.stderr
