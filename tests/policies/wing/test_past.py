"""Predictions for jobs from similar past jobs."""

from __future__ import annotations

import numpy as np
import pytest

import sim
from policies.wing.past import Past
from sim.engine.plan import World
from tests.policies.wing.worlds import ONE, recurring


def test_ad_hoc_jobs_have_their_users_median_and_new_users_that_of_all():
    past = [("", "ann", 1, v, 2.0) for v in (2.0, 4.0, 60.0)]
    past += [("", "bob", 1, 2.0, 1.0), ("p", "ann", 1, 900.0, 1.0)]
    workload = recurring(
        past, who=[("", "eve"), ("", "ann"), ("", "bob"), ("new", "ann")],
        value=[0] * 4, compute_s=[1] * 4, agg_value=[0] * 4, agg_compute_s=[1] * 4,
    )  # fmt: skip
    world = World(workload.columns, ONE, 0, {})
    known = Past(world)
    quotient = known.column("agg_value") / known.column("agg_compute_s")
    # the users' quotients: ann 1, 2, 30; bob 2; all of these 1, 2, 2, 30; not those of p
    assert known.by_ad_hoc(quotient)[1:].tolist() == [2.0, 2.0, 2.0, 2.0]
    assert known.expected(known.column("agg_value"))[1:].tolist() == [3.0, 4.0, 2.0, 4.0]
    mean = Past(world, "mean")
    assert mean.expected(mean.column("agg_value"))[1:].tolist() == [17.0, 22.0, 2.0, 22.0]
    geometric = Past(world, "geometric mean")
    assert geometric.by_ad_hoc(np.where(quotient == 1, 0.0, quotient))[1:] == pytest.approx(
        [120 ** (1 / 3), 60**0.5, 2.0, 60**0.5]  # of what is above 0
    )


def test_jobs_without_values_do_not_count():
    past = [("p", "u", 1, np.nan, np.nan), ("p", "u", 1, 4.0, 2.0)]
    workload = recurring(
        past, who=[("p", "u")], value=[0], compute_s=[1], agg_value=[0], agg_compute_s=[1]
    )
    known = Past(World(workload.columns, ONE, 0, {}))
    assert known.expected(known.column("agg_value"))[1] == 4.0


def test_durations_are_the_median_of_the_template_or_of_the_users_ad_hoc_jobs():
    history = {
        "submit_s": [-9.0] * 5, "finish_s": [-8.0] * 5, "n_tasks": [1] * 5,
        "mean_task_s": [1.0, 3.0, 7.0, 20.0, 40.0],
        "template": ["t", "t", "t", "", ""], "user": ["u", "u", "u", "u", "v"],
    }  # fmt: skip
    stages = [{"durations_s": [1.0]}, {"durations_s": [1.0]}]
    rows = [("t", "v"), ("", "v"), ("", "w")]
    jobs = [{"submit_s": 0.0, "template": t, "user": u, "stages": stages} for t, u in rows]
    workload = sim.Workload.from_jobs(jobs).with_history(history)
    past = Past(World(workload.columns, sim.Cluster.slots(1), 0, {}))
    assert past.expect(np.arange(6), 0.0).tolist() == [3, 3, 40, 40, 30, 30]
