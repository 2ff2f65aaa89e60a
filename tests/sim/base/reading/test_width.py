"""Rows of a wrong width: put right where only one way is valid, else bad and told."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sim
from sim.base.reading import BadRows, Field, Layout, open_text, read_columns, rows

LAYOUT = Layout(
    ("id", "name", "submit_s", "cpus"), delimiter="|", free_text=("name",), quoted=False
)
FIELDS = {
    "id": Field(required=True, form=r"^\d+$"),
    "submit_s": Field("number", required=True),
    "cpus": Field("whole", required=True),
}


def read(
    folder: Path, text: str, layout: Layout = LAYOUT, fields: dict[str, Field] = FIELDS
) -> tuple[dict[str, Any], BadRows]:
    file = folder / "log.txt"
    file.write_text(text)
    bad = BadRows()
    with open_text(file) as stream:
        return read_columns(file, stream, layout, fields, "skip", bad), bad


@pytest.mark.parametrize("block_bytes", [64, 1 << 20])
def test_a_delimiter_and_a_line_end_in_a_text_are_put_right_in_their_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int
) -> None:
    monkeypatch.setattr(rows, "_BLOCK_BYTES", block_bytes)
    lines, expected, n_odd = [], [], 0
    rng = np.random.default_rng(1)
    for row in range(200):
        name = rng.choice(["plain", "grid|search", "two\nlines", "a|b|c", "x\n|y\nz"])
        n_odd += name != "plain"
        lines.append(f"{row}|{name}|{row / 2}|{row % 7}")
        expected.append((str(row), row / 2, row % 7))
    log, bad = read(tmp_path, "\n".join(lines) + "\n")
    assert list(zip(log["id"].to_pylist(), log["submit_s"], log["cpus"], strict=True)) == expected
    assert not bad
    assert sum(bad.repaired.values()) == n_odd > 100


def test_a_row_that_no_way_explains_is_bad_with_line_and_reason(tmp_path: Path) -> None:
    log, bad = read(tmp_path, "1|a|0|2\n2|b|late|x|4\n3|c|2|1\n")
    assert log["id"].to_pylist() == ["1", "3"]
    assert bad == {"wrong number of fields": 1}
    assert bad.examples == {
        "wrong number of fields": "line 2: the row has 5 fields; it needs 4 (a '|' in name?)"
    }


def test_what_can_be_read_of_bad_rows_is_kept(tmp_path: Path) -> None:
    layout = Layout(("id", "cpus", "submit_s", "end"), delimiter="|")
    _, bad = read(tmp_path, "1|2|0|5\n2|3|4\n3|-1|4|5\n4|1|9|9\n", layout)
    assert bad == {"wrong number of fields": 1, "number out of range": 1}
    values = {rule: columns for rule, columns, _ in bad.blocks()}
    assert values["wrong number of fields"]["cpus"].tolist() == [3.0]
    assert np.isnan(values["wrong number of fields"]["submit_s"]).tolist() == [True]
    assert np.isnan(values["number out of range"]["cpus"]).tolist() == [True]
    assert values["number out of range"]["submit_s"].tolist() == [4.0]


def test_a_row_that_is_too_short_is_an_error_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "log.txt"
    file.write_text("1|a|0|2\n2|b\n3|c|2|1\n")
    with open_text(file) as stream, pytest.raises(sim.InputError, match="2 fields") as caught:
        read_columns(file, stream, LAYOUT, FIELDS, "error", BadRows())
    assert caught.value.line == 2


def test_a_table_of_many_columns_takes_no_time_by_column_and_row(tmp_path: Path) -> None:
    n = 30_000
    names = ("id", *(f"note {i}" for i in range(n)), "submit_s", "cpus")
    layout = Layout(names, delimiter="|", free_text=names[1:-2])
    more = dict.fromkeys(layout.free_text, Field())
    for fields in (FIELDS, FIELDS | more):
        begin_s = time.process_time()
        log, bad = read(tmp_path, f"1{'|' * n}||3|2\n2{'|x' * n}||4|5\n", layout, fields)
        assert time.process_time() - begin_s < 5.0
        assert log["submit_s"].tolist() == [3.0, 4.0]
        assert sum(bad.repaired.values()) == 2
    assert log["note 0"].to_pylist() == ["|", "x|x"]


def test_a_row_that_is_longer_than_a_block_is_named(tmp_path: Path) -> None:
    with pytest.raises(sim.InputError, match="more than 4,194,304 bytes") as caught:
        read(tmp_path, f"1|a|0|2\n2|{'b' * 9_000_000}|1|1\n")
    assert (caught.value.line, caught.value.rule) == (2, "line too long")
