"""Building blocks of readers of traces and logs.

`open_text` opens a plain or compressed file; `CommentStripper` removes comments. `read_blocks`
reads delimited text in blocks of columns, one `Field` for each column needed, and reports line and
rule of every bad row; `read_columns` returns whole columns instead. Dropped rows are counted by
rule (`valid_rows`, `count_rule`) for the workload's report, and `Account` holds the work of a log
by what became of it; `no_job_left` is the error if every row is dropped. `resolution_s` finds out
the resolution of recorded times. `json_records` yields the records in files of JSON, and
`json_field` a field of one; `kind_of_json` tells JSON of other kinds. CONTRIBUTING, *Add a trace*,
explains how to add a reader.
"""

from sim.base.reading.account import Account
from sim.base.reading.bad_rows import BadRows
from sim.base.reading.clock import resolution_s
from sim.base.reading.comments import CommentStripper, Section
from sim.base.reading.json_kinds import kind_of_json
from sim.base.reading.json_records import json_files, json_records
from sim.base.reading.layout import Field, Layout, OnBadRow
from sim.base.reading.rows import read_blocks, read_columns
from sim.base.reading.rules import count_rule, distinct_ids, repeated_rows, valid_rows
from sim.base.reading.text import (
    BadLineError,
    broken_text_error,
    check_values,
    column_names,
    empty_file_error,
    first_line,
    handle_bad_line,
    no_job_left,
    open_text,
    read_bytes,
    read_text,
)
from sim.base.reading.values import (
    check_text,
    json_field,
    json_values,
    parse_json,
    parse_numbers,
    parse_time,
)

__all__ = [
    "Account",
    "BadLineError",
    "BadRows",
    "CommentStripper",
    "Field",
    "Layout",
    "OnBadRow",
    "Section",
    "broken_text_error",
    "check_text",
    "check_values",
    "column_names",
    "count_rule",
    "distinct_ids",
    "empty_file_error",
    "first_line",
    "handle_bad_line",
    "json_field",
    "json_files",
    "json_records",
    "json_values",
    "kind_of_json",
    "no_job_left",
    "open_text",
    "parse_json",
    "parse_numbers",
    "parse_time",
    "read_blocks",
    "read_bytes",
    "read_columns",
    "read_text",
    "repeated_rows",
    "resolution_s",
    "valid_rows",
]
