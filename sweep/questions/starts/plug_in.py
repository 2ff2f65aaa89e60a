"""Plug-in of expected starts: its strategy and its section."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sweep.grid.request import Request
from sweep.questions.starts import goal
from sweep.questions.starts.goal import DRAWS, MOMENTS, STARTS, STARTS_JSON, Starts

if TYPE_CHECKING:
    from sweep.execution.strategy import Strategy
    from sweep.report.contribution import Contribution, Finished
    from sweep.report.section import Section
    from sweep.store.folder import SweepFolder

ORDER = 15
KEYS = (DRAWS, MOMENTS)
FILES = JOB_FILES = (STARTS, STARTS_JSON)
FRAMES = {"starts": (STARTS, ())}

take = goal.take_goal


def words(request: Request) -> list[str]:
    """Return the words that the log adds: the instants."""
    if not isinstance(request.goal, Starts):
        return []
    from sweep.questions.starts.moments import words_of_log  # brings numba

    return words_of_log(request)


def strategy(request: Request) -> Strategy | None:
    """Return the strategy of a request for expected starts; None for others."""
    if not isinstance(request.goal, Starts):
        return None
    from sweep.questions.starts.strategy import ExpectedStarts  # brings numba

    return ExpectedStarts(request)


def contribute(sweep: Finished) -> Contribution:
    """Add the section."""
    from sweep.report.contribution import Contribution  # brings the report

    return Contribution(sections=tuple(sections(sweep.folder, sweep.config)))


def sections(folder: SweepFolder, config: Mapping[str, Any]) -> list[Section]:
    """Build the section; none for another sweep."""
    from sweep.questions.starts import section  # brings the report

    return section.build_sections(folder)
