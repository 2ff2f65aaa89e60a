"""No bound is beaten in worlds of any kind: faster periods, failures, outages, lags, inputs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import policies
import sim
from sim.bounds import bound_arrays
from sim.bounds.optimum import optimum
from sim.bounds.pace import Pace
from sim.bounds.stream import mean_jct_bound
from sim.cluster.faults import Slowdowns
from tests.examples import examples
from tests.sim.engine.strategies import AnyPlan, clusters, failures, workloads

INF = float("inf")


def fast(*periods):
    return Slowdowns.from_columns(*zip(*periods, strict=True))


def bounds(cluster, *jobs):
    w = sim.Workload.from_jobs(list(jobs))
    return {k: v.tolist() for k, v in bound_arrays(w.columns, cluster, tight=True).items()}


def job(submit_s, *durations_s, **more):
    return {"submit_s": submit_s, "stages": [{"durations_s": list(durations_s)}], **more}


@pytest.mark.parametrize("zero_s", [0.0, 1.7e9])
def test_bounds_are_the_times_in_which_the_work_can_be_done(zero_s):
    cluster = sim.Cluster.slots(1).with_slowdowns(fast((10.0, 14.0, 2.0), (20.0, 30.0, 0.1)))
    jobs = [job(zero_s + t, 6.0) for t in (0.0, 5.0, 9.0, 12.0, 20.0)]
    # of the fast period the second job can use half a second, the third two and a half, the
    # fourth two; the slow one may only make it later
    assert bounds(cluster, *jobs)["new_lb"] == [6.0, 5.5, 3.5, 4.0, 6.0]
    assert bounds(cluster, *jobs)["tight_lb"] == [6.0, 5.5, 3.5, 4.0, 6.0]
    results = sim.simulate(sim.Workload.from_jobs(jobs[2:3]), cluster, policies.build("fifo"))
    assert results.gap_lb.tolist() == [0.0]  # submitted at the first instant


def test_a_job_that_waits_for_inputs_takes_the_fastest_speed():
    cluster = sim.Cluster.slots(9).with_slowdowns(fast((100.0, INF, 4.0)))
    jobs = [
        job(0.0, 200.0, job_id="a"),
        job(1.0, 8.0, input_mode="poll", inputs={"a": "hard"}),
    ]
    result = sim.simulate(sim.Workload.from_jobs(jobs), cluster, policies.build("fifo"))
    assert (result.job_finish - result.job_submit).tolist() == [125.0, 2.0]
    assert bounds(cluster, *jobs)["cp_len"] == [125.0, 2.0]
    assert mean_jct_bound(result.workload, cluster) <= 63.5


def test_the_mean_of_a_stream_counts_fast_periods():
    cluster = sim.Cluster.slots(1).with_slowdowns(fast((0.0, INF, 2.0)))
    w = sim.Workload.from_jobs([job(50.0, 4.0), job(50.0, 2.0)])
    assert mean_jct_bound(w, cluster) == (1.0 + 3.0) / 2
    assert mean_jct_bound(w, sim.Cluster.slots(1)) == (2.0 + 6.0) / 2


def test_the_exact_bound_refuses_other_speeds():
    pytest.importorskip("ortools")
    cluster = sim.Cluster.slots(1).with_slowdowns(fast((0.0, INF, 2.0)))
    with pytest.raises(sim.InputError, match="does not support periods of another speed"):
        optimum(sim.Workload.from_jobs([job(0.0, 4.0)]), cluster)


@given(data=st.data(), times_s=st.lists(st.floats(0.0, 50.0), min_size=1))
def test_time_is_the_inverse_of_work(data, times_s):
    pace = Pace(data.draw(periods()))
    times = np.array(times_s)
    work = pace.work_s(times)
    assert (work >= times * (1 - 1e-12)).all()
    np.testing.assert_allclose(pace.time_s(work), times, rtol=1e-9, atol=1e-9)


@st.composite
def periods(draw):
    times = sorted(draw(st.sets(st.sampled_from([0.0, 0.75, 2.0, 3.5, 6.0, INF]), max_size=5)))
    speeds = [draw(st.sampled_from([0.5, 2.0, 10.0])) for _ in times[1:]]
    return Slowdowns.from_columns(times[:-1], times[1:], speeds)


@pytest.mark.parametrize("fit", ["skip", "pack"])
@given(data=st.data(), plan_seed=st.integers(0, 2**32 - 1))
@settings(
    max_examples=examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)
def test_no_bound_is_beaten_in_any_world(fit, data, plan_seed):
    w = data.draw(failures(data.draw(workloads(gangs=False, inputs=True))))
    cluster = data.draw(clusters(w, outages=True, launches=True))
    cluster = cluster.with_slowdowns(data.draw(periods()))
    result = sim.simulate(w, cluster, AnyPlan(fit=fit, plan_seed=plan_seed))
    done = ~result.job_failed
    jct_s = (result.job_finish - result.job_submit)[done]
    for name, bound_s in bound_arrays(w.columns, cluster, tight=True).items():
        late = jct_s >= bound_s[done] * (1 - 1e-9) - 1e-9
        assert late.all(), f"{name}: {bound_s[done]}, and the run took {jct_s}"
    mean_s = mean_jct_bound(w, cluster, done)
    assert math.isnan(mean_s) or jct_s.mean() >= mean_s * (1 - 1e-9) - 1e-9
