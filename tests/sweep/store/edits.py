"""Editing the sources as far as digests can see, and taking it back."""

from __future__ import annotations

from pathlib import Path

from sim.base.sources import modules
from sweep.store import sources

COMMENT = b"\n# a second thought\n"
STATEMENT = b"\nEDITED = 1\n"


class Sources:
    """Sources that read as if they had been edited."""

    def __init__(self) -> None:
        self._contents: dict[Path, bytes] = {}

    def read(self, file: Path) -> bytes:
        return self._contents.get(file) or file.read_bytes()

    def edit(self, name: str, added: bytes = b"", old: bytes = b"", new: bytes = b"") -> None:
        """Edit a module, or a file of data beside one (``package/file``); nothing else is."""
        file = file_of(name)
        content = file.read_bytes()
        assert old in content, f"{name} has no {old!r}"
        self._contents = {file: content.replace(old, new, 1) + added}
        sources.forget()

    def restore(self) -> None:
        self._contents = {}
        sources.forget()


def file_of(name: str) -> Path:
    module, _, data = name.partition("/")
    source = modules.find(module)
    assert source is not None, f"there is no module {module}"
    return source.file.parent / data if data else source.file
