"""Shared style, scripts and figures of the project's HTML reports, all embedded in the page.

A page embeds `css`, `js`, plotly, packed, and its figures as JSON in ``<script id="figures">``;
every ``<div class="plot" id="plot-N">`` gets figure N. ``data[i]["meta"]`` of a figure is the
number of its colour, and of the checkbox in ``<form class="choose">``, if the page has one, that
shows or hides it; a negative one is the colour of text. Colours follow the reader's scheme, light
or dark.
"""

from __future__ import annotations

import base64
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
"""Marker shapes, one for each colour number, so that a line is not known by colour alone."""

PLOTLY_BASIC = "99784e3abfb07b142a15e521a439e6d9addceadb3f79553fd24c72774f0649ba"
"""SHA-256 of ``plotly-basic.min.js`` in npm's package plotly.js-basic-dist-min 4.1.1."""
INFLATE = "203ccaa89e30ec4d6f9467a91758b0f55597424a817ea2107510bbadaab1b90d"
"""SHA-256 of ``index.js`` in npm's package tiny-inflate 1.0.3."""

_BASIC_TRACES = {"scatter", "bar", "pie"}
_FOLDER = Path(__file__).parent


@cache
def environment(folder: Path) -> jinja2.Environment:
    """Return the Jinja environment of the templates in `folder` and of those that pages share.

    HTML templates escape values. Control characters are written as escapes, in every kind of
    template.
    """
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader([folder, _FOLDER / "templates"]),
        autoescape=jinja2.select_autoescape(["html.j2"]),
        undefined=jinja2.StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def embedded(figures: list[dict[str, Any]]) -> dict[str, str]:
    """Return the assets that a template embeds unescaped: css, js, plotly_gz and figures.

    ``plotly_gz`` is plotly's script in gzip and base64, which ``js`` unpacks: the smallest of its
    bundles that draws the figures, 0.5 MB for lines, points and bars, else 1.9 MB.
    """
    return {
        "figures": script_json(_compact(figures)),
        "plotly_gz": base64.b64encode(_plotly_gz(figures)).decode(),
        "css": css(),
        "js": _inflate_js() + (_FOLDER / "page.js").read_text(encoding="utf-8"),
    }


def _compact(tree: Any) -> Any:
    """Shorten figures: numbers to seven digits, or whole ones, and no dash where it is solid."""
    if isinstance(tree, dict):
        return {k: _compact(value) for k, value in tree.items() if (k, value) != ("dash", "solid")}
    if isinstance(tree, list | tuple):
        return [_compact(value) for value in tree]
    if isinstance(tree, float) and abs(tree) >= 1e7:
        return round(tree)
    return float(f"{tree:.7g}") if isinstance(tree, float) else tree


def _plotly_gz(figures: list[dict[str, Any]]) -> bytes:
    if {trace["type"] for figure in figures for trace in figure["data"]} <= _BASIC_TRACES:
        return (_FOLDER / "vendor" / "plotly-basic.min.js.gz").read_bytes()
    with importing("plots"):
        from plotly.offline import get_plotlyjs

    return gzip.compress(get_plotlyjs().encode(), mtime=0)


def _inflate_js() -> str:
    module = (_FOLDER / "vendor" / "tiny-inflate.js").read_text(encoding="utf-8")
    return f"const inflate = ((module) => {{{module} return module.exports; }})({{}});\n"


def css() -> str:
    """Return the style of the pages."""
    return (_FOLDER / "page.css").read_text(encoding="utf-8")


def symbol(number: int) -> str:
    """Return the marker shape of a colour number."""
    return SYMBOLS[number % len(SYMBOLS)]


def script_json(tree: Any) -> str:
    """Write JSON that is safe inside a script element."""
    text = json.dumps(tree, separators=(",", ":"), allow_nan=False)
    text = _JSON_ESCAPE.sub(_printable_escape, text).replace("\x7f", "\\\\x7f")
    return text.replace("<", "\\u003c")


_JSON_ESCAPE = re.compile(r"(?:\\u[0-9a-f]{4})+|\\.")


def _printable_escape(match: re.Match[str]) -> str:
    """Double-escape a JSON escape sequence that encodes a control character; keep any other."""
    text: str = json.loads(f'"{match[0]}"')
    shown = printable(text)
    return match[0] if shown == text else json.dumps(shown)[1:-1]


def _printable(value: Any) -> Any:
    """Escape control characters of a text; a template's own markup stays unchanged."""
    return printable(value) if type(value) is str else value
