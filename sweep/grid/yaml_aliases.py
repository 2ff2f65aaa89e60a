"""Size limits of YAML with its aliases expanded: a few lines may stand for any number of values."""

from __future__ import annotations

import contextlib
from functools import lru_cache
from pathlib import Path

import yaml

from sim.base.errors import InputError

MAX_VALUES, MAX_DEPTH = 100_000, 100


def check_aliases(folder: Path) -> None:
    """Refuse a folder with a YAML file of more than `MAX_VALUES` values.

    Raises
    ------
    InputError
        With file and line; also where a value contains itself, or is nested too deeply.
    """
    for file in sorted(folder.rglob("*.yaml")):
        # composing reports these errors
        with contextlib.suppress(OSError, UnicodeDecodeError, yaml.YAMLError):
            stat = file.stat()
            _check_file(file, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=4096)
def _check_file(file: Path, *_: int) -> None:
    """Count the values of a file; repeat it only after the file has changed."""
    check_text(file.read_text(encoding="utf-8"), file)


def check_text(text: str | bytes, file: Path) -> None:
    """Refuse a text of more than `MAX_VALUES` values, aliases expanded, or of `MAX_DEPTH` levels.

    Raises
    ------
    InputError
        With file and line.
    YAMLError
        If it is no YAML.
    """
    sizes: dict[str | None, int] = {}
    open_values: list[tuple[str | None, int]] = []  # lists and mappings: name, values before them
    n = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.AliasEvent):
            if any(event.anchor == name for name, _ in open_values):
                raise _error(file, event, f"*{event.anchor} contains itself; write its values out")
            n += sizes.get(event.anchor, 0)
        elif isinstance(event, yaml.ScalarEvent):
            n += 1
            sizes[event.anchor] = 1
        elif isinstance(event, yaml.CollectionStartEvent):
            open_values.append((event.anchor, n))
            n += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            name, n_before = open_values.pop()
            sizes[name] = n - n_before
        if n > MAX_VALUES:
            reason = f"more than {MAX_VALUES:,} values up to here; use fewer aliases"
            raise _error(file, event, reason)
        if len(open_values) > MAX_DEPTH:
            raise _error(file, event, too_deep())


def too_deep() -> str:
    """Reason to refuse a value of more than `MAX_DEPTH` levels."""
    return f"lists and mappings are nested more than {MAX_DEPTH} deep"


def _error(file: Path, event: yaml.Event, text: str) -> InputError:
    line = None if event.start_mark is None else event.start_mark.line + 1
    return InputError(text, file=file, line=line, rule="too large")
