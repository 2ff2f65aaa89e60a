"""Plug-in of searches: strategies for targets, parameters and restored waits; their sections.

Beside them stands equal capacity, which any grid with a baseline and several capacities has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sweep.grid.request import Request
from sweep.questions.search import goals
from sweep.questions.search.files import EQUAL, IMPORTANCE, SETTINGS, TARGETS, WHAT_IF

if TYPE_CHECKING:
    from sweep.execution.strategy import Strategy
    from sweep.report.contribution import Contribution, Finished
    from sweep.report.section import Section
    from sweep.store.folder import SweepFolder

ORDER = 20
KEYS = tuple(f"{group}.{key}" for group, keys in goals.KEYS.items() for key in keys)
CHOOSE_SEEDS = ("search.metric",)
FILES = (TARGETS, SETTINGS, IMPORTANCE, WHAT_IF)
REPORT_FILES = (EQUAL,)

take = goals.take_goal


def strategy(request: Request) -> Strategy | None:
    """Return the search of a request; None if it asks for none."""
    from sweep.questions.search.parameters import ParameterSearches
    from sweep.questions.search.restore import WhatIfs
    from sweep.questions.search.targets import TargetSearches

    if isinstance(request.asked, goals.Target):
        return TargetSearches(request)
    if isinstance(request.asked, goals.Search):
        return ParameterSearches(request)
    if request.asked is None and request.what_if is not None and request.precision is None:
        return WhatIfs(request)
    return None


def contribute(sweep: Finished) -> Contribution:
    """Add the sections of searches and of equal capacity; write the table of the latter."""
    from sweep.questions.search import equal_capacity
    from sweep.questions.search.sections import shown_cells
    from sweep.report.contribution import Contribution

    sweep.folder.replace(EQUAL, equal_capacity.table(sweep.cells, sweep.config))
    cells = shown_cells(sweep.cells, sweep.config, sweep.folder)
    return Contribution(cells, tuple(sections(sweep.folder, sweep.config)))


def sections(folder: SweepFolder, config: Mapping[str, Any]) -> list[Section]:
    """Build the sections of searches and of equal capacity."""
    from sweep.questions.search.sections import build_sections

    return build_sections(folder, config)
