"""Arrow columns from plain values and back."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest

from sim.base import columns

ROWS = [
    {"name": "a", "n": 1, "share": 0.5, "is_best": True},
    {"name": None, "n": None, "share": float("nan")},
    {"name": "é", "n": -3, "share": None, "is_best": False},
]
SCHEMA = pa.schema(
    [("name", pa.string()), ("n", pa.int64()), ("share", pa.float64()), ("is_best", pa.bool_())]
)


@pytest.mark.parametrize("rows", [ROWS, ROWS[:1], []])
def test_a_table_from_rows_equals_arrows(rows):
    table = columns.table_from_rows(rows, SCHEMA)
    table.validate(full=True)
    assert repr(table.to_pylist()) == repr(pa.Table.from_pylist(rows, SCHEMA).to_pylist())


def test_texts_come_one_by_one():
    values = ["a", None, "", "bc"]
    assert columns.strings(value for value in values).to_pylist() == values
    assert columns.strings([], pa.large_string()).to_pylist() == []


def test_nothing_here_imports_pandas():
    code = (
        "import sys; from tests.sim.base.test_columns import ROWS, SCHEMA, columns; "
        "made = columns.table_from_rows(ROWS, SCHEMA); "
        "[columns.to_numpy(made[name].combine_chunks()) for name in ('n', 'share', 'is_best')]; "
        "assert 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
