"""The verbs of the command line: where each is, and its flags; cheap to import."""

from __future__ import annotations

import importlib
from typing import Any

VERBS = {
    "run": "run.run",
    "plan": "run.plan",
    "list": "sweeps.list_sweeps",
    "status": "sweeps.status",
    "show": "show.show",
    "report": "show.report",
    "retry": "run.retry",
    "verify": "run.verify",
    "track": "run.track",
    "reproduce": "reproduce.reproduce",
    "completion": "completion.completion",
}
"""Which function of which module beside this one each verb is.

A verb is a function ``verb(command) -> exit code``, whose docstring ``--help`` shows, its first
line in the overview; ``<function>_arguments(parser)`` beside it adds its flags. It raises
`InputError` for what is wrong.
"""

_GRID = ("--config-dir", "--fail-fast")
FLAGS = {
    **dict.fromkeys(VERBS, ("--help",)),
    "run": ("--help", *_GRID),
    "plan": ("--help", *_GRID, "--all"),
    "status": ("--help", "--all"),
    "report": ("--help", "--gantt"),
    "retry": ("--help", "--fail-fast"),
    "verify": ("--help", "--cells", "--seed"),
    "reproduce": ("--help", *_GRID, "--list"),
}
"""The flags of each verb, for completion; the parsers have the same."""

WITH_VALUE = ("--config-dir", "--gantt", "--cells", "--seed")
"""Flags after which a word is no verb but their value."""

OF_SWEEPS = ("status", "show", "report", "retry", "verify", "track")
"""Verbs that take the name of a sweep."""

TOPICS = ("policies", "traces", "clusters", "evaluators", "experiments", "all")
"""What ``--help`` has more to say of."""


def verb_at(words: list[str]) -> int | None:
    """Find the verb among the words: its place, None if there is none."""
    values = [False, *(word in WITH_VALUE for word in words)]
    found = (at for at, w in enumerate(words) if not values[at] and (w in VERBS or w == "help"))
    return next(found, None)


def is_bare(word: str) -> bool:
    """Tell whether a word is neither ``key=value`` (nor ``~key``) nor a flag."""
    return "=" not in word and not word.startswith(("-", "+", "~"))


def function_of(place: str) -> Any:
    """Find a verb's function, or that which adds its flags: ``module.function``."""
    module, _, name = place.rpartition(".")
    return getattr(importlib.import_module(f"sweep.cli.{module}"), name)
