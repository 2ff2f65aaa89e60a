"""Recorded times: kept by a cut, dropped where submissions move."""

from __future__ import annotations

import numpy as np
import pytest

import sim
from sim import transforms
from tests.sim.workload.tables import build, small

NAMES = ("recorded_start_s", "recorded_finish_s")
SUBMITTED = "recorded_submit_s"


def log() -> sim.Workload:
    tables = small()
    tables["jobs"] |= {NAMES[0]: [2.0, 4.0, np.nan], NAMES[1]: [9.0, 8.0, np.nan]}
    tables["jobs"] |= {SUBMITTED: [-3.0, 1.0, np.nan]}
    tables["stages"] |= {NAMES[0]: [2.0, 5.0, 4.0, np.nan]}
    tables["tasks"] |= {NAMES[0]: [2.0, 3.0, 5.0, 4.0, 4.0, np.nan]}
    return sim.Workload.from_tables(**tables)


def with_recorded(workload: sim.Workload) -> list[str]:
    names = ("jobs", "stages", "tasks")
    return [name for name in names if {*NAMES, SUBMITTED} & {*getattr(workload, name).column_names}]


def test_a_cut_keeps_them_counted_from_its_zero():
    w = log()
    assert with_recorded(w) == ["jobs", "stages", "tasks"]
    cut = w.slice_time(1.0, np.inf)
    assert cut.jobs["submit_s"].to_pylist() == [0.0, 4.0]
    assert cut.jobs[NAMES[0]].to_pylist() == [3.0, None]
    assert cut.jobs[NAMES[1]].to_pylist() == [7.0, None]
    assert cut.jobs[SUBMITTED].to_pylist() == [0.0, None]
    assert cut.stages[NAMES[0]].to_pylist() == [3.0, None]
    assert cut.tasks[NAMES[0]].to_pylist() == [3.0, 3.0, None]
    assert w.take([1]).jobs[NAMES[0]].to_pylist() == [4.0]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("arrive", {"jobs": 4}),
        ("hour_of", {"jobs": 5}),
        ("squeeze", {"span_s": 2.0}),
        ("change_load", {"load": 2.0}),
        ("stay", {"seconds": 9.0}),
        ("give_dags", {}),
    ],
)
def test_transforms_that_move_jobs_or_make_others_drop_them(name, options):
    w = log()
    tables = {key: getattr(w, key) for key in ("jobs", "stages", "tasks", "stage_edges")}
    if name == "give_dags":
        tables |= {"stage_edges": None}
    alone = sim.Workload.from_tables(**tables)
    assert with_recorded(transforms.apply(alone, name, **options)) == []


def test_other_transforms_keep_them():
    longer = transforms.apply(log(), "lengthen", seconds=1.0)
    assert longer.jobs[NAMES[0]].to_pylist() == [2.0, 4.0, None]
    assert with_recorded(longer) == ["jobs", "stages", "tasks"]


def test_another_load_drops_them_and_changes_nothing_else():
    cluster = sim.Cluster.machines(2, cpu=4, mem=11)
    scaled = log().scale_load(0.3, cluster)
    assert with_recorded(scaled) == []
    assert scaled.digest == build().scale_load(0.3, cluster).digest


def test_they_are_numbers_in_seconds():
    for name in ("jobs", "stages", "tasks"):
        tables = small()
        n = len(next(iter(tables[name].values())))
        tables[name][NAMES[0]] = [1e13] * n
        with pytest.raises(sim.InputError, match="recorded_start_s is 1") as caught:
            sim.Workload.from_tables(**tables)
        assert caught.value.rule == "number too large"
