"""Compile kernels: for the wheel (`compile_ahead.py FOLDER`), or those that `make sweep` needs.

Those of the wheel are of each policy on a few jobs, on slots and on machines, and those of the
demonstration, for any processor of this kind. Folders are named by version
(`sim.base.kernel_cache`), so that kernels of several versions of Python, and of several kinds of
processors, can lie in FOLDER together.

Without FOLDER, the kernels of the demonstration are compiled for this user and processor, while
the packages that compile none are still being installed: what is imported here needs few packages.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml

import policies
import sim
from sim.base.errors import SimError
from sim.engine.simulate import variant

ROOT = Path(__file__).resolve().parents[1]
GENERIC = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "NUMBA_OPT": "3"}

CLUSTERS = {
    "slots": sim.Cluster.slots(4),
    "machines": sim.Cluster.machines(2, cpu=4, mem=8, net=1),
    "fungible": sim.Cluster.machines(2, cpu=4, mem=8, net=1, fungible=("net",)),
}
MAP = {"name": "map", "durations_s": [3.0, 4.0], "demand": {"cpu": 1.0, "mem": 1.0, "net": 0.5}}
REDUCE = {"name": "reduce", "durations_s": [5.0], "parents": ["map"], "demand": {"cpu": 2.0}}
JOBS = {
    "one user": {"stages": [MAP, REDUCE]},
    "users": {"stages": [MAP, REDUCE]},
    "rigid": {"stages": [MAP], "min_tasks": 2, "requested_s": 9.0},
}


def workload(kind: str) -> sim.Workload:
    """Make a few jobs of two recurring programs."""
    owners = 3 if kind == "users" else 1
    rows = [
        JOBS[kind] | {"submit_s": float(i), "template": f"t{i % 2}", "user": f"u{i % owners}"}
        for i in range(6)
    ]
    return sim.Workload.from_jobs(rows)


def runs() -> Iterator[tuple[str, str, str]]:
    """Yield a run of each variant of the event loop: jobs, cluster and policy."""
    seen = set()
    for kind in JOBS:
        jobs = workload(kind)
        for cluster, built in CLUSTERS.items():
            for policy in policies.names():
                try:
                    features = variant(jobs, built, policies.build(policy))
                except SimError:
                    continue  # these jobs lack columns that it needs
                if features not in seen:
                    seen.add(features)
                    yield kind, cluster, policy


def simulate(kind: str, cluster: str, policy: str) -> None:
    """Simulate one run, with all its metrics and bounds."""
    jobs, built = workload(kind), CLUSTERS[cluster]
    sim.simulate(jobs, built, policies.build(policy)).metrics  # noqa: B018
    sim.lower_bound(jobs, built)


def start(environment: dict[str, str], runs: Iterable[Sequence[str]]) -> None:
    """Run a command of Python for each run, on as many cores as there are."""

    def child(command: Sequence[str]) -> None:
        subprocess.run([sys.executable, *command], cwd=ROOT, env=environment, check=True)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for _ in pool.map(child, runs):
            pass


def for_the_wheel(folder: Path) -> None:
    """Compile everything into `folder`, for any processor."""
    environment = {**os.environ, **GENERIC, "NUMBA_CACHE_DIR": str(folder)}
    with tempfile.TemporaryDirectory() as results:
        words = ["launcher=inline", "tracking=none", "seed=0", f"paths.results={results}"]
        demonstration = ["-m", "sweep", "experiment=demo", *words]
        start(environment, [demonstration, *([__file__, *names] for names in runs())])
    (folder / "locks").unlink(missing_ok=True)


def for_the_demonstration() -> None:
    """Compile the kernels of the demonstration's policies on slots, one with metrics and bounds."""
    experiment = yaml.safe_load((ROOT / "conf" / "experiment" / "demo.yaml").read_text())
    names = experiment["axes"]["policy"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    start(environment, ([__file__, "one user", "slots", name] for name in names))


if __name__ == "__main__":
    match sys.argv[1:]:
        case []:
            for_the_demonstration()
        case [path]:
            for_the_wheel(Path(path).resolve())
        case names:
            simulate(*names)
