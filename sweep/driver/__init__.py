"""The driver: from words to a sweep's folder; the one writer of cells, tables and reports.

What happens meanwhile is said on standard error (`sweep.execution.notes`); whoever calls shows the
rest.
"""

from sweep.driver.one_cell import plan_cell
from sweep.driver.output import Outcome, find, write_report
from sweep.driver.repair import opened
from sweep.driver.request import ask, ask_again, find_modules
from sweep.driver.run_sweep import ONE_SEED, begin, run

__all__ = [
    "ONE_SEED",
    "Outcome",
    "ask",
    "ask_again",
    "begin",
    "find",
    "find_modules",
    "opened",
    "plan_cell",
    "run",
    "write_report",
]
