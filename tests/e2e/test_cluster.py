"""A sweep on a cluster of several machines: runs there unchanged, and outlives what they do."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Command
from tests.e2e.machines import Machine, Site
from tests.sweep.small import Ran

pytestmark = pytest.mark.e2e

WATCHED = """
import os
import time
from dataclasses import dataclass

from policies import Policy, register
from sweep.execution.task import FEW_JOBS


@register("watched")
@dataclass(frozen=True)
class Watched(Policy):
    folder: str = ""  # who runs which seed is noted here; while a gate is in here, nobody goes on

    def prepare(self, world, plan):
        if len(world.columns.job_submit) <= FEW_JOBS:
            return  # kernels are being compiled ahead, for a few jobs: no cell has begun
        machine = os.stat("/proc/self/ns/net").st_ino
        note = f"{world.seed}-{machine}-{os.getpid()}"
        open(os.path.join(self.folder, note), "w").close()
        while os.path.exists(os.path.join(self.folder, "gate")):
            time.sleep(0.02)
"""


class Watch:
    """Runs sweeps of a policy that says where it runs, and waits at a gate."""

    def __init__(self, command: Command) -> None:
        self.command = command
        self._processes: list[subprocess.Popen[str]] = []
        self.notes = command.folder / "notes"
        self.notes.mkdir()
        self.gate = self.notes / "gate"
        (command.folder / "watched_policy.py").write_text(WATCHED)
        text = "name: watched\nmodule: watched_policy\n"
        (command.user / "policy" / "watched.yaml").write_text(text)
        self._words = (
            "policy=watched", "trace=alibaba_synth", "trace.seed=0", "trace.jobs=50",
            f"policy.folder={self.notes}", "tracking=none",
            f"--config-dir={command.user}",
        )  # fmt: skip

    def start(self, machine: Machine, n: int, *words: str) -> subprocess.Popen[str]:
        """Start a sweep of `n` seeds from a machine of the cluster."""
        where = ("launcher=ray", "launcher.address=auto", *words)
        process = subprocess.Popen(
            machine.words(self.command.words((*self._words, f"seed=range({n})", *where))),
            cwd=self.command.folder,
            env={**self.command.environment, **machine.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._processes.append(process)
        return process

    def stop(self) -> None:
        """End what still runs."""
        self.gate.unlink(missing_ok=True)
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            if process.stdout is not None and not process.stdout.closed:
                process.communicate()

    def end(self, process: subprocess.Popen[str], timeout: float = 240) -> Ran:
        out, err = process.communicate(timeout=timeout)
        return Ran(process.returncode, out, err)

    def inline(self, n: int) -> Ran:
        where = ("launcher=inline", "paths.results=undisturbed")
        return self.command(*self._words, f"seed=range({n})", *where)

    def seen(self) -> list[tuple[int, int, int]]:
        """Seed, machine and process of each time that a cell began."""
        names = (note.name.split("-") for note in self.notes.iterdir() if note.name != "gate")
        return sorted((int(seed), int(machine), int(pid)) for seed, machine, pid in names)

    def machines(self) -> set[int]:
        """Numbers of the machines that cells began on."""
        return {machine for _, machine, _ in self.seen()}


@pytest.fixture
def watch(command: Command) -> Iterator[Watch]:
    there = Watch(command)
    yield there
    there.stop()


def wait_until(true: Callable[[], object], process: subprocess.Popen[str], what: str) -> None:
    end = time.monotonic() + 180
    while not true():
        if process.poll() is not None or time.monotonic() > end:
            process.kill()
            pytest.fail(f"waited in vain until {what}: {process.communicate()}")
        time.sleep(0.02)


def events(watch: Watch) -> list[dict[str, Any]]:
    """What the journal of the one sweep there says of cells."""
    files = (watch.command.folder / "results" / "journal").glob("*.jsonl")
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return [line for line in lines if line["event"] == "cell"]


def once_and_the_same(watch: Watch, ran: Ran, n: int) -> None:
    """Assert that each cell was done exactly once, with the bytes of a run without any cluster."""
    assert ran.code == 0, ran.err
    assert sorted((event["row"], event["status"]) for event in events(watch)) == [
        (row, "done") for row in range(n)
    ]
    inline = watch.inline(n)
    assert inline.code == 0, inline.err
    ours = (ran.folder / "cells.parquet").read_bytes()
    assert ours == (inline.folder / "cells.parquet").read_bytes()


@pytest.mark.long
def test_several_machines_give_the_same_bytes(cluster: Site, watch: Watch) -> None:
    watch.gate.touch()
    process = watch.start(cluster.head, 6)
    numbers = {machine.number for machine in cluster.machines}
    wait_until(lambda: watch.machines() == numbers, process, "cells run on every machine")
    watch.gate.unlink()
    ran = watch.end(process)
    once_and_the_same(watch, ran, 6)


@pytest.mark.long
def test_no_token_no_entry(cluster: Site, watch: Watch) -> None:
    outsider = Machine(
        cluster.head.namespace,
        cluster.head.address,
        cluster.head.temporary,
        {**cluster.head.environment, "RAY_AUTH_TOKEN_PATH": str(watch.notes / "other")},
    )
    (watch.notes / "other").write_text("0" * 64)
    ran = watch.end(watch.start(outsider, 1))
    assert ran.code == 2
    assert "no Ray cluster answers at launcher.address=auto" in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.long
def test_machines_die_in_the_middle_of_a_cell_and_come_back(cluster: Site, watch: Watch) -> None:
    watch.gate.touch()
    process = watch.start(cluster.head, 8)
    others = cluster.machines[1:]
    numbers = {machine.number for machine in cluster.machines}
    wait_until(lambda: watch.machines() == numbers, process, "cells run on every machine")
    for machine in others:
        assert machine.kill() > 3
    before = len(watch.seen())
    cluster.join(others)
    wait_until(lambda: len(watch.seen()) >= before + 2, process, "cells began on them again")
    watch.gate.unlink()
    ran = watch.end(process)
    once_and_the_same(watch, ran, 8)


@pytest.mark.long
def test_workers_are_killed(cluster: Site, watch: Watch) -> None:
    watch.gate.touch()
    process = watch.start(cluster.head, 4)
    wait_until(lambda: len(watch.seen()) >= 3, process, "three cells run")
    killed = watch.seen()
    for _, _, pid in killed:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: len(watch.seen()) >= 6, process, "cells began again")
    watch.gate.unlink()
    ran = watch.end(process)
    again = Counter(seed for seed, _, _ in watch.seen())
    assert all(again[seed] == 2 for seed, _, _ in killed)
    once_and_the_same(watch, ran, 4)


@pytest.mark.long
def test_a_worker_is_killed_for_memory(cluster: Site, watch: Watch) -> None:
    """Ray's own monitor kills it: on its machine nearly all memory seems to be in use."""
    machine = cluster.machines[1]
    meminfo = watch.command.folder / "meminfo"
    plenty = Path("/proc/meminfo").read_text()
    meminfo.write_text(plenty)
    watch.gate.touch()
    machine.kill()
    try:
        machine.join(cluster.head.address, meminfo=meminfo)
        process = watch.start(cluster.head, 6)
        wait_until(lambda: machine.number in watch.machines(), process, "a cell runs there")
        ((seed, _, pid),) = [one for one in watch.seen() if one[1] == machine.number]
        nothing = r"^(MemFree|MemAvailable|Buffers|Cached|SReclaimable):.*$"
        meminfo.write_text(re.sub(nothing, r"\1: 0 kB", plenty, flags=re.MULTILINE))
        wait_until(lambda: pid not in machine.processes(), process, "its worker is killed")
        meminfo.write_text(plenty)
        wait_until(lambda: len(watch.seen()) >= 4, process, "another cell runs there")
        watch.gate.unlink()
        ran = watch.end(process)
    finally:
        machine.kill()
        machine.join(cluster.head.address)
    assert [one[0] for one in watch.seen()].count(seed) == 2
    once_and_the_same(watch, ran, 6)


@pytest.mark.long
def test_the_driver_is_killed_and_run_again(cluster: Site, watch: Watch) -> None:
    process = watch.start(cluster.head, 6)
    wait_until(lambda: len(watch.seen()) >= 2, process, "some cells began")
    process.kill()
    process.communicate()
    ran = watch.end(watch.start(cluster.head, 6))
    assert {row["status"] for row in ran.rows} == {"done"}
    once_and_the_same(watch, ran, 6)
