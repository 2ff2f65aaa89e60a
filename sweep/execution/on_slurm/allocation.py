"""Inside an allocation of Slurm's: Ray on each node, the sweep on the first, and their end.

Run by the batch script of `sweep.execution.on_slurm.batch_job`.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO

from sim.base import files
from sweep.execution.notes import note
from sweep.execution.on_slurm import batch_job

NODES_WITHIN_S = 180.0
"""Time in which nodes have to join; the sweep begins with those that have."""
END_WITHIN_S = 15.0
RAY = (sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats")


def main(stem: Path) -> int:
    """Run the sweep of a job's files; write its exit code beside them, and return it."""
    record = batch_job.read(stem)
    processes: list[subprocess.Popen[bytes]] = []

    def end(number: int, _: FrameType | None) -> None:
        """Pass a signal on to the sweep, which then stores what is done."""
        for process in processes[-1:]:
            process.send_signal(number)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    with stem.with_suffix(".ray").open("ab") as log, _cluster(log) as address:
        launcher = ["launcher=ray", f"launcher.address={address}", "launcher.send_code=false"]
        if record["workers"] is not None:
            launcher.append(f"launcher.workers={record['workers']}")
        command = [sys.executable, "-m", "sweep", *record["words"], *launcher, "tracking=none"]
        # the answer is printed where the command was given
        processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL))
        code = processes[-1].wait()
        files.write_text(stem.with_suffix(".exit"), f"{code}\n")  # Ray may take long to end
    return code


@contextlib.contextmanager
def _cluster(log: BinaryIO) -> Iterator[str]:
    """Start Ray on all nodes of the allocation; yield its address, and end it.

    What Ray prints goes to `log`.
    """
    n_nodes = int(os.environ.get("SLURM_JOB_NUM_NODES", "1"))
    host = _own_address()
    with socket.socket() as probe:
        probe.bind((host, 0))
        address = f"{host}:{probe.getsockname()[1]}"
    with tempfile.TemporaryDirectory(prefix="sweep-ray-") as folder:
        os.environ |= {
            # nobody else on these nodes can talk to the cluster
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
        }
        head = [f"--node-ip-address={host}", f"--port={address.rpartition(':')[2]}"]
        head += ["--include-dashboard=false", f"--temp-dir={folder}"]
        started = [_start([*RAY, "--head", *head], log)]
        if n_nodes > 1:
            workers = ["srun", f"--nodes={n_nodes - 1}", f"--ntasks={n_nodes - 1}", "--relative=1"]
            workers += ["--ntasks-per-node=1", "--overlap", f"--cpus-per-task={_cpus()}"]
            started.append(_start([*workers, *RAY, f"--address={address}"], log))
        try:
            _wait_for_nodes(address, n_nodes, started[0])
            yield address
        finally:
            _end(started[::-1])


def _own_address() -> str:
    """Return the address of this node that the workers reach."""
    import ray.util  # takes a second

    return str(ray.util.get_node_ip_address())


def _cpus() -> int:
    """Return the CPUs that the job has on this node."""
    return int(os.environ.get("SLURM_CPUS_PER_TASK") or os.environ.get("SLURM_CPUS_ON_NODE", "1"))


def _start(words: Sequence[str], log: BinaryIO) -> subprocess.Popen[bytes]:
    """Start Ray's processes of one or more nodes as a process group."""
    command = [*words, f"--num-cpus={_cpus()}"]
    streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
    return subprocess.Popen(command, start_new_session=True, **streams)


def _wait_for_nodes(address: str, n_nodes: int, head: subprocess.Popen[bytes]) -> None:
    """Wait until all nodes have joined; after a time go on with those that have."""
    script = (
        "import ray, sys; ray.init(address=sys.argv[1], log_to_driver=False, logging_level='ERROR')"
        "; print(sum(node['Alive'] for node in ray.nodes()))"
    )
    until_s = time.monotonic() + NODES_WITHIN_S
    n_present = 0
    while time.monotonic() < until_s and head.poll() is None:
        done = subprocess.run(
            [sys.executable, "-c", script, address], capture_output=True, text=True
        )
        n_present = int(done.stdout) if done.returncode == 0 and done.stdout.strip() else 0
        if n_present >= n_nodes:
            return
        time.sleep(1)
    note(f"{n_present} of {n_nodes} nodes have joined Ray in {NODES_WITHIN_S:.0f} s: see its log")


def _end(started: Sequence[subprocess.Popen[bytes]]) -> None:
    """End Ray's processes; Slurm ends those that are left with the job."""
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
    until_s = time.monotonic() + END_WITHIN_S
    for process in started:
        try:
            process.wait(max(0.0, until_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
