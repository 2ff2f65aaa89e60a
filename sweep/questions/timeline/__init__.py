"""Timelines of single runs: who ran where and when, what waited, and why.

`capture` runs a cell and keeps what its policy did; `build_timeline` makes its columns;
`page` draws one or two as an interactive page, `perfetto` writes Chrome's trace format.
"""
