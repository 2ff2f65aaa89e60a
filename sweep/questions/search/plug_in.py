"""Plug-in of searches: strategies for targets, parameters and restored waits; their sections.

Beside them stands equal capacity, which any grid with a baseline and several capacities has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sweep.grid.request import Request
from sweep.questions.search import goals
from sweep.questions.search.files import (
    EQUAL,
    IMPORTANCE,
    SETTINGS,
    TARGETS,
    WHAT_IF,
    WHAT_IF_GROUPS,
)

if TYPE_CHECKING:
    from sweep.execution.strategy import Strategy
    from sweep.report.contribution import Contribution, Finished
    from sweep.report.section import Section
    from sweep.store.folder import SweepFolder

ORDER = 20
KEYS = tuple(f"{group}.{key}" for group, keys in goals.KEYS.items() for key in keys)
CHOOSE_SEEDS = ("search.metric",)
FILES = (TARGETS, SETTINGS, IMPORTANCE, WHAT_IF, WHAT_IF_GROUPS)
JOB_FILES = (WHAT_IF_GROUPS,)
REPORT_FILES = (EQUAL,)
FRAMES = {
    "targets": (
        TARGETS,
        (
            *("policy", "trace", "target", "capacity", "low", "high", "status"),
            *("machines", "seeds", "cells"),
        ),
    )
}
HELP = (
    "  target.metric=M target.at_most=X (or target.at_least=X) with capacity='interval(LOW,HIGH)'",
    "                      smallest capacity, in whole machines, that meets the target "
    "(docs/targets.md)",
    "  search.metric=M (or M,N) search.cells=400 with policy.X='interval(LOW,HIGH)' policy.Y=A,B",
    "                      best parameters of 400 cells, tested on seeds that the search did not "
    "use",
)

take = goals.take_goal


def strategy(request: Request) -> Strategy | None:
    """Return the search of a request; None if it asks for none."""
    # these bring the searches, which a grid does not need
    from sweep.questions.search.parameters import ParameterSearches
    from sweep.questions.search.restore import WhatIfs
    from sweep.questions.search.targets import TargetSearches

    if isinstance(request.goal, goals.Target):
        return TargetSearches(request)
    if isinstance(request.goal, goals.Search):
        return ParameterSearches(request)
    if request.goal is None and request.what_if is not None and request.precision is None:
        return WhatIfs(request)
    return None


def granularity(config: Mapping[str, Any]) -> str | None:
    """Return a run a setting for a search over parameters; None for others."""
    return "policy" if "space" in (config.get("goal") or {}) else None


def contribute(sweep: Finished) -> Contribution:
    """Add the sections of searches and of equal capacity; write the table of the latter."""
    # these bring the report
    from sweep.questions.search import equal_capacity
    from sweep.questions.search.sections import shown_cells, what_if_answer
    from sweep.report.contribution import Contribution

    sweep.folder.replace(EQUAL, equal_capacity.table(sweep.cells, sweep.config))
    cells = shown_cells(sweep.cells, sweep.config, sweep.folder)
    answer = what_if_answer(sweep.folder)
    return Contribution(cells, tuple(sections(sweep.folder, sweep.config)), answer=answer)


def sections(folder: SweepFolder, config: Mapping[str, Any]) -> list[Section]:
    """Build the sections of searches and of equal capacity."""
    from sweep.questions.search.sections import build_sections  # brings the report

    return build_sections(folder, config)
