"""What decides: scheduling policies, one module each, found by name."""

from policies.base import Policy
from policies.registry import build, names, register, spec

__all__ = ["Policy", "build", "names", "register", "spec"]
