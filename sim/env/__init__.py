"""Scheduling as a Gymnasium environment, and the observations that trained policies share with it.

`SchedulingEnv` needs the extra ``gym``; `Observer` and `Form` do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sim.base.extras import importing
from sim.env.observer import Form, Observer

if TYPE_CHECKING:
    from sim.env.environment import SchedulingEnv
    from sim.env.vector import SchedulingVectorEnv

__all__ = ["Form", "Observer", "SchedulingEnv", "SchedulingVectorEnv"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'sim.env' has no attribute {name!r}")
    with importing("gym"):
        from sim.env import environment, vector  # need Gymnasium
    values = {
        "SchedulingEnv": environment.SchedulingEnv,
        "SchedulingVectorEnv": vector.SchedulingVectorEnv,
    }
    globals().update(values)
    return values[name]
