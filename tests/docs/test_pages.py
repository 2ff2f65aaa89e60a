"""The tutorial and the how-to pages run as shown, with the output that they show."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.docs import pages
from tests.docs.small_site import write_site
from tests.e2e.conftest import packages as packages  # the fixture
from tests.ports import any_port

pytestmark = pytest.mark.e2e

STORIES = ("how_many_nodes", "is_my_policy_better", "make_my_result_again", "what_did_we_find")
PAGES = (
    pytest.param("tutorial.md", marks=pytest.mark.long),
    pytest.param("python.md", marks=pytest.mark.long),
    pytest.param("your_own_policy.md", marks=pytest.mark.long),
    pytest.param("your_own_metric.md", marks=pytest.mark.long),
    pytest.param("external_scheduler.md", marks=pytest.mark.long),
    pytest.param("training.md", marks=pytest.mark.long),
    pytest.param("graph_network.md", marks=pytest.mark.long),
    pytest.param("a_policy_from_a_loop.md", marks=pytest.mark.long),
    pytest.param("where_does_it_lose.md", marks=pytest.mark.long),
    pytest.param("targets.md", marks=pytest.mark.long),
    pytest.param("lineage.md", marks=pytest.mark.long),
    pytest.param("logs.md", marks=pytest.mark.long),
    pytest.param("from_your_data_platform.md", marks=pytest.mark.long),
    "what_is_counted.md",
    pytest.param("elastic.md", marks=pytest.mark.long),
    pytest.param("kinds_of_machines.md", marks=pytest.mark.long),
    pytest.param("power.md", marks=pytest.mark.long),
    pytest.param("topology.md", marks=pytest.mark.long),
    pytest.param("why_does_it_lose.md", marks=pytest.mark.long),
    pytest.param("synthetic.md", marks=pytest.mark.long),
    pytest.param("your_own_trace.md", marks=pytest.mark.long),
    pytest.param("mlflow_server.md", marks=pytest.mark.long),
    pytest.param("your_site.md", marks=pytest.mark.long),
    pytest.param("gpu_training.md", marks=pytest.mark.long),
    pytest.param("gpu_clusters.md", marks=pytest.mark.long),
    *(pytest.param(f"{name}.md", marks=pytest.mark.long) for name in STORIES),
)


@pytest.mark.parametrize("page", PAGES)
def test_page_runs_as_shown(page: str, packages: Path, tmp_path: Path) -> None:
    if page == "mlflow_server.md" and shutil.which("curl") is None:
        pytest.skip("needs curl (apt-get install curl)")
    if page == "your_site.md":
        write_site(tmp_path / "exports")
    actions = pages.run_page(page, tmp_path, packages, any_port())
    assert "run" in actions
    assert "compared" in actions


def test_stories_are_short() -> None:
    for name in STORIES:
        lines = (pages.DOCS / f"{name}.md").read_text().splitlines()
        words = [word for line in lines if not line.startswith("|") for word in line.split()]
        assert len(words) <= 400, name


def test_false_pages_are_refused(
    packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "DOCS", tmp_path)
    (tmp_path / "good.md").write_text("`a.txt`:\n\n```text\nx\n```\n\n```sh\ncat a.txt\n```\n")
    assert pages.run_page("good.md", tmp_path, packages) == ["file", "run"]
    chain = "```python\na = 1\n```\n\n<!-- goes on -->\n```python\nprint(a + {})\n```\n"
    chain += "\n```text\n2\n```\n"
    (tmp_path / "chain.md").write_text(chain.format(1))
    assert pages.run_page("chain.md", tmp_path, packages) == ["run", "run", "compared"]
    false = {
        "chained.md": chain.format(2),
        "alone.md": chain.format(1).partition("\n\n")[2],
        "prints.md": "```sh\necho one\n```\n\n```text\ntwo\n```\n",
        "fails.md": "```sh\nfalse | true\n```\n",
        "unsaid.md": "```yaml\na: 1\n```\n",
    }
    for name, text in false.items():
        (tmp_path / name).write_text(text)
        with pytest.raises(AssertionError, match=f"docs/{name}:"):
            pages.run_page(name, tmp_path, packages)
