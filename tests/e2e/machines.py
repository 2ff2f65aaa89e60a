"""Several virtual machines on one: each is a network namespace with an address and a Ray node.

The namespaces are connected by a bridge in a further namespace, so that the machine's own network
is not touched, and they have no route out. The processes in a namespace are its machine's: killing
them is like a power failure.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
NETWORK = "10.77.0"
SMALL = ("--num-cpus=1", "--object-store-memory=100000000", "--disable-usage-stats")
# a raylet that has to wait for its agents to choose ports ends where that takes 15 s
PORTS = tuple(
    f"--{agent}-port={port}"
    for port, agent in enumerate(
        ("dashboard-agent-grpc", "dashboard-agent-listen", "runtime-env-agent"), 52001
    )
)
START_S = 180
STARTS = 5  # a node that takes longer than Ray allows, as on a busy machine, is started again
PREFIX = "sweep-test"


class NoMachinesError(RuntimeError):
    """No namespace can be made here; the text names the missing requirement."""


@dataclass(frozen=True)
class Machine:
    """A network namespace and the processes in it.

    Attributes
    ----------
    namespace : str
        Its name.
    address : str
        Its one address beside loopback.
    temporary : Path
        In place of ``/tmp`` for Ray; a short name, as sockets lie in there.
    environment : dict
        Environment variables of all commands there.
    """

    namespace: str
    address: str
    temporary: Path
    environment: dict[str, str]

    @property
    def number(self) -> int:
        """The namespace's number, as ``/proc/self/ns/net`` shows it to a process in there."""
        return Path("/run/netns", self.namespace).stat().st_ino

    def words(self, words: Sequence[str]) -> list[str]:
        """Return the command that runs `words` on this machine."""
        return ["ip", "netns", "exec", self.namespace, *words]

    def join(self, head: str, *options: str, before: str = "") -> None:
        """Start a Ray node as documented: the head if this machine's address is `head`.

        `before` is a line of shell that runs first; its mounts and exports are this node's alone.

        Raises
        ------
        RuntimeError
            If the node does not start; the message holds its output.
        """
        line = documented("ray start --head" if self.address == head else "ray start --address")
        line = line.replace("HEAD", head).replace("THIS", self.address)
        command = shlex.split(line)
        ray = str(Path(sys.executable).with_name("ray"))
        words = [
            ray,
            *command[1:],
            *SMALL,
            *PORTS,
            f"--temp-dir={self.temporary / 'ray'}",
            *options,
        ]
        if before:
            # `ip netns exec` gives each command mounts of its own
            words = ["sh", "-c", f'{before} && exec "$@"', "sh", *words]
        output = ""
        for _ in range(STARTS):
            code, output = self._start(words)
            if code == 0:
                return
            self.end_ray()
        raise RuntimeError(f"{shlex.join(command)} failed on {self.address}:\n{output}")

    def _start(self, words: Sequence[str]) -> tuple[int, str]:
        # not to a pipe: daemons inherit it and hold it open
        with tempfile.TemporaryFile("w+") as out:
            process = subprocess.Popen(
                self.words(words),
                env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                code = process.wait(START_S)
            except subprocess.TimeoutExpired:
                process.kill()
                code = process.wait()
            out.seek(0)
            return code, out.read()

    def end_ray(self) -> None:
        """Kill all processes of Ray here, but not its clients."""
        for part in ("/ray/", "ray::", "ray.util.client"):
            self.kill(part)

    def processes(self) -> dict[int, str]:
        """Return the command lines of all processes on this machine, by process id."""
        pids = ip("netns", "pids", self.namespace).split()
        command_lines = {}
        for pid in map(int, pids):
            with contextlib.suppress(OSError):
                line = Path(f"/proc/{pid}/cmdline").read_bytes()
                command_lines[pid] = line.replace(b"\0", b" ").decode(errors="replace")
        return command_lines

    def kill(self, pattern: str = "") -> int:
        """Kill processes with `pattern` in their command line, or all; return their number."""
        killed: set[int] = set()
        deadline_s = time.monotonic() + 120
        while pids := [pid for pid, line in self.processes().items() if pattern in line]:
            if time.monotonic() > deadline_s:
                raise RuntimeError(f"{self.namespace} does not end: {self.processes()}")
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                killed.add(pid)
            time.sleep(0.02)
        return len(killed)


@dataclass(frozen=True)
class Site:
    """Machines in one network; the first is the cluster's head."""

    machines: list[Machine]

    @property
    def head(self) -> Machine:
        """The machine of Ray's head node."""
        return self.machines[0]

    def join(self, machines: Sequence[Machine], *options: str, befores: Sequence[str] = ()) -> None:
        """Start Ray on machines at once, each after its line of shell in `befores`, if any."""
        errors: list[Exception] = []

        def start(machine: Machine, before: str) -> None:
            try:
                machine.join(self.head.address, *options, before=before)
            except Exception as error:
                errors.append(error)

        pairs = itertools.zip_longest(machines, befores, fillvalue="")
        threads = [threading.Thread(target=start, args=pair) for pair in pairs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]

    def start(self) -> None:
        """Start Ray on all of them, the head first."""
        self.join([self.head], "--include-dashboard=false")
        self.join(self.machines[1:])


def documented(prefix: str) -> str:
    """Return the one command in docs/clusters.md that starts with `prefix`."""
    page = (ROOT / "docs" / "clusters.md").read_text()
    lines = [line for line in page.splitlines() if line.startswith(prefix)]
    if len(set(lines)) != 1:
        raise ValueError(f"docs/clusters.md must say once how to {prefix}, not {lines}")
    return lines[0].partition("  #")[0]


@contextlib.contextmanager
def site(n: int = 3) -> Iterator[Site]:
    """Make `n` machines; delete them on exit, with all their processes.

    Raises
    ------
    NoMachinesError
        If they can't be made here.
    """
    if os.geteuid() != 0 or shutil.which("ip") is None:
        raise NoMachinesError("needs root and iproute2 (apt-get install iproute2) for namespaces")
    _delete_leftovers()
    names = [f"{PREFIX}-{os.getpid()}-{secrets.token_hex(2)}-{index}" for index in range(n)]
    lan = f"{names[0][:-2]}-lan"
    # a short name: sockets lie in there, and the way to one has at most 107 characters
    folder = Path(tempfile.mkdtemp(prefix="r", dir="/tmp"))
    machines: list[Machine] = []
    try:
        try:
            _connect(lan, names)
        except subprocess.CalledProcessError as error:
            raise NoMachinesError(
                f"no network namespace can be made ({error.stderr.strip()}); run where root may "
                "administer the system, as in a container started with --privileged"
            ) from error
        (folder / "token").write_text(secrets.token_hex(32))
        (folder / "token").chmod(0o600)
        for index, name in enumerate(names):
            environment = {
                "RAY_AUTH_MODE": "token",
                "RAY_AUTH_TOKEN_PATH": str(folder / "token"),
                "RAY_TMPDIR": str(folder / str(index)),
            }
            (folder / str(index)).mkdir()
            machine = Machine(name, f"{NETWORK}.{index + 1}", folder / str(index), environment)
            machines.append(machine)
        yield Site(machines)
    finally:
        for machine in machines:
            machine.kill()
        for name in (*names, lan):
            with contextlib.suppress(subprocess.CalledProcessError):
                ip("netns", "del", name)
        shutil.rmtree(folder, ignore_errors=True)


def ip(*words: str) -> str:
    """Run ``ip`` of iproute2; return its output."""
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=True)
    return done.stdout


def _connect(lan: str, names: Sequence[str]) -> None:
    """Make a namespace for the bridge and one for each machine, and connect them."""
    ip("netns", "add", lan)
    ip("-n", lan, "link", "add", "bridge", "type", "bridge")
    ip("-n", lan, "link", "set", "bridge", "up")
    for index, name in enumerate(names):
        ip("netns", "add", name)
        ip("-n", name, "link", "add", "eth0", "type", "veth", "peer", f"port{index}", "netns", lan)
        ip("-n", lan, "link", "set", f"port{index}", "master", "bridge", "up")
        ip("-n", name, "address", "add", f"{NETWORK}.{index + 1}/24", "dev", "eth0")
        ip("-n", name, "link", "set", "lo", "up")
        ip("-n", name, "link", "set", "eth0", "up")
        # leads nowhere, but tells Ray which address is the machine's own
        ip("-n", name, "route", "add", "default", "dev", "eth0")


def _delete_leftovers() -> None:
    """Delete namespaces, and kill their processes, of tests that were killed."""
    for line in ip("netns", "list").splitlines():
        name = line.split()[0]
        prefix_match = re.match(rf"{PREFIX}-(\d+)-", name)
        if prefix_match and not Path("/proc", prefix_match[1]).exists():
            for pid in ip("netns", "pids", name).split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            with contextlib.suppress(subprocess.CalledProcessError):
                ip("netns", "del", name)
