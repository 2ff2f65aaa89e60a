"""The programs and policies that `benchmarks.sweep` runs in processes of their own."""

from __future__ import annotations

TRIVIAL = """
import time, json
import policies, sim
w = sim.Workload.read({folder!r})
cluster = sim.Cluster.slots(2)
def cell(seed=0):
    return sim.simulate(w, cluster, policies.build("random"), seed=seed).metrics["jct_mean_s"]
cell()
"""

SIMULATION = (
    TRIVIAL
    + """
begin = time.perf_counter()
for seed in range(200):
    cell(seed)
print(json.dumps({{"seconds": (time.perf_counter() - begin) / 200}}))
"""
)

TUNE = (
    TRIVIAL
    + """
import logging, os
os.environ["RAY_AIR_NEW_OUTPUT"] = "0"
import ray
from ray import tune
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
def trial(config):
    return {{"jct": cell(config["seed"])}}
def seconds(n):
    begin = time.perf_counter()
    tune.Tuner(
        trial,
        param_space={{"seed": tune.grid_search(list(range(n)))}},
        run_config=tune.RunConfig(verbose=0, storage_path={out!r}),
    ).fit()
    return time.perf_counter() - begin
seconds(2)
few, many = seconds(2), seconds(12)
print(json.dumps({{"seconds": (many - few) / 10}}))
"""
)

HYDRA = (
    TRIVIAL
    + """
import hydra
@hydra.main(version_base="1.3", config_path=None)
def main(config):
    cell(int(config.get("seed", 0)))
main()
"""
)

_POLICY = '''
import os, time
from dataclasses import dataclass
from pathlib import Path
import numpy as np
from policies import Policy, register

@register("{name}")
@dataclass(frozen=True)
class Own(Policy):
    """{what}."""

    def prepare(self, world, plan):
'''

PLAIN_BURN = """
import time
end = time.process_time() + 5.0
while time.process_time() < end:
    pass
"""

BURN = (
    _POLICY.format(name="burn", what="Keeps a core busy for a second")
    + """
        end = time.process_time() + 1.0
        while time.process_time() < end:
            pass
"""
)

STATE = """
import json, tracemalloc
import policies, sim
from sim.evaluators import evaluate
w = sim.Workload.read({folder!r})
w.columns
def run():
    evaluate("simulation", sim.simulate, w, sim.Cluster.slots(2), policies.build("random"), 0)
run()  # compiles, or loads what is compiled
tracemalloc.start()
run()
print(json.dumps({{"bytes": tracemalloc.get_traced_memory()[1] / w.n_tasks}}))
"""

WEIGH = (
    _POLICY.format(name="weigh", what="Reads every column, then weighs the sweep it is part of")
    + """
        if len(world.columns.job_submit) <= 3:
            return  # not a cell: a few jobs, by which kernels are compiled
        for column in vars(world.columns).values():
            if isinstance(column, np.ndarray) and column.size:
                column.max()  # copies nothing
        if not _all_are_here():
            return  # others are within a run, which has a state of its own
        raylet = _parent(os.getpid())
        total = sum(_weight(pid) for pid in _with_children(_parent(raylet))) + _stored(raylet)
        name = f"{os.getpid()}-{time.monotonic_ns()}"
        Path(os.environ["WEIGH_INTO"], name).write_text(str(total))
        time.sleep(1.0)
        _here().unlink()

def _here():
    return Path(os.environ["WEIGH_INTO"], f"here-{os.getpid()}")

def _all_are_here():
    _here().touch()
    end = time.monotonic() + 20.0
    while time.monotonic() < end:
        time.sleep(0.02)
        if len([*_here().parent.glob("here-*")]) == int(os.environ["WEIGH_WORKERS"]):
            time.sleep(1.0)
            return True
    _here().unlink()
    return False

def _parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

def _with_children(root):
    found, everyone = {root}, [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit()]
    while True:
        more = set()
        for pid in everyone:
            try:
                if pid not in found and _parent(pid) in found:
                    more.add(pid)
            except OSError:  # it has ended
                pass
        if not more:
            return found
        found |= more

def _weight(pid):
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    of = {line.split()[0]: 1024 * int(line.split()[1]) for line in lines[1:]}
    return of["Pss:"] - of["Pss_Shmem:"]  # the object store is weighed as a whole

def _stored(raylet):
    fds = Path(f"/proc/{raylet}/fd").iterdir()
    about = [fd.stat() for fd in fds if "plasma" in os.readlink(fd)]
    return 512 * sum({one.st_ino: one.st_blocks for one in about}.values())
"""
)
