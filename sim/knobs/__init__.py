"""What turns a workload into another one: more load, other machines, other dependencies.

The three knobs of Tian et al. (SoCC 2019, §7.4) are machines, load and heterogeneity; where the
paper leaves a meaning open, its published generator is followed. Those of Jajoo et al. (NSDI 2022,
§4.3 and §6) cut a trace into a history and a workload, and make DAGs of jobs of one name. All work
on any workload, real or synthesized. A trace's configuration names those it wants
(``knobs: {amplify: {ratio: 2}}``). Each is loaded on first use.
"""

from __future__ import annotations

import importlib
from inspect import Parameter
from typing import TYPE_CHECKING, Any

from sim.base.errors import InputError, unknown
from sim.base.plugins import Plugins, check_known
from sim.base.plugins import options as options_of

if TYPE_CHECKING:
    from sim.knobs.arrivals import arrive, hour_of, squeeze
    from sim.knobs.demands import amplify, fit_machines
    from sim.knobs.faults import fail_tasks, straggle
    from sim.knobs.joined import named_dags
    from sim.knobs.past import history_and_trace
    from sim.knobs.placement import deal_queues, place_inputs
    from sim.knobs.tasks import scale_tasks, stay
    from sim.workload.workload import Workload

__all__ = [
    "amplify",
    "arrive",
    "deal_queues",
    "fail_tasks",
    "fit_machines",
    "history_and_trace",
    "hour_of",
    "named_dags",
    "names",
    "options",
    "place_inputs",
    "scale_tasks",
    "squeeze",
    "stay",
    "straggle",
    "turn",
]

MODULES_FOUND = ("sim.knobs",)  # so that sim.base.sources knows
KNOBS = Plugins("knob", __name__, "", helpers=("parts",))
"""A knob is a function in a module of its name; those that share a module are listed."""

_MODULES = {
    "amplify": "sim.knobs.demands",
    "anew": "sim.synth.programs.knobs",
    "arrive": "sim.knobs.arrivals",
    "change_load": "sim.synth.alibaba2018.knobs",
    "deal_queues": "sim.knobs.placement",
    "fail_tasks": "sim.knobs.faults",
    "fit_machines": "sim.knobs.demands",
    "give_dags": "sim.synth.alibaba2018.give_dags",
    "half": "sim.synth.programs.knobs",
    "history_and_trace": "sim.knobs.past",
    "hour_of": "sim.knobs.arrivals",
    "named_dags": "sim.knobs.joined",
    "place_inputs": "sim.knobs.placement",
    "scale_tasks": "sim.knobs.tasks",
    "squeeze": "sim.knobs.arrivals",
    "stay": "sim.knobs.tasks",
    "straggle": "sim.knobs.faults",
    "rewire": "sim.synth.alibaba2018.knobs",
}


def __getattr__(name: str) -> Any:
    if name not in names():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _function(name)


def names() -> list[str]:
    """Names of every knob, sorted."""
    shared = {f"{__name__}.{name}" for name in KNOBS.names()} & {*_MODULES.values()}
    return sorted({*_MODULES, *KNOBS.names()} - {home.rpartition(".")[2] for home in shared})


def options(name: str) -> dict[str, Any]:
    """Return the options of a knob with their defaults.

    Raises
    ------
    InputError
        If there is no such knob, naming the nearest.
    """
    return options_of(_function(name), n_given=1)


def turn(workload: Workload, name: str, **chosen: Any) -> Workload:
    """Turn a knob, by name.

    Raises
    ------
    InputError
        On an unknown knob or option, naming the nearest, on one that is missing, and whatever the
        knob refuses.
    """
    known = options(name)
    check_known(f"option of {name}", chosen, known)
    missing = [key for key in known if known[key] is Parameter.empty and key not in chosen]
    if missing:
        what = f"knob {name} needs {', '.join(missing)}; to leave it out: ~trace.knobs.{name}"
        raise InputError(what, rule="option missing")
    turned: Workload = _function(name)(workload, **chosen)
    return turned


def _function(name: str) -> Any:
    if name not in names():
        raise InputError(unknown("knob", name, names()), rule="unknown knob")
    return getattr(importlib.import_module(_MODULES.get(name, f"{__name__}.{name}")), name)
