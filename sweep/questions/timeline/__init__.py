"""Timelines of single runs: who ran where and when, what waited, and why.

`columns` are made of a run (`sweep.driver.captured_run`); `page` draws one or two as an interactive
page, `perfetto` writes Chrome's trace format.
"""
