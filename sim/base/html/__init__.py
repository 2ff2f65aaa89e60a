"""What the project's HTML reports share: one look, one way to draw, nothing loaded from anywhere.

A page embeds `css`, `js`, plotly and its figures as JSON in ``<script id="figures">``; every
``<div class="plot" id="plot-N">`` gets figure N. ``data[i]["meta"]`` of a figure is the number of
its colour, and of the box in ``<form class="choose">``, if the page has one, that shows or hides
it. Colours follow the reader's scheme, light or dark.
"""

from __future__ import annotations

import gzip
import json
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.base.extras import importing
from sim.base.text import printable

if TYPE_CHECKING:
    import jinja2

N_COLOURS = 10
"""Colours of the pages: ``--c0`` to ``--c9``."""

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "triangle-down")
"""Shapes that stand for a colour's number, so that colour is never alone."""

PLOTLY_BASIC = "99784e3abfb07b142a15e521a439e6d9addceadb3f79553fd24c72774f0649ba"
"""SHA-256 of ``plotly-basic.min.js`` as npm's package plotly.js-basic-dist-min 4.1.1 has it."""

_OF_BASIC = {"scatter", "bar", "pie"}
_HERE = Path(__file__).parent


@cache
def environment(folder: Path) -> jinja2.Environment:
    """Return where the templates of `folder` are rendered; HTML escapes what is put in.

    Control characters are written as escapes, in every kind of template.
    """
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=jinja2.select_autoescape(["html.j2"]),
        undefined=jinja2.StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def embedded(figures: list[dict[str, Any]]) -> dict[str, str]:
    """Return what a template puts into the page as it is: css, js, plotly_js and figures.

    Of plotly's bundles the smallest that draws the figures: 1.2 MB where there are lines, points
    and bars alone, else 4.8 MB.
    """
    return {
        "figures": _script_json(figures),
        "plotly_js": _plotly_js(figures),
        "css": css(),
        "js": (_HERE / "page.js").read_text(encoding="utf-8"),
    }


def _plotly_js(figures: list[dict[str, Any]]) -> str:
    if {trace["type"] for figure in figures for trace in figure["data"]} <= _OF_BASIC:
        return gzip.decompress((_HERE / "vendor" / "plotly-basic.min.js.gz").read_bytes()).decode()
    with importing("plots"):
        from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


def css() -> str:
    """Return the style of the pages."""
    return (_HERE / "page.css").read_text(encoding="utf-8")


def symbol(number: int) -> str:
    """Give the shape that goes with a colour's number."""
    return SYMBOLS[number % len(SYMBOLS)]


def _script_json(tree: Any) -> str:
    """Write JSON that may stand in a script element."""
    text = json.dumps(tree, separators=(",", ":"), allow_nan=False)
    text = _JSON_ESCAPE.sub(_printable_escape, text).replace("\x7f", "\\\\x7f")
    return text.replace("<", "\\u003c")


_JSON_ESCAPE = re.compile(r"(?:\\u[0-9a-f]{4})+|\\.")


def _printable_escape(match: re.Match[str]) -> str:
    """Return an escape sequence of JSON, as the text of one where it stands for a control."""
    text: str = json.loads(f'"{match[0]}"')
    shown = printable(text)
    return match[0] if shown == text else json.dumps(shown)[1:-1]


def _printable(value: Any) -> Any:
    """Write a text's control characters as escapes; a template's own markup stays as it is."""
    return printable(value) if type(value) is str else value
