"""Tab completion: candidates of each word, and their use by shells."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sweep.cli import verbs
from sweep.cli.candidates import SHELLS, candidates
from sweep.cli.completion import SCRIPTS
from tests.conftest import ROOT
from tests.sweep.small import Command


def complete(line: str) -> list[str]:
    """Return the candidates for a line with the cursor at its end."""
    words = line.split()
    return candidates([*words, ""] if line.endswith(" ") or not words else words)


@pytest.mark.parametrize(
    ("line", "included", "excluded"),
    [
        ("", {*verbs.names(), "policy=", "capacity=", "seeds_width=", "paths.results="}, {"fifo"}),
        ("pl", {"plan"}, {"policy="}),
        ("policy=fifo pl", {"plan"}, set()),
        ("plan ", {"policy="}, {"show"}),
        ("plan --all ", {"policy="}, {"show"}),
        ("policy=", {"policy=fifo", "policy=las"}, {"policy=alibaba_synth"}),
        ("policy=fifo,s", {"policy=fifo,sjf", "policy=fifo,srpt"}, {"policy=sjf"}),
        ("policy=las policy.", {"policy.queues=", "policy.growth="}, {"policy.m="}),
        ("trace=swf trace.", {"trace.path="}, {"trace.jobs="}),
        ("cluster.", {"cluster.load="}, {"policy="}),
        ("policy=fifo,las baseline=", {"baseline=fifo", "baseline=las"}, {"baseline=sjf"}),
        ("metrics=[jct_mean_s,jct_p9", {"metrics=[jct_mean_s,jct_p99_s"}, set()),
        ("experiment=d", {"experiment=demo"}, set()),
        ("reproduce wing/", {"wing/fig2"}, {"policy="}),
        ("plan --", {"--all", "--config-dir"}, {"--gantt"}),
        ("report --", {"--gantt"}, {"--fail-fast"}),
        ("--help ", {"policies", "metrics", "policy=fifo", "trace=swf"}, {"plan"}),
        ("completion ", {*SHELLS}, {"plan"}),
        ("report ", {"baseline=", "metrics="}, {"policy="}),
    ],
)
def test_candidates_of_a_word(line: str, included: set[str], excluded: set[str]) -> None:
    actual = {*complete(line)}
    assert included <= actual
    assert not excluded & actual


def test_files_are_left_to_the_shell() -> None:
    assert complete("trace.path=") == []
    assert complete("paths.results=res") == []
    assert complete("plan --config-dir ") == []


def test_sweeps_by_id_and_name(fake: Command) -> None:
    folder = fake("policy=fifo", "name=mine").folder
    results = f"paths.results={fake.results}"
    assert candidates([results, "show", "mi"]) == ["mine", folder.name]
    assert candidates(["show", results, "mi"]) == ["mine", folder.name]


def test_a_users_own_options(tmp_path: Path) -> None:
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "own.yaml").write_text("name: las\nqueues: 5\n")
    assert candidates(["--config-dir", str(tmp_path), "policy=ow"]) == ["policy=own"]
    assert candidates([f"--config-dir={tmp_path}", "policy=ow"]) == ["policy=own"]


def test_nothing_heavy_is_imported() -> None:
    code = (
        "import sys; from sweep.cli.candidates import candidates; candidates(['policy=f']); "
        "candidates(['trace=swf', 'trace.']); candidates(['plan', '']); "
        "heavy = {'ray', 'numba', 'hydra', 'numpy', 'pyarrow', 'mlflow'} & set(sys.modules); "
        "assert not heavy, heavy; candidates(['policy=las', 'policy.']); "
        "assert not {'ray', 'numba', 'hydra', 'mlflow'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_verb_prints_the_script_of_a_shell(fake: Command) -> None:
    for shell in SHELLS:
        assert fake.bare("completion", shell).out == SCRIPTS[shell]
    assert "did you mean 'bash'" in fake.bare("completion", "bsh").err
    assert "completion takes a shell: bash, zsh, fish" in fake.bare("completion").err


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_of_the_shell(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell} (apt-get install {shell})")
    subprocess.run([shell, "-n"], input=SCRIPTS[shell], text=True, check=True)


@pytest.mark.parametrize(
    ("line", "replies"),
    [
        ("python -m sweep pl", ["plan", "plugins"]),
        ("python -m sweep policy=fifo,sr", ["fifo,srpt"]),  # bash sees what is after the =
        ("python -m sweep policy=las policy.que", ["policy.queues="]),
        ("python -m sweep plan --a", ["--all"]),
        ("python other.py pl", []),
        ("python -m sweep trace.path=", []),
    ],
)
def test_in_bash(line: str, replies: list[str]) -> None:
    script = (
        "source <(python -m sweep completion bash)\n"
        f"COMP_LINE={shlex.quote(line)} COMP_WORDS=(python) COMPREPLY=()\n"
        "COMP_POINT=${#COMP_LINE}\n_python_m_sweep\nprintf '%s\\n' \"${COMPREPLY[@]}\""
    )
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=ROOT,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == replies
