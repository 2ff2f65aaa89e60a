"""Declarations of knowledge: a policy that does not know the truth must not see it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import get_args

import numpy as np
import pytest

import policies
import sim
from policies.attained_service import MultilevelQueues
from policies.check.unknown import differences, instants, recurring
from policies.knows import Knows
from policies.orders import ShortestRemainingFirst
from policies.placing import Placing
from sim.base.parameters import type_hints
from sim.check.worlds import MACHINES, SLOTS, rigid_crowd
from tests.conftest import first_of_each_file
from tests.policies.test_invariants import NAMES, RIGID
from tests.policies.test_placing import KINDS as DEVICES
from tests.policies.test_placing import crowd as sharing_devices


def choices(name: str, parameter: str) -> tuple[str, ...]:
    """Return the values that a policy's parameter may have."""
    return get_args(type_hints(policies.spec(name))[parameter])


VARIANTS = [
    ("dagps", {"knowledge": "run"}),
    ("dagps", {"knowledge": "true"}),
    ("dagps", {"order_from": "true"}),
    ("oracle_code", {"estimator": "history", "leak_every": 2}),
    ("gs", {"estimator": "truth_after_pilots"}),
    ("wing_dep", {"knowledge": "true"}),
    ("wing_direct", {"knowledge": "true"}),
    ("mil", {"knowledge": "true"}),
]
BY_DURATION = ("sjf", "ljf", "srpt", "critical_path", "heft", "tez_cp")
POLICIES = [
    *((name, {}) for name in NAMES),
    *VARIANTS,
    *((name, {"knowledge": k}) for name in BY_DURATION for k in ("history", "run", "declared")),
    ("strip", {"knowledge": "declared"}),
    *(
        (name, {"knowledge": k, "order": choices(name, "order")[-1]})
        for name in RIGID
        for k in choices(name, "knowledge")
    ),
]
POLICIES = [
    case if case[0] in first_of_each_file() else pytest.param(*case, marks=pytest.mark.long)
    for case in POLICIES
]
"""Before a landing those of one policy of each file."""


def build(name: str, params: dict) -> policies.Policy:
    """Build a policy so that it decides something about these jobs, which are short and late."""
    cls = policies.spec(name)
    if hasattr(cls, "infeasible"):
        return policies.build(name, infeasible="run", period_s=10.0, max_tokens=16, **params)
    if hasattr(cls, "kappa"):  # the unit of kappa is the mean demand of all tasks
        return policies.build(name, kappa=np.inf, **params)
    if issubclass(cls, MultilevelQueues):
        return policies.build(name, first_threshold_s=10.0, growth=2.0, **params)
    return policies.build(name, **params)


@cache
def recurring_jobs(seed: int, own_columns: tuple[str, ...], n_jobs: int = 30) -> sim.Workload:
    return recurring(seed, own_columns, n_jobs)


def differs(policy: policies.Policy, knows: Knows, n_seeds: int = 2) -> bool:
    """Tell whether a start changes in some world with all that `knows` leaves out."""
    return any(
        differences(result, policy, knows, instant_s)
        for seed in range(n_seeds)
        for workload, cluster in worlds(policy, seed)
        for result in [sim.simulate(workload, cluster, policy, seed=seed, record="tasks")]
        for instant_s in instants(result)
    )


def worlds(policy: policies.Policy, seed: int) -> list[tuple[sim.Workload, sim.Cluster]]:
    """Return workloads with their clusters."""
    if policy.rigid_jobs:
        return [(rigid_crowd(seed), SLOTS)]
    workload = recurring_jobs(seed, policy.own_columns)
    if hasattr(policy, "infeasible"):
        return [(workload, SLOTS)]  # tokens
    if isinstance(policy, Placing):
        return [(workload, MACHINES), (sharing_devices(seed), sim.Cluster.mixed(DEVICES))]
    if seed == 1:
        return [(workload, MACHINES)]
    return [
        (workload, SLOTS),
        (workload, MACHINES),
        (recurring_jobs(seed, policy.own_columns, 1), MACHINES),
    ]


def name_of(case: object) -> str:
    return "-".join(map(str, case.values())) if isinstance(case, dict) else str(case)


@pytest.mark.parametrize(("name", "params"), POLICIES, ids=name_of)
def test_a_policy_does_not_see_what_it_declares_not_to_know(name, params):
    policy = build(name, params)
    assert not differs(policy, policy.knows)


@pytest.mark.parametrize(("name", "params"), POLICIES, ids=name_of)
def test_an_oracle_sees_the_truth(name, params):
    knows = build(name, params).knows
    if not knows.is_oracle:
        pytest.skip("knows no truth")
    weaker = {field: "learnt" for field, source in vars(knows).items() if source == "true"}
    assert differs(build(name, params), Knows(**(vars(knows) | weaker)), n_seeds=10)


def test_a_false_declaration_is_noticed():
    @dataclass(frozen=True)
    class Boaster(ShortestRemainingFirst):
        """srpt that says that it learns."""

        @property
        def knows(self) -> Knows:
            return Knows(durations="learnt")

    assert differs(Boaster(), Boaster().knows)
    assert not differs(Boaster(), Knows(durations="true"))
