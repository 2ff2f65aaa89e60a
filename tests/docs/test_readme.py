"""The README is short, its links lead somewhere, and its Python runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import DOCS

ROOT = DOCS.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
MAX_LINES = 150


def test_it_is_short() -> None:
    assert len(TEXT.splitlines()) <= MAX_LINES


def test_its_links_lead_to_files() -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", TEXT)
    assert len(links) > 30
    assert not [link for link in links if not (ROOT / link).exists()]


def test_its_simulation_runs(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    (code,) = [block for block in blocks if "import sim" in block]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "jct_mean_s" in done.stdout


def test_its_verbs_are_all_verbs() -> None:
    from sweep.cli import verbs

    table = TEXT[TEXT.index("| verb | effect |") :].partition("\n\n")[0]
    named = {
        name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])
    }
    assert named == {*verbs.names()} - {"completion"}
