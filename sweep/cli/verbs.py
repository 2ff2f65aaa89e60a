"""Verbs of the command line: the platform's, and those of plug-ins; cheap to import.

A verb is a function ``verb(command) -> exit code``. Its docstring is the verb's help, the first
line stands in the overview; ``<function>_arguments(parser)`` beside it adds its flags. It raises
`InputError` on wrong input. Verbs of the platform are in `CORE`, others are entry points of the
kind ``verbs`` (`sim.base.entry_points`); the function has the entry's name, ``_`` for ``-``.

An entry ``show.timeline`` extends the verb ``show``: its function ``show_timeline`` is called
before it, and returns an exit code, or None to leave the command to the verb.

A module is imported once its verb is used; the overview and completion read its source.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

from sim.base import entry_points
from sim.base.errors import InputError
from sim.base.text import printable
from sweep.cli import verb_source
from sweep.cli.verb_source import About

KIND = "verbs"
"""Kind of `sim.base.entry_points`."""
CORE = {
    "run": "sweep.cli.run.run",
    "plan": "sweep.cli.run.plan",
    "list": "sweep.cli.sweeps.list_sweeps",
    "status": "sweep.cli.sweeps.status",
    "tag": "sweep.cli.sweeps.tag",
    "show": "sweep.cli.show.show",
    "report": "sweep.cli.show.report",
    "retry": "sweep.cli.run.retry",
    "rm": "sweep.cli.cleaning.rm",
    "gc": "sweep.cli.cleaning.gc",
    "track": "sweep.cli.run.track",
    "check": "sweep.cli.check.check",
    "plugins": "sweep.cli.plugins.plugins",
    "completion": "sweep.cli.completion.completion",
}
"""Function of each verb of the platform, as ``module.function``."""
TOPICS = (
    *("policies", "traces", "clusters", "evaluators", "experiments", "metrics", "transforms"),
    "all",
)
"""Topics of ``--help``."""


def names() -> tuple[str, ...]:
    """Return the verbs: the platform's, then those of plug-ins."""
    entry_points.check_shadowed(KIND, CORE)
    added = (name for name in entry_points.installed(KIND) if "." not in name)
    return tuple(dict.fromkeys((*CORE, *sorted(added))))


def function(name: str, suffix: str = "") -> Any:
    """Import the function of a verb or of an extension, or that with a suffix beside it.

    Raises
    ------
    InputError
        If its plug-in is broken.
    """
    path, attribute = _place(name)
    module = importlib.import_module(path) if name in CORE else entry_points.load(KIND, name)
    loaded = getattr(module, attribute + suffix, None)
    if loaded is None:
        origin = entry_points.installed(KIND)[name].origin
        text = f"{KIND}: {path} of {origin} has no function {attribute}{suffix}"
        raise InputError(text, rule="broken plug-in")
    return loaded


def extensions(verb: str) -> Iterator[str]:
    """Yield the extensions of a verb, by name; a broken one is named in a line."""
    for name in _extensions(verb):
        try:
            function(name)
            function(name, "_arguments")
        except InputError as error:
            print(printable(error.message), file=sys.stderr)
        else:
            yield name


def _extensions(verb: str) -> list[str]:
    return sorted(name for name in entry_points.installed(KIND) if name.startswith(f"{verb}."))


def _place(name: str) -> tuple[str, str]:
    """Return the module and the function of a verb, or of an extension of one."""
    if name in CORE:
        module, _, attribute = CORE[name].rpartition(".")
        return module, attribute
    return entry_points.installed(KIND)[name].module, re.sub(r"[.-]", "_", name)


@cache
def about(verb: str) -> About:
    """Read the sources of a verb and of its extensions."""
    own, *more = (_about(name) for name in (verb, *_extensions(verb)))
    flags = dict.fromkeys(("--help", *own.flags, *(flag for part in more for flag in part.flags)))
    with_value = own.with_value.union(*(part.with_value for part in more))
    return About(own.summary, tuple(flags), with_value, own.usage)


def _about(name: str) -> About:
    read = verb_source.read(*_place(name))
    if read is not None:
        return read
    return About(f"broken, of {entry_points.installed(KIND)[name].origin}: see the verb plugins")


def takes(verb: str, word: str) -> bool:
    """Tell whether a verb's usage has a word, such as SWEEP."""
    return re.search(rf"\b{word}\b", about(verb).usage) is not None


def verb_position(words: list[str]) -> int | None:
    """Return the position of the verb among the words; None if there is none."""
    with_value: set[str] = set()
    if any(word.startswith("-") for word in words):
        with_value.update(*(about(verb).with_value for verb in names()))
    verbs = {*names(), "help"}
    values = [False, *(word in with_value for word in words)]
    return next((i for i, word in enumerate(words) if not values[i] and word in verbs), None)


def is_bare(word: str) -> bool:
    """Tell whether a word is neither ``key=value`` (nor ``~key``) nor a flag."""
    return "=" not in word and not word.startswith(("-", "+", "~"))
