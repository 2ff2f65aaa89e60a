"""Table 1, a row at a time, on logs whose answers are plain to see."""

from __future__ import annotations

import numpy as np
import pytest

from policies.wing.lineage.dependencies import DAY_S, single_hop
from policies.wing.lineage.templates import (
    INPUT_MODES,
    Thresholds,
    classify,
    find_templates,
    inter_arrivals,
    recurring_templates,
)
from sim.base.errors import InputError
from tests.policies.wing.lineage.small import small_logs

MINUTE = 60.0


def recurring(days, span=28, thresholds=None, learn=None):
    """Say whether a template submitted on `days` recurs, in a log of `span` days."""
    submit = np.array([0.0, *days, span]) * DAY_S
    template = np.array([0, *[1] * len(days), 0], np.int32)
    order = np.argsort(submit, kind="stable")
    limits = thresholds or Thresholds()
    return bool(recurring_templates(submit[order], template[order], 2, limits, learn)[1])


@pytest.mark.parametrize(
    ("days", "span", "expected"),
    [
        ([1, 31, 61], 90, True),  # three months: a submission each month
        ([1, 2, 61], 90, False),  # none in the second
        ([1, 8, 15, 22], 28, True),  # four weeks: one each week
        ([1, 8, 15], 28, False),
        ([1, 31], 60, False),
        ([0.1, 0.2, 0.3], 0.5, True),  # less than a week: often enough is all there is
        ([0.1, 0.2], 0.5, False),
    ],
    ids=["monthly", "a month missed", "weekly", "a week missed", "twice", "short", "short, twice"],
)
def test_recurring(days, span, expected):
    assert recurring(days, span) is expected


def test_four_weeks_of_which_two_are_learnt_from():
    learn = (0.0, 14 * DAY_S)
    assert recurring([1, 8, 20], 28, learn=learn)
    assert not recurring([8, 9, 20], 28, learn=learn)
    assert not recurring([1, 8], 28, learn=learn)
    with pytest.raises(InputError, match="must end after"):
        recurring([1, 8], 28, learn=(5.0, 5.0))


def test_thresholds_of_recurring_are_parameters():
    assert recurring([1, 8], 14, Thresholds(min_submissions=2))
    assert recurring([1, 2, 3], 28, Thresholds(period_s=28 * DAY_S))


def test_variation_of_inter_arrivals():
    submit = np.array([0.0, 1.0, 10.0, 20.0, 25.0, 30.0, 31.0])
    template = np.array([0, 1, 0, 0, 1, 0, 2], np.int32)
    mean, cv = inter_arrivals(submit, template, 3)
    assert mean[:2].tolist() == [10, 24]
    assert cv[0] == 0
    assert np.isnan([cv[1], mean[2], cv[2]]).all()


def weeks(n_days=21, lag=lambda day: 5 * MINUTE, outcome=lambda day: "done", up_files=1):
    """Make a daily source (on the clock) and a sink that is submitted `lag` after its last file."""
    jobs = []
    for day in range(n_days):
        files = [f"{day}/{i}" for i in range(up_files)]
        begin = day * DAY_S
        source = {"name": "source", "submit": begin, "finish": begin + 600}
        jobs.extend(source | {"writes": [file]} for file in files)
        start = begin + 600 + lag(day)
        sink = {"name": "sink", "submit": start, "finish": start + 60, "reads": files}
        jobs.append(sink | {"outcome": outcome(day), "job_id": f"sink {day}"})
    return jobs


def character(jobs, **options):
    logs = small_logs(jobs)
    templates = find_templates(logs)
    edges = single_hop(logs).dependencies
    classes = classify(logs, templates, edges, Thresholds(**options))
    return logs, templates, edges, classes


def uneven(day):
    """Lags that vary far more than a clock would, at most 15 minutes."""
    return 900.0 - 449.0 * (day % 3)


def test_periodic_is_by_the_clock():
    _, templates, _, classes = character(weeks())
    assert classes.periodic[templates.name.index("source")]
    _, templates, _, classes = character(weeks(lag=lambda day: day % 4 * 5 * 3600.0))
    assert classes.recurring.all()
    assert classes.periodic.tolist() == [True, False]


def polling(lag, **options):
    """Return the mode of all sinks; `periodic_cv` is so small that only the source is periodic."""
    jobs = weeks(lag=lag, **options)
    _, templates, _, classes = character(jobs, periodic_cv=1e-6)
    sink = templates.job_template == templates.name.index("sink")
    modes = {INPUT_MODES[m] for m in classes.input_mode[sink]}
    assert set(classes.edge_polls) == ({True} if modes == {"poll"} else {False})
    assert classes.template_polls.any() == ("poll" in modes)
    return modes


def test_polling_follows_its_last_input_within_15_minutes():
    assert polling(uneven) == {"poll"}
    assert polling(lambda day: 3600.0 + uneven(day)) == {"blind"}


def test_a_template_that_failed_for_want_of_input_does_not_poll():
    assert polling(uneven, outcome=lambda day: "missing_input" if day == 9 else "done") == {"blind"}
    assert polling(uneven, outcome=lambda day: "failed" if day == 9 else "done") == {"poll"}


def test_a_periodic_template_does_not_poll():
    _, _, _, classes = character(weeks())
    assert not classes.job_polls.any()


def hard(jobs, **options):
    """Return whether dependencies of the sink on the source are hard."""
    _, _, _, classes = character(jobs, **options)
    assert classes.edge_recurring.all()
    assert len(set(classes.edge_hard.tolist())) == 1
    return bool(classes.edge_hard[0])


def test_hard_if_nearly_all_consume_one_output():
    jobs = weeks(n_days=42)
    assert hard(jobs)
    without = [dict(j) for j in jobs]
    for job in without:
        if job.get("job_id") in ("sink 20", "sink 30"):  # 40 of 42 are 95.2 %
            job["reads"] = []
    assert hard(without)
    for job in without:
        if job.get("job_id") == "sink 35":  # 39 of 42 are 92.9 %
            job["reads"] = []
    assert not hard(without)
    assert hard(without, hard_share=0.9)


def test_hard_if_all_consume_equally_many_outputs():
    jobs = weeks(up_files=3)
    assert hard(jobs)
    fewer = [dict(j) for j in jobs]
    for job in fewer:
        if job.get("job_id") == "sink 10":
            job["reads"] = job["reads"][:2]
    assert not hard(fewer)


def test_hard_if_all_consume_equally_many_but_where_the_log_begins():
    def windows(days, last=0):
        """Return daily sources, and sinks that read those of so many days, as far as logged."""
        day = 86_400.0
        jobs = [{"name": "source", "job_id": f"source {d}", "submit": d * day,
                 "finish": d * day + 60, "writes": [f"f{d}"]} for d in range(21)]  # fmt: skip
        for d in range(21):
            reads = [f"f{k}" for k in range(max(0, d - days + 1), d + 1 - (last if d == 20 else 0))]
            index = d * day + 3600
            jobs.append({"name": "sink", "submit": index, "finish": index + 60, "reads": reads})
        return jobs

    assert hard(windows(days=7))
    assert not hard(windows(days=7, last=1))
    assert not hard(windows(days=14))  # fewer in two weeks of three


def test_ad_hoc_dependencies_are_hard():
    jobs = [
        {"name": "a", "submit": 0, "finish": 1, "writes": ["f"]},
        {"name": "b", "submit": 2, "finish": 3, "reads": ["f"]},
    ]
    _, _, _, classes = character(jobs)
    assert classes.edge_hard.tolist() == [True]
    assert not classes.job_recurring.any()
    assert classes.input_mode.tolist() == [0, 0]
