"""The workloads of a sweep: known by recipe, made or loaded when a cell needs them."""

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


class _Wanted(NamedTuple):
    """Recipe parts of a workload, by its name."""

    trace: Mapping[str, Any]
    cluster: Mapping[str, Any]
    stamps: Mapping[str, Stamp]  # of the files that were digested
    made_from: dict[str, str]


KEEP_BYTES = 2**30
FEW_TASKS = 1_000_000
"""Of a workload that the driver may read to ask something of it, if it was converted before."""

Convert = Callable[[Recipe], dict[str, Any]]
"""Has workers read a trace and convert it; returns what `describe` says of it."""


class Inputs:
    """Workloads by name, each loaded once; what came of them is remembered between runs.

    The name is the digest of a recipe: the configuration, the content of the files that it names,
    and the sources of the generator or the reader. It is known before anything is loaded, and part
    of the keys of cells. ``<results>/cache/workloads`` holds one small JSON file for each workload
    that was ever made: the digest of its content, its size, and what the loader dropped.

    A trace that is read is described by `convert` where there are workers, else here.
    """

    def __init__(self, results: Path, *, convert: Convert | None = None) -> None:
        self._convert = convert
        self._results = results
        self._folder = results / "cache" / "workloads"
        self._fetched = results / "cache" / "traces"
        self._digests = FileDigests(results / "cache" / "file_digests.json")
        self._copies: dict[str, Path] = {}
        self._ids: dict[tuple[int, int], tuple[str, Cell]] = {}
        self._wanted: dict[str, _Wanted] = {}
        self._known: dict[str, dict[str, Any]] = {}
        self._loaded: OrderedDict[str, Workload] = OrderedDict()

    def id_of(self, cell: Cell) -> str:
        """Name of the cell's workload: the same for cells that share it."""
        pair = (id(cell.trace), id(cell.cluster))  # which cells share, and the kept one keeps alive
        if pair not in self._ids:
            trace = self._here(cell.trace)
            stamps: dict[str, Stamp] = {}

            def digest(file: Path) -> str:
                stamps[str(file)] = stamp(file)
                return self._digests.digest(file)

            identity = traces.identity(trace, cell.cluster, digest)
            self._digests.save()
            identity["sources"] = sources.workload_digest(trace)
            name = _digest(identity)
            self._ids[pair] = (name, cell)
            made_from = {"files": _digest(identity["files"]), "sources": identity["sources"]}
            self._wanted.setdefault(name, _Wanted(trace, cell.cluster, stamps, made_from))
        return self._ids[pair][0]

    def made_from(self, name: str) -> dict[str, str]:
        """Return the digests of the files and of the sources that a workload follows from.

        Both stand beside a cell's result, to explain later why another cell is not cached.
        """
        return self._wanted[name].made_from

    def describe(self, name: str) -> dict[str, Any]:
        """Describe a workload: ``digest``, sizes, what can be learnt from, ``meta``."""
        if self.known(name) is None:
            if self._convert is not None and self.is_read(name):
                self.learn(name, self._convert(self.recipe(name)))
            else:
                self.workload(name)
        return self._known[name]

    def known(self, name: str) -> dict[str, Any] | None:
        """Describe a workload, as `describe` does; None if it would have to be made or loaded."""
        if name not in self._known:
            about = files.read_checked_json(self._folder / f"{name}.json")
            if about is not None:
                self._known[name] = about
        return self._known.get(name)

    def is_read(self, name: str) -> bool:
        """Tell whether a workload is read, and not synthesized."""
        return "synth" not in self._wanted[name].trace

    def recipe(self, name: str) -> Recipe:
        """Return what a workload is made from."""
        wanted, about = self._wanted[name], self.known(name)
        digest, n_tasks = ("", 0) if about is None else (about["digest"], about["n_tasks"])
        if not self.is_read(name):
            return Recipe(wanted.trace, wanted.cluster, digest=digest)
        is_parquet = wanted.trace["format"] == "parquet"  # which is read as what is kept would be
        kept = None if is_parquet else converted_workloads.folder_for(self._results, name)
        if digest and kept is not None and not kept.is_dir():
            sync.fetch_part(self._results, f"{kept.relative_to(self._results).as_posix()}/")
        files = wanted.stamps, self._copies
        return Recipe(wanted.trace, wanted.cluster, kept, digest, n_tasks, *files)

    def learn(self, name: str, about: Mapping[str, Any]) -> None:
        """Remember what came of a workload that was made elsewhere."""
        if name not in self._known:
            file = self._folder / f"{name}.json"
            files.write_checked_json(file, about)
            # without what was kept the trace is read again
            sync.push(self._results, file, converted_workloads.folder_for(self._results, name))
            self._known[name] = dict(about)

    def workload(self, name: str) -> Workload:
        """Return the workload itself, loading it unless it is still in memory."""
        if name in self._loaded:
            self._loaded.move_to_end(name)
            return self._loaded[name]
        workload = load(self.recipe(name))
        if name not in self._known:
            self.learn(name, describe(workload))
        self._loaded[name] = workload
        while len(self._loaded) > 1 and sum(map(_n_bytes, self._loaded.values())) > KEEP_BYTES:
            self._loaded.popitem(last=False)
        return workload

    def ask(self, name: str, question: Callable[[Workload], T]) -> T:
        """Return what a question finds of a workload: in a worker, if it is new or large."""
        about = self.known(name)
        is_large = about is None or about["n_tasks"] > FEW_TASKS
        if self._convert is None or not self.is_read(name) or not is_large:
            return question(self.workload(name))
        found = self._convert(replace(self.recipe(name), question=question))
        answer: T = found.pop(ANSWER)
        self.learn(name, found)
        return answer

    def _here(self, trace: Mapping[str, Any]) -> Mapping[str, Any]:
        """Fetch a trace that lies in an object store, once."""
        uri = trace.get("path")
        if not isinstance(uri, str) or not remote.is_remote(uri):
            return trace
        if uri not in self._copies:
            self._copies[uri] = remote.download(uri, self._fetched)
        return {**trace, "path": str(self._copies[uri])}


def _digest(content: Any) -> str:
    return hashlib.sha256(canonical(content).encode()).hexdigest()


def _n_bytes(workload: Workload) -> int:
    tables = (workload.jobs, workload.stages, workload.stage_edges, workload.job_edges)
    n_bytes = sum(table.nbytes for table in (*tables, workload.downloads))
    return int(n_bytes) + 8 * workload.n_tasks
