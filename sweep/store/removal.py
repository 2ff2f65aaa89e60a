"""Removal of a sweep: its folder, its journal, and reports and comparisons made from it."""

from __future__ import annotations

import glob
import shutil
from pathlib import Path

from sim.base.errors import InputError
from sweep.store import storage
from sweep.store.folder import CELLS
from sweep.store.journal import Journal


def remove(results: Path, sweep: str) -> int:
    """Remove a sweep; its cells stay cached. Return the bytes that were freed.

    Raises
    ------
    InputError
        If it is running.
    """
    journal = Journal(results, sweep)
    if journal.is_running():
        raise InputError(f"{sweep} is running; end it first (Ctrl-C there)", rule="running")
    store = storage.for_results(results)
    with journal.locked(lambda: None):
        stored = store.list(f"sweeps/{sweep}/").items()
        sizes = {name: entry.n_bytes for name, entry in stored}
        sizes |= _local_sizes(results, _variants(results, sweep))
        # without its table it is unfinished: a kill in between leaves no half of a finished one
        for name in sorted(sizes, key=lambda name: (not name.endswith(f"/{CELLS}"), name)):
            store.delete(name)
            (results / name).unlink(missing_ok=True)
        for folder in (results / "sweeps" / sweep, *_variants(results, sweep)):
            shutil.rmtree(folder, ignore_errors=True)
        store.delete(f"journal/{sweep}.jsonl")
        journal.file.unlink(missing_ok=True)
    for name in store.list(f"journal/{sweep}.lease/"):
        store.delete(name)
    shutil.rmtree(results / "journal" / f"{sweep}.lease", ignore_errors=True)
    return sum(sizes.values())


def pages(results: Path, sweep: str) -> dict[str, int]:
    """Count the pages that go with a sweep, by kind."""
    kinds = {"reports": "report", "comparisons": "comparison", "timelines": "timeline"}
    counts = dict.fromkeys(kinds.values(), 0)
    # a comparison is a page and its Markdown
    paths = _variants(results, sweep)
    for path in {path if path.is_dir() else path.with_suffix("") for path in paths}:
        counts[kinds[path.parent.name]] += 1
    return counts


def _variants(results: Path, sweep: str) -> list[Path]:
    """List reports with other baselines or metrics, comparisons, and timelines of a sweep."""
    name = glob.escape(sweep)
    patterns = (f"reports/{name}--*", f"comparisons/{name}--*", f"comparisons/*--{name}.*")
    timelines = results.glob(f"timelines/{name}-*.html")
    return sorted({*timelines, *(p for pattern in patterns for p in results.glob(pattern))})


def _local_sizes(results: Path, paths: list[Path]) -> dict[str, int]:
    inside = [file for path in paths for file in (path.rglob("*") if path.is_dir() else [path])]
    return {
        file.relative_to(results).as_posix(): file.stat().st_size
        for file in inside
        if file.is_file()
    }
