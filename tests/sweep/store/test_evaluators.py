"""Sweeps of several evaluators in one results folder with compacted shards."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sweep.store import cache as cache_module
from sweep.store import sources
from tests.sweep.small import Command, every_file

EVALUATOR = """
import pyarrow as pa


def evaluate(run, workload, cluster, policy, seed):
    last_s = float(run(workload, cluster, policy, seed=seed).job_finish.max())
    return {"NAME_s": last_s, "shared": 1.0}, pa.table({"last_s": [last_s]})
"""
SWEEPS = {
    "plain": ("policy=fifo,las", "baseline=fifo"),
    "fairness": ("policy=fifo,las", "evaluator=fairness", "metrics=[fairness_s]"),
    "delay": ("policy=fifo,las", "evaluator=delay", "metrics=[delay_s]"),
}
FIRST, MORE = "capacity=0.5,1", "capacity=0.5,1,2"


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    folder = tmp_path / "mine"
    (folder / "evaluator").mkdir(parents=True)
    for name in ("fairness", "delay"):
        (folder / f"{name}_evaluator.py").write_text(EVALUATOR.replace("NAME", name))
        text = f"name: {name}\nmodule: {name}_evaluator\n"
        (folder / "evaluator" / f"{name}.yaml").write_text(text)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield f"--config-dir={folder}"
    sources.forget()
    for name in ("fairness", "delay"):
        sys.modules.pop(f"{name}_evaluator", None)


@pytest.mark.slow
@pytest.mark.long
def test_a_sweep_has_its_own_columns_and_bytes_among_others(
    fake: Command, tmp_path: Path, options: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_module, "MIN_COMPACT_SHARDS", 2)

    def run(folder: str, name: str, capacity: str) -> tuple[list[str], bytes]:
        fake.results = tmp_path / folder
        ran = fake(*SWEEPS[name], capacity, options)
        assert ran.code == 0, ran.err
        return [*ran.rows[0]], (ran.folder / "cells.parquet").read_bytes()

    alone = {name: (run(name, name, FIRST), run(name, name, MORE)) for name in SWEEPS}
    first = {name: run("all", name, FIRST) for name in SWEEPS}
    shards = every_file(tmp_path / "all" / "cache" / "shards")
    assert len(shards) == 1  # it holds cells of every evaluator
    more = {name: run("all", name, MORE) for name in SWEEPS}
    names = {name: {*columns} for name, (columns, _) in more.items()}
    assert names == {name: {*columns} for name, (_, (columns, _)) in alone.items()}
    assert {name: (first[name], more[name]) for name in SWEEPS} == alone
    assert {"delay_s", "fairness_s", "jct_mean_s"} & names["fairness"] == {"fairness_s"}
    assert "shared" in names["delay"] & names["fairness"]
