"""TPC queries as DAGs, in the text format of the DAGPS simulator."""

from __future__ import annotations

import gzip

import pytest

import sim
from policies.dagps.tpc import RESOURCES
from sim.check.account import check_account
from tests.sim.traces.accounts import counts

TWO = """# 3: TPC-H query10
3 0 7.5
Map1 11 0.19 0.23 0.02 0.0 0.07 0.21 41
Reducer2 131.5 0.17 0.19 0.06 0.05 0.21 0.1 3
Reducer3 0 0.1 0.2 0.3 0.25 0.03 0.25 1
2
Map1 Reducer2 ata
Reducer2 Reducer3 ata

# 1: TPC-H query1
1 9 2
Map1 4 0.5 0 0 0 0 0 2
0
"""


def write(path, text=TWO):
    path.write_text(text)
    return path


def load(path, **options):
    return sim.read_trace("tpc", path, **options)


def test_a_dag_is_a_job_and_the_earliest_comes_first(tmp_path):
    w = load(write(tmp_path / "q.txt"))
    assert w.jobs["job_id"].to_pylist() == ["9", "0"]
    assert w.jobs["submit_s"].to_pylist() == [0.0, 5.5]
    assert w.jobs["template"].to_pylist() == ["TPC-H query1", "TPC-H query10"]
    assert w.meta["offset_s"] == 2.0
    assert w.stages["name"].to_pylist() == ["Map1", "Map1", "Reducer2", "Reducer3"]
    assert w.stages["n_tasks"].to_pylist() == [2, 41, 3, 1]
    assert w.stage_duration_s.tolist() == [4.0, 11.0, 131.5, 0.0]
    assert w.stage_edges.to_pylist() == [
        {"parent": 1, "child": 2, "kind": "barrier"},
        {"parent": 2, "child": 3, "kind": "barrier"},
    ]
    assert set(w.resources) == set(RESOURCES)
    third = [w.stages[f"demand_{r}"].to_pylist()[3] for r in RESOURCES]
    assert third == [0.1, 0.2, 0.3, 0.25, 0.03, 0.25]


def test_it_may_be_gzipped(tmp_path):
    path = tmp_path / "q.txt.gz"
    path.write_bytes(gzip.compress(TWO.encode()))
    assert load(path).digest == load(write(tmp_path / "q.txt")).digest


@pytest.mark.parametrize(
    ("old", "new", "line", "rule"),
    [
        ("# 3: TPC-H query10", "3: TPC-H query10", 1, "wrong line"),
        ("3 0 7.5", "3", 2, "wrong line"),
        ("3 0 7.5", "x 0 7.5", 2, "wrong line"),
        ("3 0 7.5", "2.5 0", 2, "number out of range"),
        ("3 0 7.5", "0 0", 2, "number out of range"),
        ("3 0 7.5", "2 0", 5, "wrong line"),
        ("Map1 11 ", "Map1 inf ", 3, "number out of range"),
        ("Map1 11 0.19", "Map1 11 -0.19", 3, "number out of range"),
        ("0.21 41", "0.21 0", 3, "number out of range"),
        ("Reducer2 131.5", "Map1 131.5", 4, "duplicate stage name"),
        ("Reducer2 Reducer3 ata", "Reducer2 Reducer3 oto", 8, "wrong line"),
        ("Reducer2 Reducer3 ata", "Reducer9 Reducer3 ata", 8, "parent is not in the job"),
        ("Reducer2 Reducer3 ata", "Reducer2 Reducer2 ata", 8, "parent is the stage itself"),
        ("Reducer2 Reducer3 ata", "Map1 Reducer2 ata", 8, "parent is named twice"),
        ("Reducer2 Reducer3 ata", "Reducer2 Map1 ata", 1, "cycle"),
        ("1 9 2", "1 0 2", 11, "duplicate id"),
        ("2\n0\n", "2\n", 12, "wrong line"),
    ],
)
def test_errors_name_their_line(tmp_path, old, new, line, rule):
    assert TWO.count(old) == 1
    path = write(tmp_path / "q.txt", TWO.replace(old, new))
    with pytest.raises(sim.InputError) as caught:
        load(path)
    assert (caught.value.line, caught.value.rule) == (line, rule)
    assert caught.value.file == str(path)


def test_edges_and_cycles_are_counted_when_skipped(tmp_path):
    text = TWO.replace("\n2\nMap1", "\n5\nGone Map1 ata\nMap1 Map1 ata\nMap1 Reducer2 ata\nMap1")
    cyclic = TWO.split("\n\n")[0].replace("# 3", "# 7").replace("3 0 7.5", "3 7")
    cyclic = cyclic.replace("Reducer2 Reducer3 ata", "Reducer2 Map1 ata")
    path = write(tmp_path / "q.txt", text + cyclic + "\n")
    w = load(path, on_bad_row="skip")
    assert w.jobs["job_id"].to_pylist() == ["9", "0"]
    assert w.stage_edges.num_rows == 2
    check_account(w)
    assert counts(w) == {
        "rows": 3,
        "jobs": 2,
        "stages": 4,
        "edges": 2,
        "dropped": {"cycle (whole job)": 1},
        "edges_dropped": {
            "parent is not in the job": 1,
            "parent is the stage itself": 1,
            "parent is named twice": 1,
        },
    }


FIRST = TWO.split("\n\n")[0] + "\n"


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("Reducer2 131.5", "Map1 131.5", "duplicate stage name"),
        ("3 7 7.5", "3 9 7.5", "duplicate id"),
        ("3 7 7.5", "2 7 7.5", "wrong line"),
        ("3 7 7.5", "4 7 7.5", "wrong line"),
        ("2\nMap1", "3\nMap1", "wrong line"),  # what is wrong is the next DAG's head
        ("Map1 11 0.19", "Map1 11 -0.19", "number out of range"),
        ("# 3: TPC-H query10", "3: TPC-H query10", "wrong line"),
        ("Map1 Reducer2 ata\nReducer2 Reducer3", "Map1 Map1 ata\nReducer2", "wrong line"),
    ],
)
def test_a_bad_dag_is_dropped_to_its_end_and_the_rest_is_read(tmp_path, old, new, rule):
    bad = FIRST.replace("3 0 7.5", "3 7 7.5")
    assert bad.count(old) == 1
    whole, last = TWO.replace("\n\n", "\n").split("# 1")
    text = f"# 1{last}{bad.replace(old, new)}{whole}"
    with pytest.raises(sim.InputError):
        load(write(tmp_path / "q.txt", text))
    w = load(write(tmp_path / "q.txt", text), on_bad_row="skip")
    assert w.digest == load(write(tmp_path / "good.txt")).digest
    assert w.meta["report"]["dropped"] == {f"{rule} (whole job)": 1}
    assert w.meta["report"]["rows"] == 3
    assert w.meta["report"]["edges_dropped"] == {}


def test_a_truncated_file_loses_only_its_last_dag(tmp_path):
    path = write(tmp_path / "q.txt", FIRST + "# 1: TPC-H query1\n1 9 2\nMap1 4 0.5 0 0")
    w = load(path, on_bad_row="skip")
    assert w.jobs["job_id"].to_pylist() == ["0"]
    with pytest.raises(sim.InputError, match="1 × wrong line") as caught:
        load(write(tmp_path / "q.txt", "# 1: q\n1 9 2\n"), on_bad_row="skip")
    assert caught.value.rule == "no job left"


def test_nothing_left_is_an_error(tmp_path):
    with pytest.raises(sim.InputError, match="does not exist"):
        load(tmp_path / "absent.txt")
    with pytest.raises(sim.InputError) as caught:
        load(write(tmp_path / "blank.txt", "\n\n"))
    assert caught.value.rule == "empty file"


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("tpch_17_queries.txt", (17, 132, 3772, 115)),
        ("tpcds_41_queries.txt", (41, 431, 9902, 396)),
        ("tpch_fb_mix_399.txt", (399, 3160, 91304, 2761)),
    ],
)
def test_real_files(shared_traces, name, sizes):
    w = load(shared_traces / "dags" / name)
    assert (w.n_jobs, w.n_stages, w.n_tasks, w.stage_edges.num_rows) == sizes
    assert w.meta["report"]["edges_dropped"] == {}
    assert max(max(w.stages[f"demand_{r}"].to_pylist()) for r in RESOURCES) <= 1.0
