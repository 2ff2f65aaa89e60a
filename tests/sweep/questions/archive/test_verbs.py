from __future__ import annotations

import json
import os
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sweep
from sim.base.sources import clear_caches
from sweep.store.folder import SweepFolder
from tests.sweep.small import Command, Ran, fake_engine, fake_simulate

POLICY = """\
from dataclasses import dataclass

from lent_tools import order
from policies import Policy, register


@register("lent")
@dataclass(frozen=True)
class Lent(Policy):
    def prepare(self, world, plan):
        plan.set_jobs(key=order(world.columns.job_submit))
"""
TOOLS = "def order(submit_s):\n    return -submit_s\n"


@pytest.fixture
def mine(fake: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a policy of one's own, and work in it."""
    monkeypatch.setattr(sweep.store.provenance, "_git", lambda: ({"commit": "c"}, ""))
    (tmp_path / "mine" / "policy").mkdir(parents=True)
    (tmp_path / "mine" / "policy" / "lent.yaml").write_text(
        "# Last come, first served.\nname: lent\nmodule: lent\n"
    )
    (tmp_path / "mine" / "lent.py").write_text(POLICY)
    (tmp_path / "mine" / "lent_tools.py").write_text(TOOLS)
    monkeypatch.chdir(tmp_path)
    import sys

    monkeypatch.setattr(sys, "path", [*sys.path])
    clear_caches()
    yield tmp_path
    for name in ("lent", "lent_tools"):
        sys.modules.pop(name, None)
    clear_caches()


@pytest.fixture
def ran(mine: Path, fake: Command) -> Ran:
    """A sweep of that policy, requested with an absolute folder of options."""
    words = ["policy=fifo,lent", "capacity=0.5,1", "seed=0,1", "baseline=fifo"]
    trace = ["trace=parquet", f"trace.path={fake.trace.relative_to(mine)}"]
    done = fake.bare(
        *words, *trace, f"--config-dir={mine / 'mine'}", "launcher=inline", "tracking=none"
    )
    assert done.code == 0, done.err
    return done


def read(file: Path, name: str) -> bytes:
    with zipfile.ZipFile(file) as archive:
        return archive.read(name)


class TestExport:
    @pytest.mark.long
    def test_everything_that_cells_need_twice_the_same_bytes(
        self, ran: Ran, fake: Command, mine: Path
    ) -> None:
        exported = fake.bare("export", ran.folder.name, "a.zip", "--with-traces")
        assert exported.code == 0, exported.err
        assert exported.out.splitlines()[-1] == "a.zip"
        assert "your module lent: own/lent.py" in exported.out
        with zipfile.ZipFile("a.zip") as archive:
            names = archive.namelist()
        assert {"archive.json", "sweep/cells.parquet", "sweep/report.html"} <= {*names}
        assert {"own/lent.py", "own/lent_tools.py", "own/mine/policy/lent.yaml"} <= {*names}
        assert "traces/0/trace/jobs.parquet" in names
        record = json.loads(read(Path("a.zip"), "archive.json"))
        (trace,) = record["traces"]
        assert trace["text"] == "trace"
        assert all(len(digest) == 64 for _, digest, _ in trace["files"])
        assert str(mine) not in read(Path("a.zip"), "archive.json").decode()
        os.utime("mine/lent.py")
        assert fake.bare("export", ran.folder.name, "b.zip", "--with-traces").code == 0
        assert Path("a.zip").read_bytes() == Path("b.zip").read_bytes()
        assert fake.bare("export", "c.zip").code == 0
        assert not any(n.startswith("traces/") for n in zipfile.ZipFile("c.zip").namelist())
        assert "export SWEEP FILE.zip" in fake.bare("export").err
        assert "export SWEEP FILE.zip" in fake.bare("export", ran.folder.name).err


class TestVerify:
    def elsewhere(self, mine: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """Move to another clone, which has neither the policy nor the trace nor the results."""
        import sys

        other = mine / "other"
        other.mkdir()
        shutil.move("a.zip", other / "a.zip")
        for name in ("mine", "trace", "results"):
            (mine / name).rename(mine / f"{name}-away")
        monkeypatch.chdir(other)
        sys.path[:] = [folder for folder in sys.path if not folder.startswith(str(mine))]
        for name in ("lent", "lent_tools"):
            sys.modules.pop(name, None)
        clear_caches()
        return other

    @pytest.mark.long
    def test_in_another_clone(
        self, ran: Ran, fake: Command, mine: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert fake.bare("export", "a.zip", "--with-traces").code == 0
        other = self.elsewhere(mine, monkeypatch)
        refused = fake.bare("verify", "a.zip")
        assert refused.code == 2
        assert "run Python of its own (lent.py, lent_tools.py)" in refused.err
        verified = fake.bare("verify", "a.zip", "--trust", "--cells=99")
        assert verified.code == 0, verified.out + verified.err
        assert "8 of 8 cells are the same, bit for bit" in verified.out
        assert "changed since" not in verified.out
        assert [*other.iterdir()] == [other / "a.zip"]  # nothing is left behind
        chosen = [
            fake.bare("verify", "a.zip", "--trust", "--cells=1", f"--seed={n}").out
            for n in (1, 1, 4)
        ]
        assert chosen[0] == chosen[1]
        assert len({*chosen}) > 1

        def slower(workload: Any, cluster: Any, policy: Any, *, seed: int, **_: Any) -> Any:
            result = fake_simulate(workload, cluster, policy, seed=seed)
            result.metrics["jct_mean_s"] += 1.0
            if policy.name == "lent":
                result.job_finish += 1.0
            return result

        fake_engine(monkeypatch, slower)
        verified = fake.bare("verify", "a.zip", "--trust", "--cells=99")
        assert verified.code == 1
        assert verified.out.count("differs in jct_mean_s (") == 8
        assert verified.out.count("jct_speedup_mean (") == 4

    @pytest.mark.long
    def test_traces_that_are_not_in_it(
        self, ran: Ran, fake: Command, mine: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert fake.bare("export", "a.zip").code == 0
        self.elsewhere(mine, monkeypatch)
        refused = fake.bare("verify", "a.zip", "--trust")
        assert refused.code == 2
        assert "it lacks the trace trace (" in refused.err
        (mine / "trace-away").rename(mine / "other" / "trace")
        assert "is not looked for here unasked" in fake.bare("verify", "a.zip", "--trust").err
        assert fake.bare("verify", "a.zip", "--trust", "paths.traces=.").code == 0
        (mine / "other" / "kept").mkdir()
        (mine / "other" / "trace").rename(mine / "other" / "kept" / "trace")
        assert fake.bare("verify", "a.zip", "--trust", "paths.traces=kept").code == 0
        (mine / "other" / "kept" / "trace" / "jobs.parquet").write_bytes(b"other")
        assert fake.bare("verify", "a.zip", "--trust", "paths.traces=kept").code == 2

    @pytest.mark.long
    def test_another_module_of_that_name(self, ran: Ran, fake: Command, mine: Path) -> None:
        assert fake.bare("export", "a.zip").code == 0
        clear_caches()
        verified = fake.bare("verify", "a.zip", "paths.traces=.")
        assert verified.code == 0  # the same module is here
        (mine / "mine" / "lent_tools.py").write_text(TOOLS + "\n# changed\n")
        refused = fake.bare("verify", "a.zip", "--trust")
        assert refused.code == 2
        assert "without a module lent_tools" in refused.err

    def test_a_folder_that_was_sent(self, ran: Ran, fake: Command, mine: Path) -> None:
        shutil.copytree(ran.folder, mine / "sent")
        shutil.rmtree("results")
        verified = fake.bare("verify", "sent", "--cells=3")
        assert (verified.code, verified.out.count(": same (")) == (0, 3), verified.out
        assert "the cache has no table of its jobs" in verified.out
        assert "3 of 3 cells are the same" in verified.out


class TestOrigin:
    def test_own_modules_and_their_folder(self, ran: Ran, fake: Command, mine: Path) -> None:
        record = json.loads((ran.folder / "provenance.json").read_text())
        assert record["git"]["dirty"] is True
        assert [f["file"] for f in record["own"]] == [
            *("lent.py", "lent_tools.py", "mine/policy/lent.yaml")
        ]
        assert all(f["dirty"] and f["commit"] is None for f in record["own"])
        assert "own file lent.py sha256 " in (ran.folder / "changes.diff").read_text()
        assert record["command"].endswith(" --config-dir=mine")
        folder = SweepFolder(ran.folder)
        assert folder.config()["config_dirs"] == ["mine"]
        assert str(mine) not in folder.row(0)["reproduce"]
        git = ["git", "-c", "user.name=n", "-c", "user.email=e@example.org"]
        for words in (["init", "-q"], ["add", "mine"], ["commit", "-q", "-m", "mine"]):
            subprocess.run([*git, *words], check=True, capture_output=True)
        shutil.rmtree(ran.folder)
        again = fake.bare(
            *("policy=lent", "trace=parquet", "trace.path=trace", "--config-dir=mine"),
            *("launcher=inline", "tracking=none"),
        )
        record = json.loads((again.folder / "provenance.json").read_text())
        assert record["git"]["dirty"] is False
        assert all(len(f["commit"]) == 40 and not f["dirty"] for f in record["own"])

    def test_it_is_found_again_from_any_folder(
        self, ran: Ran, fake: Command, mine: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = (ran.folder / "config.yaml").read_bytes()
        (mine / "deep").mkdir()
        monkeypatch.chdir(mine / "deep")
        (mine / "deep" / "trace").symlink_to(mine / "trace")
        assert fake.verb("retry", "launcher=inline", "tracking=none").code == 0
        assert (mine / ran.folder / "config.yaml").read_bytes() == before
