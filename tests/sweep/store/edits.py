"""Edits of the sources that only digests see, and that are taken back."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sim.base.sources import modules
from sweep.store import sources

COMMENT = b"\n# a second thought\n"
STATEMENT = b"\nEDITED = 1\n"


class Sources:
    """Source reader that returns edited contents without changing any file."""

    def __init__(self) -> None:
        self._contents: dict[Path, bytes] = {}

    def read(self, file: Path) -> bytes:
        return self._contents.get(file) or file.read_bytes()

    def edit(self, name: str, added: bytes = b"", old: bytes = b"", new: bytes = b"") -> None:
        """Edit one module, or a data file in its package (``package/file``); undo earlier edits."""
        file = source_file(name)
        content = file.read_bytes()
        assert old in content, f"{name} has no {old!r}"
        self._contents = {file: content.replace(old, new, 1) + added}
        sources.forget()

    def add_to(self, names: Iterable[str], added: bytes) -> None:
        """Edit several modules or data files; undo earlier edits."""
        files = map(source_file, names)
        self._contents = {file: file.read_bytes() + added for file in files}
        sources.forget()

    def restore(self) -> None:
        self._contents = {}
        sources.forget()


def source_file(name: str) -> Path:
    module, _, data = name.partition("/")
    result = modules.find(module)
    assert result is not None, f"there is no module {module}"
    return result.file.parent / data if data else result.file
