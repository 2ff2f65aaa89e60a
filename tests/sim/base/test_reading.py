"""Delimited text as columns, for any number of blocks and bad rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sim
from sim.base.reading import (
    BadRows,
    Field,
    Layout,
    OnBadRow,
    open_text,
    read_columns,
    rows,
)

LAYOUT = Layout(("name", "submit_s"), delimiter=";")
FIELDS = {"name": Field(required=True), "submit_s": Field("number", required=True)}


def columns(
    folder: Path, text: str, on_bad_row: OnBadRow = "error"
) -> tuple[list[str], list[float], dict[str, int]]:
    file = folder / "log.txt"
    file.write_text(text)
    bad = BadRows()
    with open_text(file) as stream:
        read = read_columns(file, stream, LAYOUT, FIELDS, on_bad_row, bad)
    assert [*read] == [*FIELDS]
    return read["name"].to_pylist(), read["submit_s"].tolist(), bad


def test_columns_are_complete_for_any_number_of_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "_BLOCK_BYTES", 64)
    times = np.arange(100) / 4
    text = "".join(f"job {row};{time}\n" for row, time in enumerate(times))
    names, result, bad = columns(tmp_path, text + "short\n", "skip")
    assert names == [f"job {row}" for row in range(100)]
    assert result == times.tolist()
    assert bad == {"wrong number of fields": 1}


@pytest.mark.parametrize("text", ["a;1;2\n", "a;late\n"])
def test_without_a_row_left_it_is_an_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(sim.InputError, match="no job is left"):
        columns(tmp_path, text, "skip")
