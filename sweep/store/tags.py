"""Tags of a sweep: words of its reader, in a text file of its folder, one a line."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterable
from pathlib import Path

from sim.base import files
from sim.base.errors import InputError
from sweep.store import storage, sync

FILE = "tags.txt"
MAX_TAGS, MAX_LENGTH = 20, 40
_TAG = re.compile(rf"[\w.+:/#@][\w.+:/#@-]{{0,{MAX_LENGTH - 1}}}")
_CHANGING = threading.Lock()


def read(results: Path, sweep: str) -> list[str]:
    """Return the tags of a sweep in alphabetical order; lines that are no tags are skipped."""
    with contextlib.suppress(OSError):
        text = (results / "sweeps" / sweep / FILE).read_text(encoding="utf-8", errors="replace")
        return sorted({line for line in text.split("\n") if _TAG.fullmatch(line)})[:MAX_TAGS]
    return []


def change(
    results: Path, sweep: str, add: Iterable[str] = (), remove: Iterable[str] = ()
) -> list[str]:
    """Add and remove tags of a sweep; return its tags.

    Raises
    ------
    InputError
        If a word can't be a tag, or there would be more than 20.
    """
    add = [*add]
    for word in add:
        if not _TAG.fullmatch(word):
            raise InputError(
                f"{word!r} is no tag: one word of at most {MAX_LENGTH} letters, digits and "
                "._+:/#@-, which does not begin with -",
                rule="tag",
            )
    with _CHANGING:
        tags = sorted({*read(results, sweep), *add} - {*remove})
        if len(tags) > MAX_TAGS:
            raise InputError(
                f"{sweep} would have {len(tags)} tags; at most {MAX_TAGS}: remove some", rule="tag"
            )
        file = results / "sweeps" / sweep / FILE
        if tags:
            files.write_text(file, "".join(f"{tag}\n" for tag in tags))
            sync.push(results, file)
        else:
            file.unlink(missing_ok=True)
            storage.for_results(results).delete(f"sweeps/{sweep}/{FILE}")
            with contextlib.suppress(OSError):  # a folder of nothing else
                file.parent.rmdir()
    return tags
