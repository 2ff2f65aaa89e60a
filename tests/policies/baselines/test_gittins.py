"""2D-Gittins: indices, starts and stops worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

import policies
import sim
from policies.baselines.served import gittins_ranks
from sim.check.worlds import SLOTS, crowd
from sim.transforms import fail_tasks
from tests.policies.test_peers import gang, gpus, times


def gittins(quantum_gpu_s, distribution="true"):
    return policies.build("gittins", quantum_gpu_s=quantum_gpu_s, distribution=distribution)


def test_ranks_of_indices_by_hand():
    """Half of the services are 5, half 100 GPU s, and a quantum is 10.

    At 0 the index is 1/2 over (5 + 10) / 2, 1/15; from 10 to 80 no job ends within a quantum, and
    it is 0; at 90 all do, 10 later: 1/10. Beyond 100 it is 0.
    """
    ranks = gittins_ranks(np.array([5.0, 5.0, 100.0, 100.0]), 10.0)
    assert ranks.tolist() == [1, *[2] * 8, 0, 2, 2]
    # of even services the nearer the end, the sooner they end
    assert (np.diff(gittins_ranks(np.arange(1.0, 101.0), 10.0)[:10]) == -1).all()
    assert gittins_ranks(np.zeros(0), 10.0).tolist() == [0, 0]


def test_a_job_that_is_to_end_soon_is_not_stopped():
    """One GPU; two jobs take 100 s and two 5 s. The first long one starts at 0.

    The short one at 50 stops it, as 1/15 is above 0. When the next comes, at 97, the long one has
    had 92 s: 1/10 is above 1/15, and it ends first, at 105. Least attained service would stop it.
    """
    jobs = [
        gang(name, t, 1, 1, s)
        for name, t, s in (("a", 0, 100.0), ("b", 50, 5.0), ("c", 97, 5.0), ("d", 200, 100.0))
    ]
    machine = gpus((1, "v100", 1, 8))
    assert times(jobs, machine, gittins(10.0)) == {
        "a": (0, 105), "b": (50, 55), "c": (105, 110), "d": (200, 300),
    }  # fmt: skip
    las = policies.build("tiresias", thresholds_gpu_s=[10.0])
    assert times(jobs, machine, las)["c"] == (97, 102)


def test_service_counts_by_gpus():
    """Two GPUs; services of 40, 8 and 8 GPU s. b comes at 12, when a, on both, has had 24 GPU s.

    With a quantum of 20, a's index is 1/20, and b's 2/3 over (8 + 8 + 20) / 3, 1/18: it stops a.
    With one of 25 a is in its first, as b is; from 12.5 on its index is 1/15, and b's 2/41.
    """
    jobs = [gang("a", 0, 2, 1, 20.0), gang("b", 12, 1, 2, 4.0), gang("c", 90, 1, 2, 4.0)]
    machine = gpus((1, "v100", 2, 8))
    assert times(jobs, machine, gittins(20.0))["b"] == (12, 16)
    assert times(jobs, machine, gittins(25.0))["b"] == (20, 24)


def test_services_are_learnt_from_jobs_that_ended():
    """Three jobs of 5 s have ended at 15: all end within a quantum of 10. Later the index is 0."""
    short = [gang(f"s{t}", t, 1, 1, 5.0) for t in (0, 1, 2)]
    long, late = gang("long", 3, 1, 1, 60.0), gang("late", 40, 1, 1, 5.0)
    ran = times([*short, long, late], gpus((1, "v100", 1, 8)), gittins(10.0, "ended"))
    assert ran["s2"] == (10, 15)
    assert ran["late"] == (40, 45)  # the long one has had 25 s, more than any service known
    assert ran["long"] == (15, 80)


@pytest.mark.parametrize("distribution", ["ended", "true"])
def test_every_job_ends_where_outputs_are_lost(distribution):
    workload = fail_tasks(crowd(3), single=0.2, lost=0.5)
    result = sim.simulate(workload, SLOTS, gittins(5.0, distribution))
    assert np.isfinite(result.job_finish).all()


def test_only_the_true_distribution_is_an_oracle():
    assert gittins(10.0).knows.is_oracle
    assert not gittins(10.0, "ended").knows.is_oracle
