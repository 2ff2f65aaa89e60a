"""Cost of many cells to their driver: on this machine, on fake slots, with one more node.

Run as ``python -m benchmarks.scale [--cells 1000000]``. The cells take no time and their workload
is tiny: what is measured is the platform. A node more needs root, and is left out without. Wall
times are longer where the machine has other work; what is of the processor (CPU) less so.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import fake_fleet
from benchmarks.common import (
    NAP,
    ROOT,
    Row,
    children_cpu_s,
    row,
    scratch,
    show,
    write_options,
    write_tiny,
)
from sweep import driver
from tests.e2e.machines import NoMachinesError, Site, site

FEW, LOGGED = 1_000, 10_000
CAPACITIES, POLICIES = "0.5,0.75,1,1.5,2", "fifo,random"
N_SETTINGS = 10
EVERY_S = 0.1
NOTHING = """
import pyarrow as pa


def evaluate(run, workload, cluster, policy, seed):
    return {"none": float(seed)}, pa.table({"none": [0.0]})
"""


@dataclass
class Driver:
    """A sweep's driver, watched."""

    folder: Path  # that it runs in
    peak_bytes: float = 0.0  # the most that it ever held, its children apart
    cpu_s: float = 0.0  # its own, its children's apart
    seconds: float = 0.0
    lines: list[tuple[float, str]] = field(default_factory=list)  # what it said, each with when

    def run(self, *words: str, environment: Mapping[str, str] | None = None) -> Driver:
        """Run it to its end."""
        begin = time.perf_counter()
        process = self.start(*words, environment=environment)
        watch = threading.Thread(target=self._watch, args=(process,))
        watch.start()
        assert process.stderr is not None
        self.lines = [(time.perf_counter() - begin, line.rstrip()) for line in process.stderr]
        code = process.wait()
        self.seconds = time.perf_counter() - begin
        watch.join()
        if code:
            raise RuntimeError("\n".join(line for _, line in self.lines))
        return self

    def start(
        self, *words: str, environment: Mapping[str, str] | None = None, before: Sequence[str] = ()
    ) -> subprocess.Popen[str]:
        """Start it, in a process group of its own."""
        return subprocess.Popen(
            [*before, sys.executable, "-m", "sweep", *words],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def _watch(self, process: subprocess.Popen[str]) -> None:
        page, tick = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")
        about = Path(f"/proc/{process.pid}")
        while process.poll() is None:
            with contextlib.suppress(OSError, IndexError):
                memory_mib = float((about / "statm").read_text().split()[1]) * page
                used = (about / "stat").read_text().rpartition(")")[2].split()
                self.peak_bytes = max(self.peak_bytes, memory_mib)
                self.cpu_s = (int(used[11]) + int(used[12])) / tick
            time.sleep(EVERY_S)


def main(argv: list[str]) -> int:
    """Measure, and print what was wanted beside it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--cells", type=int, default=1_000_000)
    parser.add_argument("--only", choices=("cells", "begin", "fleet", "node"), default=None)
    args = parser.parse_args(argv)
    parts = {"cells": lambda index: _cells(index, args.cells), "begin": _begin}
    parts |= {"fleet": _fleet, "node": _node}
    rows: list[Row] = []
    for name, part in parts.items():
        if args.only in (None, name):
            with scratch() as folder:
                write_tiny(Path(folder) / "tiny")
                write_options(Path(folder) / "own", {"nap": NAP})
                write_options(Path(folder) / "own", {"nothing": NOTHING}, "evaluator")
                rows += part(Path(folder))
    return show("scale" if args.only is None else f"scale_{args.only}", rows)


def _tiny(folder: Path, n_cells: int) -> list[str]:
    """Ask for so many cells that do nothing."""
    return [
        *("trace=parquet", f"trace.path={folder / 'tiny'}", "cluster.count=2"),
        *(f"policy={POLICIES}", f"capacity={CAPACITIES}", "baseline=fifo", "evaluator=nothing"),
        *(f"seed=range(0,{n_cells // N_SETTINGS})", "tracking=none"),
        f"--config-dir={folder / 'own'}",
    ]


def _cells(folder: Path, n_cells_max: int) -> list[Row]:
    """Many cells on this machine, beside few: plan, run, the same again."""
    few_words, words = _tiny(folder, FEW), [*_tiny(folder, n_cells_max), "paths.results=r"]
    few = Driver(folder).run("run", *few_words, "paths.results=few")
    plan = Driver(folder).run("plan", *words)
    many = Driver(folder).run("run", *words)
    ends = [index for index, line in many.lines if "cells done" in line]
    before = children_cpu_s()
    again = Driver(folder).run("run", *words)
    again_cpu = children_cpu_s() - before
    per_cell_ms = 1e3 * (many.cpu_s - few.cpu_s) / (n_cells_max - FEW)
    return [
        row(f"{n_cells_max:,} cells: planned", plan.seconds, "s", at_most=60),
        row("the plan's memory", plan.peak_bytes / 1e6, "MB"),
        row("from start to end", many.seconds, "s"),
        row("the driver's CPU a cell, from start to end", per_cell_ms, "ms", at_most=1.5),
        row("the driver's memory", many.peak_bytes / 1e6, "MB", at_most=600),
        row("after the last cell", many.seconds - ends[-1], "s"),
        row("longest time without a line of progress", _longest(ends), "s", at_most=10),
        row("the same again, all cached", again.seconds, "s"),
        row("of it CPU", again_cpu, "s"),
        row(f"the driver's memory, {FEW:,} cells", few.peak_bytes / 1e6, "MB"),
        *_logged(folder, min(n_cells_max, LOGGED)),
    ]


def _logged(folder: Path, n_cells: int) -> list[Row]:
    """Log a sweep to MLflow."""
    Driver(folder).run("run", *_tiny(folder, n_cells), "paths.results=logged")
    rows = []
    for granularity in ("policy", "sweep"):
        uri = f"tracking.uri=sqlite:///{folder / granularity}.db"
        words = (f"tracking.granularity={granularity}", uri, "paths.results=logged")
        logged = Driver(folder).run("track", *words)
        label = f"logging {n_cells:,} cells to MLflow, a run a {granularity}"
        rows.append(row(label, logged.seconds, "s"))
    return rows


def _begin(folder: Path) -> list[Row]:
    """1,000 seeds of a workload of 100,000 jobs: when the first cell begins."""
    marker = folder / "begun"
    words = [
        *("policy=nap", "trace=alibaba_synth", "tracking=none", f"--config-dir={folder / 'own'}"),
        f"paths.results={folder / 'r'}",
    ]
    Driver(folder).run(*words, "trace.jobs=20", "policy.seconds=0")  # compiles the kernels
    begin = time.perf_counter()
    many = ("trace.jobs=100000", "seed=range(0,1000)")
    process = Driver(folder).start(*words, *many, environment={"BEGUN": str(marker)})
    try:
        while not marker.exists():
            if process.poll() is not None:
                raise RuntimeError(process.stderr.read() if process.stderr else "")
            time.sleep(0.05)
        seconds = time.perf_counter() - begin
    finally:
        _end(process)
    label = "1,000 seeds of a workload of 100,000 jobs: until the first cell"
    return [row(label, seconds, "s", at_most=10)]


def _fleet(folder: Path) -> list[Row]:
    """200 nodes of fake slots, cells of 1 s that are kept: how busy they are."""
    rows = []
    for n_slots, n_cells in ((8, 100), (32, 80), (64, 80), (64, 160)):
        *words, _ = _tiny(folder, 200 * n_slots * n_cells)
        words.append(f"paths.results={folder / f'fleet{n_slots}_{n_cells}'}")
        request = driver.make_request(words, [str(folder / "own")])
        whole, while_any = fake_fleet.busy(200, n_slots, request)
        label = f"200 nodes of {n_slots} slots, {n_cells} cells of 1 s a slot: busy"
        rows.append(row(f"{label} while cells wait", 100 * while_any, "%", at_least=90))
        rows.append(row(f"{label} from start to end", 100 * whole, "%"))
    return rows


def _node(folder: Path) -> list[Row]:
    """Add a node: the rate of cells that wait for a second."""
    try:
        with site(2) as cluster_site:
            cluster_site.join([cluster_site.head], "--include-dashboard=false")
            alone = _rate(cluster_site, folder, "one", 20)
            cluster_site.join(cluster_site.machines[1:])
            both = _rate(cluster_site, folder, "two", 40)
    except NoMachinesError as error:
        print(f"a node more {error}", file=sys.stderr)
        return []
    return [row("two nodes / one, cells of 1 s", both / alone, "×", at_least=1.8)]


def _rate(cluster_site: Site, folder: Path, results: str, n_cells: int) -> float:
    """Return how many cells a second are done, from the first to the last."""
    driver = Driver(folder).start(
        *("policy=nap", f"seed=range(0,{n_cells})", "trace=parquet", "cluster.count=2"),
        *(f"trace.path={folder / 'tiny'}", f"--config-dir={folder / 'own'}", "tracking=none"),
        *("launcher=ray", "launcher.address=auto", f"paths.results={folder / results}"),
        environment=cluster_site.head.environment,
        before=cluster_site.head.words([]),
    )
    _, err = driver.communicate()
    if driver.returncode:
        raise RuntimeError(err)
    (journal,) = (folder / results / "journal").glob("*.jsonl")
    events = [json.loads(line) for line in journal.read_text().splitlines()]
    times = [event["time"] for event in events if event["event"] == "cell"]
    first = sum(index == times[0] for index in times)
    return (len(times) - first) / (times[-1] - times[0])


def _end(process: subprocess.Popen[str]) -> None:
    """End a driver and what it started."""
    process.send_signal(signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=30)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def _longest(times_s: Sequence[float]) -> float:
    return max((b - a for a, b in itertools.pairwise(times_s)), default=0.0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
