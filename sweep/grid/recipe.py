"""Make a workload: draw or read it, cut it to a window, apply transforms, stretch its arrivals.

What is imported here is part of every recipe: what only checks or fetches traces stays outside.
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

WINDOW = ("begin_s", "end_s")
OWN = ("format", "synth", "path", "transforms", *WINDOW)
"""Keys of a trace that are not its generator's or reader's."""


def make(trace: Mapping[str, Any], cluster: Mapping[str, Any]) -> Workload:
    """Make the workload that a trace, whose file is here, is configured to be."""
    options = {key: value for key, value in trace.items() if key not in OWN}
    try:
        if "synth" in trace:
            workload = sim.synthesize(trace["synth"], **options)
        else:
            workload = sim.read_trace(trace["format"], trace["path"], **options)
    except OSError as error:
        raise InputError(f"can't be read: {error}", file=trace.get("path")) from error
    begin, end = (trace.get(key) for key in WINDOW)
    if begin is not None or end is not None:
        workload = workload.slice_time(begin or 0.0, math.inf if end is None else end)
    for name, chosen in (trace.get("transforms") or {}).items():
        workload = transforms.apply(workload, name, **(chosen or {}))
    return cluster_size.stretched(workload, cluster)
