"""Tables as plain text, for a terminal or a pipe."""

from __future__ import annotations

from collections.abc import Sequence


def table_lines(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    gap: int = 2,
    numbers: bool = False,
    narrowest: int = 0,
) -> list[str]:
    """Lay rows of text out in columns; of `numbers`, all columns but the first are flush right."""
    lines = [header, *rows]
    widths = [max(len(line[at]) for line in lines) for at in range(len(header))]
    widths[1:] = [max(narrowest, width) for width in widths[1:]]
    laid_out = []
    for line in lines:
        cells = [
            text.rjust(width) if numbers and at else text.ljust(width)
            for at, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        laid_out.append((" " * gap).join(cells).rstrip())
    return laid_out
