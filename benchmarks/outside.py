"""Schedulers from outside: steps a second of the environment, round trips of a program.

Run as ``python -m benchmarks.outside [--jobs N]``: single-task jobs on 100 slots, so that about as
many wait. Each step of the environment sets keys of all jobs shown, or of one. The program is in C
(without a compiler its row is left out), or in Python.
"""

from __future__ import annotations

import multiprocessing
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import sim
from benchmarks.common import Row, parse_arguments, row, show
from benchmarks.worlds import pool_jobs
from policies.external import client, policy
from sim.env import Form, SchedulingEnv, SchedulingVectorEnv
from tests.docs.pages import blocks

SLOTS, LOAD = 100, 1.02
STEPS, TIMES = 20_000, 3
AT_LEAST_STEPS, AT_MOST_US = 100_000, 50
N_ENVS, CORES = 256, 2
N_STEPS, EPISODE_JOBS = 200_000, 5_000
PAGE = "external_scheduler.md"


def main() -> int:
    """Measure."""
    options = parse_arguments(__doc__, jobs=50_000)
    workload = pool_jobs(options.jobs, (1, 1), LOAD, SLOTS)
    episode = pool_jobs(EPISODE_JOBS, (1, 1), LOAD, SLOTS)
    rows = [*_environment(workload), *_side_by_side(workload, episode), *_program(workload)]
    return show("outside", rows)


def _environment(workload: sim.Workload) -> list[Row]:
    rng = np.random.default_rng(0)
    many = rng.uniform(-1, 1, (64, 100)).astype(np.float32)
    single = np.repeat(many[:1], 64, axis=0)
    rows = []
    for name, actions in (("all keys", many), ("no key", single)):
        env = SchedulingEnv(lambda _: (workload, sim.Cluster.slots(SLOTS)), form=Form(jobs=100))
        rates = [STEPS / _seconds(env, actions) for _ in range(TIMES)]
        rows.append(row(f"environment, {name} changed", rates, "steps/s"))
    return rows


def _seconds(env: SchedulingEnv, actions: np.ndarray) -> float:
    env.reset(seed=0)
    begin_s = time.perf_counter()
    for step in range(STEPS):
        env.step(actions[step % len(actions)])
    return time.perf_counter() - begin_s


def _side_by_side(workload: sim.Workload, episode: sim.Workload) -> list[Row]:
    rng = np.random.default_rng(0)
    actions = rng.uniform(-1, 1, (64, N_ENVS, 100)).astype(np.float32)
    rows = []
    for threads, limit in ((1, None), (CORES, AT_LEAST_STEPS)):
        several = SchedulingVectorEnv(
            lambda _: (episode, sim.Cluster.slots(SLOTS)),
            N_ENVS,
            threads=threads,
            form=Form(jobs=100),
        )
        rates = []
        for _ in range(TIMES):
            several.reset(seed=0)
            begin_s = time.perf_counter()
            for step in range(N_STEPS // N_ENVS):
                several.step(actions[step % 64])
            rates.append(N_STEPS / (time.perf_counter() - begin_s))
        several.close()
        name = f"{N_ENVS} environments on {threads} thread{'s' * (threads > 1)}, all keys"
        rows.append(row(name, rates, "steps/s", at_least=limit))
    with multiprocessing.get_context("fork").Pool(CORES) as pool:
        shared = pool.map(_rate_of_process, [workload] * CORES, chunksize=1)
    return [*rows, row(f"{CORES} processes, all keys", sum(shared), "steps/s")]


def _rate_of_process(workload: sim.Workload) -> float:
    env = SchedulingEnv(lambda _: (workload, sim.Cluster.slots(SLOTS)), form=Form(jobs=100))
    actions = np.random.default_rng(0).uniform(-1, 1, (64, 100)).astype(np.float32)
    _seconds(env, actions)
    return STEPS / _seconds(env, actions)


def _program(workload: sim.Workload) -> list[Row]:
    room, rows = Path(client.__file__).parent, []
    files = {block.file: block.text for block in blocks(PAGE) if block.file}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in ("narrow.py", "narrow.c"):
            (folder / file).write_text(files[f"mine/{file}"])
        shutil.copy(room / "client.py", folder)
        commands = {"Python": (sys.executable, str(folder / "narrow.py"))}
        if shutil.which("cc"):
            flags = ["-O2", "-std=c11", "-D_POSIX_C_SOURCE=200809L", "-I", room]
            subprocess.run(["cc", *flags, folder / "narrow.c", "-o", folder / "narrow"], check=True)
            commands["C"] = (str(folder / "narrow"),)
        for language, command in commands.items():
            run = _runner(workload, command)
            run()
            seconds = [run() for _ in range(TIMES)]
            us = [s / (2 * workload.n_jobs) * 1e6 for s in seconds]
            limit = AT_MOST_US if language == "C" else None
            rows.append(row(f"program in {language}, an event", us, "µs", at_most=limit))
    return rows


def _runner(workload: sim.Workload, command: tuple[str, ...]) -> Callable[[], Any]:
    chosen = policy.External(command=command)

    def run() -> float:
        begin_s = time.perf_counter()
        sim.simulate(workload, sim.Cluster.slots(SLOTS), chosen, record="jobs")
        return time.perf_counter() - begin_s

    return run


if __name__ == "__main__":
    sys.exit(main())
