"""A small workload, a stand-in for the simulator, and a way to run the command in this process."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import sim
from policies import Policy
from sim import Cluster, Workload
from sweep.cli import main
from sweep.driver import make_request
from sweep.execution.plan import PlannedCell
from sweep.grid import randomness
from sweep.grid.grid import Cell
from sweep.grid.request import Request
from sweep.store.cache import Cache
from sweep.store.folder import SweepFolder
from sweep.store.index import as_keys
from sweep.store.shards import KEY_BYTES, MANIFESTS, read_manifests


def write_workload(folder: Path, n_jobs: int = 6) -> Path:
    jobs: list[dict[str, Any]] = [
        {
            "submit_s": float(index),
            "queue": "ab"[index % 2],
            "stages": [
                {"name": "map", "durations_s": [3.0 + index % 3, 4.0]},
                {"name": "reduce", "durations_s": [5.0], "parents": ["map"]},
            ],
        }
        for index in range(n_jobs)
    ]
    Workload.from_jobs(jobs).write(folder)
    return folder


@dataclass
class FakeResult:
    """Result of `fake_simulate`: finish times that follow from policy, cluster and seed."""

    workload: Workload
    cluster: Cluster
    job_start: np.ndarray[Any, Any]
    job_finish: np.ndarray[Any, Any]
    job_failed: np.ndarray[Any, Any]
    metrics: dict[str, float]
    task_start: None = None
    task_acquired: None = None
    task_finish: None = None
    task_machine: None = None
    bounds: None = None
    utility: None = None
    job_eligible: None = None
    job_worth: None = None

    @property
    def on_own_clock(self) -> FakeResult:
        return self

    @property
    def job_submit(self) -> np.ndarray[Any, Any]:
        return self.workload.columns.job_submit

    @property
    def estimate_s(self) -> np.ndarray[Any, Any]:
        return np.full(len(self.job_finish), np.nan)

    @property
    def slowdown(self) -> np.ndarray[Any, Any]:
        return (self.job_finish - self.job_submit) / 9.0

    @property
    def gap_lb(self) -> np.ndarray[Any, Any]:
        return (self.job_finish - self.job_submit) / 5.0 - 1.0

    @property
    def prediction_error(self) -> np.ndarray[Any, Any]:
        return self.estimate_s


def fake_simulate(
    workload: Workload, cluster: Cluster, policy: Policy, *, seed: int, record: str = "jobs"
) -> FakeResult:
    submit = workload.columns.job_submit
    slow = 1 + len(policy.name) + seed + 10 / float(cluster.total[0])
    jct = slow * (1.0 + np.arange(len(submit)))
    metrics = {"jct_mean_s": float(jct.mean()), "value_attained": float("nan")}
    failed = np.zeros(len(submit), dtype=bool)
    return FakeResult(workload, cluster, submit.copy(), submit + jct, failed, metrics)


POLICY = {"name": "fifo", "module": None, "params": {}}
CLUSTER = {"shape": "slots", "count": 2, "load": None}


def planned(key: str, name: str = "w", **labels: Any) -> PlannedCell:
    """Plan a cell of no grid: key and workload are whatever a test calls them."""
    labels = {"policy": "fifo", "trace": "t", "capacity": 1.0, "seed": 0, **labels}
    return PlannedCell(0, Cell(labels, POLICY, {}, CLUSTER, {"name": "simulation"}), key, name)


def set_json(folder: Path, name: str, content: Any) -> None:
    """Replace a JSON file of a sweep as the driver would, with its checksum."""
    sweep_folder = SweepFolder(folder)
    sweep_folder.replace_json(name, content)
    sweep_folder.commit()


@dataclass
class Ran:
    """Outcome of a command."""

    code: int
    out: str
    err: str

    @property
    def folder(self) -> Path:
        return Path(self.out.splitlines()[-1])

    @property
    def rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = pq.read_table(self.folder / "cells.parquet").to_pylist()
        return rows


class Command:
    """Runs ``python -m sweep`` in this process, inline, on the small workload."""

    def __init__(self, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self.results = tmp_path / "results"
        self.trace = write_workload(tmp_path / "trace")
        self._capfd = capfd

    def words(self, *words: str) -> list[str]:
        command = [f"paths.results={self.results}", "launcher=inline", "tracking=none"]
        if not any(word.startswith("trace=") for word in words):
            command += ["trace=parquet", f"trace.path={self.trace}"]
        return [*words, *command]

    def __call__(self, *words: str) -> Ran:
        """Run a grid."""
        return self.bare(*self.words(*words))

    def bare(self, *words: str) -> Ran:
        """Run a command line as it is."""
        self._capfd.readouterr()
        code = main.main(words)
        out, err = self._capfd.readouterr()
        return Ran(code, out, err)

    def verb(self, *words: str) -> Ran:
        """Run a verb that looks at sweeps that are over."""
        return self.bare(*words, f"paths.results={self.results}")

    def request(self, *words: str) -> Request:
        return make_request(self.words(*words), [])


def request(words: Sequence[str], config_dirs: Sequence[str] = ()) -> Request:
    return make_request(words, config_dirs)


def fake_engine(
    monkeypatch: pytest.MonkeyPatch, simulate: Any = fake_simulate, draws: bool = True
) -> None:
    """Stand in for the simulator; what it gives follows from the seed if it `draws`."""
    monkeypatch.setattr(sim, "simulate", simulate)
    monkeypatch.setattr(randomness, "draws_randomly", lambda policy: draws)


def interrupted_after(simulate: Any, n: int) -> Any:
    """Stand in for a simulator that is interrupted (Ctrl-C) after `n` cells."""
    left = [n]

    def interrupted(*args: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return simulate(*args, **options)

    return interrupted


def cached_keys(cache: Cache, keys: Sequence[str]) -> list[str]:
    """Return those of the keys that are cached, in their order."""
    flags = cache.are_cached(as_keys(bytes.fromhex("".join(keys))))
    return [key for key, is_cached in zip(keys, flags, strict=True) if is_cached]


def keys_kept(results: Path) -> list[str]:
    """Keys of all cells whose manifests are whole, sorted; their shards are not looked at."""
    keys = set()
    for file in (results / MANIFESTS).iterdir():
        for entry in read_manifests(file.name, file.read_bytes()):
            begins = range(0, len(entry.keys), KEY_BYTES)
            keys |= {entry.keys[index : index + KEY_BYTES].hex() for index in begins}
    return sorted(keys)


def lose(results: Path, key: str) -> None:
    """Take one cell out of the cache."""
    cache = Cache(results)
    cells = [
        (cache.get(entry), cache.config(entry)) for entry in keys_kept(results) if entry != key
    ]
    for part in ("shards", "manifests"):
        shutil.rmtree(results / "cache" / part)
    Cache(results).put_many([(result, config) for result, config in cells if result and config])


def every_file(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
