"""Grouping of jobs into templates."""

from __future__ import annotations

import pytest

from policies.wing.lineage.templates import find_templates, normalize
from tests.policies.wing.lineage.small import small_logs

SCRIPT = "extract a b c d e f g h from clicks where day = {} output to sums"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Report-2020-01-05", "report-#"),
        ("report_20200105", "report_#"),
        ("x 2020.1.5 10:30", "x #"),
        ("job-3f2504e0-4f89-41d3-9a0c-0305e82c3301", "job-#"),
        ("etl_deadbeef12", "etl_#"),
        ("run20200105T0300", "run#"),
        ("load_part_2", "load_part_2"),
        ("decade facade", "decade facade"),
    ],
)
def test_what_varies_from_run_to_run_is_no_part_of_a_name(name, expected):
    assert normalize([name]) == [expected]


def templates(*jobs, **names):
    rows = [
        {"name": n, "signature": s, "submit": i, "finish": i, "writes": ["f"]}
        for i, (n, s) in enumerate(jobs)
    ]
    result = find_templates(small_logs(rows), **names)
    return result.job_template.tolist(), result.name


def test_names_must_be_equal_and_signatures_similar():
    jobs = [
        ("sum 2020-01-01", SCRIPT.format("2020-01-01")),
        ("sum 2020-01-02", SCRIPT.format("2020-01-02")),
        ("other 2020-01-02", SCRIPT.format("2020-01-02")),
        ("sum 2020-01-03", "select something else altogether"),
    ]
    assert templates(*jobs) == ([0, 0, 1, 2], ["sum #", "other #", "sum # (2)"])
    assert templates(*jobs, similarity=1.0)[0] == [0, 0, 1, 2]  # days are no difference
    assert templates(*jobs, similarity=1.0, varying=())[0] == [0, 1, 2, 3]
    assert templates(*jobs, similarity=0.0)[0] == [0, 0, 1, 0]


def test_opaque_signatures_are_similar_to_their_equals_only():
    assert templates(("t", "0badc0de11"), ("t", "0badc0de12"), ("t", "0badc0de11"))[0] == [0, 1, 0]
