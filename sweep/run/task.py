"""What runs inside a worker; it imports neither Ray nor anything of the driver's."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sweep.run.cell import CellError, CellResult, run_cell

if TYPE_CHECKING:
    from sim.workload.workload import Workload
    from sweep.run.cell import CellSpec, Simulate


COMPILING = "compiling the kernels, once for this version"


def run_batch(
    workload: Workload,
    specs: Sequence[CellSpec],
    python_path: Sequence[str],
    simulate: Simulate | None,
) -> list[CellResult]:
    """Run cells of one workload, one after the other.

    Parameters
    ----------
    workload : Workload
        Shared with every other worker of the node; read only.
    specs : sequence of CellSpec
        The cells.
    python_path : sequence of str
        Folders in which a user's policy module may lie.
    simulate : callable or None
        Stands in for `sim.simulate`.
    """
    find_modules_in(python_path)
    return [_other_sources(spec) or run_cell(workload, spec, simulate) for spec in specs]


def _other_sources(spec: CellSpec) -> CellResult | None:
    """Refuse a cell where this worker has imported other sources than the driver has.

    They were edited since the sweep began, or this node has another version.
    """
    if not spec.sources:
        return None
    import policies
    from sweep.store import sources

    try:
        if spec.policy["module"] is not None:
            policies.registry.load(spec.policy["module"])
        if sources.of_cell(spec.policy, spec.measure) == spec.sources:
            return None
    except Exception:
        return None  # the cell itself will say so better
    error: CellError = {
        "stage": "sources",
        "type": "SourcesChanged",
        "message": "the sources of the cell's numbers differ from those that the sweep began "
        "with: edited meanwhile, or another version on this node; run the same command again",
        "traceback": "",
    }
    return CellResult(spec.key, error=error)


def warm_up(python_path: Sequence[str]) -> None:
    """Compile the kernels (or load them, compiled) on this node before cells fan out."""
    import policies
    import sim

    find_modules_in(python_path)
    stage = {"name": "s", "durations_s": [1.0, 1.0]}
    after = {"name": "t", "durations_s": [1.0], "parents": ["s"]}
    workload = sim.Workload.from_jobs([{"submit_s": 0.0, "stages": [stage, after]}])
    for cluster in (sim.Cluster.slots(1), sim.Cluster.machines(1, cpu=1)):
        _ = sim.simulate(workload, cluster, policies.build("fifo")).metrics


def kernels_are_compiled() -> bool:
    """Tell whether this machine's cache of compiled kernels holds the main loop."""
    from sim.base import jit

    return not jit.JIT or any(jit.cache_dir().glob("run.run-*.nbc"))


def find_modules_in(folders: Sequence[str]) -> None:
    """Put folders at the end of the module search path, once."""
    sys.path.extend(folder for folder in folders if folder not in sys.path)
