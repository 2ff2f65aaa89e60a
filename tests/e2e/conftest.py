"""The real command, as installed: packages copied to one folder, run from another."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.e2e.machines import NoMachinesError, Site, site
from tests.e2e.watched import Watch
from tests.sweep.small import Ran

ROOT = Path(__file__).resolve().parent.parent.parent

SLOW = """
import os
import time
from dataclasses import dataclass

from policies import Policy, register


@register("slow")
@dataclass(frozen=True)
class Slow(Policy):
    seconds: float = 0.3
    gate: str = ""  # while this file exists, seeds from 2 on don't go on

    def prepare(self, world, plan):
        time.sleep(self.seconds)
        while world.seed >= 2 and self.gate and os.path.exists(self.gate):
            time.sleep(0.05)


@register("moody")
@dataclass(frozen=True)
class Moody(Policy):
    mood: str = "good"

    def prepare(self, world, plan):
        if world.seed == 1 and self.mood == "raises":
            raise RuntimeError("not in the mood")
        if world.seed == 1 and self.mood == "dies":
            os._exit(1)
"""


class Command:
    """Runs ``python -m sweep`` from a folder of its own that also holds a user's policies."""

    def __init__(self, packages: Path, folder: Path) -> None:
        self.folder = folder
        self.environment = {**os.environ, "PYTHONPATH": str(packages)}
        self.user = folder / "mine"
        (self.user / "policy").mkdir(parents=True)
        (folder / "e2e_policies.py").write_text(SLOW)
        for name in ("slow", "moody"):
            text = f"name: {name}\nmodule: e2e_policies\n"
            (self.user / "policy" / f"{name}.yaml").write_text(text)

    def words(self, words: Sequence[str]) -> list[str]:
        return [sys.executable, "-m", "sweep", *words]

    def __call__(self, *words: str, timeout: float = 900, **environment: str) -> Ran:
        done = subprocess.run(
            self.words(words),
            cwd=self.folder,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.words(words),
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=hear_interrupts,
        )


def hear_interrupts() -> None:
    """Accept interrupts: background processes of a shell ignore them, and so do their children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lay the packages out as the wheel does, the configuration inside."""
    folder = tmp_path_factory.mktemp("packages")
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("sim", "policies", "sweep"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    shutil.copytree(ROOT / "conf", folder / "sweep" / "_conf")
    return folder


@pytest.fixture
def command(packages: Path, tmp_path: Path) -> Command:
    """Run the real command from a folder of the test's own."""
    return Command(packages, tmp_path)


@pytest.fixture
def watch(command: Command) -> Iterator[Watch]:
    """Run sweeps whose cells report their machine."""
    watch = Watch(command)
    yield watch
    watch.stop()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Site]:
    """Three machines with a Ray node each; a test leaves them as it finds them."""
    try:
        with site() as cluster:
            cluster.start()
            yield cluster
    except NoMachinesError as error:
        pytest.skip(f"no cluster of several machines: it {error}")


def every_file(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted((folder / "sweeps").rglob("*"))
        if path.is_file()
    }
