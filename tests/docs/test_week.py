"""The week's reading is as long as its page says, and so is the core that it is a part of."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.without import QUESTIONS, ROOT, SYSTEMS, room

PAGE = (ROOT / "docs/own_it_in_a_week.md").read_text()
DAYS = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
LINES = re.compile(r"\(([\d,]+)\s+lines")
FILE = re.compile(r"`((?:sim|policies|sweep|tests)/[\w/]+(?:\.py|/))`")


def number(text: str) -> int:
    return int(text.replace(",", ""))


def length(files: Iterable[Path]) -> int:
    return sum(len(file.read_text().splitlines()) for file in files)


def reading(day: str) -> int:
    """Return the lines of the modules, and of folders without those below, that a day names."""
    text, _, _ = day.partition("*Exercise*")
    paths = [ROOT / name for name in FILE.findall(text)]
    return sum(length(path.glob("*.py") if path.is_dir() else [path]) for path in paths)


@pytest.mark.parametrize("day", DAYS, ids=lambda day: day[:5])
def test_each_day_is_as_long_as_its_page_says(day: str) -> None:
    (lines,) = LINES.findall(day)
    assert reading(day) == pytest.approx(number(lines), rel=0.05, abs=60)


def test_the_week_and_the_core_are_as_long_as_the_page_says() -> None:
    week, core = re.findall(r"some\s+([\d,]+)\s+lines of the core's\s+([\d,]+)", PAGE)[0]
    apart = [ROOT / room(name) for name in (*SYSTEMS, *QUESTIONS)]
    files = (file for top in ("sim", "policies", "sweep") for file in (ROOT / top).rglob("*.py"))
    own = (file for file in files if not any(file.is_relative_to(folder) for folder in apart))
    assert sum(map(reading, DAYS)) == pytest.approx(number(week), rel=0.05)
    assert length(own) == pytest.approx(number(core), rel=0.03)
