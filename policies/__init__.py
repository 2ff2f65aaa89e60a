"""Scheduling policies: a module or a package each, registered by name."""

from typing import Any

from policies.base import Policy
from policies.knows import Knows
from policies.registry import build, names, register, spec

__all__ = ["Knows", "Policy", "build", "names", "register", "spec"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from sim.base.version import __version__  # 20 ms: only where it is asked for

        return __version__
    raise AttributeError(f"module 'policies' has no attribute {name!r}")
