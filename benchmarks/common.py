"""Shared tools of benchmarks: timing, tables of results, child processes."""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import TypeVar

import sim
from sim import Workload
from sim.engine.plan import Scheduler

ROOT = Path(__file__).resolve().parent.parent
Result = TypeVar("Made")
NAP = """
import os
import time
from dataclasses import dataclass

from policies import Policy, register


@register("nap")
@dataclass(frozen=True)
class Nap(Policy):
    seconds: float = 1.0

    def prepare(self, world, plan):
        if "BEGUN" in os.environ:
            open(os.environ["BEGUN"], "w").close()
        plan.set_jobs(key=world.rng("nap").permutation(len(world.columns.job_submit)))
        time.sleep(0.0 if "WAKE" in os.environ else self.seconds)
"""
"""A policy that sleeps unless WAKE is set, and orders jobs at random; it creates the file BEGUN."""


@dataclass(frozen=True)
class Row:
    """One measured number and its target: a lower limit if ``at_least``, otherwise an upper one.

    ``measured`` can be the median of several runs; ``low`` and ``high`` are then their range.
    """

    name: str
    measured: float
    unit: str
    target: float | None = None
    at_least: bool = True
    low: float | None = None
    high: float | None = None

    @property
    def missed(self) -> bool:
        """True if the number misses its target."""
        if self.target is None:
            return False
        return self.measured < self.target if self.at_least else self.measured > self.target


def row(
    name: str,
    values: float | Sequence[float],
    unit: str,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
) -> Row:
    """Make a row of one value, or of the median of several."""
    target = at_most if at_least is None else at_least
    if not isinstance(values, Sequence):
        return Row(name, values, unit, target, at_most is None)
    low, high = min(values), max(values)
    return Row(name, median(values), unit, target, at_most is None, low, high)


def parse_arguments(about: str, **numbers: float) -> argparse.Namespace:
    """Parse numeric options of the command line, from their names and defaults."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    return parser.parse_args()


def write_tiny(folder: Path) -> None:
    """Write a workload of five jobs that take no time to simulate."""
    stage = {"durations_s": [1.0, 2.0, 3.0]}
    jobs = [{"submit_s": float(i), "stages": [stage]} for i in range(5)]
    Workload.from_jobs(jobs).write(folder)


def write_options(folder: Path, codes: Mapping[str, str], kind: str = "policy") -> None:
    """Write options of a user's own: a module and a YAML file for each name."""
    (folder / kind).mkdir(parents=True)
    for name, code in codes.items():
        (folder / f"{name}_{kind}.py").write_text(code)
        text = f"# {name.capitalize()}.\nname: {name}\nmodule: {name}_{kind}\n"
        (folder / kind / f"{name}.yaml").write_text(text)


def cpu_seconds(run: Callable[[], object]) -> float:
    """Return the CPU time of `run`, s, without that of other processes."""
    begin = time.thread_time()
    run()
    return time.thread_time() - begin


def run_seconds(workload: Workload, cluster: sim.Cluster, policy: Scheduler) -> float:
    """Return the CPU time of a simulation that records no tasks, s: of the engine alone."""
    return cpu_seconds(lambda: sim.simulate(workload, cluster, policy, record="jobs"))


def timed(run: Callable[[], Result]) -> tuple[float, Result]:
    """Return the wall time of `run`, s, and its result."""
    begin = time.perf_counter()
    result = run()
    return time.perf_counter() - begin, result


def children_cpu_s() -> float:
    """Return the CPU time of all child processes that have ended, s."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def peak_memory(name: str = "peak memory", at_most: float | None = None) -> Row:
    """Make a row of the peak memory of this process."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return row(name, peak, "GiB", at_most=at_most)


def interleave(runs: Mapping[str, Callable[[], float]], times: int) -> dict[str, list[float]]:
    """Call all `runs` in turn, `times` times, so that a disturbance affects all of them."""
    values: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(times):
        for name, run in runs.items():
            values[name].append(run())
    return values


def show(name: str, rows: Sequence[Row]) -> int:
    """Print a table; write ``results/benchmarks/<name>.json``; return 1 if a target is missed."""
    width = max(len(row.name) for row in rows)
    print(f"\n{name}\n{'measure':{width}}  {'measured':>10}  {'range':>15}  {'target':>8}")
    for row in rows:
        sign = "≥ " if row.at_least else "≤ "
        target = "" if row.target is None else f"{sign}{row.target:g}"
        spread = "" if row.low is None else f"{row.low:.4g} – {row.high:.4g}"
        verdict = "" if row.target is None else ("MISSED" if row.missed else "ok")
        numbers = f"{row.measured:>10.4g}  {spread:>15}  {target:>8}"
        print(f"{row.name:{width}}  {numbers}  {row.unit:14} {verdict}".rstrip())
    folder = ROOT / "results" / "benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    content = {"machine": machine(), "rows": [asdict(row) for row in rows]}
    (folder / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")
    return int(any(row.missed for row in rows))


def machine() -> dict[str, object]:
    """Return the description and load of this machine."""
    cpu = platform.processor()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [ln for ln in info.read_text().splitlines() if ln.startswith("model name")]
        cpu = models[0].partition(":")[2].strip() if models else cpu
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "load_average": os.getloadavg(),
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "numba", "ray")},
    }


def run_child(code: str, **environment: str) -> dict[str, float]:
    """Run Python `code` in a child process; return the JSON that it prints last."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def scratch() -> tempfile.TemporaryDirectory[str]:
    """Create a temporary folder, removed after the benchmark."""
    return tempfile.TemporaryDirectory(prefix="benchmark-")
