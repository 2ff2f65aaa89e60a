"""Page of a report without its plots of single jobs, whose numbers are not in ``cells.parquet``."""

from __future__ import annotations

import json
import re

from sim.base import html

_FIGURE = (
    r"<figure>\n<figcaption>[^<]*(?: <small>[^<]*</small>)?</figcaption>\n"
    r'<div class="plot(?: tall)?" id="plot-\d+" role="group" aria-label="[^"<]*"'
    r' aria-describedby="text-of-plot-\d+"></div>\n'
    r'<p class="hidden alt" id="text-of-plot-\d+">[^<]*</p>\n</figure>\n+'
)
_JOBS = re.compile(
    rf'<h3>Jobs at capacity [\d.e+-]+</h3>\n<div class="plots">\n(?:{_FIGURE})+</div>\n'
)
_GANTT = re.compile(
    r'<section id="gantt">\n<details class="part"><summary><h2>Schedule</h2></summary>\n'
    rf"{_FIGURE}</details>\n</section>\n"
)
_LINK = re.compile(r'<a href="#gantt">Schedule</a>\n')
_LEFT_OUT = re.compile(r'<p class="note">The plots of single jobs leave out [^<]*</p>\n')
_FIGURES = re.compile(r'(<script type="application/json" id="figures">)(.*?)(</script>)', re.S)
_ID = re.compile(r'"(text-of-)?plot-(\d+)"')


def without_jobs(page: str) -> tuple[str, int]:
    """Return a page without the plots of single jobs, and how many these are.

    The other plots are numbered anew.
    """
    text = page
    for part in (_JOBS, _GANTT, _LINK, _LEFT_OUT):
        text = part.sub("", text)
    left = list(dict.fromkeys(int(number) for _, number in _ID.findall(text)))
    place = {number: position for position, number in enumerate(left)}

    def renumbered(match: re.Match[str]) -> str:
        return f'"{match[1] or ""}plot-{place[int(match[2])]}"'

    n_left_out = 0

    def without_their_data(match: re.Match[str]) -> str:
        nonlocal n_left_out
        figures = json.loads(match[2])
        n_left_out = len(figures) - len(left)
        return match[1] + html.script_json([figures[number] for number in left]) + match[3]

    text = _FIGURES.sub(without_their_data, _ID.sub(renumbered, text), count=1)
    return text, n_left_out
