"""The transform by a table of throughputs: speeds, speed-ups, kinds that are out, and faults."""

from __future__ import annotations

import pytest

import sim
from sim import transforms
from sim.base.errors import InputError

ROWS = """\
job_type,kind,width,speed,source
net,fast,1,20,invented
net,fast,4,60,invented
net,slow,1,5,invented
net,slow,4,12,invented
big,fast,1,8,invented
big,slow,1,0,invented
"""


def job(template="net", n_tasks=1, **more):
    stage = {"durations_s": [100.0] * n_tasks, "demand": {"gpu": more.pop("gpu", 1)}}
    stage |= {"runs_on": more.pop("runs_on", "")}
    return {"submit_s": 0.0, "template": template, "stages": [stage], **more}


def changed(tmp_path, jobs, rows=ROWS, **options):
    (tmp_path / "t.csv").write_text(rows)
    options = {"path": str(tmp_path / "t.csv"), "reference": "fast"} | options
    return transforms.apply(sim.Workload.from_jobs(jobs), "throughput", **options).columns


def test_speeds_are_throughputs_over_those_on_the_reference_at_the_width_of_the_job(tmp_path):
    # the table has no width of 2: 20 + 40 / 3 and 5 + 7 / 3, and 8 is beyond its last
    jobs = [job(), job(n_tasks=4, min_tasks=4), job(n_tasks=2, min_tasks=2), job(n_tasks=3)]
    columns = changed(tmp_path, [*jobs, job(n_tasks=8, min_tasks=8)])
    assert columns.speed_classes == ("fast", "slow")
    middle = (5 + 7 / 3) / (20 + 40 / 3)
    assert columns.stage_speed[:, 0].tolist() == [1.0] * 5
    assert columns.stage_speed[:, 1].tolist() == pytest.approx([0.25, 0.2, middle, 0.25, 0.2])
    # durations are not touched
    assert columns.stage_max_s.tolist() == [100.0] * 5


def test_widths_may_count_by_a_resource(tmp_path):
    two = job(n_tasks=2, min_tasks=2, gpu=2)
    assert changed(tmp_path, [two], resource="gpu").stage_speed[0, 1] == pytest.approx(0.2)


def test_a_job_runs_on_the_kinds_on_which_it_has_a_throughput(tmp_path):
    columns = changed(tmp_path, [job("big"), job("big", runs_on="slow|other"), job()])
    texts = [columns.runs_on[k] for k in columns.stage_runs_on]
    assert texts == ["fast", "other", ""]
    with pytest.raises(InputError, match="row 0 is to run on slow, where its throughput is 0"):
        changed(tmp_path, [job("big", runs_on="slow")])


def test_an_elastic_job_takes_its_speed_ups_from_the_reference(tmp_path):
    elastic = job(n_tasks=6, width_min=2, min_tasks=2)
    columns = changed(tmp_path, [elastic, job()])
    assert columns.speedups[columns.job_speedup[0]] == f"2:{20 + 40 / 3:.12g} 4:60 6:60"
    assert columns.stage_speed[0, 1] == pytest.approx(0.2)  # at its greatest width
    falls = ROWS.replace("net,fast,4,60", "net,fast,4,10")
    with pytest.raises(InputError, match="never fall"):
        changed(tmp_path, [elastic], falls)


def test_jobs_of_other_types_may_stay_as_they_are(tmp_path):
    stage = {"durations_s": [1.0], "speed": {"slow": 0.5}}
    jobs = [{"submit_s": 0.0, "template": "own", "stages": [stage]}, job()]
    with pytest.raises(InputError, match=r"unknown job type in .*t.csv 'own'.*missing=keep"):
        changed(tmp_path, jobs)
    assert changed(tmp_path, jobs, missing="keep").stage_speed[:, 1].tolist() == [0.5, 0.25]


def test_types_may_be_another_column(tmp_path):
    jobs = [job("net", user="big"), job("net", user="net")]
    columns = changed(tmp_path, jobs, by="user", reference="fast")
    assert columns.stage_speed[1, 1] == 0.25
    assert columns.runs_on[columns.stage_runs_on[0]] == "fast"
    with pytest.raises(InputError, match="unknown column of jobs 'usr'; did you mean 'user'"):
        changed(tmp_path, jobs, by="usr")


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (ROWS.replace(",width", ",wide"), {}, "t.csv, line 1: no column 'width'"),
        (ROWS.replace("net,slow,1,5", "net,slow,1,-5"), {}, "t.csv, line 4: a row has a type"),
        (ROWS.replace("net,slow,1,5", "net,slow,0,5"), {}, "t.csv, line 4: a row has a type"),
        (ROWS.replace("net,slow,1,5", "net,slow,one,5"), {}, "t.csv, line 4: a row has a type"),
        (ROWS.replace("net,slow,1,5", "net,slow,4,5"), {}, "line 5: a second speed of 'net'"),
        (ROWS.replace("net,slow", "net,slower"), {}, "no speed of 'net' on 'slow'; add a row"),
        (ROWS[: ROWS.index("net")], {}, "no row below the header"),
        (ROWS, {"reference": "fats"}, "unknown kind of machines in .*'fats'; did you mean 'fast'"),
        (ROWS, {"reference": "slow"}, "'big' can't run on the reference 'slow'"),
        (ROWS, {"resource": "gpus"}, "unknown resource of the workload 'gpus'"),
        (ROWS, {"path": "/nowhere.csv"}, "/nowhere.csv: .*it must be a CSV file"),
    ],
)
def test_faults_are_named_with_file_and_line(tmp_path, rows, options, message):
    with pytest.raises(InputError, match=message):
        changed(tmp_path, [job(), job("big")], rows, **options)
