"""Runs ``verify`` where it can do no harm, and records what it tried to do.

The folder has a file that no archive lists, the environment has credentials, and a listener on
127.0.0.1 counts the connections that are made.
"""

from __future__ import annotations

import contextlib
import io
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import policies
import sim
import sweep.store.provenance
from sim.base.sources import clear_caches
from sweep.cli import main
from sweep.grid import randomness
from tests.sweep.questions.archive import entries as archives
from tests.sweep.questions.archive.entries import Entries
from tests.sweep.small import fake_simulate, write_workload

DECOY = "decoy.csv"
DECOY_CONTENT = b"submit_s,start_s,end_s,cores\n0,0,1,1\n"
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "a-secret-of-the-user",
    "AWS_SESSION_TOKEN": "a-token-of-the-user",
    "GOOGLE_APPLICATION_CREDENTIALS": "/nowhere.json",
}
POLICY = """\
from dataclasses import dataclass
from pathlib import Path

from policies import Policy, register

Path("executed").write_text("by the archive")


@register("lent")
@dataclass(frozen=True)
class Lent(Policy):
    def prepare(self, world, plan):
        plan.set_jobs(key=-world.columns.job_submit)
"""


@dataclass(frozen=True)
class Verified:
    """Outcome of ``verify``, and what it did beside."""

    code: int
    out: str
    err: str
    seconds: float
    opened: frozenset[str]  # files that Python opened
    n_requests: int  # connections to the listener
    left: frozenset[str]  # files that are new

    @property
    def is_harmless(self) -> bool:
        """True if nothing was fetched, written or read that is not the archive's."""
        reads = [path for path in self.opened if path.endswith((DECOY, "passwd"))]
        return not (reads or self.n_requests or self.left or "Traceback" in self.out + self.err)


class _Opened:
    """Audit hook: files that this process opens while it listens."""

    def __init__(self) -> None:
        self.paths: set[str] | None = None
        sys.addaudithook(self)

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and self.paths is not None:
            self.paths.add(str(arguments[0]))


_OPENED = _Opened()


class Listener:
    """Counts the connections to a port of this machine, and answers none."""

    def __init__(self) -> None:
        self.n = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # it is closed
            while True:
                connection, _ = self._socket.accept()
                self.n += 1
                connection.close()

    def close(self) -> None:
        """Stop listening."""
        self._socket.close()


class Sandbox:
    """A working folder for ``verify``."""

    def __init__(self, folder: Path, listener: Listener) -> None:
        self.folder, self.listener = folder, listener
        self._temporary = folder.parent / f"{folder.name}-tmp"
        self._temporary.mkdir()
        (folder / DECOY).write_bytes(DECOY_CONTENT)

    def verify(self, file: Path, *words: str) -> Verified:
        """Verify an archive in this process, from the folder."""
        folder, before = Path.cwd(), self._files()
        out, err, n_before = io.StringIO(), io.StringIO(), self.listener.n
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.folder)
            patch.setattr(tempfile, "tempdir", str(self._temporary))
            patch.setattr(sys, "path", [*sys.path])
            for name, value in CREDENTIALS.items():
                patch.setenv(name, value)
            patch.setenv("AWS_ENDPOINT_URL", f"http://{self.listener.address}")
            _OPENED.paths = set()
            begin = time.perf_counter()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = main.main(["verify", str(file), *words])
            seconds = time.perf_counter() - begin
            opened, _OPENED.paths = frozenset(_OPENED.paths), None
        assert Path.cwd() == folder
        return Verified(
            *(code, out.getvalue(), err.getvalue(), seconds, opened),
            self.listener.n - n_before,
            frozenset(self._files() - before),
        )

    def attack(self, entries: Entries, *words: str, is_sealed: bool = True) -> Verified:
        """Verify an archive with these entries."""
        file = self.folder.parent / f"{self.folder.name}.zip"
        return self.verify(archives.write(file, entries, is_sealed=is_sealed), *words)

    def _files(self) -> set[str]:
        folders = self.folder, self._temporary
        return {str(path) for folder in folders for path in folder.rglob("*")}


@contextlib.contextmanager
def fake_simulator(fails_on: str | None = None) -> Iterator[None]:
    """Stand in for the simulator, under which one policy may fail with an odd seed."""

    def simulate(workload: Any, cluster: Any, policy: Any, *, seed: int, **_: Any) -> Any:
        if policy.name == fails_on and seed % 2:
            raise ValueError(f"{fails_on} is odd")
        return fake_simulate(workload, cluster, policy, seed=seed)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sim, "simulate", simulate)
        patch.setattr(randomness, "draws_randomly", lambda policy: True)
        patch.setattr(sweep.store.provenance, "_git", lambda: ({"commit": "c"}, ""))
        yield


def export(folder: Path, *words: str, own: bool = False) -> Entries:
    """Run a sweep inline in an empty folder; return the entries of its archive."""
    write_workload(folder / "trace")
    options = ["trace=parquet", "trace.path=trace", "launcher=inline", "tracking=none"]
    if own:
        (folder / "mine" / "policy").mkdir(parents=True)
        (folder / "mine" / "policy" / "lent.yaml").write_text("name: lent\nmodule: lent\n")
        (folder / "mine" / "lent.py").write_text(POLICY)
        options.append("--config-dir=mine")
    folder.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()):
        patch.chdir(folder)
        patch.setattr(sys, "path", [*sys.path])
        clear_caches()
        assert main.main([*words, *options]) in (0, 1)
        assert main.main(["export", "a.zip", "--with-traces"]) == 0
    sys.modules.pop("lent", None)
    policies.registry._REGISTRY.pop("lent", None)
    clear_caches()
    return archives.read(folder / "a.zip")


def passwords() -> str:
    """Path of a file that every machine has and that no archive lists."""
    return str(Path("/") / "etc" / "passwd")
