"""Tables and numbers of the pages in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def markdown(head: Sequence[str], lines: Iterable[Sequence[Any]]) -> str:
    """Write a table; its first two columns are texts."""
    rule = ["---" if i < 2 else "---:" for i in range(len(head))]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in (head, rule, *lines))


def percent(share: float) -> str:
    """Write a share in per cent."""
    if 0.9995 <= share < 1.0:
        return f"{100 * share:.3f} %"
    return "100 %" if share == 1.0 else f"{100 * share:.1f} %"


def signed(share: float) -> str:
    """Write a share in per cent with its sign."""
    return f"{100 * share:+.1f} %".replace("-", "−")
