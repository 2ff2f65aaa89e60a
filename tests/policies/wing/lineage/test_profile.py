"""The verb, the store and the page, from files to look-ups."""

from __future__ import annotations

import dataclasses
import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from policies.wing.lineage import advice
from policies.wing.lineage.options import Options
from policies.wing.lineage.page import page, text_lines, write_page
from policies.wing.lineage.profiling import profile
from policies.wing.lineage.store import TABLES, Store
from policies.wing.lineage.templates import medians, quantiles
from sim.base.errors import InputError
from sim.cli.main import main
from sim.describe.statistics import format_value
from tests.policies.wing.lineage.small import small_logs
from tests.policies.wing.lineage.test_advice import DAY_S, HOUR, chain


@pytest.fixture(scope="module")
def store():
    jobs = chain((1, 2, 3))
    for day in range(20):
        jobs.append(
            {"name": f"look{day}x", "submit": day * DAY_S + 9 * HOUR, "user": "ann",
             "finish": day * DAY_S + (10 + day) * HOUR, "reads": [f"{day}c"]}
        )  # fmt: skip
    downloads = [(day * DAY_S + 8 * HOUR, f"{day}b", day) for day in range(21)]
    return profile(small_logs(jobs, downloads), Options(omega_s=DAY_S))


@pytest.mark.parametrize("n_days", [15, 21, 28])
def test_what_was_always_read_has_a_share_of_one(n_days):
    """Whenever the log ends: a daily pair whose last reader was to come had 6 of 7."""
    jobs = []
    for day in range(n_days):
        load = {"name": "load", "submit": day * DAY_S, "writes": [f"{day}"]}
        use = {"name": "use", "submit": day * DAY_S + 2 * HOUR, "reads": [f"{day}"]}
        jobs += [job | {"finish": job["submit"] + HOUR} for job in (load, use)]
    result = profile(small_logs(jobs)).dependents("load")
    assert [(d["template"], d["share"], d["time_s"]) for d in result] == [("use", 1.0, 2 * HOUR)]


def test_look_up_by_template(store):
    result = store.template("b")
    assert (result["n_jobs"], result["recurring"], result["periodic"]) == (21, True, True)
    assert result["interarrival_s"] == DAY_S
    assert result["runtime_s_p50"] == HOUR
    assert result["fan_in_p50"] == result["fan_out_p50"] == 1
    assert result["local_value_p50"] == 10
    runs = store.jobs_of("b")
    assert runs["local_value"].to_pylist() == list(range(21))
    values = runs["aggregate_value"].to_numpy()
    assert result["aggregate_value_p50"] == np.median(values[~np.isnan(values)])


def test_look_up_by_job_and_user(store):
    job = store.job("1")
    assert (job["submit_s"], job["fan_out"], job["input_mode"]) == (2 * HOUR, 1, "blind")
    user = store.user("ann")
    assert user["n_jobs"] == 20
    assert user["runtime_s_p50"] == 10.5 * HOUR


def test_recurring_dependencies_both_ways(store):
    dependents = store.dependents("a")
    assert [(d["template"], d["n"], d["hard"]) for d in dependents] == [("b", 21, 1.0)]
    assert (dependents[0]["share"], dependents[0]["time_s"]) == (1.0, 2 * HOUR)
    assert [d["template"] for d in store.inputs("c")] == ["b"]
    assert np.isnan(store.jobs_of("a")["n_downstream"].to_numpy()[-1])  # not seen to its end
    assert set(store.jobs_of("a")["n_downstream"].to_numpy()[:-1]) == {3}  # b, c, and who looks
    assert store.dependents("c") == []  # only ad hoc jobs read it


def test_unknown_names_are_hinted_at(store):
    with pytest.raises(InputError, match="has no template 'aa'; did you mean 'a'"):
        store.template("aa")
    with pytest.raises(InputError, match="no job 'x'"):
        store.job("x")


def test_what_is_written_is_read_again(store, tmp_path):
    paths = store.write(tmp_path / "p")
    again = Store.read(tmp_path / "p")
    assert {p.stem for p in paths} == {*TABLES, "measures", "report"}
    for name in TABLES:
        assert again.tables[name].schema == store.tables[name].schema
        assert again.tables[name].to_pandas().equals(store.tables[name].to_pandas()), name
    assert again.report == store.report
    for mine, yours in zip(store.measures, again.measures, strict=True):
        assert mine == yours or (mine.key == yours.key and np.isnan(yours.value))
    first = {p.name: p.read_bytes() for p in paths}
    store.write(tmp_path / "p")
    assert {p.name: p.read_bytes() for p in paths} == first
    (tmp_path / "p" / "jobs.parquet").unlink()
    with pytest.raises(InputError, match="not a table of a profile"):
        Store.read(tmp_path / "p")


def test_the_page_needs_nothing_else(store, tmp_path):
    page = write_page(store, tmp_path).read_text()
    body = re.sub(r"(?s)<script>.*?</script>", "", page)
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", body)
    assert "default-src 'none'" in page
    for words in ("Priority inversions", "Submitted blind", "Costliest failures"):
        assert words in body
    figures = json.loads(re.search(r'(?s)id="figures">(.*?)</script>', page).group(1))
    assert len(figures) == body.count('class="plot"')
    assert len(figures) >= 4


def test_templates_are_named_in_the_files_of_advice(store, tmp_path):
    store.write(tmp_path)
    for name, columns in advice.TEMPLATE_COLUMNS.items():
        table = pq.read_table(tmp_path / f"{name}.parquet")
        assert table.num_rows
        for column in columns:
            spelled = [store.tables["templates"]["template"][i].as_py() for i in table[column]
                       .to_pylist()]  # fmt: skip
            assert table[f"{column}_name"].to_pylist() == spelled
    inverted = pq.read_table(tmp_path / "inversions.parquet")
    assert inverted["template_name"].to_pylist() == ["a", "b"]


def test_a_terminal_shows_the_first_three_of_each_list_by_name(store):
    lines = list(text_lines(store))
    index = lines.index("  Priority inversions")
    assert [" ".join(line.split()) for line in lines[index + 1 : index + 5]] == [
        "template priority read by reader's priority raise to",
        "a 1.00 b 2.00 3.00", "b 2.00 c 3.00 3.00", "",
    ]  # fmt: skip
    caption = "  Largest components (the first 3 of 21; all in components.parquet)"
    assert lines[lines.index(caption) + 5] == ""
    alone = {"name": "alone", "submit": 0, "finish": 1}
    assert caption in text_lines(profile(small_logs([alone, *chain((1, 1, 1))])))  # but it


LACKING = {
    ("priorities", "templates_inverted"): "all jobs have the same priority",
    ("priorities", "jobs_on_lower"): "all jobs have the same priority",
    ("coordination", "missed"): "no job in the log has the outcome missing_input",
    ("organisations", "organisations"): "all jobs belong to the same organisation",
    ("organisations", "template_dependencies"): "all jobs belong to the same organisation",
    ("value", "hidden"): "the log has no downloads; choose another value with --value",
}


def test_what_a_log_lacks_is_not_measured_and_the_reason_is_shown(tmp_path):
    result = profile(small_logs(chain((1, 1, 1))))
    shown = "\n".join(text_lines(result))
    page = write_page(result, tmp_path).read_text()
    result.write(tmp_path)
    for source in (result, Store.read(tmp_path)):
        for (section, key), why in LACKING.items():
            measure = next(m for m in source.measures if (m.section, m.key) == (section, key))
            assert np.isnan(measure.value)
            assert measure.why == why
    for why in LACKING.values():
        assert why in shown
        assert why in page
    assert re.search(r"ones of higher priority in their queue +– +21.00 %  all jobs have", shown)
    assert result.value("recurring", "dependencies") == 1


def test_a_log_in_which_nothing_recurs_says_so():
    jobs = [
        {"name": "once", "submit": 0, "finish": 1, "writes": ["f"]},
        {"name": "then", "submit": 2, "finish": 3},
    ]
    result = profile(small_logs(jobs))
    whys = {(m.section, m.key): m.why for m in result.measures}
    assert whys["recurring", "hard"] == "no job read a file that another job wrote"
    assert whys["coordination", "blind"] == whys["shifting", "1h"] == "no template recurs"
    assert whys["prediction", "recall"] == "no dependency recurs in the two weeks compared"
    assert all(m.why for m in result.measures if np.isnan(m.value))
    assert format_value(result.value("overview", "observed_s"), "span") == "3.00 s"
    assert page(result).count('class="plot"') == 1  # of components; the others have no point


@pytest.mark.parametrize(
    ("value", "worth"),
    [("jobs", [3.0, 2.0, 1.0]), ("compute", [6 * HOUR, 4 * HOUR, 2 * HOUR]),
     ("dollars", [7.0, 5.0, 5.0])],
)  # fmt: skip
def test_a_log_without_downloads_is_ranked_by_another_value(value, worth):
    jobs = [j | {"requested": 2.0} for j in chain((1, 1, 1))]
    logs = small_logs(jobs)
    dollars = pa.array([[2.0, None, 5.0][i % 3] for i in range(len(jobs))])
    logs = dataclasses.replace(logs, jobs=logs.jobs.append_column("dollars", pa.chunked_array([
        dollars.fill_null(np.nan)])))  # fmt: skip
    result = profile(logs, Options(omega_s=DAY_S, value=value))
    table = result.tables["costliest"]
    assert table["template_name"].to_pylist() == ["a", "b", "c"]
    assert table["aggregate_value"].to_pylist() == worth
    assert not next(m for m in result.measures if m.key == "hidden").why
    shown = "\n".join(text_lines(result))
    label = "aggregate value not visible in a job's local value"
    assert re.search(label + r" +[0-9.]+ %\n", shown)  # no number of the paper
    if value == "dollars":
        assert result.report == {"jobs: without dollars, worth 0": 21}


def test_values_that_are_none():
    with pytest.raises(InputError, match=r"unknown value 'dollar'.*priority"):
        profile(small_logs(chain((1, 1, 1))), Options(value="dollar"))
    with pytest.raises(InputError, match=r"0 or more, not -1 .priority of job '2'"):
        profile(small_logs(chain((0, 1, -1))), Options(value="priority"))


@pytest.fixture
def files(tmp_path):
    logs = small_logs(chain((1, 2, 3)), [(9 * HOUR, "0c", 3)])
    jobs = logs.jobs.drop_columns(["start_s", "compute_s"])
    jobs = jobs.append_column("dollars", pa.array([None, *range(1, 63)], pa.int32()))
    ids = pa.array([None if j < 0 else jobs["job_id"][int(j)].as_py() for j in logs.job])
    operations = {
        "time_s": logs.time_s,
        "job": ids,
        "operation": [("read", "write", "download")[o] for o in logs.operation],
        "file": logs.files.take(pa.array(logs.file)),
        "n": logs.n,
    }
    pq.write_table(pa.table(operations), tmp_path / "o.parquet")
    pq.write_table(jobs, tmp_path / "j.parquet")
    return [str(tmp_path / "o.parquet"), "--jobs", str(tmp_path / "j.parquet")]


def test_the_verb_prints_and_writes(files, tmp_path, capsys):
    out = tmp_path / "profile"
    argv = ["--omega-days", "1", "--learn-days", "14", "--set", "hard_share=0.9"]
    assert main(["lineage", *files, "--out", str(out), *argv]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"dependencies +42\n", printed)
    assert re.search(r"recurring jobs, of all jobs +100.00 % +68.00 %", printed)
    assert f"written to {out / 'lineage.html'}" in printed
    assert Store.read(out).value("overview", "omega_s") == DAY_S


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_the_verb_takes_a_column_of_the_log_for_the_value(files, tmp_path, form, capsys):
    if form == "csv":
        csv.write_csv(pq.read_table(files[2]), tmp_path / "j.csv")
        files = [files[0], "--jobs", str(tmp_path / "j.csv")]
    out = str(tmp_path / "p")
    assert main(["lineage", *files, "--out", out, "--value", "dollars"]) == 0
    assert "jobs: without dollars, worth 0: 1\n" in capsys.readouterr().out
    result = Store.read(out)
    assert result.value_source == "dollars"
    assert result.tables["jobs"]["local_value"].to_pylist() == list(range(63))
    assert main(["lineage", *files, "--out", out, "--value", "dollar"]) == 2
    assert "there is no column 'dollar' (requested); did you mean 'dollars'" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--set", "hard_shar=1"], "did you mean 'hard_share'"),
        (["--set", "hard_share=yes"], "takes a number, not 'yes'"),
        (["--omega-days", "0"], "omega_s must be above 0"),
        (["--set", "similarity=2"], "between 0 and 1, not 2"),
        (["--learn-days", "0"], "must end after"),
    ],
)
def test_wrong_options_are_one_line(files, tmp_path, argv, message, capsys):
    assert main(["lineage", *files, "--out", str(tmp_path / "p"), *argv]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert not (tmp_path / "p").exists()


def test_wrong_files_are_one_line(files, tmp_path, capsys):
    out = ["--out", str(tmp_path / "p")]
    assert main(["lineage", files[0], *out]) == 2
    assert "--jobs JOBS is needed" in capsys.readouterr().err
    assert main(["lineage", str(tmp_path / "absent"), *files[1:], *out]) == 2
    assert "absent" in capsys.readouterr().err
    (tmp_path / "e").write_text('{"eventType": "START"}\n')
    assert main(["lineage", str(tmp_path / "e"), *files[1:], *out]) == 2
    assert "leave --jobs out" in capsys.readouterr().err
    assert main(["lineage", str(tmp_path / "e"), *out]) == 2
    assert "none of 1 records is an OpenLineage event of a run" in capsys.readouterr().err
    assert main(["lineage", str(tmp_path / "e"), *out, "--strict"]) == 2
    assert "e:1: " in capsys.readouterr().err


def test_quantiles_by_group_equal_numpys():
    rng = np.random.default_rng(0)
    values = np.append(rng.integers(0, 9, 200).astype(float), [np.nan, 5.0, np.inf, np.inf])
    group = np.append(rng.integers(0, 7, 200), [8, 8, 9, 9]).astype(np.int32)
    got = quantiles(values, group, 10)
    for g in range(7):
        want = np.quantile(values[group == g], [0.1, 0.25, 0.5, 0.75, 0.9])
        assert np.allclose(got[g], want)
    assert np.isnan(got[7]).all()
    assert got[8].tolist() == [5] * 5
    assert medians(values, group, 10)[9] == np.inf
