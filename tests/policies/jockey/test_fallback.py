"""A job whose progress differs from the prediction is left to fair sharing."""

import numpy as np
import pytest

import policies
import sim
from policies.jockey.fallback import DistrustedModel, JockeyFallback
from sim.base.errors import InputError
from tests.policies.jockey.worlds import world


def run(name, workload, **params):
    result = sim.simulate(
        workload, sim.Cluster.slots(60), policies.build(name, **params), record="tasks"
    )
    row = int(np.flatnonzero(np.isfinite(workload.columns.job_deadline))[0])
    tokens = result.limits["tokens"].to_numpy()[result.limits["job"].to_numpy() == row]
    return result, tokens


def test_a_predictable_job_is_jockeys_and_another_loses_its_tokens():
    usual, slow = world(1800.0, n_background=60), world(1800.0, factor=3.0, n_background=60)
    _, usual_tokens = run("jockey_fallback", usual)
    assert usual_tokens.min() > 0
    result, tokens = run("jockey_fallback", slow)
    first = int(np.argmin(tokens))
    assert first > 0
    assert tokens[:first].min() > 0
    assert (tokens[first:] == 0).all()
    assert not result.job_failed.any()
    assert run("jockey", slow)[1].min() > 0


def test_a_model_is_distrusted_once(monkeypatch):
    """Not around itself at each check, whose cost would grow with the time that a job runs."""
    models = []
    allocate = JockeyFallback.allocate

    def noted(self, memory, due, now, world):
        allocate(self, memory, due, now, world)
        models.extend(job.model for job in due)

    monkeypatch.setattr(JockeyFallback, "allocate", noted)
    run("jockey_fallback", world(1800.0, factor=3.0, n_background=60))
    distrusted = [model for model in models if isinstance(model, DistrustedModel)]
    assert len(distrusted) > 2 * 5  # checked again, and refreshed had it not been distrusted
    assert not any(isinstance(model.model, DistrustedModel) for model in distrusted)


def test_with_infinite_tolerance_it_equals_jockey():
    slow = world(1800.0, factor=3.0, n_background=60)
    plain, fallback = (
        run(name, slow, **params)[0]
        for name, params in (("jockey", {}), ("jockey_fallback", {"tolerance": 1e9}))
    )
    np.testing.assert_array_equal(plain.task_finish, fallback.task_finish)


def test_without_spare_tokens_there_is_nothing_to_fall_back_to():
    with pytest.raises(InputError, match="spare must be true"):
        policies.build("jockey_fallback", spare=False)
