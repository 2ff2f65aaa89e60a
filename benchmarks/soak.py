"""Many small cells on a cluster whose workers, machines and driver are killed again and again.

Run as ``python -m benchmarks.soak [--cells 10000] [--bucket]``, as root on Linux with iproute2.
Three machines (network namespaces) form a Ray cluster; every few seconds something is killed, as a
seed says: a worker, a whole machine but the head, or the driver (the same command goes on). A
machine comes back as it was, with other sources of the project, or with a disk that fills up; the
clock of the last one is an hour fast then. With ``--bucket`` results go to an object store that
refuses one put in twenty and that the last machine has no keys to, and the driver's machine is lost
with all that it had: the same command goes on elsewhere. In the end each cell must be done exactly
once, with the bytes of an undisturbed run without Ray, and nobody must have been shown a traceback.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.common import NAP, ROOT, row, scratch, show, write_options, write_tiny
from sim.base.kernel_cache import cache_dir
from tests.e2e import node_faults
from tests.e2e.machines import Machine, NoMachinesError, Site, site

KINDS = {"worker": 6, "machine": 3, "driver": 1}
COMES_BACK = {"as it was": 2, "with other sources": 1, "with a full disk": 1}
PORT, REFUSES = 5055, 20
WORKER = "ray::run_batch"
KEYS = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}


@dataclass
class Soak:
    """A sweep during which workers, machines and the driver are killed."""

    site: Site  # a cluster that is up
    folder: Path  # for the workload and the results
    n_cells: int
    seed: int = 0  # of what is killed when
    nap_s: float = 0.05  # how long a cell waits, beside computing
    every_s: float = 3.0  # mean time between kills
    limit_s: float = 3600.0  # when to end in any case
    bucket: bool = False  # whether results go to an object store
    environment: Mapping[str, str] = field(default_factory=dict)  # for the driver
    killed: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    came_back: Counter[str] = field(default_factory=Counter)
    driver_output: str = ""  # by all drivers, on standard error
    n_homes: int = 0  # machines that the driver has lost
    _address: str = ""  # of the object store
    _absent: dict[str, threading.Thread] = field(default_factory=dict)

    def run(self) -> None:
        """Run the sweep to its end, and assert that each cell is done once, and right."""
        write_tiny(self.folder / "tiny")
        write_options(self.folder, {"nap": NAP})
        store = self._store() if self.bucket else None
        begin = time.monotonic()
        try:
            self._run_disturbed(begin + self.limit_s)
        finally:
            for thread in self._absent.values():
                thread.join()
            if store is not None:
                store.kill()
        self.seconds = time.monotonic() - begin
        self._check()

    def _run_disturbed(self, end: float) -> None:
        rng = random.Random(self.seed)
        kinds = list(KINDS)
        driver, n_before = self._driver(), 0
        try:
            while True:
                pause = self.every_s * rng.uniform(0.5, 1.5)
                kind = rng.choices(kinds, list(KINDS.values()))[0]
                with contextlib.suppress(subprocess.TimeoutExpired):
                    _, err = driver.communicate(timeout=pause)
                    self.driver_output += err
                    if driver.returncode:
                        raise RuntimeError(f"the sweep failed ({driver.returncode}):\n{err}")
                    return
                if time.monotonic() > end:
                    raise RuntimeError(f"not over after {self.limit_s:g} s; killed {self.killed}")
                n_done = len(self._cells())
                if n_done == n_before or self._events("end"):
                    continue  # at least one cell between kills, and none after the end
                n_before = n_done
                if kind == "driver":
                    driver.kill()
                    self.driver_output += driver.communicate()[1]
                    if self.bucket:  # and the machine that it was on, with its disk
                        shutil.rmtree(self._home)
                        self.n_homes, n_before = self.n_homes + 1, 0
                    driver = self._driver()
                    self.killed[kind] += 1
                elif kind == "machine":
                    back = rng.choices([*COMES_BACK], [*COMES_BACK.values()])[0]
                    self.killed[kind] += self._kill_machine(rng.choice(self.site.machines), back)
                else:
                    self.killed[kind] += self._kill_worker(rng.choice(self.site.machines))
        finally:
            if driver.poll() is None:
                driver.kill()
                driver.communicate()

    def _kill_worker(self, machine: Machine) -> bool:
        for pid, line in machine.processes().items():
            if line.startswith(WORKER):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    return True
        return False

    def _kill_machine(self, machine: Machine, back: str) -> bool:
        thread = self._absent.get(machine.namespace)
        if machine is self.site.head or (thread is not None and thread.is_alive()):
            return False
        machine.kill()
        thread = threading.Thread(target=self._come_back, args=(machine, back))
        thread.start()
        self._absent[machine.namespace] = thread
        self.came_back[back] += 1
        return True

    def _come_back(self, machine: Machine, back: str) -> None:
        disk = machine.temporary / "ray"
        commands = ["true"]
        if back == "with other sources":
            commands.append(node_faults.change_sources(ROOT, self.folder))
        if back == "with a full disk":
            commands.append(node_faults.mount_small_disk(disk))
        if machine is self.site.machines[-1]:
            commands.append(node_faults.shift_clock(self.folder))
        machine.join(self.site.head.address, before=" && ".join(commands))
        if back == "with a full disk":
            raylets = [pid for pid, line in machine.processes().items() if "/raylet " in line]
            for pid in raylets[:1]:
                node_faults.fill_disk(Path(f"/proc/{pid}/root{disk}"))

    @property
    def _home(self) -> Path:
        """Disk of the machine that the driver is on."""
        return self.folder / f"home{self.n_homes}"

    def _store(self) -> subprocess.Popen[bytes]:
        """Start the object store, on the head's machine."""
        words = ("-m", "tests.e2e.node_faults", self.site.head.address, str(PORT), str(REFUSES))
        store = subprocess.Popen(
            self.site.head.words([sys.executable, *words]),
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        query = f"scheme=http&region=us-east-1&endpoint_override={self.site.head.address}:{PORT}"
        code = (
            "from pyarrow import fs; "
            f"fs.FileSystem.from_uri('s3://soaked?{query}&allow_bucket_creation=true')[0]"
            ".create_dir('soaked')"
        )
        for _ in range(60):
            time.sleep(0.5)
            words = self.site.head.words([sys.executable, "-c", code])
            if not subprocess.run(words, env=self._environment, capture_output=True).returncode:
                break
        self._address = f"s3://soaked/results?{query}"
        return store

    @property
    def _environment(self) -> dict[str, str]:
        mine = {"XDG_CACHE_HOME": str(self._home), "NUMBA_CACHE_DIR": str(cache_dir())}
        variables = {**KEYS, **mine} if self.bucket else {}
        return {**os.environ, **self.environment, **self.site.head.environment, **variables}

    @property
    def _results(self) -> Path:
        """Results folder, or working folder of results in a store."""
        working_folders = self._home / "cluster-sweep" / "results"
        folders = [*working_folders.glob("*")] if self.bucket else [self.folder / "soaked"]
        return folders[0] if folders else working_folders

    def _words(self, *words: str) -> list[str]:
        variables = (
            "--config-dir",
            str(self.folder),
            "policy=nap",
            f"policy.seconds={self.nap_s}",
            f"seed=range(0,{self.n_cells})",
            "trace=parquet",
        )
        where = (f"trace.path={self.folder / 'tiny'}", "cluster.count=2", "tracking=none")
        return [sys.executable, "-m", "sweep", *variables, *where, *words]

    def _driver(self) -> subprocess.Popen[str]:
        results = f'"{self._address}"' if self.bucket else self.folder / "soaked"
        where = ("launcher=ray", f"paths.results={results}")
        return subprocess.Popen(
            self.site.head.words(self._words(*where)),
            cwd=ROOT,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def _cells(self) -> list[dict[str, Any]]:
        """Return the journal's events of cells."""
        return self._events("cell")

    def _events(self, kind: str) -> list[dict[str, Any]]:
        files = (self._results / "journal").glob("*.jsonl")
        lines = [line for file in files for line in file.read_text().splitlines()]
        events = [json.loads(line) for line in lines if line.endswith("}")]
        return [event for event in events if event["event"] == kind]

    def _check(self) -> None:
        assert "Traceback" not in self.driver_output, self.driver_output
        cells = self._cells()
        times = Counter(event["row"] for event in cells)
        assert {event["status"] for event in cells} == {"done"}
        assert set(times.values()) == {1}, [row for row, n in times.items() if n > 1]
        # a driver that is killed after storing cells, before its journal entry, finds them cached
        assert len(times) == self.n_cells or self.killed["driver"]
        where = ("launcher=inline", f"paths.results={self.folder / 'undisturbed'}")
        done = subprocess.run(
            self._words(*where),
            cwd=ROOT,
            env={**os.environ, **self.environment, "WAKE": "1"},
            capture_output=True,
            text=True,
            timeout=self.limit_s,
            check=True,
        )
        inline = Path(done.stdout.splitlines()[-1])
        (cells_file,) = (self._results / "sweeps").glob("*/cells.parquet")
        other = inline / "cells.parquet"
        differ = cells_file.read_bytes() != other.read_bytes()
        assert not differ, (
            f"the disturbed sweep has other bytes: {_describe_differences(cells_file, other)}"
        )


def _describe_differences(ours: Path, theirs: Path) -> str:
    """Name the columns of two tables that differ, with a value of each."""
    a, b = pq.read_table(ours), pq.read_table(theirs)
    if not a.schema.equals(b.schema):
        return f"columns {a.column_names} and {b.column_names}"
    lists = ((name, a[name].to_pylist(), b[name].to_pylist()) for name in a.column_names)
    apart = [(name, *pair) for name, *both in lists for pair in zip(*both, strict=True)]
    return str({name: (x, y) for name, x, y in apart if repr(x) != repr(y)})


def main(argv: list[str]) -> int:
    """Run the soak test, and print the number of kills by kind."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--cells", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=float, default=3.0, help="mean time between kills, s")
    parser.add_argument("--bucket", action="store_true", help="results in an object store")
    parser.add_argument("--limit", type=float, default=3600.0, help="end in any case, s")
    args = parser.parse_args(argv)
    try:
        with scratch() as name, site() as cluster:
            for machine in cluster.machines[: -1 if args.bucket else 0]:
                machine.environment.update(KEYS)
            cluster.start()
            soak = Soak(cluster, Path(name), args.cells, args.seed, bucket=args.bucket)
            soak.every_s, soak.limit_s = args.every, args.limit
            soak.run()
    except NoMachinesError as error:
        print(f"the soak {error}", file=sys.stderr)
        return 2
    rows = [
        row("cells, each done once, the same bytes as undisturbed", args.cells, ""),
        row("from start to end", soak.seconds, "s"),
        *(row(f"kills of a {kind}", soak.killed[kind], "") for kind in KINDS),
        *(row(f"machines that came back {how}", soak.came_back[how], "") for how in COMES_BACK),
        row("nodes that were left out", soak.driver_output.count(" is excluded: "), ""),
    ]
    return show("soak", rows)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
