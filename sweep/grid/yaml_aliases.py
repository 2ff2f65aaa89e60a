"""Size of YAML with its aliases written out: a few lines of them may stand for any number."""

from __future__ import annotations

import contextlib
from functools import lru_cache
from pathlib import Path

import yaml

from sim.base.errors import InputError

MOST_VALUES, DEEPEST = 100_000, 100


def check_aliases(folder: Path) -> None:
    """Refuse a folder with a file of YAML that comes to more than `MOST_VALUES` values.

    Raises
    ------
    InputError
        With file and line; also where a value holds itself, or lies too deep in others.
    """
    for file in sorted(folder.rglob("*.yaml")):
        with contextlib.suppress(OSError, UnicodeDecodeError, yaml.YAMLError):  # composing says so
            about = file.stat()
            _check_file(file, about.st_mtime_ns, about.st_size)


@lru_cache(maxsize=4096)
def _check_file(file: Path, *_: int) -> None:
    """Count the values of a file, once as long as it is as it was."""
    sizes: dict[str | None, int] = {}
    open_values: list[tuple[str | None, int]] = []  # lists and mappings: name, values before them
    n = 0
    for event in yaml.parse(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.AliasEvent):
            if any(event.anchor == name for name, _ in open_values):
                raise _error(file, event, f"*{event.anchor} holds itself; write its values out")
            n += sizes.get(event.anchor, 0)
        elif isinstance(event, yaml.ScalarEvent):
            n += 1
            sizes[event.anchor] = 1
        elif isinstance(event, yaml.CollectionStartEvent):
            open_values.append((event.anchor, n))
            n += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            name, before = open_values.pop()
            sizes[name] = n - before
        if n > MOST_VALUES:
            text = f"it comes to more than {MOST_VALUES:,} values here; use fewer aliases"
            raise _error(file, event, text)
        if len(open_values) > DEEPEST:
            text = f"lists and mappings lie more than {DEEPEST} deep; at most {DEEPEST} may"
            raise _error(file, event, text)


def _error(file: Path, event: yaml.Event, text: str) -> InputError:
    line = None if event.start_mark is None else event.start_mark.line + 1
    return InputError(text, file=file, line=line, rule="too large")
