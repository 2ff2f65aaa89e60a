"""The fuzzer itself: it executes inputs, counts them, and fails if there was none."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz import run

pytest.importorskip("atheris", reason="atheris is for Linux")


@pytest.mark.long
def test_inputs_are_executed_and_counted(tmp_path: Path) -> None:
    # as on a fresh checkout: with the JIT, which numba can't apply to what atheris instruments
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_DISABLE_JIT"}
    words = [sys.executable, "-m", "tests.fuzz.run", "table", "--seconds", "5"]
    done = subprocess.run(
        [*words, "--results", str(tmp_path)],
        cwd=run.ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    text = done.stdout + done.stderr
    executed = re.search(r"^== table: ([\d,]+) inputs executed, of which ([\d,]+)", text, re.M)
    assert executed is not None, text
    n_inputs, n_read = (int(count.replace(",", "")) for count in executed.groups())
    assert n_inputs > n_read > 0, text
    assert f"{n_inputs:,} inputs executed; " in done.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    ("code", "n_inputs", "n_read", "status", "last_line"),
    [
        (0, 1200, 3, 0, "1,200 inputs executed; no faults"),
        (77, 1200, 3, 1, "1,200 inputs executed; faults in swf: see {results}"),
        (1, 0, 0, 1, "0 inputs executed; none by swf, which could not start; no faults"),
        (0, 0, 0, 1, "0 inputs executed; none by swf, which could not start; no faults"),
        (0, 1200, 0, 1,
         "1,200 inputs executed; none read by swf, though its samples can be; no faults"),
    ],
)  # fmt: skip
def test_a_target_fails_by_a_fault_or_without_an_input(
    code: int,
    n_inputs: int,
    n_read: int,
    status: int,
    last_line: str,
    monkeypatch,
    tmp_path,
    capsys,
) -> None:
    monkeypatch.setattr(run, "_run", lambda *_: (code, n_inputs, n_read))
    assert run.main(["swf", "--results", str(tmp_path)]) == status
    assert capsys.readouterr().out.splitlines()[-1] == last_line.format(results=tmp_path)
