"""Units of a table's memory, CPUs and GPUs: as texts, names or the user say, never implausible."""

from __future__ import annotations

import pytest

from sim.base.errors import InputError
from sim.check.account import check_account
from tests.sim.traces.tables import read_both, read_csv


@pytest.mark.parametrize(
    ("value", "gib"),
    [
        ("16", 16.0), ("16G", 16.0), ("16GB", 16.0), ("16 GiB", 16.0), ("4000M", 3.90625),
        ("512Ki", 2.0**-11), ("1.5T", 1536.0), ("1073741824B", 1.0), ("2e1", 20.0), ("", 0.0),
        ("n/a", 0.0),
    ],
)  # fmt: skip
def test_memory_with_units(tmp_path, value, gib):
    w = read_both(tmp_path, f"submit_s,run_s,cpus,mem\n0,10,2,{value}\n0,10,2,5\n")
    assert w.stages["demand_mem"].to_pylist() == pytest.approx([gib / 2, 2.5])
    check_account(w, mem_gib_s=10 * gib + 50)
    assert ("memory unknown: 0" in w.meta["report"]["filled"]) == (gib == 0)


@pytest.mark.parametrize(
    ("head", "rows", "unit"),
    [
        ("cpus,mem", ("1,16384", "2,65536"), "MiB"),
        ("cpus,mem", ("8,17179869184", "1,4294967296"), "B"),
        ("gpus,nodes,mem", ("8,2,33554432", "1,1,67108864"), "KiB"),
        ("cpus,mem", ("1,300", "64,512"), ""),
        ("gpus,nodes,mem", ("8,4,8192", "8,1,1024"), ""),
    ],
)
def test_memory_that_no_machine_has_is_in_another_unit(tmp_path, head, rows, unit):
    text = f"submit_s,run_s,{head}\n" + "".join(f"0,10,{row}\n" for row in rows)
    if not unit:
        assert read_both(tmp_path, text).n_jobs == 2
        return
    with pytest.raises(InputError, match=f"it looks like {unit}: give 'trace.unit=.mem:{unit}}}'"):
        read_csv(tmp_path, text)
    total = sum(float(row.rpartition(",")[2]) for row in rows)
    gib = {"MiB": 2.0**-10, "KiB": 2.0**-20, "B": 2.0**-30}[unit]
    check_account(read_both(tmp_path, text, unit={"mem": unit}), mem_gib_s=10 * total * gib)
    if unit == "MiB":
        check_account(read_both(tmp_path, text, unit={"mem": "GiB"}), mem_gib_s=10 * total)


def test_thousandths_of_cpus_and_gpus(tmp_path):
    text = "submit_s,run_s,cpu_milli,gpu_milli\n0,10,8000,460\n"
    for columns, unit in (
        ({"cpus": "cpu_milli", "gpus": "gpu_milli"}, None),
        ({"cpus": "cpus", "gpus": "gpus"}, {"cpus": "milli", "gpus": "milli"}),
    ):
        names = text.replace("cpu_milli", columns["cpus"]).replace("gpu_milli", columns["gpus"])
        check_account(read_both(tmp_path, names, columns=columns, unit=unit), cpu_s=80, gpu_s=4.6)


def test_memory_in_the_unit_of_its_name_or_as_chosen(tmp_path):
    text = "submit_s,run_s,memory_mb,x,mem_gib\n0,10,2048,3,4\n"

    def gib(**options):
        return read_both(tmp_path, text, **options).stages["demand_mem"].to_pylist()

    assert gib() == [4.0]
    assert gib(columns={"mem": "memory_mb"}) == [2.0]
    assert gib(columns={"mem": "x"}, unit={"mem": "TiB"}) == [3072.0]
    assert gib(columns={"mem": "x"}, unit="ms") == [3.0]
    assert "demand_mem" not in read_csv(tmp_path, text, columns={"mem": None}).stages.column_names
