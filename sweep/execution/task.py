"""Code that runs inside a worker: cells, and before them the compilation of their kernels.

The variants of the event loop follow from the cells' policies and clusters and from the kind of
jobs of a workload, which a few of its jobs show. Neither Ray nor modules of the driver are imported
here.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import policies
import policies.registry
from sim.evaluators import NO_POLICY
from sweep.execution import workload_build
from sweep.execution.cell import run_cell
from sweep.execution.result_batch import ResultBatch, ResultWithConfig, pack
from sweep.execution.watch import watching
from sweep.execution.working_folder import leave_if_gone
from sweep.execution.workload_build import BuiltWorkload, ClusterConfig, Clusters, Recipe
from sweep.grid import clusters
from sweep.store import shard_writer
from sweep.store.cell import CellError, CellResult, CellSpec

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.workload.workload import Workload
    from sweep.execution.result_batch import StoreSpec, TaskPayload


def run_batch(
    workload: Workload, payload: TaskPayload, built: BuiltWorkload | None = None
) -> Iterator[ResultBatch]:
    """Run cells of one workload, one after the other, on the clusters that were `built` for it.

    Yield finished cells in that order, at the intervals of the flush policy, and stored from here
    if there is a store spec. Cells that are left when its time is up do not begin.
    """
    add_module_folders(payload.python_path)
    start_s = flushed_s = time.monotonic()
    node = _node_id()
    finished: list[ResultWithConfig] = []
    flush_policy, store_spec = payload.flush_policy, payload.store_spec
    configs = itertools.repeat({}) if store_spec is None else store_spec.configs
    clusters_cache = Clusters() if built is None else built.clusters
    with watching(payload.watched) as begin:
        for spec, config in zip(map(CellSpec._make, payload.specs), configs, strict=False):
            begin(spec.key)
            result = _check_sources(spec)
            if result is None:
                cluster = clusters_cache.get_or_build(workload, spec.cluster, spec.capacity)
                result = run_cell(workload, spec, cluster, payload.simulate)
            finished.append((result._replace(node=node), config))
            now_s = time.monotonic()
            if now_s - flushed_s >= flush_policy.flush_s:
                begin(None)  # the consumer may be slow
                yield _make_batch(finished, store_spec)
                finished, flushed_s = [], time.monotonic()
            if now_s - start_s >= flush_policy.stop_s:
                break
    if finished:
        yield _make_batch(finished, store_spec)


def _make_batch(finished: Sequence[ResultWithConfig], store_spec: StoreSpec | None) -> ResultBatch:
    if store_spec is None:
        return ResultBatch([result for result, _ in finished])
    return pack(finished, shard_writer.reachable(store_spec.location, store_spec.marker))


def make(
    recipe: Recipe, clusters_needed: Sequence[ClusterConfig], python_path: Sequence[str]
) -> tuple[BuiltWorkload, Workload, Workload]:
    """Build a workload here, see `workload_build.make`; return its first few jobs, too."""
    add_module_folders(python_path)
    built, workload = workload_build.make(recipe, clusters_needed)
    return replace(built, node=_node_id()), workload, workload_build.first_jobs(workload)


def make_again(recipe: Recipe, first: tuple[Any, Any], python_path: Sequence[str]) -> Workload:
    """Build a workload on one more node, or fetch it where that can't be done here.

    `first` are references to the description and to the workload that `make` returned.
    """
    add_module_folders(python_path)
    ray = sys.modules["ray"]
    built, whole = first

    def digest() -> str:
        return str(ray.get(built).description["digest"])

    workload = workload_build.make_again(recipe, digest)
    return ray.get(whole) if workload is None else workload


def convert(recipe: Recipe, python_path: Sequence[str]) -> dict[str, Any]:
    """Convert a trace here; see `sweep.execution.workload_build.convert`."""
    add_module_folders(python_path)
    return workload_build.convert(recipe)


def _node_id() -> str:
    """Id of the Ray node of this process; empty outside Ray."""
    ray = sys.modules.get("ray")
    return str(ray.get_runtime_context().get_node_id()) if ray and ray.is_initialized() else ""


def _check_sources(spec: CellSpec) -> CellResult | None:
    """Refuse a cell where this worker has imported other sources than the driver.

    They were edited since the sweep began, or this node has another version.
    """
    if not spec.sources:
        return None
    # in a worker, and only for a cell that names its sources
    import policies
    import policies.registry
    from sweep.store import sources

    try:
        if spec.policy["module"] is not None:
            policies.registry.load(spec.policy["module"])
        if sources.cell_digest(spec.policy, spec.evaluator) == spec.sources:
            return None
    except Exception:
        return None  # the cell itself will report it better
    error: CellError = {
        "stage": "sources",
        "type": "SourcesChanged",
        "message": "the code of this cell differs from the code that the sweep began with: it was "
        "edited meanwhile, or this node has another version; run the same command again",
        "traceback": "",
    }
    return CellResult(spec.key, error=error)


def add_module_folders(folders: Sequence[str]) -> None:
    """Append folders to the module search path, once; leave a deleted working folder."""
    leave_if_gone()
    sys.path.extend(folder for folder in folders if folder not in sys.path)


Variant = tuple[CellSpec, "Cluster"]
"""A cell, and its cluster without faults: they determine the kernels that it needs."""
COMPILING = "compiling the kernels, once for this version"


def sample_variants(
    specs: Sequence[CellSpec], load: Callable[[], tuple[Any, Clusters]]
) -> tuple[Any, list[Variant]]:
    """Return a few jobs of the first workload, and a cell of each policy and kind of cluster.

    The jobs, or a reference to them, come with the clusters that were built for their workload;
    cells of other workloads are left out. None where loading fails: the first cell will report it.
    """
    first = {(id(spec.policy), id(spec.cluster)): spec for spec in reversed(specs)}
    simulated = [spec for spec in first.values() if spec.policy["name"] != NO_POLICY]
    if not simulated:
        return None, []
    try:
        few_jobs, built = load()
        kinds: dict[str, Variant] = {}
        for spec in simulated:
            cluster = built.find(spec.cluster, spec.capacity)
            if cluster is not None:
                kinds[variant_key(spec)] = (spec, cluster.cluster)
        return few_jobs, [*kinds.values()][::-1]
    except Exception:
        return None, []


def variant_key(spec: CellSpec) -> str:
    """Return the key of cells that differ in workload, capacity and seed at most."""
    cluster = {key: value for key, value in spec.cluster.items() if key != "count"}
    return json.dumps([spec.policy, cluster], sort_keys=True, default=str)


def missing_variants(
    python_path: Sequence[str], few_jobs: Workload, variants: Sequence[Variant]
) -> list[Variant]:
    """Return a cell for each kernel variant that these cells need and this machine lacks."""
    # in a worker: the driver loads no numba
    from sim.engine.kernels.run import is_compiled
    from sim.engine.simulate import variant

    add_module_folders(python_path)
    cells: dict[frozenset[str], Variant] = {}
    for cell in variants:
        with contextlib.suppress(Exception):  # the cell itself will report the error
            cells.setdefault(variant(few_jobs, *_build_variant(cell)), cell)
    return [cell for features, cell in cells.items() if not is_compiled(features)]


def find_by_task(
    python_path: Sequence[str], few_jobs: Workload, variants: Sequence[Variant]
) -> set[str]:
    """Return the keys of cells whose runs move each task by itself; see `variant_key`."""
    from sim.engine.simulate import variant  # in a worker: the driver loads no numba

    add_module_folders(python_path)
    keys = set()
    for cell in variants:
        with contextlib.suppress(Exception):  # the cell itself will report the error
            if "BATCHES" not in variant(few_jobs, *_build_variant(cell)):
                keys.add(variant_key(cell[0]))
    return keys


def compile_variant(python_path: Sequence[str], few_jobs: Workload, cell: Variant) -> None:
    """Compile the kernel variant that a cell needs."""
    from sim.engine.simulate import compile_ahead  # in a worker: the driver loads no numba

    add_module_folders(python_path)
    with contextlib.suppress(Exception):
        compile_ahead(few_jobs, *_build_variant(cell))


def _build_variant(cell: Variant) -> tuple[Any, Any]:
    spec, cluster = cell
    name, module, options = (spec.policy[key] for key in ("name", "module", "params"))
    policy = policies.build(name, module=module, **options)
    return clusters.with_faults(cluster, spec.cluster, spec.seed, policy), policy
