"""What runs inside a worker: cells, and before them the compiling of the kernels that they need.

Which variants of the event loop those are follows from the cells' policies and clusters and from
what kind of jobs a workload has; a few of its jobs show that. Neither Ray nor anything of the
driver's is imported here.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import policies
from sim.evaluators import NO_POLICY
from sweep.execution import workload_build as making
from sweep.execution.cell import run_cell
from sweep.execution.result_batch import Done, ResultBatch, pack
from sweep.execution.watch import watching
from sweep.execution.working_folder import leave_if_gone
from sweep.execution.workload_build import BuiltWorkload, Clusters, Recipe, World
from sweep.grid import clusters
from sweep.store import shard_writer
from sweep.store.cell import CellError, CellResult, CellSpec

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.workload.workload import Workload
    from sweep.execution.result_batch import StoreSpec, TaskPayload


def run_batch(
    workload: Workload, chunk: TaskPayload, made: BuiltWorkload | None = None
) -> Iterator[ResultBatch]:
    """Run cells of one workload, one after the other, on the clusters that were `made` for it.

    Yields what is done, in that order, as often as its `pace` says, and kept from here where it
    is said how; those left when its time is up are not begun.
    """
    find_modules_in(chunk.python_path)
    begun_s = handed_over_s = time.monotonic()
    node = _node()
    done: list[Done] = []
    pace, keeping = chunk.pace, chunk.keeping
    configs = itertools.repeat({}) if keeping is None else keeping.configs
    built = Clusters() if made is None else made.clusters
    with watching(chunk.watched) as begin:
        for spec, config in zip(map(CellSpec._make, chunk.specs), configs, strict=False):
            begin(spec.key)
            result = _other_sources(spec)
            if result is None:
                cluster = built.get_or_build(workload, spec.cluster, spec.capacity)
                result = run_cell(workload, spec, cluster, chunk.simulate)
            done.append((result._replace(node=node), config))
            now_s = time.monotonic()
            if now_s - handed_over_s >= pace.part_s:
                begin(None)  # it may have to wait until somebody takes it
                yield _part(done, keeping)
                done, handed_over_s = [], time.monotonic()
            if now_s - begun_s >= pace.task_s:
                break
    if done:
        yield _part(done, keeping)


def _part(done: Sequence[Done], keeping: StoreSpec | None) -> ResultBatch:
    if keeping is None:
        return ResultBatch([result for result, _ in done])
    return pack(done, shard_writer.reachable(keeping.where, keeping.mark))


def make(
    recipe: Recipe, wanted: Sequence[World], python_path: Sequence[str]
) -> tuple[BuiltWorkload, Workload, Workload]:
    """Make a workload here; see `workload_build.make`. Return its first few jobs beside it."""
    find_modules_in(python_path)
    made, workload = making.make(recipe, wanted)
    return made, workload, making.first_jobs(workload)


def convert(recipe: Recipe, python_path: Sequence[str]) -> dict[str, Any]:
    """Convert a trace here; see `sweep.execution.workload_build.convert`."""
    find_modules_in(python_path)
    return making.convert(recipe)


def _node() -> str:
    """Id of the Ray node that this process works for; empty if for none."""
    ray = sys.modules.get("ray")
    return str(ray.get_runtime_context().get_node_id()) if ray and ray.is_initialized() else ""


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
        if sources.cell_digest(spec.policy, spec.evaluator) == spec.sources:
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
    """Put folders at the end of the module search path, once; see to the working folder."""
    leave_if_gone()
    sys.path.extend(folder for folder in folders if folder not in sys.path)


Variant = tuple[CellSpec, "Cluster"]
"""A cell, and its cluster without faults: both say which kernels it needs."""
COMPILING = "compiling the kernels, once for this version"


def sample(
    specs: Sequence[CellSpec], load: Callable[[], tuple[Any, Clusters]]
) -> tuple[Any, list[Variant]]:
    """Return a few jobs of the first workload, and a cell of each policy and kind of cluster.

    The jobs, or a reference to them, come with the clusters that were built for it: cells of others
    are left out. None where it can't be had, which the first cell will say.
    """
    first = {(id(spec.policy), id(spec.cluster)): spec for spec in reversed(specs)}
    simulated = [spec for spec in first.values() if spec.policy["name"] != NO_POLICY]
    if not simulated:
        return None, []
    try:
        few, built = load()
        kinds: dict[str, Variant] = {}
        for spec in simulated:
            there = built.find(spec.cluster, spec.capacity)
            if there is not None:
                kinds[_kind(spec)] = (spec, there.cluster)
        return few, [*kinds.values()][::-1]
    except Exception:
        return None, []


def _kind(spec: CellSpec) -> str:
    cluster = {key: value for key, value in spec.cluster.items() if key != "count"}
    return json.dumps([spec.policy, cluster], sort_keys=True, default=str)


def missing(
    python_path: Sequence[str], few_jobs: Workload, variants: Sequence[Variant]
) -> list[Variant]:
    """Return a cell for each variant that cells like these need and this machine does not keep."""
    # in a worker: the driver loads no numba
    from sim.engine.kernels.run import is_compiled
    from sim.engine.simulate import variant

    find_modules_in(python_path)
    found: dict[frozenset[str], Variant] = {}
    for one in variants:
        with contextlib.suppress(Exception):  # what goes wrong is what the cell itself will say
            found.setdefault(variant(few_jobs, *_built(one)), one)
    return [one for features, one in found.items() if not is_compiled(features)]


def compile_for(python_path: Sequence[str], few_jobs: Workload, one: Variant) -> None:
    """Compile the variant that a cell like this needs."""
    from sim.engine.simulate import compile_ahead  # in a worker: the driver loads no numba

    find_modules_in(python_path)
    with contextlib.suppress(Exception):
        compile_ahead(few_jobs, *_built(one))


def _built(one: Variant) -> tuple[Any, Any]:
    spec, cluster = one
    name, module, options = (spec.policy[key] for key in ("name", "module", "params"))
    faulty = clusters.with_faults(cluster, spec.cluster, spec.seed)
    return faulty, policies.build(name, module=module, **options)
