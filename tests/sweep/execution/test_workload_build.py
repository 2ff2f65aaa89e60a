"""Build of workloads from recipes; most of it is tested by sweeps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sim.base.errors import InputError
from sweep.execution.workload_build import Recipe, convert, load, make
from sweep.store.file_digests import stamp
from tests.sweep.small import write_workload

CLUSTER = {"shape": "slots", "count": 2, "load": None}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return write_workload(tmp_path / "trace")


@pytest.fixture
def recipe(tmp_path: Path, trace: Path) -> Recipe:
    return Recipe({"format": "parquet", "path": str(trace)}, CLUSTER, tmp_path / "kept")


def known(recipe: Recipe) -> Recipe:
    return replace(recipe, digest=convert(recipe)["digest"])


def test_a_trace_is_read_once(recipe: Recipe, trace: Path) -> None:
    recipe = known(recipe)
    trace.rename(trace.with_name("gone"))
    assert load(recipe).digest == recipe.digest
    built, workload = make(recipe, [])
    assert built.description["digest"] == workload.digest == recipe.digest


def test_what_is_damaged_is_made_anew(recipe: Recipe) -> None:
    recipe = known(recipe)
    assert recipe.converted is not None
    file = recipe.converted / "stages.parquet"
    whole = file.read_bytes()
    file.write_bytes(whole[:100])
    assert make(recipe, [])[1].digest == recipe.digest
    assert file.read_bytes() == whole


def test_a_trace_that_changed_meanwhile_is_told(recipe: Recipe, trace: Path) -> None:
    stamps = {str(file): stamp(file) for file in trace.iterdir()}
    recipe = replace(known(recipe), converted=None, stamps=stamps)
    write_workload(trace, n_jobs=7)
    with pytest.raises(InputError, match="changed while the sweep ran") as caught:
        load(recipe)
    assert caught.value.file == str(trace)


def test_content_that_differs_from_what_it_was_is_told(recipe: Recipe, trace: Path) -> None:
    recipe = replace(known(recipe), converted=None)
    write_workload(trace, n_jobs=7)
    with pytest.raises(InputError, match="gave another workload before"):
        load(recipe)


def test_an_error_names_the_address_and_not_the_copy(tmp_path: Path) -> None:
    copy = tmp_path / "copy.swf"
    copy.write_text("no log\n")
    trace = {"format": "swf", "path": str(copy)}
    with pytest.raises(InputError) as caught:
        load(Recipe(trace, CLUSTER, fetched={"s3://bucket/a.swf": copy}))
    assert (caught.value.file, caught.value.line) == ("s3://bucket/a.swf", 1)
