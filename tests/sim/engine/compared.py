"""One world, run by the kernel and by the naive simulator: equal, refused, or different."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sim.base.errors import DeadlockError, InputError, PolicyError
from tests.sim.engine import outcome
from tests.sim.engine.random_worlds import World, build

STUCK: dict[str, Any] = {"stuck": True}
"""Outcome of a run in which jobs are left that can never go on."""


@dataclass(frozen=True)
class Compared:
    """The comparison of a world: why it was refused, or what differs; both empty if all is equal.

    Attributes
    ----------
    refused : str
        The engine's sentence about mechanisms that exclude each other; empty for none.
    differs : tuple of str
        Names of the columns that differ, or the error that one of the two raised.
    """

    refused: str = ""
    differs: tuple[str, ...] = ()


def kernel_outcome(world: World) -> dict[str, Any]:
    """Return the outcome of a world by the kernel.

    Raises
    ------
    InputError, PolicyError
        If the engine refuses the world.
    """
    workload, cluster, policy = build(world)
    try:
        return outcome.run_kernel(workload, cluster, policy)[1]
    except DeadlockError:
        return STUCK


def reference_outcome(world: World) -> dict[str, Any]:
    """Return the outcome of a world by the naive simulator."""
    try:
        return outcome.run_reference(*build(world))[1]
    except AssertionError as error:
        if str(error).startswith("stuck"):
            return STUCK
        raise


def compare(world: World) -> Compared:
    """Run a world both ways; an error of either that is no refusal is a difference."""
    try:
        fast = kernel_outcome(world)
    except (InputError, PolicyError) as error:
        return Compared(refused=str(error))
    except Exception as error:  # whatever it is, the world shows it
        return Compared(differs=(f"the kernel raised {error!r}",))
    try:
        slow = reference_outcome(world)
    except Exception as error:
        return Compared(differs=(f"the naive simulator raised {error!r}",))
    return Compared(differs=tuple(outcome.differences(fast, slow)))
