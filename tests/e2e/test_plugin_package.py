"""A package outside the project brings a plug-in of each kind: `tests/plugin_package`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import pytest
from hatchling import build

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "tests" / "plugin_package"
INLINE = ("launcher=inline", "tracking=none")
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the package's wheel into a folder of the module search path."""
    folder = tmp_path_factory.mktemp("example")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(PACKAGE)  # the builder reads the working folder
        wheel = folder / build.build_wheel(str(folder))
    with ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


@pytest.fixture
def run(installed: Path, tmp_path: Path) -> Run:
    def command(*words: str, path: Path = installed) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(path)))},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return command


def ok(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_each_kind_works_in_a_sweep_and_its_archive(run: Run, tmp_path: Path) -> None:
    words = (
        *("policy=fifo,example_widest", "trace=example_poisson", "cluster.count=5"),
        *("+trace.transforms.example_first.jobs=20", "metrics=[jct_mean_s,example_jct_max_s]"),
    )
    text = ok(run("sweep", *words, *INLINE))
    assert "example_widest" in text
    assert "example_jct_max_s" in text
    (folder,) = (tmp_path / "results" / "sweeps").iterdir()
    assert "This sentence is a plug-in&#39;s." in (folder / "report.html").read_text()
    provenance = (folder / "provenance.json").read_text()
    assert "cluster-sweep-example" in provenance
    assert "1.2.3" in provenance
    ok(run("sweep", "export", folder.name, "shared.zip"))
    assert "bit for bit" in ok(run("sweep", "verify", "shared.zip", "--trust"))
    without = run("sweep", "verify", "shared.zip", "--trust", path=tmp_path)
    assert without.returncode != 0
    assert "example" in without.stderr + without.stdout
    assert "Traceback" not in without.stderr


def test_a_reader_an_evaluator_a_strategy_and_a_verb(run: Run, tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("0 5\n1 2\n2 4\n")
    words = ("trace=example_lines", "trace.path=log.txt", "cluster.count=1")
    evaluated = ok(run("sweep", *words, "evaluator=example_counts", "policy=fifo", *INLINE))
    assert "example_jobs" in evaluated
    part = run("sweep", *words, "policy=fifo,sjf", "seed=0,1", "example.first=1", *INLINE)
    ok(part)
    assert "1 cell" in part.stderr
    assert ok(run("sweep", "example-count")) == "7 jobs\n"


def test_help_and_the_list_of_plug_ins_name_them(run: Run, installed: Path) -> None:
    shown = ok(run("sweep", "--help"))
    assert "example-count" in shown
    assert "example_widest" in ok(run("sweep", "--help", "policies"))
    assert "example_poisson" in ok(run("sweep", "--help", "traces"))
    listed = ok(run("sweep", "plugins"))
    for kind in ("policies", "readers", "generators", "transforms", "evaluators", "metrics"):
        assert kind in listed
    assert len(re.findall(r"cluster-sweep-example +1\.2\.3", listed)) >= 9


def test_a_broken_one_is_named_and_costs_nothing_else(
    run: Run, installed: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    (broken / "cluster_sweep_broken-0.1.dist-info").mkdir(parents=True)
    entries = "\n".join(
        f"[cluster_sweep.{kind}]\nbroken_{kind} = not_there.at_all"
        for kind in ("policies", "readers", "metrics", "strategies", "sections", "verbs", "options")
    )
    info = broken / "cluster_sweep_broken-0.1.dist-info"
    (info / "entry_points.txt").write_text(entries)
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: cluster-sweep-broken\nVersion: 0.1\n"
    )
    done = run("sweep", "policy=fifo,sjf", "trace.jobs=20", *INLINE, path=broken)
    assert done.returncode == 0, done.stderr
    assert "cluster-sweep-broken 0.1" in done.stderr
    assert "Traceback" not in done.stderr
    wrong = run("sweep", "plugins", path=broken)
    assert wrong.returncode == 1
    assert "cluster-sweep-broken 0.1" in wrong.stdout + wrong.stderr


def test_digests_follow_its_sources(installed: Path, tmp_path: Path) -> None:
    code = (
        "import json\n"
        "from sweep.store import sources\n"
        "cell = sources.cell_table({'name': 'example_widest'}, {'name': 'example_counts'})\n"
        "made = sources.workload_table({'synth': 'example_poisson'})\n"
        "print(json.dumps([sorted(cell), sorted(made)]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(installed)))},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    cell, drawn = json.loads(ok(done))
    assert {"example_plugins.policy", "example_plugins.evaluator"} <= {*cell}
    assert "example_plugins.metric" in cell
    assert "example_plugins.generator" in drawn
    assert "example_plugins.policy" not in drawn
