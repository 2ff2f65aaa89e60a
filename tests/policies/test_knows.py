"""Declarations of knowledge: a policy that does not know the truth must not see it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

import policies
import sim
from policies.attained_service import MultilevelQueues
from policies.dagps.online import Dagps
from policies.jockey.policy import Jockey
from policies.knows import Knows
from policies.orders import ShortestRemainingFirst
from policies.placing import Placing
from tests.policies.test_invariants import MACHINES, NAMES, RIGID, SLOTS, rigid_crowd
from tests.policies.test_placing import KINDS as DEVICES
from tests.policies.test_placing import crowd as sharing_devices
from tests.policies.unknown import differences, instants, recurring

SEEDS = (0, 1)
VARIANTS = [
    ("dagps", {"profiles": "stage"}),
    ("gs", {"estimator": "history", "leak_every": 2}),
    ("gs", {"estimator": "truth_after_pilots"}),
    ("wing_dep", {"knowledge": "true"}),
    ("wing_direct", {"knowledge": "true"}),
    ("mil", {"knowledge": "true"}),
]
ESTIMATES = ("requested", "true", "predicted")
POLICIES = [
    *((name, {}) for name in NAMES),
    *VARIANTS,
    *((name, {"estimate": e, "order": "sjf"}) for name in RIGID for e in ESTIMATES),
]


def build(name: str, params: dict) -> policies.Policy:
    """Build a policy so that it decides something about these jobs, which are short and late."""
    cls = policies.spec(name)
    if issubclass(cls, Jockey):
        return policies.build(name, infeasible="run", period_s=10.0, max_tokens=16, **params)
    if issubclass(cls, Dagps):  # the unit of kappa is the mean demand of all tasks
        return policies.build(name, kappa=np.inf, **params)
    if issubclass(cls, MultilevelQueues):
        return policies.build(name, first_threshold_s=10.0, growth=2.0, **params)
    return policies.build(name, **params)


@cache
def recurring_jobs(seed: int) -> sim.Workload:
    return recurring(seed)


def n_differences(policy: policies.Policy, knows: Knows) -> int:
    """Count changed starts under the policy, if it knew what `knows` says, over all worlds."""
    clusters = (SLOTS, MACHINES)
    if policy.rigid_jobs or isinstance(policy, Jockey):
        clusters = (SLOTS,)  # tokens
    n = 0
    for seed in SEEDS:
        workload = rigid_crowd(seed) if policy.rigid_jobs else recurring_jobs(seed)
        worlds = [(workload, cluster) for cluster in clusters]
        if isinstance(policy, Placing):
            worlds.append((sharing_devices(seed), sim.Cluster.mixed(DEVICES)))
        for workload, cluster in worlds:
            result = sim.simulate(workload, cluster, policy, seed=seed, record="tasks")
            for instant_s in instants(result):
                n += differences(result, policy, knows, instant_s)
    return n


def name_of(case: object) -> str:
    return "-".join(map(str, case.values())) if isinstance(case, dict) else str(case)


@pytest.mark.parametrize(("name", "params"), POLICIES, ids=name_of)
def test_a_policy_does_not_see_what_it_declares_not_to_know(name, params):
    policy = build(name, params)
    assert n_differences(policy, policy.knows) == 0


@pytest.mark.parametrize(("name", "params"), POLICIES, ids=name_of)
def test_an_oracle_sees_the_truth(name, params):
    knows = build(name, params).knows
    if not knows.is_oracle:
        pytest.skip("knows no truth")
    weaker = {field: "learnt" for field, source in vars(knows).items() if source == "true"}
    assert n_differences(build(name, params), Knows(**(vars(knows) | weaker))) > 0


def test_a_false_declaration_is_noticed():
    @dataclass(frozen=True)
    class Boaster(ShortestRemainingFirst):
        """srpt that says that it learns."""

        @property
        def knows(self) -> Knows:
            return Knows(durations="learnt")

    assert n_differences(Boaster(), Boaster().knows) > 0
    assert n_differences(Boaster(), Knows(durations="true")) == 0
