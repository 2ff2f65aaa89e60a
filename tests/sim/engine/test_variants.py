"""With SIM_VARIANTS=common, runs with rare mechanisms are not compiled, and have the same bits."""

from __future__ import annotations

import numpy as np
import pytest

import policies
import sim
from sim.base import jit
from sim.engine.kernels import run
from sim.engine.kernels.features import INTERPRETED
from tests.sim.engine.compared import compare
from tests.sim.engine.random_worlds import draw_with

RARE = ("quotas", "caps", "preemption", "planning", "speeds", "dependencies")


@pytest.mark.skipif(not jit.JIT, reason="without the JIT none is compiled")
@pytest.mark.parametrize("mechanism", RARE)
def test_a_rare_mechanism_is_not_compiled_and_has_the_same_bits(
    mechanism: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIM_VARIANTS", "common")
    bound = []

    def bind(features, arrays, changed):
        bound.append(features)
        return bind_variant(features, arrays, changed)

    bind_variant = run.bind_variant
    monkeypatch.setattr("sim.engine.session.bind_variant", bind)
    results = [compare(draw_with(np.random.default_rng([7, n]), {mechanism})) for n in range(4)]
    assert not any(result.differs for result in results)
    assert bound
    assert all(INTERPRETED in features for features in bound)
    assert all(map(run.is_compiled, bound))


def test_plans_of_an_interpreted_run_read_the_slots_of_gangs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On machines, where no job is a gang: the third waits for room."""
    monkeypatch.setenv("SIM_VARIANTS", "none")
    stages = [{"durations_s": [5.0], "demand": {"cpu": 1}}]
    jobs = [{"submit_s": float(i), "requested_s": 9.0, "stages": stages} for i in range(3)]
    cluster = sim.Cluster.mixed([{"class": "a", "cpu": 1}, {"class": "b", "cpu": 1}])
    result = sim.simulate(sim.Workload.from_jobs(jobs), cluster, policies.build("easy"))
    assert result.job_finish.tolist() == [5.0, 6.0, 10.0]
