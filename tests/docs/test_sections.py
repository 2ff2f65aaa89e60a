"""The tables that say which section of a paper lies where name files and experiments that exist."""

from __future__ import annotations

import re

import pytest

from policies import names
from sweep.grid.options import Options
from tests.docs.pages import DOCS

ROOT = DOCS.parent
SYSTEMS = ("alibaba", "dagps", "jockey", "slearn", "wing")


@pytest.mark.parametrize("system", SYSTEMS)
def test_sections_name_what_is_there(system: str) -> None:
    text = (DOCS / f"{system}.md").read_text(encoding="utf-8")
    table = text.partition("## Where its parts are\n")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| §")]
    assert len(rows) >= 10
    experiments, policies = (Options().names(group) for group in ("experiment", "policy"))
    named = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    for name in named:
        exists = (ROOT / name).exists() or name in {*experiments, *policies, *names()}
        assert exists or name in ("batch_task", "--beside tpch --beside tpcds"), name
