"""Pickling of a workload: buffers out of band, none twice, none copied."""

from __future__ import annotations

import dataclasses
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings

import sim
from sim.workload.schema import OPTIONAL_TABLES, TABLES
from tests.sim.workload.tables import expanded, table_workloads


def big(uniform: bool) -> sim.Workload:
    rng = np.random.default_rng(0)
    n_jobs, n_tasks = 2_000, rng.integers(1, 200, 2_000)
    w = sim.Workload.from_tables(
        jobs={
            "job_id": [f"job-{i}" for i in range(n_jobs)],
            "submit_s": np.arange(n_jobs, dtype=float),
            "user": rng.choice(["u", "v"], n_jobs),
        },
        stages={
            "job": np.arange(n_jobs),
            "n_tasks": n_tasks,
            "duration_s": rng.random(n_jobs),
        },
    )
    return w if uniform else expanded(w)


def ship(w: sim.Workload) -> tuple[bytes, list[pickle.PickleBuffer]]:
    buffers: list[pickle.PickleBuffer] = []
    return pickle.dumps(w, protocol=5, buffer_callback=buffers.append), buffers


def n_bytes(buffers) -> int:
    return sum(b.raw().nbytes for b in buffers)


@pytest.mark.parametrize("uniform", [True, False])
@pytest.mark.parametrize("built", [True, False])
def test_arrays_are_shipped_out_of_band_and_once(uniform, built):
    w = big(uniform)
    if built:
        assert len(w.columns.task_duration) == w.n_tasks
    band, buffers = ship(w)
    assert len(band) < 10_000
    tables = [w.jobs, w.stages, w.stage_edges, w.job_edges, w.downloads]
    max_bytes = sum(t.nbytes for t in tables)
    if uniform:
        max_bytes += w.stage_duration_s.nbytes
    if not uniform:
        max_bytes += w.tasks.nbytes
    if built:
        views = {"job_submit", "job_priority", "job_min_tasks", "job_queue", "job_user"}
        views |= {"job_template", "stage_job", "edge_child"}
        views |= {"stage_max_s", "stage_min_s"} if uniform else {"task_duration"}
        max_bytes += sum(
            getattr(w.columns, f.name).nbytes
            for f in dataclasses.fields(w.columns)
            if f.name not in views and hasattr(getattr(w.columns, f.name), "nbytes")
        )
    assert n_bytes(buffers) <= max_bytes + 2_000
    spans = sorted((_address(b), _address(b) + b.raw().nbytes) for b in buffers if b.raw().nbytes)
    for (_, end), (begin, _) in itertools.pairwise(spans):
        assert begin >= end, "two buffers share bytes"


def _address(buffer) -> int:
    return np.frombuffer(buffer.raw(), np.uint8).ctypes.data


@pytest.mark.parametrize("uniform", [True, False])
def test_the_other_side_works_on_the_shipped_bytes(uniform):
    w = big(uniform)
    w.columns, w.digest  # noqa: B018
    band, buffers = ship(w)
    back = pickle.loads(band, buffers=buffers)
    assert back.__dict__.keys() >= {"columns", "digest"}
    assert back.digest == w.digest
    assert dict(back.meta) == dict(w.meta)
    for field in dataclasses.fields(w.columns):
        mine, other = getattr(w.columns, field.name), getattr(back.columns, field.name)
        if isinstance(mine, np.ndarray):
            np.testing.assert_array_equal(mine, other)
            assert not other.flags.writeable
            assert other.flags.c_contiguous
            assert mine.size == 0 or np.shares_memory(mine, other), field.name
        else:
            assert mine == other


def test_a_slice_ships_only_its_own_bytes():
    w = big(False)
    part = w.take(np.arange(10))
    assert n_bytes(ship(part)[1]) < n_bytes(ship(w)[1]) / 50


def test_columns_that_nobody_built_are_not_shipped():
    back = pickle.loads(pickle.dumps(big(True), protocol=5))
    assert "columns" not in back.__dict__
    assert "tasks" not in back.__dict__


@given(table_workloads())
@settings(max_examples=30, deadline=None)
def test_any_workload_survives(w):
    for protocol in (2, 5):
        back = pickle.loads(pickle.dumps(w, protocol=protocol))
        assert (
            sim.Workload.from_tables(
                **{n: getattr(back, n) for n in (*TABLES, *OPTIONAL_TABLES)},
                meta=back.meta,
            ).digest
            == w.digest
        )
