"""Forms of the text that sacct writes, and dependencies between its jobs."""

from __future__ import annotations

import pytest

import policies
import sim
from sim.base.errors import InputError
from sim.check.account import check_account
from tests.sim.traces.test_sacct import DAY, HEAD, load, record
from tests.sim.traces.test_slurm_jobcomp import line

JOBCOMP = line(17)


def report(workload):
    return workload.meta["report"]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "^", "~", "!", "#", "%"])
def test_delimiters(tmp_path, delimiter):
    rows = [record("1"), record("2")]
    w = load(tmp_path, *[row.replace("|", delimiter) for row in rows],
             head=HEAD.replace("|", delimiter))  # fmt: skip
    assert w.jobs.equals(load(tmp_path, *rows).jobs)


def test_commas_in_resources_are_read_where_that_is_certain(tmp_path):
    head = (HEAD + "|AllocTRES").replace("|", ",")
    row = record(AllocCPUS=8).replace("|", ",") + ",billing=8,cpu=8,gres/gpu=2,mem=8G"
    w = load(tmp_path, row, head=head, tasks="nodes")
    assert w.stages["demand_gpu"].to_pylist() == [2.0]
    quoted = record(AllocCPUS=8).replace("|", ",") + ',"cpu=8,gres/gpu=2,mem=8G",n1'
    assert load(tmp_path, quoted, head=head + ",NodeList", tasks="nodes").n_tasks == 1
    with pytest.raises(InputError, match=r"the delimiter is ',', which values may hold; run sacct"):
        load(tmp_path, row + ",n[1,3]", head=head + ",NodeList")


def test_an_unknown_delimiter_is_named(tmp_path):
    with pytest.raises(InputError, match="is none of") as caught:
        load(tmp_path, record().replace("|", "@@"), head=HEAD.replace("|", "@@"))
    assert "--parsable2" in str(caught.value)


@pytest.mark.parametrize("on_bad_row", ["error", "skip"])
@pytest.mark.parametrize("name", ["sacct", "slurm_jobcomp"])
def test_a_file_of_two_formats(tmp_path, on_bad_row, name):
    lines = [HEAD, record("1"), JOBCOMP, record("2")]
    if name == "slurm_jobcomp":
        lines = [JOBCOMP, line(18), record("1"), line(19)]
    (tmp_path / "log").write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match="two formats") as caught:
        sim.read_trace(name, tmp_path / "log", on_bad_row=on_bad_row)
    assert (caught.value.line, caught.value.rule) == (3, "two formats")


def test_names_may_hold_the_delimiter_beside_other_texts(tmp_path):
    head = HEAD.replace("JobName", "Comment") + "|JobName"
    rows = [record("1", JobName="a|b") + "|n", record("2") + "|a|b|c", record("3") + "|plain"]
    w = load(tmp_path, *rows, head=head)
    assert w.jobs["template"].to_pylist() == ["n", "a|b|c", "plain"]


def test_damaged_rows_are_counted_with_their_work(tmp_path):
    rows = [
        record("1"),
        record("2", Timelimit="soon", AllocCPUS=4),
        record("3", AllocCPUS="many"),
        record("4.batch", Timelimit="soon"),
        "5|x|ann",
    ]
    w = load(tmp_path, *rows, on_bad_row="skip")
    account = check_account(w, cpu_s=300.0, jobs=4)
    assert account["cpu_s"]["left_out_by"] == {
        "text of another form": 240.0, "text in a number": 0.0, "wrong number of fields": 0.0,
    }  # fmt: skip
    assert account["cpu_s"]["unknown"] == 2
    assert "line 3: Timelimit is 'soon'" in report(w)["bad_examples"]["text of another form"]


def chain(path, *texts, **options):
    """Read jobs 1, 2, ..., an hour each, one after the other, with these dependencies."""
    rows = [
        record(
            str(i), Submit=f"{DAY}08:00:0{i}", Start=f"{DAY}{8 + i:02}:00:00",
            End=f"{DAY}{9 + i:02}:00:00",
        ) + f"|{text}|{DAY}{8 + i:02}:00:00"
        for i, text in enumerate(texts, 1)
    ]  # fmt: skip
    return load(path, *rows, head=HEAD + "|Dependency|Eligible", **options)


def edges(workload):
    return [(e["upstream"] + 1, e["downstream"] + 1) for e in workload.job_edges.to_pylist()]


def test_ends_of_other_jobs_are_edges(tmp_path):
    w = chain(tmp_path, "", "afterok:1(unfulfilled)", "afterok:1:2,afterany:2", "(null)")
    names = w.jobs["job_id"].to_pylist()
    edges_of = {(names[e["upstream"]], names[e["downstream"]]) for e in w.job_edges.to_pylist()}
    assert edges_of == {("1", "2"), ("1", "3"), ("2", "3")}
    assert w.job_edges["kind"].to_pylist() == ["afterok"] * 3  # the stricter of two
    # 2 and 3 wait for jobs, which is simulated; 1 and 4 for what the log does not tell
    assert dict(zip(names, w.jobs["submit_s"].to_pylist(), strict=True)) == {
        "2": 0.0, "3": 1.0, "1": 3598.0, "4": 14_398.0,
    }  # fmt: skip
    assert check_account(w)["edges"]["log"] == 3
    early = chain(tmp_path, "", "afterok:1", "afterok:2", release="submit")
    assert early.jobs["submit_s"].to_pylist() == [0.0, 1.0, 2.0]
    result = sim.simulate(early, sim.Cluster.slots(5), policies.build("easy"))
    assert result.jobs["start_s"].to_pylist() == [0.0, 60.0 * 60, 2 * 60.0 * 60]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("singleton", "of kind singleton"),
        ("after:1+5", "of kind after"),
        ("afternotok:1", "of kind afternotok"),
        ("expand:1", "of kind expand"),
        ("afterok:1?afterok:2", "on any of several jobs"),
        ("afterok:99", "on a job that is not in the workload"),
        ("afterok:4", "on a job that was submitted later"),
        ("afterok:3", "on a job that is not in the workload"),  # itself
        ("nonsense:x", "of kind nonsense"),
    ],
)
def test_dependencies_that_are_no_edges_are_counted(tmp_path, text, reason):
    w = chain(tmp_path, "", "", text, "")
    assert edges(w) == []
    account = check_account(w)["edges"]
    assert account["left_out_by"] == {reason: text.count("after") if "?" in text else 1}
    assert w.jobs["input_mode"].to_pylist() == ["none"] * 4


def test_dependencies_make_no_cycle(tmp_path):
    rows = [record("1") + "|afterok:2", record("2") + "|afterok:1"]
    w = load(tmp_path, *rows, head=HEAD + "|Dependency")
    assert edges(w) == [(1, 2)]
    assert check_account(w)["edges"]["left_out_by"] == {"on a job that was submitted later": 1}


def test_dependencies_on_arrays_and_reused_ids(tmp_path):
    early, late = ({"Submit": f"{DAY}{hour}:00:00", "Start": f"{DAY}{hour}:00:00",
                    "End": f"{DAY}{hour}:30:00"} for hour in ("08", "09"))  # fmt: skip
    end = {"Submit": DAY + "10:00:00", "Start": DAY + "10:00:00", "End": DAY + "10:30:00"}
    rows = [
        record("1_1", **late) + "|", record("1_2", **late) + "|", record("2", **early) + "|",
        record("2", **late, User="bob") + "|", record("9", **end) + "|afterok:1:2,afterok:1_2",
    ]  # fmt: skip
    w = load(tmp_path, *rows, head=HEAD + "|Dependency")
    names = w.jobs["job_id"].to_pylist()
    pairs = [(names[e["upstream"]], names[e["downstream"]]) for e in w.job_edges.to_pylist()]
    assert pairs == [("1", "9"), ("2@2026-03-01T09:00:00", "9")]
    assert check_account(w)["edges"]["left_out_by"] == {
        "on an element of an array that is one job": 1
    }
    apart = load(tmp_path, *rows, head=HEAD + "|Dependency", arrays="jobs")
    assert apart.job_edges.num_rows == 3
    cancelled = record("8", Start="None", State="CANCELLED by 7") + "|afterok:1_1"
    lost = load(tmp_path, rows[0], cancelled, head=HEAD + "|Dependency")
    assert check_account(lost)["edges"]["left_out_by"] == {"of a job that is left out": 1}


def test_the_command_of_submission_has_the_dependency(tmp_path):
    head = HEAD + "|SubmitLine"
    options = [
        "sbatch -N1 a.sh",
        "sbatch -d afterok:1 b.sh | tee",
        "sbatch --dependency=afterok:2 c",
    ]
    rows = [record(str(i)) + f"|{text}" for i, text in enumerate(options, 1)]
    rows += [record("4") + "|sbatch d.sh -d afterwards", record("5") + "|"]
    w = load(tmp_path, *rows, head=head)
    assert edges(w) == [(1, 2), (2, 3)]
    assert check_account(w)["edges"]["left_out_by"] == {"of kind afterwards": 1}


def test_raw_ids_serve_where_there_are_no_others(tmp_path):
    head = "JobIDRaw;Submit;Start;End;State;AllocCPUS"
    row = "{};2026-03-01T09:30:00;2026-03-01T09:30:10;2026-03-01T09:31:10;COMPLETED;8"
    rows = [row.format(name) for name in ("17", "17.batch", "18")]
    w = load(tmp_path, *rows, head=head)
    assert w.jobs["job_id"].to_pylist() == ["17", "18"]
    both = load(tmp_path, *(f"{text};21_{text[:2]}" for text in rows[::2]), head=f"{head};JobID")
    assert both.jobs["job_id"].to_pylist() == ["21_17", "21_18"]
