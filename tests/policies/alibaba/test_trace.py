"""The Alibaba 2018 reader: its rules on small files, against a naive reader, and on real data."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sim
from benchmarks.whole_trace import write_batch_task
from sim.base.reading import rows as blocks
from sim.check.account import check_account
from tests.examples import examples
from tests.policies.alibaba import naive_alibaba as naive
from tests.sim.traces.accounts import counts

HEADER = (
    "task_name,instance_num,job_name,status,start_time,end_time,plan_cpu,plan_mem,mean_inst_dur"
)


def write(path, lines, header=HEADER):
    path.write_text("\n".join(([header] if header else []) + lines) + "\n")
    return path


def row(name="M1", count="2", job="j_1", status="Terminated", start=100, end=110, **rest):
    values = {"plan_cpu": "100.0", "plan_mem": "0.5", "mean": "7.5"} | rest
    return (
        ",".join(
            str(v)
            for v in (name, count, job, status, start, end, values["plan_cpu"], values["plan_mem"])
        )
        + f",{values['mean']}"
    )


def load(path, **options):
    return sim.read_trace("alibaba2018", path, **options)


def columns(w):
    edges = w.stage_edges
    return {
        "job_id": w.jobs["job_id"].to_pylist(),
        "submit_s": w.jobs["submit_s"].to_pylist(),
        "job": w.stages["job"].to_pylist(),
        "name": w.stages["name"].to_pylist(),
        "n_tasks": w.stages["n_tasks"].to_pylist(),
        "cpu": w.stages["demand_cpu"].to_pylist(),
        "mem": w.stages["demand_mem"].to_pylist(),
        "duration_s": w.stage_duration_s.tolist(),
        "edges": list(zip(edges["parent"].to_pylist(), edges["child"].to_pylist(), strict=True)),
    }


def test_a_small_file_with_a_header(tmp_path):
    path = write(
        tmp_path / "t.csv",
        [
            row("R2_1", "3", "j_9", start=205, end=230, mean="20.25"),
            row("M1", "2", "j_9", start=200, end=204),
            row("task_Nzg3==", "1", "j_8", start=150, end=150, mean=""),
            row("MergeTask", "5", "j_8", start=149, end=160, plan_cpu="50", plan_mem="0.39"),
        ],
    )
    w = load(path)
    assert columns(w) == {
        "job_id": ["j_8", "j_9"],
        "submit_s": [0.0, 51.0],
        "job": [0, 0, 1, 1],
        "name": ["task_Nzg3==", "MergeTask", "M1", "R2_1"],
        "n_tasks": [1, 5, 2, 3],
        "cpu": [1.0, 0.5, 1.0, 1.0],
        "mem": [0.5, 0.39, 0.5, 0.5],
        "duration_s": [0.5, 7.5, 7.5, 20.25],
        "edges": [(2, 3)],
    }
    assert set(w.stage_edges["kind"].to_pylist()) == {"barrier"}
    assert w.meta["offset_s"] == 149.0
    assert dict(w.quantum) == {"cpu": 0.01, "mem": 0.01}
    assert w.meta["report"]["filled"] == {
        "mean_inst_dur missing: end - start": 1,
        "0 s becomes 0.5 s": 1,
    }
    assert w.meta["report"]["noticed"] == {"name not of the DAG form": 2}


def test_the_original_has_no_header_and_other_columns(tmp_path):
    lines = ["M1,2,j_1,1,Terminated,100,110,100,0.5", "R2_1,1,j_1,1,Terminated,110,110,50,0.25"]
    plain = write(tmp_path / "plain.csv", lines, header=None)
    w = load(plain)
    assert w.stage_duration_s.tolist() == [10.0, 0.5]
    assert w.stages["demand_cpu"].to_pylist() == [1.0, 0.5]
    zipped = tmp_path / "no_suffix"
    zipped.write_bytes(gzip.compress(plain.read_bytes(), mtime=0))
    assert load(zipped).digest == w.digest
    windows = tmp_path / "crlf.csv"
    windows.write_bytes(b"\xef\xbb\xbf" + plain.read_bytes().replace(b"\n", b"\r\n"))
    assert load(windows).digest == w.digest


def test_a_workload_that_is_written_as_the_original_is_read_again(tmp_path):
    w = sim.synthesize("alibaba2018", jobs=200, seed=3)
    w.write(tmp_path / "w")
    write_batch_task(str(tmp_path / "w"), str(tmp_path / "batch_task.csv"))
    again = sim.read_trace("alibaba2018", tmp_path / "batch_task.csv")
    order = [again.jobs["job_id"].to_pylist().index(j) for j in w.jobs["job_id"].to_pylist()]
    again = again.take(np.array(order)) if order != sorted(order) else again
    for name in ("n_tasks", "demand_cpu", "demand_mem"):
        assert again.stages[name].to_pylist() == w.stages[name].to_pylist()
    edges = [
        sorted(zip(*(x.stage_edges[end].to_pylist() for end in ("parent", "child")), strict=True))
        for x in (w, again)
    ]
    assert edges[0] == edges[1]
    assert len(edges[0]) > 100
    whole_s = np.rint(w.columns.stage_max_s)
    assert (again.columns.stage_max_s == np.where(whole_s == 0, 0.5, whole_s)).all()


def test_columns_are_found_by_name(tmp_path):
    w = load(write(tmp_path / "t.csv", [row(), row("R2_1")]))
    order = "mean_inst_dur,extra,plan_mem,plan_cpu,end_time,start_time,status,job_name,"
    order += "instance_num,task_name"
    lines = [
        "7.5,x,0.5,100,110,100,Terminated,j_1,2,M1",
        "7.5,,0.5,100,110,100,Terminated,j_1,2,R2_1",
    ]
    assert load(write(tmp_path / "u.csv", lines, header=order)).digest == w.digest


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        (row("M2", end=0), "censored: end is 0"),
        (row("M2", start=0, end=0, status="Waiting"), "censored: end is 0"),
        (row("M2", start=120, end=119), "end before start"),
        (row("M2", start=""), "start or end missing"),
        (row("M2", end="nan"), "start or end missing"),
        (row("M2", count="0"), "0 instances"),
        (row("M1", count="9"), "number of an earlier row of the job"),
        (row("R1_7", count="9"), "number of an earlier row of the job"),
        (row("M1"), "repeated row"),
    ],
)
def test_rows_are_dropped_by_rule(tmp_path, line, rule):
    w = load(write(tmp_path / "t.csv", [row("M1"), line, row("R3_1_2")]))
    report = w.meta["report"]
    assert report["dropped"] == {rule: 1}
    assert report["rows"] == 3
    assert w.stages["name"].to_pylist() == ["M1", "R3_1_2"]
    assert w.stages["n_tasks"].to_pylist() == [2, 2]
    lost = "parent was dropped" if ",M2," in f",{line}" or line.startswith("M2") else None
    expected = lost or "parent is not in the job"
    assert report["edges_dropped"] == {expected: 1}


def test_a_job_without_rows_is_dropped(tmp_path):
    w = load(write(tmp_path / "t.csv", [row(job="gone", end=0), row(job="here")]))
    assert w.jobs["job_id"].to_pylist() == ["here"]
    assert w.meta["report"]["dropped"] == {
        "censored: end is 0": 1,
        "job of which no row is left": 1,
    }


def test_missing_values_are_filled_by_rule(tmp_path):
    lines = [row("M1", count="", plan_cpu="nan", plan_mem="", mean="-3"), row("R2_1", mean="inf")]
    path = write(tmp_path / "t.csv", lines)
    w = load(path)
    assert w.stages["n_tasks"].to_pylist() == [1, 2]
    assert w.stages["demand_cpu"].to_pylist() == [1.0, 1.0]
    assert w.stages["demand_mem"].to_pylist() == [0.3, 0.5]
    assert w.stage_duration_s.tolist() == [10.0, 10.0]
    assert w.meta["report"]["filled"] == {
        "instance_num missing: 1": 1,
        "plan_cpu missing: 100": 1,
        "plan_mem missing: 0.3": 1,
        "mean_inst_dur missing: end - start": 2,
    }
    other = load(path, default_cpu=0.25, default_mem=2)
    assert other.stages["demand_cpu"].to_pylist() == [0.25, 1.0]
    assert other.stages["demand_mem"].to_pylist() == [2.0, 0.5]


def test_status_terminated_drops_other_rows(tmp_path):
    path = write(
        tmp_path / "t.csv", [row("M1"), row("R2_1", status="Failed"), row("M3", status="")]
    )
    w = load(path)
    assert w.n_stages == 3
    assert w.meta["report"]["noticed"] == {"not Terminated": 2}
    done = load(path, status="terminated")
    assert done.stages["name"].to_pylist() == ["M1"]
    assert done.meta["report"]["dropped"] == {"not Terminated": 2}


def test_a_finer_quantum_where_a_demand_needs_it(tmp_path):
    w = load(write(tmp_path / "t.csv", [row("M1", plan_cpu="12.5", plan_mem="0.12345")]))
    assert dict(w.quantum) == {"cpu": 1e-3, "mem": 1e-5}
    assert w.columns.stage_demand.tolist() == [[125, 12345]]


@pytest.mark.parametrize(
    ("names", "edges", "dropped"),
    [
        (["M1", "R2_1", "J3_1_2"], [(0, 1), (0, 2), (1, 2)], {}),
        (["J3_1_2", "R2_1", "M1"], [(0, 1), (0, 2), (1, 2)], {}),
        (["M2", "R1_2"], [(1, 0)], {}),
        (["M1", "R2_1_1"], [(0, 1)], {"parent is named twice": 1}),
        (["M1_1", "R2_1"], [(0, 1)], {"parent is the stage itself": 1}),
        (["M1", "R2_1_7"], [(0, 1)], {"parent is not in the job": 1}),
        (["M1", "R2_1_Stg8"], [(0, 1)], {"parent is not in the job": 1}),
        (["M1", "R2_Stg1"], [(0, 1)], {}),
        (["M1", "J30_1_"], [(0, 1)], {}),
        (["M1", "task_1", "MergeTask", "R2_1_x", "2_1", "R_1"], [], {}),
        (["Map1", "reduce10_1"], [(0, 1)], {}),
        (["M1", "R99999999999_1"], [], {}),
    ],
)
def test_dependencies_are_read_from_names(tmp_path, names, edges, dropped):
    w = load(write(tmp_path / "t.csv", [row(name) for name in names]))
    assert columns(w)["edges"] == edges
    assert w.meta["report"]["edges_dropped"] == dropped
    assert w.n_stages == len(names)


def test_rows_of_a_job_may_be_apart(tmp_path):
    lines = [
        row(n, job=j, start=s)
        for n, j, s in [
            ("M1", "a", 5),
            ("M1", "b", 3),
            ("R2_1", "a", 4),
            ("R2_1", "b", 9),
            ("M1", "c", 3),
        ]
    ]
    w = load(write(tmp_path / "t.csv", [line.replace(",110,", ",99,") for line in lines]))
    assert w.jobs["job_id"].to_pylist() == ["b", "c", "a"]
    assert w.jobs["submit_s"].to_pylist() == [0, 0, 1]
    assert columns(w)["edges"] == [(0, 1), (3, 4)]


def test_a_cycle_is_an_error_or_a_dropped_job(tmp_path):
    lines = [row("M1", job="fine"), row("M1_3"), row("R2_1"), row("R3_2"), row("R4_3")]
    path = write(tmp_path / "t.csv", [*lines, row("R2_1", job="fine")])
    with pytest.raises(sim.InputError, match="M1_3, R2_1, R3_2 of job 'j_1'") as caught:
        load(path)
    assert (caught.value.rule, caught.value.line) == ("cycle", 3)
    w = load(path, on_bad_row="skip")
    assert w.jobs["job_id"].to_pylist() == ["fine"]
    assert columns(w)["edges"] == [(0, 1)]
    assert w.meta["report"]["bad_rows"] == {"cycle (whole job)": 4}
    assert w.meta["report"]["rows"] == 6


BAD = [
    (row("M2").rsplit(",", 1)[0], "wrong number of fields"),
    (row("M2") + ",1", "wrong number of fields"),
    (row("M2", count="two"), "text in a number"),
    (row("M2", start="1e"), "text in a number"),
    (row("M2", end="12:30"), "text in a number"),
    (row("M2", plan_cpu="1_0"), "text in a number"),
    (row("M2", plan_mem="much"), "text in a number"),
    (row("M2", mean="long"), "text in a number"),
    (row("M2", count="2.5"), "number out of range"),
    (row("M2", count="-1"), "number out of range"),
    (row("M2", count="3e9"), "number out of range"),
    (row("M2", start="-5"), "number out of range"),
    (row("M2", end="inf"), "number out of range"),
    (row("M2", plan_cpu="-100"), "number out of range"),
    (row(""), "missing value"),
    (row("M2", job=""), "missing value"),
]


@pytest.mark.parametrize(("line", "rule"), BAD)
@pytest.mark.parametrize("n_before", [0, 3])
def test_a_bad_row_is_an_error_with_its_line(tmp_path, line, rule, n_before):
    good = [row(f"M{i + 10}") for i in range(n_before)]
    path = write(tmp_path / "t.csv", [*good, "", line, row("M1"), BAD[0][0], BAD[2][0]])
    with pytest.raises(sim.InputError, match="on_bad_row=skip") as caught:
        load(path)
    assert caught.value.file == str(path)
    assert caught.value.line == n_before + 3
    assert caught.value.rule == rule
    assert str(caught.value).startswith(f"{path}:{n_before + 3}: ")
    w = load(path, on_bad_row="skip")
    counts = w.meta["report"]["bad_rows"]
    assert sum(counts.values()) == 3
    assert counts[rule] >= 1
    assert w.n_stages == n_before + 1
    assert w.meta["report"]["rows"] == n_before + 4


@pytest.mark.parametrize("block", [200, 1 << 20])
def test_lines_are_counted_over_blocks(tmp_path, monkeypatch, block):
    monkeypatch.setattr(blocks, "_BLOCK_BYTES", block)
    lines = [row(f"M{i + 1}") for i in range(60)]
    lines[10] = "only,three,fields"
    lines[20] = ""
    lines[40] = row("M41", count="many")
    path = write(tmp_path / "t.csv", lines)
    with pytest.raises(sim.InputError) as caught:
        load(path)
    assert (caught.value.line, caught.value.rule) == (12, "wrong number of fields")
    lines[10] = row("M11")
    with pytest.raises(sim.InputError) as caught:
        load(write(path, lines))
    assert (caught.value.line, caught.value.rule) == (42, "text in a number")
    w = load(path, on_bad_row="skip")
    assert w.n_stages == 58
    assert w.meta["report"]["bad_rows"] == {"text in a number": 1}


def test_bytes_that_are_no_utf8_are_a_bad_row(tmp_path):
    path = write(tmp_path / "t.csv", [row("M1"), row("R2_1", job="XX"), row("M3", count="YY")])
    path.write_bytes(path.read_bytes().replace(b"XX", b"\xff\xfe"))
    with pytest.raises(sim.InputError) as caught:
        load(path)
    assert (caught.value.line, caught.value.rule) == (3, "not UTF-8")
    path.write_bytes(path.read_bytes().replace(b"YY", b"\xff\xfe"))
    w = load(path, on_bad_row="skip")
    assert w.meta["report"]["bad_rows"] == {"not UTF-8": 1, "text in a number": 1}


@pytest.mark.parametrize(
    ("content", "rule", "line"),
    [
        (b"", "empty file", 1),
        (b"\n\n", "empty file", 1),
        (gzip.compress(b"", mtime=0), "empty file", 1),
        (HEADER.encode() + b"\n", "empty file", 1),
        ((HEADER + "\n" + row(end=0) + "\n").encode(), "no job left", 1),
        (b"a,b,c\n1,2,3\n", "wrong columns", 1),
        (HEADER.replace("end_time", "finish").encode() + b"\n", "wrong columns", 1),
        (HEADER.replace("plan_mem", "plan_cpu").encode() + b"\n", "wrong columns", 1),
        ((HEADER + ",plan_mem\n").encode(), "wrong columns", 1),
        (b"PK\x03\x04\0\0\0", "unreadable", None),
    ],
)
def test_a_file_of_another_kind_is_an_error(tmp_path, content, rule, line):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(sim.InputError) as caught:
        load(path)
    assert (caught.value.rule, caught.value.line) == (rule, line)
    assert caught.value.file == str(path)


def test_no_file_is_an_error(tmp_path):
    with pytest.raises(sim.InputError, match="does not exist") as caught:
        load(tmp_path / "none.csv")
    assert caught.value.file == str(tmp_path / "none.csv")
    with pytest.raises(sim.InputError, match="is a folder"):
        load(tmp_path)


@pytest.mark.parametrize("keep", [0.2, 0.6, 0.999])
def test_a_truncated_gzip_names_the_line_it_breaks_at(tmp_path, keep):
    rng = np.random.default_rng(0)
    lines = [
        row(f"M{i + 1}", start=int(s), end=int(s) + 5)
        for i, s in enumerate(rng.integers(1, 10**6, 3000))
    ]
    text = ("\n".join([HEADER, *lines]) + "\n").encode()
    packed = gzip.compress(text, mtime=0)
    path = tmp_path / "t.csv.gz"
    path.write_bytes(packed[: int(len(packed) * keep)])
    for on_bad_row in ("error", "skip"):
        with pytest.raises(sim.InputError) as caught:
            load(path, on_bad_row=on_bad_row)
        assert caught.value.rule == "truncated gzip"
        assert keep * 0.7 * 3000 < caught.value.line <= 3002
    broken = bytearray(packed)
    broken[len(packed) // 2] ^= 0xFF
    path.write_bytes(bytes(broken))
    with pytest.raises(sim.InputError, match="gzip stream"):
        load(path)


def test_gzip_files_may_have_several_members(tmp_path):
    whole = write(tmp_path / "t.csv", [row("M1"), row("R2_1")])
    head, tail = whole.read_bytes()[:60], whole.read_bytes()[60:]
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(head, mtime=0) + gzip.compress(tail))
    assert load(path).digest == load(whole).digest


@pytest.mark.parametrize(
    "options",
    [
        {"on_bad_row": "ignore"},
        {"status": "done"},
        {"default_cpu": -1.0},
        {"default_mem": "x"},
        {"default_mem": float("nan")},
    ],
)
def test_options_out_of_range(tmp_path, options):
    with pytest.raises(sim.InputError, match=next(iter(options))) as caught:
        load(write(tmp_path / "t.csv", [row()]), **options)
    assert caught.value.file is None


NAMES = st.sampled_from(
    [
        "M1",
        "M2",
        "R2_1",
        "R3_2",
        "J4_1_3",
        "R5_4_9",
        "J6_5_5",
        "M9_Stg3",
        "R7_7",
        "J8_1_2_",
        "task_x",
    ]
)
TIMES = st.sampled_from(["0", "5", "6", "7", "100", "12.5", ""])
ROWS = st.lists(
    st.tuples(
        NAMES,
        st.sampled_from(["1", "2.0", "17", "", "nan", "0"]),
        st.sampled_from(["j_1", "j_2", "j_3"]),
        st.sampled_from(["Terminated", "Failed", ""]),
        TIMES,
        TIMES,
        st.sampled_from(["100.0", "50", "", "nan"]),
        st.sampled_from(["0.3", "", "1.25"]),
        st.sampled_from(["1", "3.25", "", "0", "-1", "inf"]),
    ),
    min_size=1,
    max_size=25,
)


@given(ROWS, st.booleans(), st.booleans(), st.sampled_from([100, 1 << 20]))
@settings(
    max_examples=examples(300),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_random_files_agree_with_the_naive_reader(
    tmp_path, monkeypatch, rows, header, only_terminated, block
):
    monkeypatch.setattr(blocks, "_BLOCK_BYTES", block)
    path = tmp_path / "t.csv"
    if header:
        write(path, [",".join(r) for r in rows])
    else:
        write(path, [",".join([*r[:3], "1", *r[3:8]]) for r in rows], header=None)
    status = "terminated" if only_terminated else "all"
    try:
        expected = naive.load(path, only_terminated)
    except ValueError:  # min() of no stage
        with pytest.raises(sim.InputError, match="no job is left"):
            load(path, status=status)
        return
    w = load(path, status=status)
    assert columns(w) == naive.flat(expected)
    report, counts = w.meta["report"], expected["counts"]
    assert w.meta["offset_s"] == expected["offset_s"]
    rows_dropped = sum(n for rule, n in report["dropped"].items() if not rule.startswith("job of"))
    assert rows_dropped == counts["dropped"]
    assert report["rows"] == len(rows) == w.n_stages + rows_dropped


@pytest.mark.parametrize(
    ("file", "rows", "jobs"),
    [("batch_task_50_jobs.csv.gz", 197, 50), ("batch_task_6600_jobs.csv.gz", 25_196, 6_600)],
)
def test_the_real_sample_agrees_with_the_naive_reader(shared_traces, file, rows, jobs):
    path = shared_traces / "alibaba2018" / file
    w = load(path)
    expected = naive.load(path)
    assert columns(w) == naive.flat(expected)
    assert w.meta["report"]["rows"] == rows
    assert w.n_jobs + w.meta["report"]["dropped"].get("job of which no row is left", 0) == jobs


def test_the_report_of_the_real_sample(shared_traces):
    path = shared_traces / "alibaba2018" / "batch_task_6600_jobs.csv.gz"
    w = load(path)
    frame = pd.read_csv(path)
    never_ended = (frame.end_time == 0) & (frame.start_time > 0)
    never_began = (frame.end_time == 0) & (frame.start_time == 0)
    assert (len(frame), int(never_ended.sum()), int(never_began.sum())) == (25_196, 23, 14)
    assert (frame.end_time < frame.start_time).sum() == 23
    ended = frame[frame.end_time > 0]
    duration_s = ended.mean_inst_dur.where(
        ended.mean_inst_dur >= 0, ended.end_time - ended.start_time
    )
    check_account(w, cpu_s=(ended.instance_num * duration_s * ended.plan_cpu / 100).sum())
    assert counts(w) == {
        "rows": 25_196,
        "jobs": 6_599,
        "stages": len(ended),
        "edges": 19_808,
        "dropped": {"censored: end is 0": 37, "job of which no row is left": 1},
        "filled": {"plan_cpu missing: 100": 23, "plan_mem missing: 0.3": 23},
        "edges_dropped": {"parent is not in the job": 13},
        "noticed": {
            "not Terminated": int((ended.status != "Terminated").sum()),
            "job naming a parent it does not have": 5,
        },
        "bad_rows": {},
    }
    assert int((frame.status != "Terminated").sum()) == 257
    assert int(ended.plan_cpu.isna().sum()) == 23
    assert w.n_tasks == int(ended.instance_num.sum())
    work = (ended.instance_num * ended.mean_inst_dur).sum()
    assert float(w.columns.job_work.sum()) == pytest.approx(float(work), rel=1e-12)
    assert (
        w.columns.job_submit[-1]
        == frame[frame.start_time > 0].groupby("job_name").start_time.min().max() - 85_660
    )
    done = load(path, status="terminated")
    assert done.n_stages == int((ended.status == "Terminated").sum()) == 24_939
    assert done.meta["report"]["dropped"]["not Terminated"] == 220
    assert load(path, on_bad_row="skip").digest == w.digest
