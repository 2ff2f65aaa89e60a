"""The platform: a grid of cells in; simulated, stored, tracked and reported out.

Start it with ``python -m sweep``, or from Python with `run` and `load`, and with the functions of
plug-ins: an entry ``evaluate`` of the kind ``functions`` is `sweep.evaluate`. Importing this
package is cheap; pandas, Ray, MLflow and the compiled kernel are loaded only once they are needed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from sim.base import entry_points
from sim.base.extras import require

if TYPE_CHECKING:
    from sweep.api import Cell, Sweep, load, run

_HOME = {
    **dict.fromkeys(("Cell", "Sweep", "load", "run"), "sweep.api"),
    "__version__": "sim.base.version",
}

FUNCTIONS = "functions"
"""Kind of `sim.base.entry_points`."""

__all__ = ["Cell", "Sweep", "load", "run"]


def __getattr__(name: str) -> Any:
    if name in entry_points.installed(FUNCTIONS):
        require("sweep")
        return getattr(entry_points.load(FUNCTIONS, name), name)
    if name not in _HOME:
        raise AttributeError(f"module 'sweep' has no attribute {name!r}")
    if _HOME[name] == "sweep.api":
        require("sweep")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value
