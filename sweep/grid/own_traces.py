"""Traces that the command line names itself: ``trace=a:swf:one.swf,b:sacct:two.txt``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from sim.base.errors import InputError
from sweep.grid import config_tree
from sweep.grid.options import Options
from sweep.grid.overrides import Assignment

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class OwnTrace(NamedTuple):
    """A trace as named: the option of its format, and its file."""

    format: str
    path: str


def take(lines: dict[str, Assignment], options: Options) -> dict[str, OwnTrace]:
    """Replace ``NAME:FORMAT:PATH`` among the values of ``trace=`` by names; return the traces.

    Raises
    ------
    InputError
        If a value is not of that form, a name comes twice, or ``trace.path`` is to name the files
        of several traces.
    """
    line = lines.get("trace")
    if line is None:
        return {}
    own: dict[str, OwnTrace] = {}
    names = []
    for value in line.values:
        if not isinstance(value, str) or ":" not in value:
            names.append(value)
            continue
        name, trace = parse(value, options)
        if own.get(name, trace) != trace:
            raise InputError(f"{line.text}: two traces are called {name}", rule="repeated value")
        own[name] = trace
        names.append(name)
    lines["trace"] = replace(line, values=tuple(names))
    path = lines.get("trace.path")
    if path is not None and (own or len(names) > 1):
        named = ",".join(f"{chr(97 + k)}:{name}:FILE" for k, name in enumerate(names[:3]))
        example = f"trace={named}" if not own else line.text
        raise InputError(
            f"{path.text} names one file, and there {'are' if len(names) > 1 else 'is'} "
            f"{line.text}: name each trace and its file as NAME:FORMAT:FILE, such as {example}, "
            "and leave trace.path out",
            rule="missing path",
        )
    return own


def parse(text: str, options: Options, key: str = "trace") -> tuple[str, OwnTrace]:
    """Split ``NAME:FORMAT:PATH``; check the name and the format, not the file."""
    name, _, rest = text.partition(":")
    kind, _, path = rest.partition(":")
    if not (_NAME.fullmatch(name) and kind and path):
        raise InputError(
            f"{key}={text}: write NAME:FORMAT:FILE, such as march:swf:march.swf.gz", rule="grammar"
        )
    return name, OwnTrace(options.check("trace", kind), path)


def with_path(trace: Mapping[str, object], own: OwnTrace) -> config_tree.Tree:
    """Return the configuration of a format's option with its file."""
    return {**trace, "path": own.path}
