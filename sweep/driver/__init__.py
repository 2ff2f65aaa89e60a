"""Driver: from the command line to a sweep's folder; sole writer of cells, tables and reports.

Progress goes to standard error (`sweep.execution.notes`); the caller shows the outcome.
"""

from sweep.driver.added import build_sections, replace_tables
from sweep.driver.batch_run import run
from sweep.driver.one_cell import plan_cell
from sweep.driver.output import write_report
from sweep.driver.repair import open_intact
from sweep.driver.request import (
    find_modules,
    find_recorded_modules,
    make_request,
    repeat_request,
)
from sweep.driver.run_sweep import Outcome, prepare_first
from sweep.execution.strategy import ONE_SEED

__all__ = [
    "ONE_SEED",
    "Outcome",
    "build_sections",
    "find_modules",
    "find_recorded_modules",
    "make_request",
    "open_intact",
    "plan_cell",
    "prepare_first",
    "repeat_request",
    "replace_tables",
    "run",
    "write_report",
]
