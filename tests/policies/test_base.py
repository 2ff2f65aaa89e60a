"""The repr of a policy."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import policies
import sim
from tests.policies.small import run


@pytest.mark.parametrize(
    ("policy", "shown"),
    [
        (policies.build("fifo"), "fifo()"),
        (policies.build("las", queues=5), "las(queues=5)"),
        (policies.build("fifo", fit="skip"), "fifo(fit='skip')"),
    ],
)
def test_repr_has_the_name_and_parameters_that_are_not_defaults(
    policy: policies.Policy, shown: str
) -> None:
    assert repr(policy) == shown


def test_a_users_own_repr_stays() -> None:
    @dataclass(frozen=True)
    class Own(policies.Policy):
        limit: int = 3

        def __repr__(self) -> str:
            return "mine"

    @dataclass(frozen=True)
    class Other(policies.Policy):
        limit: int = 3

    assert repr(Own()) == "mine"
    assert repr(Other(limit=4)) == "Other(limit=4)"


def test_any_policy_may_hold_machines_for_the_first_that_does_not_fit() -> None:
    small = [
        {"submit_s": float(i), "stages": [{"durations_s": [4.0] * 2, "demand": {"cpu": 1}}]}
        for i in range(24)
    ]
    large = {"submit_s": 4.5, "stages": [{"durations_s": [1.0] * 2, "demand": {"cpu": 4}}]}
    jobs = sorted([*small, large], key=lambda job: job["submit_s"])
    cluster = sim.Cluster.machines(2, cpu=4)
    starts = {
        (fit, n): run("las", jobs, cluster, fit=fit, held_machines=n).task_start[10:12].tolist()
        for fit, n in (("skip", 2), ("hold", 1), ("hold", 2))
    }
    # both of its tasks starve, or wait for one machine or for two
    assert starts == {("skip", 2): [25.0, 26.0], ("hold", 1): [8.0, 9.0], ("hold", 2): [7.0, 8.0]}


def test_on_slots_hold_is_strict_and_with_gangs_it_skips() -> None:
    jobs = [
        {"submit_s": float(i), "min_tasks": n, "stages": [{"durations_s": [5.0] * n}]}
        for i, n in enumerate((1, 2, 1))
    ]
    starts = {
        fit: run("fifo", jobs, sim.Cluster.slots(2), fit=fit).job_start.tolist()
        for fit in ("strict", "hold")
    }
    assert starts == {"strict": [0.0, 5.0, 10.0], "hold": [0.0, 7.0, 2.0]}
    single = [job | {"min_tasks": 0} for job in jobs]
    strict, hold = (
        run("fifo", single, sim.Cluster.slots(2), fit=fit) for fit in ("strict", "hold")
    )
    assert strict.task_start.tolist() == hold.task_start.tolist()
