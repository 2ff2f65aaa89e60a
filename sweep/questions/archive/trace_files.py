"""Files that traces are read from: digests for an archive, and places on another machine."""

from __future__ import annotations

import contextlib
import glob
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sweep.grid import remote, traces

Named = Mapping[str, Any]


@dataclass(frozen=True)
class TraceInput:
    """A file or folder that a trace names.

    Attributes
    ----------
    text : str
        Path as the configuration has it, secrets masked.
    name : str
        Last part of the path.
    is_folder : bool
        True for a folder, whose files are named below it.
    files : tuple of (str, str, int)
        Name, SHA-256 and size in bytes of each file.
    """

    text: str
    name: str
    is_folder: bool
    files: tuple[tuple[str, str, int], ...]

    def matches(self, path: Path, digest: Callable[[Path], str]) -> bool:
        """Tell whether a path of this machine has this content."""
        if self.is_folder:
            present = {f.relative_to(path).as_posix(): f for f in _files(path)}
        else:
            present = {self.name: path} if path.is_file() else {}
        if present.keys() != {name for name, *_ in self.files}:
            return False
        if any(present[name].stat().st_size != size for name, _, size in self.files):
            return False
        return all(digest(present[name]) == checksum for name, checksum, _ in self.files)

    def describe(self) -> str:
        """Name it with its size and digest."""
        size = sum(size for *_, size in self.files)
        digest = self.files[0][1][:16] if self.files else "unknown"
        return f"{self.name} ({size:,} bytes, sha256 {digest})"


def texts(trace: Named) -> Iterator[str]:
    """Yield the texts of a trace's configuration that may name files: its path, and others."""
    if isinstance(trace.get("path"), str):
        yield trace["path"]
    yield from _inner_texts({key: value for key, value in trace.items() if key != "path"})


def _inner_texts(option: Any) -> Iterator[str]:
    if isinstance(option, Mapping):
        for value in option.values():
            yield from _inner_texts(value)
    elif isinstance(option, list):
        for value in option:
            yield from _inner_texts(value)
    elif isinstance(option, str):
        yield option


def find(trace: Named, digest: Callable[[Path], str]) -> Iterator[tuple[TraceInput, Path | None]]:
    """Yield what a trace reads, with its place here; None for a path that is not here."""
    paths = {*traces.paths(trace)}
    for text in texts(trace):
        is_path = text in paths
        if remote.is_remote(text):
            if is_path:
                yield TraceInput(text, text.rpartition("/")[2], False, ()), None
            continue
        try:
            path = remote.local_path(text)
            is_folder = path.is_dir() and is_path
            if path.is_file() or is_folder:
                yield _describe(text, path, digest), path
                continue
        except (OSError, ValueError, RuntimeError):  # a text need not be a file name
            continue
        if is_path:
            yield TraceInput(text, path.name, False, ()), None


def _describe(text: str, path: Path, digest: Callable[[Path], str]) -> TraceInput:
    root = path.resolve()
    folder = root if root.is_dir() else root.parent
    entries = [
        (file.relative_to(folder).as_posix(), digest(file), file.stat().st_size)
        for file in (_files(root) if root.is_dir() else [root])
    ]
    return TraceInput(text, root.name, root.is_dir(), tuple(entries))


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file())


def relocated(option: Any, places: Mapping[str, Path]) -> Any:
    """Return a trace's configuration with the paths that it names replaced."""
    if isinstance(option, Mapping):
        return {
            key: value if key in traces.SOURCES else relocated(value, places)
            for key, value in option.items()
        }
    if isinstance(option, list):
        return [relocated(value, places) for value in option]
    return str(places[option]) if isinstance(option, str) and option in places else option


def locate(
    trace_input: TraceInput, folders: Sequence[Path], digest: Callable[[Path], str]
) -> Path | None:
    """Find what an archive's trace reads in the user's folders; its own path is not followed."""
    candidates: list[Path] = []
    for folder in folders:
        candidates += sorted(folder.rglob(glob.escape(trace_input.name)))
    with contextlib.suppress(OSError, ValueError):  # a foreign text need not be a file name
        return next((path for path in candidates if trace_input.matches(path, digest)), None)
    return None
