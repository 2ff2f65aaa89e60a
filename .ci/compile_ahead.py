"""Compile kernels for the wheel: `python .ci/compile_ahead.py FOLDER`.

They are those of the demonstration, and of each policy on a few jobs, on slots and on machines, for
any processor of this kind. Folders are named by version (`sim.base.kernel_cache`), so that kernels
of several versions of Python, and of several kinds of processors, can lie in FOLDER together.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

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


def main(folder: Path) -> None:
    """Compile everything, on as many cores as there are."""
    environment = {**os.environ, **GENERIC, "NUMBA_CACHE_DIR": str(folder)}

    def child(*command: str) -> None:
        subprocess.run([sys.executable, *command], cwd=ROOT, env=environment, check=True)

    with tempfile.TemporaryDirectory() as results, ThreadPoolExecutor(os.cpu_count()) as pool:
        words = ["launcher=inline", "tracking=none", "seed=0", f"paths.results={results}"]
        done = [pool.submit(child, "-m", "sweep", "experiment=demo", *words)]
        done += [pool.submit(child, __file__, *names) for names in runs()]
        for run in done:
            run.result()
    for lock in folder.glob("*/*.lock"):
        lock.unlink()


if __name__ == "__main__":
    simulate(*sys.argv[1:]) if len(sys.argv) > 2 else main(Path(sys.argv[1]).resolve())
