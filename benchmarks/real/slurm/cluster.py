"""A running cluster: its daemons as one process group, started, waited for and ended."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.real import processes

PROGRAMS = ("slurmctld", "slurmd", "munged", "faketime", "sbatch", "sinfo")
START_WITHIN_S = 180.0
MARK = "REAL_SLURM_CLUSTER"
"""Environment variable of a cluster's processes: its folder."""
_DAEMONS = """
slurmctld -D -i -f {conf} &
sleep {pause}
for node in {nodes}; do
    slurmd -D -f {conf} -N $node &
done
wait
"""


class Setup(Protocol):
    """Nodes of a cluster, the speed of its clock, and its ``slurm.conf``."""

    @property
    def speed(self) -> int:
        """Seconds of the daemons' clock a second."""

    @property
    def node_names(self) -> list[str]:
        """Names of the nodes, each a daemon."""

    def write(self, folder: Path, port: int) -> Path:
        """Write ``slurm.conf`` into `folder`; the controller listens at `port`, nodes above it."""


@dataclass(frozen=True)
class Cluster:
    """A cluster that runs, in `folder`."""

    folder: Path
    settings: Setup

    @property
    def environment(self) -> dict[str, str]:
        """Environment of Slurm's commands for this cluster, and so of its jobs."""
        conf = str(self.folder / "slurm.conf")
        return {"SLURM_CONF": conf, "PATH": search_path(), MARK: str(self.folder)}

    def command(self, *words: str, text: str | None = None) -> str:
        """Run one of Slurm's commands; return what it prints.

        Raises
        ------
        subprocess.CalledProcessError
            If the command failed.
        """
        done = subprocess.run(
            words, input=text, env=self.environment, capture_output=True, text=True, check=True
        )
        return done.stdout


def missing() -> list[str]:
    """Return the programs that a cluster needs and this machine lacks."""
    return [program for program in PROGRAMS if shutil.which(program, path=search_path()) is None]


def search_path() -> str:
    """Return where programs are looked for: daemons often lie outside a user's path."""
    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


def free_ports(n: int) -> int:
    """Return the first of `n` ports in a row that nobody uses, below those of clients.

    The search begins at a place that depends on the process, so that clusters which start at the
    same time rarely try the same.
    """
    first, last = 12000, 32000
    begin = first + os.getpid() * 257 % (last - first - n)
    for port in (*range(begin, last - n, 97), *range(first, begin, 97)):
        with ExitStack() as probes:
            try:
                for i in range(n):
                    probe = probes.enter_context(socket.socket())
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind(("127.0.0.1", port + i))
            except OSError:
                continue
            return port
    raise RuntimeError(f"no {n} free ports in a row between {first} and {last}")


@contextmanager
def running(
    settings: Setup, folder: Path, prepare: Callable[[Cluster], object] | None = None
) -> Iterator[Cluster]:
    """Start a cluster in an empty folder; end it, whatever happens.

    `prepare` may change ``slurm.conf``, and `start` further processes, before Slurm's daemons.

    Raises
    ------
    RuntimeError
        If a daemon ended, or not all nodes were idle in time; the message has the log's end.
    """
    (folder / "state").mkdir(parents=True)
    (folder / "spool").mkdir()
    folder.chmod(0o755)
    names = settings.node_names
    conf = settings.write(folder, free_ports(len(names) + 1))
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o600)
    cluster = Cluster(folder, settings)
    groups: list[subprocess.Popen[bytes]] = []
    try:
        groups.append(start(_munged(folder), folder))
        if prepare is not None:
            prepare(cluster)
        script = _DAEMONS.format(conf=conf, nodes=" ".join(names), pause=settings.speed)
        groups.append(start([*_clock(settings.speed), "sh", "-c", script], folder))
        _wait_for_nodes(cluster, groups)
        processes.wait_until_quiet(f"{MARK}={folder}")
        processes.go_ahead([os.getpid(), *processes.members(f"{MARK}={folder}")])
        yield cluster
    finally:
        processes.step_back([os.getpid()])
        processes.step_back(processes.members(f"{MARK}={folder}"))
        processes.end(f"{MARK}={folder}")
        processes.end(f"SLURM_CONF={conf}")  # steps of jobs leave their daemon and its environment
        for group in groups:
            group.wait()
            for name in ("faketime_shm", "sem.faketime_sem"):
                Path(f"/dev/shm/{name}_{group.pid}").unlink(missing_ok=True)


def _munged(folder: Path) -> list[str]:
    return [
        "munged", "--foreground", "--force", f"--key-file={folder}/munge.key",
        f"--socket={folder}/munge.socket", f"--pid-file={folder}/munge.pid",
        f"--log-file={folder}/munge.log", f"--seed-file={folder}/munge.seed",
    ]  # fmt: skip


def _clock(speed: int) -> list[str]:
    return [] if speed == 1 else ["faketime", "-f", f"+0 x{speed}"]


def start(words: list[str], folder: Path) -> subprocess.Popen[bytes]:
    """Start a command as the leader of a process group."""
    faked = {"FAKETIME_DONT_RESET": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    with (folder / "daemons.log").open("ab") as log:
        group = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            env=os.environ | faked | {"PATH": search_path(), "TZ": "UTC", MARK: str(folder)},
        )  # fmt: skip
    processes.prefer(group.pid)
    return group


def _wait_for_nodes(cluster: Cluster, groups: list[subprocess.Popen[bytes]]) -> None:
    log = cluster.folder / "daemons.log"
    until = time.monotonic() + START_WITHIN_S
    while time.monotonic() < until:
        if any(group.poll() is not None for group in groups) or "fatal:" in log.read_text():
            break
        try:
            idle = set(cluster.command("sinfo", "-h", "-N", "-t", "idle", "-o", "%N").split())
        except subprocess.CalledProcessError:
            idle = set()
        if idle == set(cluster.settings.node_names):
            return
        time.sleep(0.5)
    raise RuntimeError(f"the cluster in {cluster.folder} did not start: {log.read_text()[-800:]}")
