"""Large cells on a Ray cluster of several machines: memory, bytes over the network, idle time.

Run as ``python -m benchmarks.nodes [--tasks 1e7]``, as root on Linux with iproute2. The machines
are network namespaces on one bridge, each with a Ray node of one slot; the head's has the driver.
The others do not see its results, as with disks of their own, unless ``--shared`` is given. Kernels
are compiled before, and their cache is shared. Cells are two policies × capacities × seeds on a
pool; each seed is another workload. All that is started ends with it, on an interruption too.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.common import ROOT, Row, row, scratch, show
from sim.base.files import read_checked_json
from tests.e2e.machines import Machine, NoMachinesError, Site, ip, site

POLICIES = "fifo,srpt"
TASKS_A_JOB = 144
"""Mean of ``trace=alibaba_synth``."""
MB = 1e6
SAMPLE_S = 1.0
_PSS = re.compile(r"^Pss:\s+(\d+) kB", re.M)


@dataclass
class Watch:
    """Memory of machines while a sweep runs, sampled by a thread."""

    machines: list[Machine]
    peak: dict[str, float] = field(default_factory=dict)  # of a machine, by its address, bytes
    task_peak: dict[str, float] = field(default_factory=dict)  # of a process, by its task's name

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Sample inside this context."""
        over = threading.Event()
        thread = threading.Thread(target=self._run, args=(over,))
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _run(self, over: threading.Event) -> None:
        while not over.wait(SAMPLE_S):
            for machine in self.machines:
                total = 0.0
                for pid, line in machine.processes().items():
                    n_bytes = memory_bytes(pid)
                    total += n_bytes
                    if line.startswith("ray::"):
                        name = line.split("(")[0].split()[0]
                        self.task_peak[name] = max(self.task_peak.get(name, 0.0), n_bytes)
                self.peak[machine.address] = max(self.peak.get(machine.address, 0.0), total)


def memory_bytes(pid: int) -> float:
    """Return a process's share of memory: pages that several map count in equal parts."""
    try:
        match = _PSS.search(Path(f"/proc/{pid}/smaps_rollup").read_text())
    except OSError:  # it has ended
        return 0.0
    return 1024.0 * int(match[1]) if match else 0.0


def received_bytes(machine: Machine) -> int:
    """Return the bytes that a machine has received from all others."""
    (link,) = json.loads(ip("-n", machine.namespace, "-s", "-j", "link", "show", "eth0"))
    return int(link["stats64"]["rx"]["bytes"])


def sweep_words(args: argparse.Namespace, results: Path, tasks: float) -> list[str]:
    """Return the sweep's command."""
    capacities = ",".join(f"{0.8 + 0.1 * step:.1f}" for step in range(args.capacities))
    return [
        *(sys.executable, "-m", "sweep", f"policy={POLICIES}", f"capacity={capacities}"),
        *(f"seed=range(0,{args.seeds})", "trace=alibaba_synth", "cluster=slots", "tracking=none"),
        *(f"trace.jobs={int(tasks / TASKS_A_JOB)}", f"paths.results={results}"),
    ]


def measure(args: argparse.Namespace, cluster: Site, folder: Path) -> list[Row]:
    """Run the sweep on a cluster that is up; return what it took."""
    results = folder / "results"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **cluster.head.environment}
    resting = {machine.address: total_bytes(machine) for machine in cluster.machines}
    before = [received_bytes(machine) for machine in cluster.machines]
    watch, begin = Watch(cluster.machines), time.time()
    with watch.running():
        done = subprocess.run(
            cluster.head.words([*sweep_words(args, results, args.tasks), "launcher=ray"]),
            env=environment,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(done.stderr[-4000:])
    received = [received_bytes(m) - n for m, n in zip(cluster.machines, before, strict=True)]
    (journal,) = (results / "journal").glob("*.jsonl")
    events = [json.loads(line) for line in journal.read_text().splitlines()]
    cells = [event for event in events if event["event"] == "cell"]
    known = [read_checked_json(f) or {} for f in (results / "cache" / "workloads").glob("*.json")]
    n_tasks = max(about["n_tasks"] for about in known)
    first_s = min(event["time"] - event["seconds"] for event in cells)
    result_bytes = sum(f.stat().st_size for f in (results / "cache" / "shards").rglob("*.parquet"))
    rows = [
        row("cells", len(cells), ""),
        row("tasks of a workload", n_tasks / 1e6, "million"),
        row("from the command to the last cell", max(e["time"] for e in cells) - begin, "s"),
        row("until the first cell begins", first_s - begin, "s"),
        row("seconds a cell", [e["seconds"] for e in cells], "s"),
        row("results, as stored", result_bytes / MB, "MB"),
    ]
    busy = busy_shares(cells)
    for machine, n_bytes in zip(cluster.machines, received, strict=True):
        label = "head" if machine is cluster.head else machine.address
        share, n_cells = busy.get(machine.address, (0.0, 0))
        peak = watch.peak[machine.address]
        rows += [
            row(f"{label}: cells", n_cells, ""),
            row(f"{label}: idle between first and last cell", 100 * (1 - share), "%"),
            row(f"{label}: received", n_bytes / MB, "MB"),
            row(f"{label}: peak memory", peak / MB, "MB"),
            row(f"{label}: of which before", resting[machine.address] / MB, "MB"),
        ]
    peaks = sorted(watch.task_peak.items())
    return rows + [row(f"process {name}: peak memory", n / MB, "MB") for name, n in peaks]


def total_bytes(machine: Machine) -> float:
    """Return the memory of all processes of a machine."""
    return sum(map(memory_bytes, machine.processes()))


def busy_shares(cells: list[dict[str, Any]]) -> dict[str, tuple[float, int]]:
    """Return each node's busy share from the first begin to the last end, and its cells.

    By address; a node has one slot.
    """
    begin = min(event["time"] - event["seconds"] for event in cells)
    span_s = max(event["time"] for event in cells) - begin
    seconds: dict[str, list[float]] = defaultdict(list)
    for event in cells:
        seconds[event["node"].rpartition("(")[2].rstrip(")")].append(event["seconds"])
    return {key: (sum(values) / span_s, len(values)) for key, values in seconds.items()}


def main(argv: list[str]) -> int:
    """Set up the machines, run the sweep, and print what it took."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nodes", description=__doc__)
    parser.add_argument("--tasks", type=float, default=1e7, help="of a workload")
    parser.add_argument("--capacities", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--store", type=float, default=1e9, help="object store of a node, bytes")
    parser.add_argument("--shared", action="store_true", help="all machines see the results")
    args = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as Ctrl-C: what is open is closed
    try:
        with scratch() as name, site(args.nodes) as cluster:
            folder = Path(name)
            (folder / "results").mkdir()
            warm = [*sweep_words(args, folder / "warm", 1e4), "launcher=inline"]
            subprocess.run(warm, cwd=ROOT, capture_output=True, check=True)  # compiles
            store = f"--object-store-memory={int(args.store)}"
            cluster.join([cluster.head], "--include-dashboard=false", store)
            workers = cluster.machines[1:]
            hide = "true" if args.shared else f"mount -t tmpfs none {folder / 'results'}"
            cluster.join(workers, store, befores=[hide] * len(workers))
            rows = measure(args, cluster, folder)
    except NoMachinesError as error:
        print(f"the benchmark {error}", file=sys.stderr)
        return 2
    return show("nodes", rows)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
