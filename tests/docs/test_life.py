"""The pages that follow a cell and a kernel name functions that there are."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
MOST_WORDS = 600
NAME = re.compile(r"`((?:sim|sweep)\.[\w.]+)`")


def found(name: str) -> object:
    """Return what a dotted name means."""
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        try:
            value: object = importlib.import_module(".".join(parts[:n]))
        except ModuleNotFoundError:
            continue
        for part in parts[n:]:
            value = getattr(value, part)
        return value
    raise LookupError(name)


@pytest.mark.parametrize("page", ["life_of_a_cell.md", "life_of_a_kernel_variant.md"])
def test_names_what_there_is_in_few_words(page: str) -> None:
    text = (DOCS / page).read_text()
    assert len(text.split()) <= MOST_WORDS
    names = NAME.findall(text)
    assert len(names) > 10
    for name in names:
        assert found(name) is not None
