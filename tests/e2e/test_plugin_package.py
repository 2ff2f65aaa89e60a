"""A package outside the project brings a plug-in of each kind: `tests/plugin_package`.

It is tried beside the checkout, unpacked on the module search path, and (`make test-long`) in an
empty environment beside the project's wheel.
"""

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

from sim.base.entry_points import KINDS

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "tests" / "plugin_package"
INLINE = ("launcher=inline", "tracking=none")
Run = Callable[..., subprocess.CompletedProcess[str]]
UV = (sys.executable, "-m", "uv", "--quiet")


def build_wheel(project: Path, folder: Path) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project)  # the builder reads the working folder
        return folder / build.build_wheel(str(folder))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(PACKAGE, tmp_path_factory.mktemp("example"))


@pytest.fixture(scope="module")
def unpacked(wheel: Path) -> Path:
    """Unpack the package's wheel into a folder of the module search path."""
    with ZipFile(wheel) as archive:
        archive.extractall(wheel.parent / "site")
    return wheel.parent / "site"


@pytest.fixture(scope="module")
def empty_environment(wheel: Path) -> Path:
    """Install both wheels into an empty environment, of the lock's versions; return its Python."""
    folder = wheel.parent
    lock = (ROOT / "requirements.lock").read_text()
    versions = re.findall(r"^([\w.-]+==.*) \\$", lock, re.MULTILINE)
    (folder / "versions.txt").write_text("\n".join(versions))
    own, python = build_wheel(ROOT, folder), folder / "environment" / "bin" / "python"
    packages = ("--constraint", str(folder / "versions.txt"), f"{own}[sweep]", str(wheel))
    for words in (
        ("venv", "--python", sys.executable, str(python.parents[1])),
        ("pip", "install", "--python", str(python), *packages),
    ):
        subprocess.run([*UV, *words], check=True, cwd=folder)
    return python


@pytest.fixture
def run_beside_the_checkout(unpacked: Path, tmp_path: Path) -> Run:
    return runner(sys.executable, tmp_path, ROOT, unpacked)


@pytest.fixture(params=["checkout", pytest.param("wheel", marks=pytest.mark.long)])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    if request.param == "checkout":
        return request.getfixturevalue("run_beside_the_checkout")
    return runner(str(request.getfixturevalue("empty_environment")), tmp_path)


def runner(python: str, folder: Path, *site: Path) -> Run:
    def command(*words: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
        added = site if path is None else (*site[:1], path)  # in place of the example
        return subprocess.run(
            [python, *(() if words[0] == "-c" else ("-m",)), *words],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, added))},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return command


def pretend_to_install(folder: Path, entries: str) -> Path:
    """Write the metadata of a package without modules; return its folder."""
    info = folder / "site" / "cluster_sweep_broken-0.1.dist-info"
    info.mkdir(parents=True)
    (info / "entry_points.txt").write_text(entries)
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: cluster-sweep-broken\nVersion: 0.1\n"
    )
    return info.parent


def ok(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_each_kind_works_in_a_sweep_and_its_archive(
    run: Run, run_beside_the_checkout: Run, tmp_path: Path
) -> None:
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
    verify = ("sweep", "verify", "shared.zip", "--trust")
    assert "bit for bit" in ok(run_beside_the_checkout(*verify))
    without = run_beside_the_checkout(*verify, path=tmp_path)
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


def test_a_what_if(run: Run, tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("0 5\n1 2\n2 4\n")
    words = ("trace=example_lines", "trace.path=log.txt", "cluster.count=1", "policy=fifo")
    change = ("what_if.example_first=2", "what_if.restore=null")
    text = " ".join(ok(run("sweep", *words, *change, *INLINE)).split())
    assert "only the first 2 jobs (example_first=2): mean wait" in text


def test_a_study_its_published_number_and_a_verb_of_workloads(run: Run, tmp_path: Path) -> None:
    text = ok(run("sweep", "experiment=example", *INLINE))
    assert re.search(r"longest +fifo +\d+\.\d .* 60 ", text)
    ok(run("sim", "synth", "example_poisson", "drawn", "--jobs", "4"))
    assert ok(run("sim", "example-size", "drawn")) == "4 jobs\n"


def test_help_and_the_list_of_plug_ins_name_them(run: Run) -> None:
    shown = ok(run("sweep", "--help"))
    assert "example-count" in shown
    assert "example.first" in shown
    for topic, name in {
        "policies": "example_widest",
        "traces": "example_poisson",
        "evaluators": "example_counts",
        "experiments": "example ",
        "metrics": "example_jct_max_s",
        "transforms": "example_first",
    }.items():
        assert name in ok(run("sweep", "--help", topic)), topic
    assert "example-size" in ok(run("sim", "--help"))
    listed = ok(run("sweep", "plugins"))
    kinds = re.findall(r"^(\w+) +\S+ +cluster-sweep-example +1\.2\.3", listed, re.MULTILINE)
    assert sorted(kinds) == sorted(KINDS)


def test_a_broken_one_is_named_and_costs_nothing_else(
    run_beside_the_checkout: Run, tmp_path: Path
) -> None:
    entries = "\n".join(
        f"[cluster_sweep.{kind}]\nbroken_{kind} = not_there.at_all"
        for kind in ("policies", "readers", "metrics", "strategies", "sections", "verbs", "options")
    )
    broken, run = pretend_to_install(tmp_path, entries), run_beside_the_checkout
    done = run("sweep", "policy=fifo,sjf", "trace.jobs=20", *INLINE, path=broken)
    assert done.returncode == 0, done.stderr
    assert "cluster-sweep-broken 0.1" in done.stderr
    assert "Traceback" not in done.stderr
    wrong = run("sweep", "plugins", path=broken)
    assert wrong.returncode == 1
    assert "cluster-sweep-broken 0.1" in wrong.stdout + wrong.stderr


def test_one_of_an_unknown_kind_or_another_s_name_is_named_once(
    run_beside_the_checkout: Run, tmp_path: Path
) -> None:
    names = {
        "policies": ("fifo", "easy"),
        "readers": ("swf",),
        "transforms": ("squeeze",),
        "verbs": ("run",),
        "workload_verbs": ("convert",),
        "policy": ("mine",),
    }
    entries = (
        f"[cluster_sweep.{kind}]\n" + "\n".join(f"{name} = not_there" for name in group)
        for kind, group in names.items()
    )
    site = pretend_to_install(tmp_path, "\n".join(entries))
    listed = run_beside_the_checkout("sweep", "plugins", path=site)
    assert listed.returncode == 1
    ran = run_beside_the_checkout("sweep", "policy=fifo", "trace.jobs=20", *INLINE, path=site)
    assert ran.returncode == 0, ran.stderr
    typo = "group cluster_sweep.policy of cluster-sweep-broken 0.1 (mine); did you mean 'policies'?"
    for text in (listed.stdout, ran.stderr):
        assert text.count(typo) == 1
        for name, used in (("fifo", "the core"), ("easy", "cluster-sweep 0"), ("run", "the core")):
            line = f"{name!r} of cluster-sweep-broken 0.1 is not used, but that of {used}"
            assert text.count(line) == 1
    assert listed.stdout.count("of cluster-sweep-broken 0.1 is not used") == 6
    ok(run_beside_the_checkout("sim", "synth", "burst", "--help", path=site))


def test_function_is_of_the_package_sweep(run: Run) -> None:
    assert ok(run("-c", "import sweep; print(sweep.example_total(1, 2))")) == "3\n"


def test_digests_follow_its_sources(run: Run) -> None:
    code = (
        "import json\n"
        "from sweep.store import sources\n"
        "cell = sources.cell_table({'name': 'example_widest'}, {'name': 'example_counts'})\n"
        "made = sources.workload_table({'synth': 'example_poisson'})\n"
        "print(json.dumps([sorted(cell), sorted(made)]))"
    )
    cell, drawn = json.loads(ok(run("-c", code)))
    assert {"example_plugins.policy", "example_plugins.evaluator"} <= {*cell}
    assert "example_plugins.metric" in cell
    assert "example_plugins.generator" in drawn
    assert "example_plugins.policy" not in drawn
