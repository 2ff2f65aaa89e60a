"""The repr of a policy."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import policies


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
