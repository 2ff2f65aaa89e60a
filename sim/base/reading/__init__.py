"""What a reader of traces or logs is made of.

`open_text` opens a plain or gzipped file, `CommentStripper` takes comments out; `read_blocks` reads
delimited text in blocks of columns, a `Field` a column that matters, and gives every bad row its
line and rule; `read_columns` does the same as whole columns. What is left out is counted by rule
(`valid_rows`, `count_rule`) and goes into the workload's report; `no_job_left` is the error where
that was everything. How to add a reader: CONTRIBUTING, *Add a trace*.
"""

from sim.base.reading.comments import CommentStripper
from sim.base.reading.rows import Field, Layout, OnBadRow, read_blocks, read_columns
from sim.base.reading.rules import count_rule, first_rows, valid_rows
from sim.base.reading.text import (
    BadLineError,
    broken_text_error,
    column_names,
    empty_file_error,
    first_line,
    handle_bad_line,
    no_job_left,
    open_text,
    read_bytes,
    read_text,
)
from sim.base.reading.values import check_text, json_values, parse_json, parse_numbers

__all__ = [
    "BadLineError",
    "CommentStripper",
    "Field",
    "Layout",
    "OnBadRow",
    "broken_text_error",
    "check_text",
    "column_names",
    "count_rule",
    "empty_file_error",
    "first_line",
    "first_rows",
    "handle_bad_line",
    "json_values",
    "no_job_left",
    "open_text",
    "parse_json",
    "parse_numbers",
    "read_blocks",
    "read_bytes",
    "read_columns",
    "read_text",
    "valid_rows",
]
