"""Plug-in of the pages on results: the command that opens them, in the last lines of a sweep."""

from __future__ import annotations

from pathlib import Path

ORDER = 40


def browser_command(uri: str) -> tuple[str, str]:
    """Return a name of the pages on the results of a tracking URI, and the command or address."""
    from sweep.questions import ui  # brings servers

    hint = ui.hint(uri)
    is_short = hint == "python -m sweep ui" and Path("Makefile").is_file()
    return "MLflow" if ui.is_installed() else "sweeps", "make ui" if is_short else hint
