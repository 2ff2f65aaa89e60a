"""Accessibility of a page, checked by axe-core, which the test extra brings."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page


def violations(page: Page, *schemes: str, within: str = "body") -> list[str]:
    """Return what axe-core finds wrong in the colour schemes, with the first element of each kind.

    After the first scheme only contrasts are checked. Insides of plots are left out: plotly's
    drawings are hidden from readers, who get a text instead.
    """
    source = files(pytest.importorskip("axe_playwright_python")).joinpath("axe.min.js")
    page.evaluate(source.read_text(encoding="utf-8"))
    problems = []
    for number, scheme in enumerate(schemes or ("light", "dark")):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        where = {"include": [within], "exclude": [".plot > *"]}
        options = {"resultTypes": ["violations"]} | (
            {"runOnly": "color-contrast"} if number else {}
        )
        result = page.evaluate("([where, options]) => axe.run(where, options)", [where, options])
        problems += [
            f"{scheme}: {v['id']} ({v['impact']}, {len(v['nodes'])}): {v['nodes'][0]['html'][:200]}"
            f" {v['nodes'][0]['failureSummary']}"
            for v in result["violations"]
        ]
    return problems
