"""Transforms change a workload: its load, its demands, its dependencies, its faults.

The three of Tian et al. (SoCC 2019, §7.4) are cluster configuration, load and heterogeneity; where
the paper leaves a meaning open, its published generator is followed. All work on any workload, real
or synthesized. A trace's configuration lists its transforms
(``transforms: {amplify: {ratio: 2}}``). Each module is loaded on first use.
"""

from __future__ import annotations

import importlib
from inspect import Parameter
from typing import TYPE_CHECKING, Any

from sim.base import entry_points
from sim.base.errors import InputError, unknown
from sim.base.plugins import Plugins, check_names
from sim.base.plugins import options as options_of

if TYPE_CHECKING:
    from sim.transforms.arrivals import arrive, hour_of, squeeze
    from sim.transforms.demands import amplify, fit_machines, requests
    from sim.transforms.draws import bootstrap
    from sim.transforms.faults import fail_tasks, straggle
    from sim.transforms.past import record_runs
    from sim.transforms.placement import deal_queues, place_inputs
    from sim.transforms.planning import add, faster, without_queue
    from sim.transforms.tasks import lengthen, scale_tasks, stay
    from sim.transforms.throughputs import throughput
    from sim.transforms.time_limits import limit_time
    from sim.transforms.widths import stretch
    from sim.workload.workload import Workload

__all__ = [
    "add",
    "amplify",
    "apply",
    "arrive",
    "bootstrap",
    "deal_queues",
    "fail_tasks",
    "faster",
    "fit_machines",
    "hour_of",
    "lengthen",
    "limit_time",
    "names",
    "options",
    "place_inputs",
    "record_runs",
    "requests",
    "scale_tasks",
    "squeeze",
    "stay",
    "straggle",
    "stretch",
    "throughput",
    "without_queue",
]

MODULES_FOUND = ("sim.transforms",)  # for sim.base.sources
MODULES_INSTALLED = ("transforms",)
TRANSFORMS = Plugins("transform", __name__, "", "transforms", helpers=("parts",))
"""A transform is a function in a module of its name; `_MODULES` lists those that share a module."""

_MODULES = {
    "add": "sim.transforms.planning",
    "amplify": "sim.transforms.demands",
    "arrive": "sim.transforms.arrivals",
    "bootstrap": "sim.transforms.draws",
    "change_load": "sim.transforms.load",
    "deal_queues": "sim.transforms.placement",
    "fail_tasks": "sim.transforms.faults",
    "faster": "sim.transforms.planning",
    "fit_machines": "sim.transforms.demands",
    "hour_of": "sim.transforms.arrivals",
    "lengthen": "sim.transforms.tasks",
    "limit_time": "sim.transforms.time_limits",
    "place_inputs": "sim.transforms.placement",
    "record_runs": "sim.transforms.past",
    "requests": "sim.transforms.demands",
    "scale_tasks": "sim.transforms.tasks",
    "squeeze": "sim.transforms.arrivals",
    "stay": "sim.transforms.tasks",
    "straggle": "sim.transforms.faults",
    "stretch": "sim.transforms.widths",
    "throughput": "sim.transforms.throughputs",
    "without_queue": "sim.transforms.planning",
}


def __getattr__(name: str) -> Any:
    if name not in names():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _function(name)


def names() -> list[str]:
    """Return the names of all transforms, sorted."""
    entry_points.check_shadowed("transforms", _MODULES)
    shared = {home.rpartition(".")[2] for home in _MODULES.values()}
    return sorted({*_MODULES, *TRANSFORMS.names()} - shared)


def options(name: str) -> dict[str, Any]:
    """Return the options of a transform with their defaults.

    Raises
    ------
    InputError
        If there is no such transform; the message names the most similar one.
    """
    return options_of(_function(name), n_fixed=1)


def apply(workload: Workload, name: str, **chosen: Any) -> Workload:
    """Apply the transform `name`.

    Raises
    ------
    InputError
        If the transform or an option is unknown (the message names the most similar one), an option
        is missing, or the transform refuses the workload or a value.
    """
    known = options(name)
    check_names(f"option of {name}", chosen, known)
    missing = [key for key in known if known[key] is Parameter.empty and key not in chosen]
    if missing:
        needed = ", ".join(missing)
        message = (
            f"the transform {name} needs {needed}; give it, or remove the transform with "
            f"~trace.transforms.{name}"
        )
        raise InputError(message, rule="option missing")
    changed: Workload = _function(name)(workload, **chosen)
    return changed


def _function(name: str) -> Any:
    if name not in names():
        raise InputError(unknown("transform", name, names()), rule="unknown transform")
    module = (
        importlib.import_module(_MODULES[name]) if name in _MODULES else TRANSFORMS.module(name)
    )
    return getattr(module, name)
