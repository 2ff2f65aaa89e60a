"""What runs inside a worker; it imports neither Ray nor anything of the driver's."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sweep.run.cell import run_cell
from sweep.store.cell import CellError, CellResult

if TYPE_CHECKING:
    from sim.workload.workload import Workload
    from sweep.run.cell import Simulate
    from sweep.store.cell import CellSpec


def run_batch(
    workload: Workload,
    specs: Sequence[CellSpec],
    python_path: Sequence[str],
    simulate: Simulate | None,
) -> list[CellResult]:
    """Run cells of one workload, one after the other; modules may lie in folders of the user's."""
    find_modules_in(python_path)
    return [_other_sources(spec) or run_cell(workload, spec, simulate) for spec in specs]


def _other_sources(spec: CellSpec) -> CellResult | None:
    """Refuse a cell where this worker has imported other sources than the driver has.

    They were edited since the sweep began, or this node has another version.
    """
    if not spec.sources:
        return None
    # in a worker, and only where a cell says which sources it is of
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


def find_modules_in(folders: Sequence[str]) -> None:
    """Put folders at the end of the module search path, once."""
    sys.path.extend(folder for folder in folders if folder not in sys.path)
