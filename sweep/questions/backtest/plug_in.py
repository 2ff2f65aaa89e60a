"""Plug-in of backtests: their strategy, their sections, and earlier backtests of a sweep's log."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweep.grid.request import Request
from sweep.questions.backtest import runs
from sweep.questions.backtest.runs import (
    BACKTEST,
    BACKTEST_GROUPS,
    BACKTEST_JOBS,
    BACKTEST_JSON,
    STEPS_TABLE,
    Runs,
)

if TYPE_CHECKING:
    from sweep.execution.strategy import Strategy
    from sweep.questions.backtest.earlier import KnownError
    from sweep.questions.backtest.trust import Trust
    from sweep.report.contribution import Contribution, Finished
    from sweep.report.section import Section
    from sweep.store.folder import SweepFolder

ORDER = 10
KEYS = (runs.RUNS, runs.STEPS)
CHOOSE_SEEDS = (runs.RUNS,)
FILES = JOB_FILES = (BACKTEST, BACKTEST_JOBS, BACKTEST_GROUPS, STEPS_TABLE, BACKTEST_JSON)
FRAMES = {"backtest": (BACKTEST, ())}
FIELD = "backtests"
"""Field of ``verdict.json``: what earlier backtests of the log found."""
TRUST = "trust"
"""Field of ``verdict.json``: how far a what-if, target or search is to be trusted."""
FIELDS = (FIELD, TRUST)
OTHERS = "errors of earlier backtests"
POINTS = ("error", "mae", "waited_within_10pct", "pairs_in_order")
"""Columns of ``backtest.parquet`` that go to MLflow."""

take = runs.take_runs


def words(request: Request) -> list[str]:
    """Return the words that a backtest's log adds."""
    if not isinstance(request.goal, Runs):
        return []
    from sweep.questions.backtest.request import words_of_log  # brings numba

    return words_of_log(request)


def strategy(request: Request) -> Strategy | None:
    """Return the strategy of a backtest; None for other requests."""
    if not isinstance(request.goal, Runs):
        return None
    from sweep.questions.backtest.strategy import Backtest  # brings numba

    return Backtest(request)


def contribute(sweep: Finished) -> Contribution:
    """Add the sections of a backtest; of other sweeps how far their policies were from the log."""
    from sweep.questions.backtest import earlier, trust  # these bring the report
    from sweep.report.contribution import Contribution

    if sweep.recorded is None:
        source = sweep.folder.results, sweep.config, sweep.provenance
        known, trusts = earlier.known_errors(*source), trust.find_trust(*source)
    else:
        verdict = sweep.recorded.verdict()
        known = earlier.recorded_errors(verdict, FIELD)
        trusts = trust.recorded_trust(verdict, TRUST)
    whole = trust.joined(trusts)
    return Contribution(
        lead=() if whole is None else whole.lines,
        answer={} if whole is None else {TRUST: whole.to_json()},
        sections=tuple(sections(sweep.folder, sweep.config)),
        beside_answers=(earlier.section(known),) if known else (),
        remarks={trace: earlier.sentence(errors) for trace, errors in known.items()},
        verdict=_fields(known, trusts),
    )


def sections(folder: SweepFolder, config: Mapping[str, Any]) -> list[Section]:
    """Build the sections of a backtest; none for another sweep."""
    from sweep.questions.backtest import section  # brings the report

    return section.build_sections(folder)


def from_others(
    results: Path, config: Mapping[str, Any], provenance: Mapping[str, Any]
) -> Mapping[str, Mapping[str, Any]]:
    """Return the field of ``verdict.json`` that earlier backtests give by now, by trace."""
    from sweep.questions.backtest import earlier, trust  # brings the report

    source = results, config, provenance
    return _fields(earlier.known_errors(*source), trust.find_trust(*source))


def _fields(
    known: Mapping[str, Sequence[KnownError]], trusts: Mapping[str, Trust]
) -> dict[str, dict[str, Any]]:
    fields: dict[str, dict[str, Any]] = {trace: {} for trace in {**known, **trusts}}
    for trace, errors in known.items():
        fields[trace][FIELD] = [error.to_json() for error in errors]
    for trace, entry in trusts.items():
        fields[trace][TRUST] = entry.to_json()
    return fields


def points(folder: SweepFolder) -> dict[str, float]:
    """Return the numbers of a backtest for MLflow, such as ``backtest_error/easy``."""
    policies = folder.table(BACKTEST)
    rows = [] if policies is None else policies.to_pylist()
    return {
        f"backtest_{name}/{row['label']}": float(row[name])
        for name in POINTS
        for row in rows
        if row[name] is not None and math.isfinite(row[name])
    }
