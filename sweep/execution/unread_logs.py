"""Refuse a sweep on a log most of whose work is left out."""

from __future__ import annotations

from typing import Final

from sim.base.errors import InputError
from sweep.execution.plan import PlannedCell, PreparedGrid
from sweep.grid.options import is_bundled
from sweep.grid.request import Request
from sweep.stats import reading

MOST_LEFT_OUT: Final = 0.5
"""Largest share of a log's work that may be left out without a word of the user's."""
_ON_BAD_ROW: Final = "trace.on_bad_row"


def check(prepared: PreparedGrid) -> None:
    """Refuse a log most of whose work is left out, unless the user says that rows may be.

    By default many readers skip bad rows, which is no word of the user's.
    """
    if _may_skip(prepared.grid.request):
        return
    for planned in prepared.representatives:
        workload, trace = prepared.inputs.known(planned.workload), planned.cell.trace
        if workload is None or _is_own_skip(prepared, planned):
            continue
        log = reading.describe(planned.cell.labels["trace"], trace.get("path"), workload)
        if log is not None and log.unread_share > MOST_LEFT_OUT:
            raise InputError(
                f"{log.sentence}. At most {100 * MOST_LEFT_OUT:.0f} % of a log's work may be left "
                "out without a word of yours: correct the log or the trace's options, or say "
                "trace.on_bad_row=skip",
                rule="work left out",
            )


def _may_skip(request: Request) -> bool:
    """Tell whether the command line or an experiment says that rows may be left out."""
    fixed = [line.value for line in request.fixed if line.key == _ON_BAD_ROW]
    return "skip" in fixed or _ON_BAD_ROW in request.axes


def _is_own_skip(prepared: PreparedGrid, planned: PlannedCell) -> bool:
    """Tell whether a trace's option is the user's own file, and says that rows may be left out."""
    options = prepared.grid.request.options
    file = options.files["trace"].get(planned.cell.labels["trace"])
    is_own = file is not None and not is_bundled(file)
    return is_own and planned.cell.trace.get("on_bad_row") == "skip"
