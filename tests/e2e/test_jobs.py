"""``ray job submit`` as documented: it uploads the working directory without excluded files."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.e2e.conftest import ROOT
from tests.e2e.machines import Machine, NoMachinesError, documented, site

pytestmark = pytest.mark.e2e

EXCLUDED = ("results/big", "traces/day.csv", ".venv/bin/python", ".git/config", "outputs/log")


@pytest.fixture
def head() -> Iterator[Machine]:
    """One machine, with the dashboard that accepts jobs."""
    try:
        with site(1) as cluster:
            cluster.head.join(cluster.head.address, "--include-dashboard=true")
            yield cluster.head
    except NoMachinesError as error:
        pytest.skip(f"no machine of its own for a cluster: it {error}")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A working directory with sources, and with results, traces and other files to exclude."""
    folder = tmp_path / "checkout"
    for name in ("sim", "policies", "sweep", "conf"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "docs").mkdir()
    shutil.copy(ROOT / "docs" / "ray_env.yaml", folder / "docs")
    for name in EXCLUDED:
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text("not for the cluster")
    return folder


@pytest.mark.long
def test_a_submitted_sweep(head: Machine, checkout: Path, tmp_path: Path) -> None:
    line = documented("ray job submit")
    words = [
        *("policy=fifo,sjf", "seed=0,1", "trace=alibaba_synth", "trace.jobs=50", "tracking=none"),
        *("launcher=ray", "launcher.address=auto", f"paths.results={tmp_path / 'shared'}"),
    ]
    job_words = [word for word in shlex.split(line) if word != "..."]
    assert job_words[-4:] == ["--", "python", "-m", "sweep"]
    command = [
        str(Path(sys.executable).with_name("ray")),
        *job_words[1:-3],
        sys.executable,
        *job_words[-2:],
    ]
    done = subprocess.run(
        head.words([*command, *words]),
        cwd=checkout,
        env={**os.environ, **head.environment},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (folder,) = (tmp_path / "shared" / "sweeps").iterdir()
    table = pq.read_table(folder / "cells.parquet")
    assert table.column("status").to_pylist() == ["done"] * 4
    assert re.search(rf"^{folder}$", done.stdout, re.MULTILINE)
    sent = [path for path in head.temporary.rglob("working_dir_files/*") if path.is_dir()]
    assert len(sent) == 1
    assert (sent[0] / "sim" / "__init__.py").is_file()
    assert [name for name in EXCLUDED if (sent[0] / name).exists()] == []
