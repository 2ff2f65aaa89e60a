"""Sweep folder: reading of its files."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pytest

from sweep.store.folder import FINDINGS, SweepFolder


class Recorder:
    """A file that records which threads read it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.threads: set[int] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read(self, *size: int) -> bytes:
        self.threads.add(threading.get_ident())
        return self._file.read(*size)


def test_a_table_is_read_in_the_calling_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread of Arrow's that still holds Python's bytes while Python ends aborts the process."""
    folder = SweepFolder(tmp_path)
    folder.replace(FINDINGS, pa.table({name: [1.0, 2.0] for name in "abcd"}))
    folder.commit()
    recorders: list[Recorder] = []
    open_file = Path.open

    def open_recorded(path: Path, *args: Any, **options: Any) -> Any:
        if path.name != FINDINGS:
            return open_file(path, *args, **options)
        recorders.append(Recorder(open_file(path, *args, **options)))
        return recorders[-1]

    monkeypatch.setattr(Path, "open", open_recorded)
    table = SweepFolder(tmp_path).findings()
    assert table is not None
    assert table.num_rows == 2
    assert [recorder.threads for recorder in recorders] == [{threading.get_ident()}]
