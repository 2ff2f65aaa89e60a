"""Many small cells on a cluster whose workers, machines and driver are killed again and again.

Run as ``python -m benchmarks.soak [--cells 10000]``, as root on Linux with iproute2. Three machines
(network namespaces) form a Ray cluster; every few seconds something is killed, as a seed says: a
worker, a whole machine but the head (which comes back), or the driver (the same command goes on).
In the end each cell must be done exactly once, with the bytes of an undisturbed run without Ray.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
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

from benchmarks.common import ROOT, row, scratch, show, write_tiny
from tests.e2e.machines import Machine, NoMachinesError, Site, site

KINDS = {"worker": 6, "machine": 3, "driver": 1}
WORKER = "ray::run_batch"
NAP = """
import os
import time
from dataclasses import dataclass

from policies import Policy, register


@register("nap")
@dataclass(frozen=True)
class Nap(Policy):
    seconds: float = 0.0

    def prepare(self, world, plan):
        plan.set_jobs(key=world.rng("nap").permutation(len(world.columns.job_submit)))
        time.sleep(0.0 if "WAKE" in os.environ else self.seconds)
"""


@dataclass
class Soak:
    """A sweep that is disturbed."""

    site: Site  # a cluster that is up
    folder: Path  # for the workload and the results
    n_cells: int
    seed: int = 0  # of what is killed when
    nap_s: float = 0.05  # how long a cell waits, beside computing
    every_s: float = 3.0  # mean time between kills
    limit_s: float = 3600.0  # when to end in any case
    environment: Mapping[str, str] = field(default_factory=dict)  # for the driver
    killed: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    _away: dict[str, threading.Thread] = field(default_factory=dict)

    def run(self) -> None:
        """Run the sweep to its end, and assert that each cell is done once, and right."""
        write_tiny(self.folder / "tiny")
        (self.folder / "policy").mkdir()
        (self.folder / "nap_policy.py").write_text(NAP)
        text = f"# Waits.\nname: nap\nmodule: nap_policy\nseconds: {self.nap_s}\n"
        (self.folder / "policy" / "nap.yaml").write_text(text)
        begin = time.monotonic()
        try:
            found = self._disturbed(begin + self.limit_s)
        finally:
            for thread in self._away.values():
                thread.join()
        self.seconds = time.monotonic() - begin
        self._check(found)

    def _disturbed(self, end: float) -> Path:
        chance = random.Random(self.seed)
        kinds = list(KINDS)
        driver, n_before = self._driver(), 0
        try:
            while True:
                pause = self.every_s * chance.uniform(0.5, 1.5)
                kind = chance.choices(kinds, list(KINDS.values()))[0]
                with contextlib.suppress(subprocess.TimeoutExpired):
                    out, err = driver.communicate(timeout=pause)
                    if driver.returncode:
                        raise RuntimeError(f"the sweep failed ({driver.returncode}):\n{err}")
                    return Path(out.splitlines()[-1])
                if time.monotonic() > end:
                    raise RuntimeError(f"not over after {self.limit_s:g} s; killed {self.killed}")
                n_done = len(self._cells())
                if n_done == n_before:
                    continue  # a kill at a time, and something done between
                n_before = n_done
                if kind == "driver":
                    driver.kill()
                    driver.communicate()
                    driver = self._driver()
                    self.killed[kind] += 1
                else:
                    machine = chance.choice(self.site.machines)
                    self.killed[kind] += getattr(self, f"_kill_{kind}")(machine)
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

    def _kill_machine(self, machine: Machine) -> bool:
        thread = self._away.get(machine.namespace)
        if machine is self.site.head or (thread is not None and thread.is_alive()):
            return False
        machine.kill()
        thread = threading.Thread(target=machine.join, args=(self.site.head.address,))
        thread.start()
        self._away[machine.namespace] = thread
        return True

    def _words(self, *words: str) -> list[str]:
        given = (
            "--config-dir",
            str(self.folder),
            "policy=nap",
            f"seed=range(0,{self.n_cells})",
            "trace=parquet",
        )
        where = (f"trace.path={self.folder / 'tiny'}", "cluster.count=2", "tracking=none")
        return [sys.executable, "-m", "sweep", *given, *where, *words]

    def _driver(self) -> subprocess.Popen[str]:
        where = ("launcher=ray", "launcher.address=auto", f"paths.results={self.folder / 'soaked'}")
        return subprocess.Popen(
            self.site.head.words(self._words(*where)),
            cwd=ROOT,
            env={**os.environ, **self.environment, **self.site.head.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def _cells(self) -> list[dict[str, Any]]:
        """Give what the journal says of cells."""
        files = (self.folder / "soaked" / "journal").glob("*.jsonl")
        lines = [line for file in files for line in file.read_text().splitlines()]
        events = [json.loads(line) for line in lines if line.endswith("}")]
        return [event for event in events if event["event"] == "cell"]

    def _check(self, found: Path) -> None:
        cells = self._cells()
        times = Counter(event["row"] for event in cells)
        assert {event["status"] for event in cells} == {"done"}
        assert set(times.values()) == {1}, [row for row, n in times.items() if n > 1]
        # a driver that is killed between keeping a cell and noting so finds it kept
        assert self.n_cells - len(times) <= self.killed["driver"]
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
        ours, theirs = ((at / "cells.parquet").read_bytes() for at in (found, inline))
        assert ours == theirs, "the disturbed sweep has other bytes"


def main(argv: list[str]) -> int:
    """Soak, and print what was survived."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--cells", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=float, default=3.0, help="mean time between kills, s")
    parser.add_argument("--limit", type=float, default=3600.0, help="end in any case, s")
    args = parser.parse_args(argv)
    try:
        with scratch() as name, site() as there:
            there.start()
            soak = Soak(
                there, Path(name), args.cells, args.seed, every_s=args.every, limit_s=args.limit
            )
            soak.run()
    except NoMachinesError as error:
        print(f"the soak {error}", file=sys.stderr)
        return 2
    rows = [
        row("cells, each done once, the same bytes as undisturbed", args.cells, ""),
        row("from start to end", soak.seconds, "s"),
        *(row(f"kills of a {kind}", soak.killed[kind], "") for kind in KINDS),
    ]
    return show("soak", rows)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
