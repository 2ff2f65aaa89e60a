"""Lists and ranges in words."""

from __future__ import annotations

from collections.abc import Sequence

MAX_NAMES = 6


def joined(words: Sequence[str], last: str = "and") -> str:
    """Join words, such as ``a, b and c``."""
    return f" {last} ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def names(labels: Sequence[str], last: str = "and") -> str:
    """Join names; of many, the first and how many more."""
    shown = list(labels)
    if len(shown) > MAX_NAMES:
        shown[MAX_NAMES - 1 :] = [f"{len(shown) - MAX_NAMES + 1} more"]
    return joined(shown, last)
