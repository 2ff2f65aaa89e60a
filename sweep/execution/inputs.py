"""Workloads of a sweep: named by their recipe, built or loaded when a cell needs them."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from sim.base import files
from sweep.execution.workload_build import ANSWER, Recipe, describe, load
from sweep.grid import remote, traces
from sweep.grid.config_tree import canonical
from sweep.store import converted_workloads, sources, sync
from sweep.store.file_digests import FileDigests, Stamp, stamp

if TYPE_CHECKING:
    from sim.workload.workload import Workload
    from sweep.grid.grid import Cell

T = TypeVar("T")


class _RecipeParts(NamedTuple):
    """Recipe parts of a workload, by its name."""

    trace: Mapping[str, Any]
    cluster: Mapping[str, Any]
    stamps: Mapping[str, Stamp]  # of the files that were digested
    origin_digests: dict[str, str]


MAX_LOADED_BYTES = 2**30
MAX_DRIVER_TASKS = 1_000_000
"""Tasks of a converted workload up to which the driver reads it to answer a query."""

Convert = Callable[[Recipe], dict[str, Any]]
"""Lets workers read and convert a trace; returns its description, see `describe`."""


class Inputs:
    """Workloads by name, each loaded once; their descriptions are stored between runs.

    The name is the digest of a recipe: the configuration, the content of the files that it names,
    and the sources of the generator or the reader. It is known before anything is loaded, and is
    part of the keys of cells. ``<results>/cache/workloads`` holds one small JSON file for each
    workload that was ever built: the digest of its content, its size, and the dropped rows.

    A trace is read by `convert` where there are workers, else here. `localize` replaces the paths
    of another machine in a trace's configuration by those of this one.
    """

    def __init__(
        self,
        results: Path,
        *,
        convert: Convert | None = None,
        localize: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None,
    ) -> None:
        self._convert, self._localize = convert, localize
        self._results = results
        self._folder = results / "cache" / "workloads"
        self._fetched = results / "cache" / "traces"
        self._digests = FileDigests(results / "cache" / "file_digests.json")
        self._copies: dict[str, Path] = {}
        self._ids: dict[tuple[int, int], tuple[str, Cell]] = {}
        self._recipe_parts: dict[str, _RecipeParts] = {}
        self._descriptions: dict[str, dict[str, Any]] = {}
        self._loaded: OrderedDict[str, Workload] = OrderedDict()

    def workload_id(self, cell: Cell) -> str:
        """Name of the cell's workload: the same for cells that share it."""
        pair = (id(cell.trace), id(cell.cluster))  # the stored cell keeps both alive
        if pair not in self._ids:
            trace = self._with_local_path(cell.trace)
            stamps: dict[str, Stamp] = {}

            def digest(file: Path) -> str:
                stamps[str(file)] = stamp(file)
                return self._digests.digest(file)

            identity = traces.identity(trace, cell.cluster, digest)
            self._digests.save()
            identity["sources"] = sources.workload_digest(trace)
            name = _digest(identity)
            self._ids[pair] = (name, cell)
            origin_digests = {"files": _digest(identity["files"]), "sources": identity["sources"]}
            self._recipe_parts.setdefault(
                name, _RecipeParts(trace, cell.cluster, stamps, origin_digests)
            )
        return self._ids[pair][0]

    def origin_digests(self, name: str) -> dict[str, str]:
        """Return the digests of the files and of the sources of a workload.

        Both are stored beside a cell's result, to explain later why another cell is not cached.
        """
        return self._recipe_parts[name].origin_digests

    def describe(self, name: str) -> dict[str, Any]:
        """Describe a workload: ``digest``, sizes, ``learnable``, ``meta``; build it if needed."""
        if self.known(name) is None:
            if self._convert is not None and self.is_from_files(name):
                self.add_description(name, self._convert(self.recipe(name)))
            else:
                self.workload(name)
        return self._descriptions[name]

    def known(self, name: str) -> dict[str, Any] | None:
        """Return a workload's description; None if it would have to be built or loaded."""
        if name not in self._descriptions:
            description = files.read_checked_json(self._folder / f"{name}.json")
            if description is not None:
                self._descriptions[name] = description
        return self._descriptions.get(name)

    def is_from_files(self, name: str) -> bool:
        """Tell whether a workload, or one that is added to it, is read from files."""
        return any(traces.paths(self._recipe_parts[name].trace))

    def recipe(self, name: str) -> Recipe:
        """Return the recipe of a workload."""
        recipe_parts, description = self._recipe_parts[name], self.known(name)
        digest, n_tasks = (
            ("", 0) if description is None else (description["digest"], description["n_tasks"])
        )
        if not self.is_from_files(name):
            return Recipe(recipe_parts.trace, recipe_parts.cluster, None, digest, n_tasks)
        # such a trace is read as fast as a converted copy
        is_parquet = recipe_parts.trace.get("format") == "parquet"
        is_parquet = is_parquet and len([*traces.paths(recipe_parts.trace)]) == 1
        converted = None if is_parquet else converted_workloads.folder_for(self._results, name)
        if digest and converted is not None and not converted.is_dir():
            sync.fetch_part(self._results, f"{converted.relative_to(self._results).as_posix()}/")
        files = recipe_parts.stamps, self._copies
        return Recipe(recipe_parts.trace, recipe_parts.cluster, converted, digest, n_tasks, *files)

    def add_description(self, name: str, description: Mapping[str, Any]) -> None:
        """Store the description of a workload that was built elsewhere."""
        if name not in self._descriptions:
            file = self._folder / f"{name}.json"
            files.write_checked_json(file, description)
            # without the converted copy the trace is parsed again
            sync.push(self._results, file, converted_workloads.folder_for(self._results, name))
            self._descriptions[name] = dict(description)

    def workload(self, name: str) -> Workload:
        """Return the workload itself, loading it unless it is still in memory."""
        if name in self._loaded:
            self._loaded.move_to_end(name)
            return self._loaded[name]
        workload = load(self.recipe(name))
        if name not in self._descriptions:
            self.add_description(name, describe(workload))
        self._loaded[name] = workload
        while (
            len(self._loaded) > 1 and sum(map(_n_bytes, self._loaded.values())) > MAX_LOADED_BYTES
        ):
            self._loaded.popitem(last=False)
        return workload

    def query(self, name: str, function: Callable[[Workload], T]) -> T:
        """Return a function's result on a workload, from a worker if that is new or large."""
        description = self.known(name)
        is_large = description is None or description["n_tasks"] > MAX_DRIVER_TASKS
        if self._convert is None or not self.is_from_files(name) or not is_large:
            return function(self.workload(name))
        result = self._convert(replace(self.recipe(name), query=function))
        answer: T = result.pop(ANSWER)
        self.add_description(name, result)
        return answer

    def _with_local_path(self, trace: Mapping[str, Any]) -> Mapping[str, Any]:
        """Fetch traces from an object store, once; return the trace with local paths."""
        if self._localize is not None:
            trace = self._localize(trace)
        if not any(map(remote.is_remote, traces.paths(trace))):
            return trace
        return traces.with_paths(trace, self._local_path)

    def _local_path(self, path: str) -> str:
        if not remote.is_remote(path):
            return path
        if path not in self._copies:
            self._copies[path] = remote.download(path, self._fetched)
        return str(self._copies[path])


def _digest(content: Any) -> str:
    return hashlib.sha256(canonical(content).encode()).hexdigest()


def _n_bytes(workload: Workload) -> int:
    tables = (workload.jobs, workload.stages, workload.stage_edges, workload.job_edges)
    n_bytes = sum(table.nbytes for table in (*tables, workload.downloads))
    return int(n_bytes) + 16 * len(workload.runs.duration_s)
