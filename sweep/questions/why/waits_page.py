"""The page of the waits of one schedule: one file without scripts."""

from __future__ import annotations

from typing import Any

from sim.base import html
from sweep.questions.why import page, waits
from sweep.questions.why.sentences import reason_words
from sweep.questions.why.waits import PERIODS_S, Waits

N_GROUPS = 31
"""Groups of a column that the page has: those of the longest waits."""
FOOTERS = {
    True: "The cell was run again, and has the sweep’s metrics to the bit.",
    False: "Code or trace changed since the sweep: its cell may have been another than this run.",
}
"""By whether the run is that of the sweep."""


def write_text(sums: Waits, place: str, footer: str | None = None) -> str:
    """Return the page."""
    colours = page.styles([*sums.waits])
    template = html.environment(page.FOLDER).get_template("waits.html.j2")
    return template.render(
        css=html.css() + (page.FOLDER / "why.css").read_text(encoding="utf-8"),
        title=f"Waits under {sums.name}",
        place=place,
        summary=waits.summary(sums),
        notes=waits.notes(sums),
        reasons=[
            {"style": colours[r], "words": f"waits for {reason_words(r)}"} for r in sums.waits
        ],
        groups=[_groups(sums, column, colours) for column in sums.columns],
        terms=page.terms(colours),
        footer=footer or FOOTERS[sums.captured.is_recorded],
    )


def _groups(sums: Waits, column: str, colours: Any) -> dict[str, Any]:
    """Return a bar for each group of a column: its waits in all."""
    every = sums.by(column)
    shown = waits.largest(every, N_GROUPS, in_order=column in PERIODS_S)
    longest = max((group.wait_s for group in shown), default=1.0) or 1.0
    more = f"; the {len(shown)} of {len(every):,} with the longest waits"
    return {
        "title": f"By {column}",
        "about": f"Waits of its jobs, in all{more if len(shown) < len(every) else ''}.",
        "bars": [
            page.bar(f"{group.name} ({group.n_jobs:,})", group.waits, colours, longest)
            for group in shown
        ],
    }
