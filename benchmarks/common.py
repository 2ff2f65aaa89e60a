"""What the benchmarks share: timing, tables, and children that measure themselves."""

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
Made = TypeVar("Made")
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
"""A policy that waits, unless WAKE is set, and orders jobs at random; it makes the file BEGUN."""


@dataclass(frozen=True)
class Row:
    """One measured number, and the one that is wanted (``at_least`` says on which side).

    ``low`` and ``high`` are the least and the greatest of the runs that ``measured`` is the
    median of.
    """

    what: str
    measured: float
    unit: str
    wanted: float | None = None
    at_least: bool = True
    low: float | None = None
    high: float | None = None

    @property
    def missed(self) -> bool:
        """Whether it is on the wrong side of what is wanted."""
        if self.wanted is None:
            return False
        return self.measured < self.wanted if self.at_least else self.measured > self.wanted


def row(
    what: str,
    values: float | Sequence[float],
    unit: str,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
) -> Row:
    """Make a row of one value, or of the median of several."""
    wanted = at_most if at_least is None else at_least
    if not isinstance(values, Sequence):
        return Row(what, values, unit, wanted, at_most is None)
    low, high = min(values), max(values)
    return Row(what, median(values), unit, wanted, at_most is None, low, high)


def asked(about: str, **numbers: float) -> argparse.Namespace:
    """Read numbers from the command line, by the names and defaults given."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    return parser.parse_args()


def write_tiny(folder: Path) -> None:
    """Write a workload of five jobs that take no time to simulate."""
    stage = {"durations_s": [1.0, 2.0, 3.0]}
    jobs = [{"submit_s": float(i), "stages": [stage]} for i in range(5)]
    Workload.from_jobs(jobs).write(folder)


def write_own(folder: Path, codes: Mapping[str, str], kind: str = "policy") -> None:
    """Write options of a user's own, each of its name and code."""
    (folder / kind).mkdir(parents=True)
    for name, code in codes.items():
        (folder / f"{name}_{kind}.py").write_text(code)
        text = f"# {name.capitalize()}.\nname: {name}\nmodule: {name}_{kind}\n"
        (folder / kind / f"{name}.yaml").write_text(text)


def cpu_seconds(run: Callable[[], object]) -> float:
    """Return what `run` took of one core, s; what else the machine does is not counted."""
    begin = time.thread_time()
    run()
    return time.thread_time() - begin


def run_seconds(workload: Workload, cluster: sim.Cluster, policy: Scheduler) -> float:
    """Return the CPU seconds of a run that records no tasks: of the engine alone."""
    return cpu_seconds(lambda: sim.simulate(workload, cluster, policy, record="jobs"))


def timed(run: Callable[[], Made]) -> tuple[float, Made]:
    """Return the wall time of a run, s, and what it returned."""
    begin = time.perf_counter()
    made = run()
    return time.perf_counter() - begin, made


def cpu_of_children() -> float:
    """Return what the processes that have ended took of one core, s."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def peak_memory(what: str = "peak memory", at_most: float | None = None) -> Row:
    """Make a row of the most that this process ever held."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return row(what, peak, "GiB", at_most=at_most)


def rounds(runs: Mapping[str, Callable[[], float]], times: int) -> dict[str, list[float]]:
    """Call each of `runs` in turn, `times` times over, so that what disturbs one disturbs all."""
    values: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(times):
        for name, run in runs.items():
            values[name].append(run())
    return values


def show(name: str, rows: Sequence[Row]) -> int:
    """Print a table and keep it as ``results/benchmarks/<name>.json``; 1 if anything missed."""
    width = max(len(one.what) for one in rows)
    print(f"\n{name}\n{'what':{width}}  {'measured':>10}  {'of runs':>15}  {'wanted':>8}")
    for one in rows:
        sign = "" if one.wanted is None else ("≥ " if one.at_least else "≤ ")
        wanted = "" if one.wanted is None else f"{sign}{one.wanted:g}"
        spread = "" if one.low is None else f"{one.low:.4g} – {one.high:.4g}"
        verdict = "" if one.wanted is None else ("MISSED" if one.missed else "ok")
        numbers = f"{one.measured:>10.4g}  {spread:>15}  {wanted:>8}"
        print(f"{one.what:{width}}  {numbers}  {one.unit:14} {verdict}".rstrip())
    folder = ROOT / "results" / "benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    kept = {"machine": machine(), "rows": [asdict(one) for one in rows]}
    (folder / f"{name}.json").write_text(json.dumps(kept, indent=1) + "\n")
    return int(any(one.missed for one in rows))


def machine() -> dict[str, object]:
    """Say what it was measured on, and how busy that was."""
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


def child(code: str, **environment: str) -> dict[str, float]:
    """Run Python `code` in a process of its own; the last line it prints is JSON."""
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
    """Make a folder that goes when the benchmark is over."""
    return tempfile.TemporaryDirectory(prefix="benchmark-")
