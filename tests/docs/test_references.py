"""Pages are short, and name files, functions and pages that exist."""

from __future__ import annotations

import importlib
import re
import subprocess
from pathlib import Path

import pytest

from tests.docs.pages import DOCS

ROOT = DOCS.parent
MAX_WORDS_OF_A_SYSTEM = 1_200
SYSTEMS = (
    "alibaba",
    "backfilling",
    "dagps",
    "jockey",
    "lineage",
    "slearn",
    "slurm",
    "synthetic",
    "wing",
)
RECORDS = sorted([*DOCS.glob("decisions/0*.md"), *ROOT.glob("policies/*/decisions/*.md")])
PAGES = sorted([*DOCS.glob("*.md"), *RECORDS, ROOT / "CONTRIBUTING.md"])
PATH = re.compile(r"`((?:benchmarks|conf|docs|policies|results|sim|sweep|tests)/[\w./-]+)`")
NAME = re.compile(r"`((?:benchmarks|policies|sim|sweep)(?:\.\w+)+)`")
MENTION = re.compile(r"\b(?:docs|policies/\w+/decisions)/[\w/-]+\.md\b")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_paths_and_names_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    written = set(re.findall(r"^`([\w./-]+)`:$", text, re.MULTILINE))  # files that the page shows
    paths = {path.rstrip(".") for path in PATH.findall(text)} - written
    assert not [
        p for p in sorted(paths) if not ((ROOT / p).exists() or (ROOT / f"{p}.py").exists())
    ]
    assert not [name for name in sorted(set(NAME.findall(text))) if not exists(name)]


def exists(name: str) -> bool:
    """Check that a dotted name is a module or an attribute of one."""
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        try:
            value: object = importlib.import_module(".".join(parts[:n]))
        except ModuleNotFoundError:
            continue
        for part in parts[n:]:
            if not hasattr(value, part):
                return False
            value = getattr(value, part)
        return True
    return False


@pytest.mark.parametrize("room", sorted((ROOT / "policies").glob("*/README.md")), ids=str)
def test_paths_of_a_system_exist(room: Path) -> None:
    text = room.read_text(encoding="utf-8")
    paths = re.findall(r"`([\w./]+(?:/|\.py|\.yaml|\.toml))`", text)
    links = re.findall(r"\]\(([\w./]+)\)", text)
    assert len(paths) > 4
    assert not [p for p in paths if not ((room.parent / p).exists() or (ROOT / p).exists())]
    assert not [link for link in links if not (room.parent / link).exists()]
    assert len(text.splitlines()) <= 30


def test_mentioned_pages_exist() -> None:
    pattern = r"(docs|decisions)/[a-z0-9_/-]+\.md"
    command = ["git", "grep", "-nIE", pattern, "--", ".", ":!CHANGELOG.md"]
    command.append(":!results/judged.yaml")  # where a rule was when it judged
    lines = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    mentions = [(line, name) for line in lines.splitlines() for name in MENTION.findall(line)]
    assert len(mentions) > 50
    assert not [line for line, name in mentions if not (ROOT / name).exists()]


def test_the_index_of_decisions_lists_each() -> None:
    folder = DOCS / "decisions"
    links = re.findall(r"\]\(([\w./-]+)\)", (folder / "README.md").read_text(encoding="utf-8"))
    records = sorted(RECORDS, key=lambda record: record.name)
    assert [(folder / link).resolve() for link in links] == records


def test_pages_of_systems_are_short() -> None:
    words = {page.stem: len(page.read_text("utf-8").split()) for page in DOCS.glob("*.md")}
    for name, n in words.items():
        if name.startswith(SYSTEMS):
            assert n <= MAX_WORDS_OF_A_SYSTEM, name
