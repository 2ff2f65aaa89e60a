"""Every job's completion time under both policies, as an inline SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sim.base.arrays import F8

WIDTH, HEIGHT, LEFT, BOTTOM = 480, 360, 52, 26
N_COLUMNS, N_ROWS = 60, 45
"""Squares that jobs are counted in: a drawing of any number of jobs is as large."""
MAX_TICKS = 7


def scatter(first_s: F8, second_s: F8, marked: Sequence[tuple[int, str, str, str]]) -> str:
    """Draw completion times, the first upwards and the second to the right, on log scales.

    Parameters
    ----------
    first_s, second_s : (N,) float64
        Completion times, s.
    marked : sequence of (int, str, str, str)
        Jobs with a ring: position, class of the ring, target and escaped title of a link.

    Returns
    -------
    str
        An ``svg`` element, of one square for each small region that holds a job.
    """
    positive = np.concatenate([first_s, second_s])
    positive = positive[positive > 0]
    low = float(positive.min()) if len(positive) else 1.0
    high = float(positive.max()) if len(positive) else 10.0
    bounds = math.log10(max(low, high * 1e-6)), math.log10(high)
    begin = bounds[0] - 0.02 * (bounds[1] - bounds[0] or 1)
    end = bounds[1] + 0.02 * (bounds[1] - bounds[0] or 1)

    def part(values: F8) -> F8:
        logs = np.log10(np.maximum(values, 10**begin))
        return np.clip((logs - begin) / (end - begin), 0.0, 1.0)

    across, up = part(second_s), part(first_s)
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="group" '
        'aria-label="Completion time of every job under both policies">'
    ]
    parts += _squares(across, up)
    parts.append(f'<path class="same" d="M{_x(0):.1f} {_y(0):.1f}L{_x(1):.1f} {_y(1):.1f}"/>')
    parts += _axes(begin, end)
    for position, style, target, title in marked:
        x, y = _x(float(across[position])), _y(float(up[position]))
        parts.append(
            f'<a href="{target}"><circle class="{style}" cx="{x:.1f}" cy="{y:.1f}" r="4.5">'
            f"<title>{title}</title></circle></a>"
        )
    return "".join([*parts, "</svg>"])


def _x(part: float) -> float:
    return LEFT + part * (WIDTH - LEFT - 8)


def _y(part: float) -> float:
    return 8 + (1 - part) * (HEIGHT - BOTTOM - 8)


def _squares(across: F8, up: F8) -> list[str]:
    """Return a square for each region with a job, the darker the more it has."""
    column = np.minimum((across * N_COLUMNS).astype(int), N_COLUMNS - 1)
    row = np.minimum((up * N_ROWS).astype(int), N_ROWS - 1)
    counts = np.bincount(column * N_ROWS + row, minlength=N_COLUMNS * N_ROWS)
    log_max = math.log1p(int(counts.max()))
    width, height = _x(1 / N_COLUMNS) - _x(0), _y(0) - _y(1 / N_ROWS)
    squares = []
    for cell in np.flatnonzero(counts).tolist():
        c, r = divmod(cell, N_ROWS)
        dark = 0.2 + 0.75 * math.log1p(int(counts[cell])) / log_max
        squares.append(
            f'<rect class="cell" x="{_x(c / N_COLUMNS):.1f}" y="{_y((r + 1) / N_ROWS):.1f}" '
            f'width="{width:.1f}" height="{height:.1f}" fill-opacity="{dark:.2f}"/>'
        )
    return squares


def _axes(begin: float, end: float) -> list[str]:
    """Return both axes, with a mark at powers of ten, or at 1, 2 and 5 of each if they are few."""
    steps = (1, 2, 5) if end - begin < 2 else (1,)
    marks = [
        (math.log10(step) + power, step * 10.0**power)
        for power in range(math.floor(begin), math.ceil(end) + 1)
        for step in steps
    ]
    marks = [(log, value) for log, value in marks if begin <= log <= end]
    marks = marks[:: 1 + len(marks) // (MAX_TICKS + 1)]
    bottom = HEIGHT - BOTTOM
    lines = [f'<path class="axis" d="M{LEFT} 8V{bottom}H{WIDTH - 8}"/>']
    for log, value in marks:
        part, words = (log - begin) / (end - begin), f"{value:,.6g}"
        x, y = _x(part), _y(part)
        lines.append(f'<path class="axis" d="M{x:.1f} {bottom}v4M{LEFT} {y:.1f}h-4"/>')
        lines.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{words}</text>')
        lines.append(f'<text x="{LEFT - 7}" y="{y + 4:.1f}" text-anchor="end">{words}</text>')
    return lines
