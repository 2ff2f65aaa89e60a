"""The pages on the life of a cell and of a kernel variant name functions that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.test_references import exists

DOCS = Path(__file__).resolve().parents[2] / "docs"
MAX_WORDS = 600
NAME = re.compile(r"`((?:sim|sweep)\.[\w.]+)`")


@pytest.mark.parametrize("page", ["life_of_a_cell.md", "life_of_a_kernel_variant.md"])
def test_names_exist_in_few_words(page: str) -> None:
    text = (DOCS / page).read_text()
    assert len(text.split()) <= MAX_WORDS
    names = NAME.findall(text)
    assert len(names) > 10
    assert not [name for name in names if not exists(name)]
