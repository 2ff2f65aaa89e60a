"""Scheduling policies: a module or a package each, registered by name.

Names are imported on first use, as readers and generators of systems lie below this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.base.lazy import importer

if TYPE_CHECKING:
    from policies.base import Policy
    from policies.knows import Knows
    from policies.registry import build, names, register, spec

_MODULES = {
    "Knows": "policies.knows",
    "Policy": "policies.base",
    "__version__": "sim.base.version",
    "build": "policies.registry",
    "names": "policies.registry",
    "register": "policies.registry",
    "spec": "policies.registry",
}

__all__ = ["Knows", "Policy", "build", "names", "register", "spec"]

__getattr__ = importer(__name__, _MODULES)
