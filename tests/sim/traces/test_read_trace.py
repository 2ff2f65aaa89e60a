"""Finding readers by name, and their common promises."""

from __future__ import annotations

import pytest

import sim
from sim import traces
from tests.sim.workload.tables import build


def test_formats_are_the_modules_of_the_package():
    assert {"alibaba2018", "parquet", "swf"} <= set(traces.names())
    assert not [name for name in traces.names() if name.startswith("_")]


@pytest.mark.parametrize("name", traces.names())
def test_every_format_reads_with_options_by_keyword(name, tmp_path):
    assert isinstance(traces.options(name), dict)
    with pytest.raises(sim.InputError) as caught:
        sim.read_trace(name, tmp_path / "nothing")
    assert caught.value.file == str(tmp_path / "nothing")


def test_an_unknown_format_or_option_names_the_nearest(tmp_path):
    with pytest.raises(sim.InputError, match="did you mean 'alibaba2018'") as caught:
        sim.read_trace("alibaba2081", tmp_path)
    assert caught.value.rule == "unknown trace format"
    with pytest.raises(sim.InputError, match=r"valid: .*swf"):
        sim.read_trace("_rows", tmp_path)
    with pytest.raises(sim.InputError, match="did you mean 'on_bad_row'") as caught:
        sim.read_trace("swf", tmp_path, on_bad_rows="skip")
    assert caught.value.rule == "unknown option"


def test_parquet_reads_a_written_workload(tmp_path):
    w = build()
    w.write(tmp_path / "w")
    assert sim.read_trace("parquet", tmp_path / "w").digest == w.digest
