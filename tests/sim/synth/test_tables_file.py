"""File of probability tables: round trip, and every kind of wrong file."""

from __future__ import annotations

import json

import numpy as np
import pytest

import sim
from policies.alibaba.synth.shipped import SHIPPED
from sim.base.errors import InputError
from sim.synth.fitted.histograms import Histogram
from sim.synth.fitted.tables_file import read_tables, write_tables


def small() -> dict:
    """Return the content of a small, valid file."""
    return {
        "format": "probability tables 1",
        "provenance": {},
        "quantum": {"cpu": 0.5},
        "n_stages": {"values": [1, 3], "counts": [1, 2]},
        "n_tasks": {"values": [4], "counts": [1]},
        "duration_s": {"values": [0.5, 7.25], "counts": [3, 1]},
        "interval_s": {"values": [0, 10], "counts": [1, 1]},
        "length": {
            "1": {"values": [1], "counts": [1]},
            "2": {"values": [2, 3], "counts": [5, 1]},
        },
        "level": {"1": {"values": [1, 2], "counts": [1, 1]}},
        "demand cpu": {"values": [0.5, 1], "counts": [1, 1]},
    }


def save(tmp_path, content) -> str:
    path = tmp_path / "tables.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(path)


def test_histogram_counts_and_draws_in_proportion():
    table = Histogram.count([3, 1, 3, 2], [1, 2, 1, 0])
    assert table.values.tolist() == [1, 3]
    assert table.counts.tolist() == [2, 2]
    assert table.draw(np.array([0.0, 0.49, 0.5, 1 - 2**-53])).tolist() == [1, 1, 3, 3]
    assert table.up_to(2.5).values.tolist() == [1]


def test_tables_are_read_as_written(tmp_path):
    tables = read_tables(SHIPPED)
    write_tables(tables, tmp_path / "new" / "again.json")
    assert (tmp_path / "new" / "again.json").read_bytes() == SHIPPED.read_bytes()
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["again.json"]


def test_lines_are_short_enough_to_diff():
    assert max(map(len, SHIPPED.read_text().splitlines())) < 300


def test_a_hand_written_file_works(tmp_path):
    synthesized = sim.synthesize(
        "alibaba2018", jobs=300, tables=save(tmp_path, small()), variant="paper"
    )
    assert synthesized.resources == ("cpu",)
    assert synthesized.quantum == {"cpu": 0.5}
    assert set(np.diff(synthesized.columns.job_stage0).tolist()) == {1, 3}
    assert set(synthesized.stages["n_tasks"].to_pylist()) == {4}
    assert synthesized.meta["synth"]["tables"] == "tables.json"


def broken(*keys, value=None):
    """Return the small file with one entry replaced, or left out."""
    content = small()
    entry = content
    for key in keys[:-1]:
        entry = entry[key]
    if value is None:
        del entry[keys[-1]]
    else:
        entry[keys[-1]] = value
    return content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "tables.json:1: not JSON"),
        ("[1]", "must be of the format 'probability tables 1'"),
        ("[" * 100_000, "nested too deeply"),
        (broken("format", value="tables 0"), "must be of the format 'probability tables 1'"),
        (broken("n_tasks"), "there is no entry 'n_tasks'"),
        (broken("demand cpu"), "no table 'demand <resource>'"),
        (broken("n_stages", "counts"), "n_stages: there is no entry 'counts'"),
        (
            broken("n_stages", "counts", value=["a", 1]),
            "n_stages.counts: must be a list of whole numbers, not ['a', 1]; make it with",
        ),
        (broken("n_stages", "counts", value=[1]), "n_stages: must have one count a value"),
        (broken("n_stages", "counts", value=[1, 0]), "whole numbers of at least 1, not [1, 0]"),
        (broken("n_stages", "counts", value=[1, 1.5]), "must be whole numbers, not [1, 1.5]"),
        (broken("n_stages", "counts", value=[1, 2**53]), "add up to less than 2^53"),
        (broken("n_stages", "counts", value=[1, 10**400]), "must be a list of whole numbers"),
        (broken("n_stages", "values", value=[3, 1]), "n_stages: must have ascending values"),
        (broken("n_stages", "values", value=[1, 2.5]), "n_stages: must be a table of whole values"),
        (broken("n_tasks", "values", value=[2**31]), "whole values from 1 to 2147483647"),
        (broken("duration_s", "values", value=[-1, 2]), "numbers of at least 0, not [-1, 2]"),
        (broken("duration_s", "values", value=[1, float("inf")]), "finite numbers"),
        (broken("length", "2", "values", value=[0, 3]), "length: must be a table of whole values"),
        (broken("length", value={"x": {}}), "length: must be an object with whole numbers for"),
        (broken("level", value={}), "level: must hold a part for each of some ascending whole"),
        (broken("quantum", value={"cpu": 0}), "quantum.cpu: must be a number above 0, not 0"),
        (broken("joint", value={}), "joint: there is no entry 'unequal'"),
        (broken("lenght", value={}), "unknown entry 'lenght'; did you mean 'length'"),
        (
            broken("length", "1", "values", value=[2]),
            "no length of at most 1 for jobs of 1 stages; make it with",
        ),
        (
            broken("level", "1", "values", value=[2, 3]),
            "no level of at most 1 for jobs of length 1; make it with",
        ),
    ],
)
def test_a_wrong_file_is_a_named_error(tmp_path, content, message):
    with pytest.raises(InputError) as caught:
        read_tables(save(tmp_path, content))
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path))


def test_a_missing_file_says_how_to_make_one(tmp_path):
    with pytest.raises(InputError, match="python -m sim fit"):
        read_tables(tmp_path / "absent.json")
