"""Verbs of the command line: their functions and flags; cheap to import."""

from __future__ import annotations

import importlib
from typing import Any

VERBS = {
    "run": "sweep.cli.run.run",
    "plan": "sweep.cli.run.plan",
    "list": "sweep.cli.sweeps.list_sweeps",
    "status": "sweep.cli.sweeps.status",
    "tag": "sweep.cli.sweeps.tag",
    "ui": "sweep.questions.ui.verb.ui",
    "show": "sweep.cli.show.show",
    "report": "sweep.cli.show.report",
    "retry": "sweep.cli.run.retry",
    "verify": "sweep.questions.archive.verbs.verify",
    "export": "sweep.questions.archive.verbs.export",
    "rm": "sweep.cli.cleaning.rm",
    "gc": "sweep.cli.cleaning.gc",
    "track": "sweep.cli.run.track",
    "backtest": "sweep.questions.backtest.verb.backtest",
    "reproduce": "sweep.questions.papers.verb.reproduce",
    "completion": "sweep.cli.completion.completion",
}
"""Function of each verb, as ``module.function``.

A verb is a function ``verb(command) -> exit code``, whose docstring ``--help`` shows, its first
line in the overview; ``<function>_arguments(parser)`` beside it adds its flags. It raises
`InputError` on wrong input.
"""

_GRID = ("--config-dir", "--fail-fast", "--multirun")
_CONFIG = ("--cfg", "--resolve", "--info")
FLAGS = {
    **dict.fromkeys(VERBS, ("--help",)),
    "run": ("--help", *_GRID, *_CONFIG),
    "plan": ("--help", *_GRID, *_CONFIG, "--all"),
    "backtest": ("--help", *_GRID),
    "status": ("--help", "--all"),
    "show": ("--help", "--timeline", "--beside", "--perfetto"),
    "report": ("--help", "--gantt"),
    "retry": ("--help", "--fail-fast"),
    "verify": ("--help", "--cells", "--seed", "--trust"),
    "export": ("--help", "--with-traces"),
    "tag": ("--help", "--remove"),
    "ui": ("--help", "--port", "--index-port", "--no-mlflow"),
    "gc": ("--help", "--delete", "--keep"),
    "reproduce": ("--help", *_GRID, "--list", "--again"),
}
"""Flags of each verb, for completion; the parsers have the same."""

WITH_VALUE = (
    *("--config-dir", "--cfg", "-c"),
    *("--beside", "--perfetto", "--gantt", "--cells", "--seed", "--again", "--keep"),
    *("--port", "--index-port"),
)
"""Flags that take a value: the word after them is no verb."""

SWEEP_VERBS = ("status", "show", "report", "retry", "verify", "export", "rm", "tag", "track")
"""Verbs that take the name of a sweep."""

TOPICS = (
    *("policies", "traces", "clusters", "evaluators", "experiments", "metrics", "transforms"),
    "all",
)
"""Topics of ``--help``."""


def verb_position(words: list[str]) -> int | None:
    """Return the position of the verb among the words; None if there is none."""
    values = [False, *(word in WITH_VALUE for word in words)]
    positions = (i for i, w in enumerate(words) if not values[i] and (w in VERBS or w == "help"))
    return next(positions, None)


def is_bare(word: str) -> bool:
    """Tell whether a word is neither ``key=value`` (nor ``~key``) nor a flag."""
    return "=" not in word and not word.startswith(("-", "+", "~"))


def verb_function(path: str) -> Any:
    """Import a function by its path ``module.function``."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)
