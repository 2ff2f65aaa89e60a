"""Disk cache of meanings: each is parsed once, and never trusted without its checksum."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.base.sources import meaning
from sim.base.sources.meaning import Meaning
from sim.base.sources.modules import Module

MODULE = Module("remembered", Path("remembered.py"))
CONTENT = b"import sim\n\nX = sim.simulate\n"


@pytest.fixture
def parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Module]:
    """Return the list of modules parsed so far."""
    calls: list[Module] = []
    real_parse = meaning.parse

    def counted(module: Module, content: bytes) -> Meaning:
        calls.append(module)
        return real_parse(module, content)

    monkeypatch.setattr(meaning, "parse", counted)
    monkeypatch.setattr(meaning, "cache_folder", lambda: tmp_path / "meanings")
    return calls


def known(content: bytes = CONTENT, module: Module = MODULE) -> Meaning:
    return meaning.load_meaning(module, content)


def test_a_meaning_is_found_out_once(parsed: list[Module]) -> None:
    first = known()
    assert ("sim.simulate", None) in first.uses
    assert known() == first
    assert len(parsed) == 1


def test_another_content_or_place_is_another_meaning(parsed: list[Module]) -> None:
    known()
    known(CONTENT + b"# more")
    known(module=Module("elsewhere.remembered", MODULE.file))
    assert len(parsed) == 3


def test_a_damaged_memory_is_made_anew(parsed: list[Module], tmp_path: Path) -> None:
    first = known()
    (file,) = (tmp_path / "meanings").iterdir()
    file.write_text(file.read_text().replace("sim.simulate", "sim.nothing"))
    assert known() == first
    assert len(parsed) == 2


def test_no_memory_is_no_error(parsed: list[Module], tmp_path: Path) -> None:
    (tmp_path / "meanings").write_text("a file where the folder would be")
    assert known() == known()
    assert len(parsed) == 2
