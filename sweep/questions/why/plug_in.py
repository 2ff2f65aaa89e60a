"""Plug-in that explains why a policy loses against another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sweep.questions.why.answer import Answer
    from sweep.store.folder import SweepFolder

ORDER = 55


def explain(folder: SweepFolder, row: int, other: int | str) -> Answer:
    """Run a cell and another again, or that of a policy; compare them job by job."""
    from sweep.questions.why import answer  # brings numba

    return answer.explain(folder, row, other)


def write_pages(answer: Answer) -> Path:
    """Write an answer's page, and the timelines that it links."""
    return answer.write_pages()
