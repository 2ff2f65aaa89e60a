"""Observations 1 to 6 on logs small enough to count by hand."""

from __future__ import annotations

import numpy as np
import pytest

from policies.wing.lineage import advice
from policies.wing.lineage.dependencies import DAY_S, edges_from_pairs
from policies.wing.lineage.options import Options
from policies.wing.lineage.profiling import profile
from tests.policies.wing.lineage.small import small_logs

HOUR = 3600.0


def chain(priorities, queues=("q", "q", "q")):
    """Make a daily chain a → b → c; each starts an hour after the one before has ended."""
    jobs = []
    for day in range(21):
        for place, (name, priority) in enumerate(zip("abc", priorities, strict=True)):
            begin = day * DAY_S + 2 * HOUR * place
            jobs.append(
                {
                    "name": name,
                    "submit": begin,
                    "finish": begin + HOUR,
                    "reads": [f"{day}{'abc'[place - 1]}"] if place else [],
                    "writes": [f"{day}{name}"],
                    "priority": float(priority),
                    "queue": queues[place],
                    "user": "u",
                }
            )
    return jobs


def run(jobs, downloads=None):
    return profile(small_logs(jobs, downloads), Options(omega_s=DAY_S))


def inverted(priorities, **options):
    table = run(chain(priorities, **options)).tables["inversions"]
    return [
        (r["template"], r["downstream"], r["priority"], r["mended_priority"])
        for r in table.to_pylist()
    ]


@pytest.mark.parametrize(
    ("priorities", "expected"),
    [
        ((3, 2, 1), []),
        ((1, 1, 1), []),
        ((1, 2, 3), [(0, 1, 1, 3), (1, 2, 2, 3)]),  # a must reach c's priority, b too
        ((2, 1, 5), [(1, 2, 1, 5)]),
    ],
    ids=["falling", "equal", "rising", "last"],
)
def test_priority_inversions_and_what_mends_them(priorities, expected):
    assert inverted(priorities) == expected


def test_priorities_of_different_queues_do_not_compare():
    assert inverted((1, 2, 3), queues=("q", "q", "r")) == [(0, 1, 1, 2)]


def test_blind_templates_and_their_margins():
    table = run(chain((1, 1, 1))).tables["blind"]
    assert table["template"].to_pylist() == [1, 2]
    assert table["margin_s"].to_pylist() == [HOUR, HOUR]
    assert table["blind"].to_pylist() == [1, 1]


def test_failures_for_want_of_an_input_are_counted():
    jobs = chain((1, 1, 1))
    for row in (4, 10):  # the second and the fourth b
        jobs[row]["outcome"] = "missing_input"
    result = run(jobs)
    assert result.value("coordination", "missed") == 2
    assert result.tables["blind"]["missed"].to_pylist() == [2, 0]


def test_dependencies_across_organisations():
    result = run(chain((1, 1, 1), queues=("x/1", "x/2", "y/1")))
    table = result.tables["template_dependencies"]
    assert table["cross_organisation"].to_pylist() == [False, True]
    assert table["same_queue"].to_pylist() == [False, False]
    assert result.value("organisations", "dependencies") == 0.5
    assert result.value("organisations", "jobs") == pytest.approx(2 / 3)
    assert result.value("organisations", "organisations") == 1


def test_components():
    edges = edges_from_pairs(8, [0, 0, 0, 4, 5], [1, 2, 3, 6, 6])
    component, table = advice.components(edges)
    assert table["n_jobs"].to_pylist() == [4, 3, 1]
    assert component.tolist() == [0, 0, 0, 0, 1, 1, 1, 2]
    assert table["bottom_heaviness"].to_pylist()[:2] == [3, 0.5]


def test_what_could_be_shifted():
    downloads = [(day * DAY_S + 5 * HOUR + 4 * HOUR, f"{day}c", 1) for day in range(21)]
    result = run(chain((1, 1, 1)), downloads)
    # a and b are read an hour after their end: not more than one; c is taken after 4 h
    assert result.value("shifting", "1h") == 0  # all run for an hour, which is not less
    assert result.value("shifting", "3h") == pytest.approx(1 / 3)
    assert result.value("shifting", "6h") == 0
    assert result.value("shifting", "unused") == 0


def test_costliest_failures_and_value():
    downloads = [(day * DAY_S + 9 * HOUR, f"{day}c", 7) for day in range(21)]
    result = run(chain((1, 1, 1)), downloads)
    table = result.tables["costliest"]
    assert table["template"].to_pylist() == [0, 1, 2]
    assert table["aggregate_value"].to_pylist() == [7, 7, 7]
    assert table["of_others"].to_pylist() == [7, 7, 0]
    assert result.value("value", "hidden") == pytest.approx(2 / 3)
    assert result.value("value", "error") == 0


def test_values_of_a_large_log_are_enclosed():
    downloads = [(day * DAY_S + 9 * HOUR, f"{day}c", 7) for day in range(21)]
    logs = small_logs(chain((1, 1, 1)), downloads)
    exact = profile(logs, Options(omega_s=DAY_S)).tables["jobs"]
    within = profile(logs, Options(omega_s=DAY_S, exact_jobs=0, jobs_per_cut=7)).tables["jobs"]
    middle, off = (within[c].to_numpy() for c in ("aggregate_value", "aggregate_value_error"))
    expected = exact["aggregate_value"].to_numpy()
    known = ~np.isnan(expected)
    assert (np.isnan(middle) == ~known).all()
    assert (np.abs(middle - expected)[known] <= off[known]).all()
    assert off[known].max() > 0
