"""The kernel on a pool of slots: task completions a second, compared with other simulators.

Run as ``python -m benchmarks.kernel``. All on one core, in one run. A rate is of whole calls of
`sim.simulate` on a loaded workload and of CPU seconds, the median of five; a ratio compares two
runs, one after the other.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import policies
import sim
from benchmarks import references
from benchmarks.common import Row, interleave, row, run_child, run_seconds, scratch, show
from benchmarks.worlds import pool_jobs
from sim import Workload

SLOTS, N_TASKS, TIMES = 1000, 1_000_000, 5
WIDE, NARROW = (70, 80), (1, 5)
POLICIES = ("fifo", "sjf", "las", "srpt")
MIN_CPP_RATIO = {"fifo": 1.0, "las": 0.65}
LAS_ON_NARROW = {"first_threshold_s": 50.0}  # the paper's first threshold is above most such jobs

MEMORY = """
import json, re, sys
import policies, sim
from benchmarks.worlds import pool_jobs
def status(name):
    return 1024 * int(re.search(name + r":\\s+(\\d+)", open("/proc/self/status").read()).group(1))
small = pool_jobs(1000, {widths}, 0.95)
sim.simulate(small, sim.Cluster.slots(1000), policies.build("fifo"), record="tasks")
w = pool_jobs(1_000_000, {widths}, 0.95)
open("/proc/self/clear_refs", "w").write("5")  # forget the peak so far
before = status("VmRSS")
r = sim.simulate(w, sim.Cluster.slots(1000), policies.build("fifo"), record={record!r})
print(json.dumps({{"bytes": (status("VmHWM") - before) / w.n_tasks}}))
"""

FIRST = """
import json, os, time
from pathlib import Path
import numba, numpy, pyarrow
import policies, sim
from sim.base import kernel_cache
kernel_cache.SHIPPED = Path(os.environ["SHIPPED"])
stage = {{"durations_s": [1.0, 2.0], "demand": {{"cpu": 1.0, "net": 1.0}}}}
job = {{"submit_s": 0.0, "template": "t", "stages": [stage]}}
w = sim.Workload.from_jobs([job, job])  # one alone would follow a list under DAGPS
cluster, policy = sim.Cluster.{cluster}, policies.build({policy})
w.columns
wall, cpu = time.perf_counter(), time.process_time()
import sim.simulation
sim.simulate(w, cluster, policy)
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
print(json.dumps({{"wall": wall, "cpu": cpu}}))
"""

ANY_PROCESSOR = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
"""As `.ci/compile_ahead.py` compiles the kernels of the wheel."""

MACHINES = "machines(1, cpu=2, net=2, fungible=('net',))"
FIRSTS = {
    "a pool of slots": ("slots(1)", "'fifo'", 6),
    "machines, strict": (MACHINES, "'fifo'", 7),
    "machines, skipping": (MACHINES, "'fifo', fit='skip'", 9),
    "DAGPS, overbooking": (MACHINES, "'dagps'", 25),
}
"""Cluster, policy, and the CPU-second budget of a first answer from an empty cache."""


class Demotions:
    """LAS that keeps the plan, to see how many jobs it moved to a lower queue."""

    def __init__(self, las: Any) -> None:
        self.policy = las
        self.name, self.events = las.name, las.events
        self.plan: Any = None

    def begin(self, world: Any, plan: Any) -> object:
        """Keep the plan."""
        self.plan = plan
        return self.policy.begin(world, plan)

    def react(self, *_: Any) -> None:
        """LAS asks for no events."""


def main() -> int:
    """Measure, and print the targets beside the results."""
    _ours(pool_jobs(1000, WIDE, 0.95), policies.build("fifo"))()  # compiles
    return show("kernel", rates() + against_cpp() + against_others() + footprint())


def rates() -> list[Row]:
    """Completions a second by policy, load and width of the jobs."""
    rows = []
    for label, widths, load, target in (
        ("load 0.95", WIDE, 0.95, 5.0),
        ("load 1.5", WIDE, 1.5, 5.0),
        ("1 to 5 tasks a job, load 0.95", NARROW, 0.95, 1.0),
        ("1 to 5 tasks a job, load 1.5", NARROW, 1.5, 1.0),
    ):
        w = pool_jobs(N_TASKS, widths, load)
        las = policies.build("las", **(LAS_ON_NARROW if widths == NARROW else {}))
        built = {name: las if name == "las" else policies.build(name) for name in POLICIES}
        seconds = interleave({name: _ours(w, policy) for name, policy in built.items()}, TIMES)
        for name in POLICIES:
            rate = [w.n_tasks / s / 1e6 for s in seconds[name]]
            rows.append(row(f"{name}, {label}", rate, "M tasks/s", at_least=target))
        rows.append(_demoted(w, las, label))
    return rows


def against_cpp() -> list[Row]:
    """Compare with a heap of free slots in C++, which has one order and keeps no records."""
    with scratch() as folder:
        cpp = references.build_free_slots(Path(folder))
        if cpp is None:
            return []
        rows = []
        for label, load in (("load 0.95", 0.95), ("load 1.5", 1.5)):
            w = pool_jobs(N_TASKS, WIDE, load)
            runs = {name: _ours(w, policies.build(name)) for name in POLICIES}
            runs["cpp"] = lambda w=w: cpp(w, SLOTS)[0]
            for run in runs.values():
                run()
            seconds = interleave(runs, TIMES)
            for name, target in MIN_CPP_RATIO.items():
                both = zip(seconds["cpp"], seconds[name], strict=True)
                ratio = [reference_s / ours_s for reference_s, ours_s in both]
                title = f"{name}, times a C++ heap of free slots, {label}"
                rows.append(row(title, ratio, "×", at_least=target))
        return rows


def against_others() -> list[Row]:
    """Run the same FIFO by a bare heap loop, SimPy and AccaSim, at the same two loads."""
    rows = []
    fifo = policies.build("fifo")
    accasim: list[float] = []

    def with_accasim(w: Workload, folder: str) -> float:
        seconds, _, simulating = references.with_accasim(w, SLOTS, Path(folder))
        accasim.append(simulating)
        return seconds

    for label, load in (("load 0.95", 0.95), ("load 1.5", 1.5)):
        w = pool_jobs(N_TASKS, WIDE, load)
        common = pool_jobs(20_000, WIDE, load, whole=True)
        small = pool_jobs(5_000, WIDE, load, whole=True)
        _check_same_schedules(common, small)
        with scratch() as folder:
            seconds = interleave(
                {
                    "ours": _ours(w, fifo),
                    "loop": lambda w=w: references.event_loop(w, SLOTS)[0],
                    "free": lambda w=w: references.free_slots(w, SLOTS)[0],
                    "simpy": lambda w=common: references.with_simpy(w, SLOTS)[0],
                    "accasim": lambda w=small, path=folder: with_accasim(w, path),
                },
                3,
            )
        seconds["bare accasim"] = accasim[-3:]
        n_tasks = {"simpy": common.n_tasks, "accasim": small.n_tasks}
        n_tasks["bare accasim"] = small.n_tasks
        for other, title, target in (
            ("loop", "times a bare heapq event loop", 3.5),
            ("free", "times a heapq of free slots, which is no simulator", None),
            ("simpy", "times SimPy (20,000 tasks)", 50),
            ("accasim", "times AccaSim (5,000 tasks)", 1000),
            ("bare accasim", "times AccaSim, the writing of its results not counted", None),
        ):
            n = n_tasks.get(other, w.n_tasks)
            ratio = [
                (w.n_tasks / ours_s) / (n / reference_s)
                for ours_s, reference_s in zip(seconds["ours"], seconds[other], strict=True)
            ]
            rows.append(row(f"{title}, {label}", ratio, "×", at_least=target))
    return rows


def footprint() -> list[Row]:
    """Peak memory beyond the loaded workload, and compiling cold and loading warm."""
    rows = []
    for label, widths, target in (("", WIDE, 64), (", 1 to 5 tasks a job", NARROW, None)):
        for record in ("jobs", "tasks"):
            used = run_child(MEMORY.format(widths=widths, record=record))["bytes"]
            case = f"peak memory beyond the workload, record={record}{label}"
            rows.append(row(case, used, "B/task", at_most=target))
    for case, (cluster, policy, target) in FIRSTS.items():
        code = FIRST.format(cluster=cluster, policy=policy)
        with scratch() as folder, scratch() as wheel, scratch() as empty:
            cold = run_child(code, NUMBA_CACHE_DIR=folder, SHIPPED=empty)
            warm = [run_child(code, NUMBA_CACHE_DIR=folder, SHIPPED=empty) for _ in range(TIMES)]
            run_child(code, NUMBA_CACHE_DIR=wheel, SHIPPED=empty, **ANY_PROCESSOR)
            brought = [run_child(code, NUMBA_CACHE_DIR=empty, SHIPPED=wheel) for _ in range(TIMES)]
        first = f"first simulate, {case}"
        rows += [
            row(f"{first}, compiling: CPU", cold["cpu"], "s", at_most=target),
            row(f"{first}, compiling: wall", cold["wall"], "s"),
            row(f"{first}, compiled: CPU", [w["cpu"] for w in warm], "s", at_most=0.5),
            row(f"{first}, compiled: wall", [w["wall"] for w in warm], "s"),
            row(f"{first}, of the wheel: CPU", [w["cpu"] for w in brought], "s", at_most=0.5),
        ]
    return rows


def _ours(w: Workload, policy: Any) -> Callable[[], float]:
    cluster = sim.Cluster.slots(SLOTS)
    return lambda: run_seconds(w, cluster, policy)


def _demoted(w: Workload, las: Any, label: str) -> Row:
    """Count the jobs that LAS demoted; without any it would be another FIFO."""
    spy = Demotions(las)
    sim.simulate(w, sim.Cluster.slots(SLOTS), spy)
    moved = float(np.mean(spy.plan.jobs["queue"] > 0))
    if not moved:
        raise AssertionError(f"las, {label}: no job was ever demoted")
    return row(f"las, {label}: jobs demoted", 100 * moved, "%")


def _check_same_schedules(common: Workload, small: Workload) -> None:
    """Raise AssertionError unless every simulator finds the same mean completion time."""
    for w, simulators in (
        (common, (references.event_loop, references.free_slots, references.with_simpy)),
        (small, (_accasim,)),
    ):
        result = sim.simulate(w, sim.Cluster.slots(SLOTS), policies.build("fifo"), record="jobs")
        ours_s = float(np.mean(result.job_finish - w.columns.job_submit))
        for other in simulators:
            reference_s = other(w, SLOTS)[1]
            if not np.isclose(ours_s, reference_s, rtol=1e-9):
                name = other.__name__
                raise AssertionError(f"mean JCT {ours_s} s, but {reference_s} s by {name}")


def _accasim(w: Workload, slots: int) -> references.Timed:
    with scratch() as folder:
        return references.with_accasim(w, slots, Path(folder))[:2]


if __name__ == "__main__":
    sys.exit(main())
