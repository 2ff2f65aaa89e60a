"""Make a workload: draw or read it, cut it to a window, apply transforms, stretch its arrivals.

The modules imported here are part of every recipe, so code that only checks or fetches traces is
elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import sim
from sim import transforms
from sim.base.errors import InputError
from sweep.grid import cluster_size

if TYPE_CHECKING:
    from sim.workload.workload import Workload

WINDOW_KEYS = ("begin_s", "end_s")
GENERIC_KEYS = ("format", "synth", "path", "transforms", *WINDOW_KEYS)
"""Keys of a trace that are not options of its generator or reader."""


def make(trace: Mapping[str, Any], cluster: Mapping[str, Any]) -> Workload:
    """Build the workload of a trace configuration whose file is on this machine."""
    options = {key: value for key, value in trace.items() if key not in GENERIC_KEYS}
    try:
        if "synth" in trace:
            workload = sim.synthesize(trace["synth"], **options)
        else:
            workload = sim.read_trace(trace["format"], trace["path"], **options)
    except OSError as error:
        raise InputError(f"can't be read: {error}", file=trace.get("path")) from error
    begin, end = (trace.get(key) for key in WINDOW_KEYS)
    if begin is not None or end is not None:
        workload = workload.slice_time(begin or 0.0, math.inf if end is None else end)
    for name, chosen in (trace.get("transforms") or {}).items():
        workload = transforms.apply(workload, name, **(chosen or {}))
    return cluster_size.stretched(workload, cluster)
