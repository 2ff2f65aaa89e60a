"""Sweeps on a cluster whose cells report their machine and wait at a gate."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.sweep.small import Ran

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.conftest import Command
    from tests.e2e.machines import Machine

WATCHED = """
import os
import time
from dataclasses import dataclass

from policies import Policy, register
from sweep.execution.workload_build import N_FIRST_JOBS


@register("watched")
@dataclass(frozen=True)
class Watched(Policy):
    folder: str = ""  # who runs which seed is noted here; while a gate is in here, nobody goes on
    ill: str = ""  # the number of a machine on which nothing works; all: of any

    def prepare(self, world, plan):
        if len(world.columns.job_submit) <= N_FIRST_JOBS:
            return  # kernels are being compiled ahead, for a few jobs: no cell has begun
        machine = os.stat("/proc/self/ns/net").st_ino
        note = f"{world.seed}-{machine}-{os.getpid()}"
        began = os.path.join(self.folder, "." + note)
        with open(began, "w") as file:
            file.write(repr(time.time()))
        os.rename(began, os.path.join(self.folder, note))
        while os.path.exists(os.path.join(self.folder, "gate")):
            time.sleep(0.02)
        if self.ill in (f"m{machine}", "all"):
            raise OSError("no luck here")
"""


class Watch:
    """Runs sweeps of a policy that reports its machine and waits at a gate."""

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
        options = ("launcher=ray", "launcher.address=auto", *words)
        process = subprocess.Popen(
            machine.words(self.command.words((*self._words, f"seed=range({n})", *options))),
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
        """Kill the sweeps that still run."""
        self.gate.unlink(missing_ok=True)
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            if process.stdout is not None and not process.stdout.closed:
                process.communicate()

    def end(self, process: subprocess.Popen[str], timeout: float = 600) -> Ran:
        out, err = process.communicate(timeout=timeout)
        return Ran(process.returncode, out, err)

    def inline(self, n: int) -> Ran:
        options = ("launcher=inline", "paths.results=undisturbed")
        return self.command(*self._words, f"seed=range({n})", *options)

    def seen(self) -> list[tuple[int, int, int]]:
        """Seed, machine and process of each start of a cell."""
        names = (note.name.split("-") for note in self._marks())
        return sorted((int(seed), int(machine), int(pid)) for seed, machine, pid in names)

    def _marks(self) -> list[Path]:
        return [note for note in self.notes.iterdir() if note.name[0].isdigit()]

    def clocks(self) -> dict[int, float]:
        """Seconds by which each machine's clock is fast, as measured in a cell."""
        return {
            int(note.name.split("-")[1]): float(note.read_text()) - note.stat().st_mtime
            for note in self._marks()
        }

    def machines(self) -> set[int]:
        """Numbers of the machines on which cells started."""
        return {machine for _, machine, _ in self.seen()}


def wait_until(condition: Callable[[], object], process: subprocess.Popen[str], event: str) -> None:
    deadline_s = time.monotonic() + 600
    while not condition():
        if process.poll() is not None or time.monotonic() > deadline_s:
            process.kill()
            pytest.fail(f"waited in vain until {event}: {process.communicate()}")
        time.sleep(0.02)


def journal(watch: Watch) -> list[dict[str, Any]]:
    """Lines of the journal of the one sweep, without a line that is being written."""
    files = (watch.command.folder / "results" / "journal").glob("*.jsonl")
    lines = [line for file in files for line in file.read_text().splitlines()]
    return [json.loads(line) for line in lines if line.endswith("}")]


def events(watch: Watch) -> list[dict[str, Any]]:
    """Lines of the journal about cells."""
    return [line for line in journal(watch) if line["event"] == "cell"]


def notices(watch: Watch) -> str:
    """Lines about nodes and workers that the sweep has printed so far."""
    return "\n".join(line["text"] for line in journal(watch) if line["event"] == "said")


def assert_complete_and_identical(watch: Watch, ran: Ran, n: int) -> None:
    """Assert that each cell was done exactly once, with the same bytes as a run without Ray."""
    assert ran.code == 0, ran.out + ran.err
    assert sorted((event["row"], event["status"]) for event in events(watch)) == [
        (row, "done") for row in range(n)
    ]
    inline = watch.inline(n)
    assert inline.code == 0, inline.out + inline.err
    on_ray = (ran.folder / "cells.parquet").read_bytes()
    assert on_ray == (inline.folder / "cells.parquet").read_bytes()
