"""The simulated world: workloads, clusters, the kernel, bounds and metrics.

Importing this package is cheap; modules that need the compiled kernel or pandas are loaded on first
use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.base.lazy import importer

if TYPE_CHECKING:
    from sim.base.errors import DeadlockError, InputError, PolicyError, SimError
    from sim.bounds import lower_bound
    from sim.cluster.cluster import Cluster
    from sim.result import Result
    from sim.simulation import simulate
    from sim.state import State, state_at, state_of
    from sim.synth import synthesize
    from sim.traces import read_trace
    from sim.workload.workload import Workload

_MODULES = {
    "Cluster": "sim.cluster.cluster",
    "DeadlockError": "sim.base.errors",
    "InputError": "sim.base.errors",
    "PolicyError": "sim.base.errors",
    "Result": "sim.result",
    "SimError": "sim.base.errors",
    "State": "sim.state",
    "Workload": "sim.workload.workload",
    "__version__": "sim.base.version",
    "lower_bound": "sim.bounds",
    "read_trace": "sim.traces",
    "simulate": "sim.simulation",
    "state_at": "sim.state",
    "state_of": "sim.state",
    "synthesize": "sim.synth",
}

__all__ = [
    "Cluster",
    "DeadlockError",
    "InputError",
    "PolicyError",
    "Result",
    "SimError",
    "State",
    "Workload",
    "lower_bound",
    "read_trace",
    "simulate",
    "state_at",
    "state_of",
    "synthesize",
]

__getattr__ = importer(__name__, _MODULES)
