"""What a reader of traces or logs is made of.

`open_text` opens a plain or gzipped file, `RowsOnly` takes comments out; `read_blocks` reads
delimited text in blocks of columns, a `Field` a column that matters, and gives every bad row its
line and rule; `read_columns` does the same as whole columns. What is left out is counted by rule
(`rows_left`, `count_rule`) and goes into the workload's report; `nothing_left` is the error where
that was everything. How to add a reader: CONTRIBUTING, *Add a trace*.
"""

from sim.base.reading.comments import RowsOnly
from sim.base.reading.rows import Field, Layout, OnBadRow, read_blocks, read_columns
from sim.base.reading.rules import count_rule, first_rows, rows_left
from sim.base.reading.text import (
    BadLineError,
    broken_text,
    column_names,
    empty_file,
    first_line,
    nothing_left,
    one_line,
    open_text,
    whole_bytes,
    whole_text,
)
from sim.base.reading.values import check_text, json_of, json_values, numbers_of

__all__ = [
    "BadLineError",
    "Field",
    "Layout",
    "OnBadRow",
    "RowsOnly",
    "broken_text",
    "check_text",
    "column_names",
    "count_rule",
    "empty_file",
    "first_line",
    "first_rows",
    "json_of",
    "json_values",
    "nothing_left",
    "numbers_of",
    "one_line",
    "open_text",
    "read_blocks",
    "read_columns",
    "rows_left",
    "whole_bytes",
    "whole_text",
]
