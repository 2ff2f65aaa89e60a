"""Plug-in that explains why jobs wait, and why a policy loses against another."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sweep.driver.captured_run import Captured
    from sweep.questions.why.answer import Answer, WaitAnswer
    from sweep.report.contribution import Contribution, Finished
    from sweep.store.folder import SweepFolder

ORDER = 55


def explain(folder: SweepFolder, row: int, other: int | str) -> Answer:
    """Run a cell and another again, or that of a policy; compare them job by job."""
    from sweep.questions.why import answer  # brings numba

    return answer.explain(folder, row, other)


def explain_waits(folder: SweepFolder, row: int, *, is_log: bool = False) -> WaitAnswer:
    """Run a cell again, or the log as it ran; split its waits by reason, user, queue and period."""
    from sweep.questions.why import answer  # brings numba

    return answer.explain_waits(folder, row, is_log=is_log)


def explain_runs(runs: list[Captured], names: list[str]) -> list[str]:
    """Compare two runs of the same jobs: two sentences, and one for each job that lost most."""
    from sweep.questions.why import explanation, sentences  # brings numba

    return sentences.lines(explanation.Explanation(runs, names))


def contribute(sweep: Finished) -> Contribution:
    """Add the command that explains the baseline's loss."""
    from sweep.questions.why.section import build_section  # brings the report
    from sweep.report.contribution import Contribution  # brings the report

    section = build_section(sweep)
    return Contribution(sections=() if section is None else (section,))
