"""Fits to the published histograms: the shipped tables are made from them."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

import sim
from policies.alibaba.synth.published import fit, fit_sample
from policies.alibaba.synth.shipped import SHIPPED
from sim.base.errors import InputError
from sim.synth.fitted.tables_file import read_tables, write_tables

HISTOGRAMS = "alibaba2018/full_trace_histograms.json.gz"
SAMPLE = "alibaba2018/batch_task_6600_jobs.csv.gz"


def test_a_fitted_file_synthesizes(tmp_path):
    sim.synthesize("alibaba2018", jobs=400, seed=1).write(tmp_path / "w")
    write_tables(fit(tmp_path / "w"), tmp_path / "t.json")
    synthesized = sim.synthesize("alibaba2018", jobs=400, seed=1, tables=tmp_path / "t.json")
    assert synthesized.n_jobs == 400


def test_the_shipped_tables_are_made_from_the_histograms_and_the_sample(shared_traces, tmp_path):
    sample = sim.read_trace(
        "alibaba2018", shared_traces / SAMPLE, on_bad_row="skip", unfinished="keep"
    )
    shipped = read_tables(SHIPPED)
    note = shipped.links.provenance["source"]
    synthesized = fit_sample(fit(shared_traces / HISTOGRAMS), sample, note)
    write_tables(synthesized, tmp_path / "tables.json")
    again = read_tables(tmp_path / "tables.json")
    expected, actual = (
        json.loads(path.read_text()) for path in (SHIPPED, tmp_path / "tables.json")
    )
    factors = ("job", "root", "pull", "noise")  # of matrices: their last digits are the machine's
    for name in factors:
        np.testing.assert_allclose(
            getattr(again.joint, name), getattr(shipped.joint, name), atol=2e-6
        )
        del expected["joint"][name], actual["joint"][name]
    assert actual == expected


def published(**changed) -> dict:
    flat = {"bins": [0, 1, 2], "counts": [3, 1]}
    content = dict.fromkeys(
        ("task_num", "instance_num", "task_duration", "job_interval", "task_mem"), flat
    )
    content["task_cpu"] = {"bins": [49.0, 50.0, 100.0], "counts": [1.0, 1.0]}
    content["cpl"] = {"1": {"bins": [0, 1], "counts": [1]}, "2": flat}
    content["level"] = {"1": {"bins": [0, 1], "counts": [1]}, "2": flat}
    return content | changed


def test_published_bins_are_upper_edges_cpu_is_in_cores_and_zero_is_half_a_second(tmp_path):
    durations = {"bins": [-1, 0, 4], "counts": [7, 5]}
    path = tmp_path / "h.json.gz"
    path.write_bytes(gzip.compress(json.dumps(published(task_duration=durations)).encode()))
    tables = fit(path)
    assert tables.n_stages.values.tolist() == [1, 2]
    assert tables.demand["cpu"].values.tolist() == [0.5, 1.0]
    assert tables.duration_s.values.tolist() == [0.5, 4.0]
    assert tables.provenance["changed"] == {"duration_s 0 made 0.5": 7}
    assert tables.provenance["dropped"] == {}


def test_impossible_published_values_are_dropped_and_counted(tmp_path):
    path = tmp_path / "h.json"
    intervals = {"bins": [-9, -1, 0, 3], "counts": [4, 2, 2]}
    sizes = {"bins": [-1, 0, 1], "counts": [6, 2]}
    path.write_text(json.dumps(published(job_interval=intervals, task_num=sizes)))
    tables = fit(path)
    assert tables.interval_s.values.tolist() == [0, 3]
    assert tables.provenance["dropped"] == {"job_interval below 0": 4, "task_num below 1": 6}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not JSON"),
        (b"[]", "must hold {name: {counts, bins}}"),
        (b"\x1f\x8b\x08oops", "fetch the file again"),
        (gzip.compress(b'{"a": 1}', mtime=0)[:-6], "fetch the file again"),
        (published(task_num=None), "histogram 'task_num' is missing"),
        (published(task_num={"bins": [0, 1], "counts": [1, 2]}), "one whole count for each bin"),
        (published(task_num={"bins": [0, 1], "counts": [-1]}), "no negative counts"),
        (published(task_num={"bins": [-1, 0], "counts": [1]}), "a value of at least 1"),
        (published(task_num={"bins": [0, "x"], "counts": [1]}), "is missing or not"),
        (published(cpl={"a": {}}), "histogram 'cpl' must be {whole number"),
        (published(level={}), "histogram 'level' must be {whole number"),
    ],
)
def test_wrong_histograms_are_named_errors(tmp_path, content, message):
    path = tmp_path / "h.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    with pytest.raises(InputError) as caught:
        fit(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(path))


def test_a_missing_source_is_an_error(tmp_path):
    with pytest.raises(InputError, match="no such file or folder"):
        fit(tmp_path / "absent")
