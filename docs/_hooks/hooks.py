"""MkDocs hooks: pages outside this folder, generated pages, and links between them.

Pages are written for readers of the repository: links are paths of files. The hooks turn those
paths into pages of the site. A link to a file of the repository that is no page is an error.
"""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path
from typing import Any

import reference
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
OUTSIDE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
"""Files of the repository that are pages, beside those in `FOLDERS`."""

FOLDERS = {"docs": "", "results/reproductions": "reproductions/"}
INDEX = {
    "docs/decisions": "decisions/README.md",
    "results/reproductions": "reproductions/README.md",
}
MADE_OF = {
    "sim/metrics": "reference/metrics.md",
    "sim/evaluators": "reference/evaluators.md",
    "sim/engine/plan": "reference/writing_policies.md",
    "sim/result.py": "reference/python.md#sim.Result",
    "sim/workload/schema.py": "reference/python.md#tables-of-a-workload",
    "sim/traces": "reference/traces.md",
    "policies/wing/lineage/files.py": "reference/lineage_logs.md",
}
"""Pages generated from code; in the repository a link leads to the code itself."""

_CODE = re.compile(r"\[`?([^\]\[`]+)`?\]\(([^)\s#:]+\.(?:py|cff|yaml))\)")
_NAV = re.compile(
    r'(<nav class="md-nav" data-md-level="\d+" )(aria-labelledby="[^"]*")'
    r'([^>]*>\s*<label class="md-nav__title"[^>]*>)(?P<title>.*?)</label>',
    re.DOTALL,
)
_LINK = re.compile(r"\]\(([^)\s#:]+)(#[^)\s]*)?\)")


def on_config(config: Any) -> Any:
    """Expand the entries of the navigation that name a folder."""
    _expand(config["nav"])
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add pages outside this folder, and pages generated from the code."""
    outside = dict(OUTSIDE)
    for file in sorted((ROOT / "results" / "reproductions").rglob("*.md")):
        path = file.relative_to(ROOT).as_posix()
        outside[path] = path.removeprefix("results/")
    for file in ROOT.glob("policies/*/decisions/*.md"):
        path = file.relative_to(ROOT).as_posix()
        outside[path] = page_of(path) or ""
    for path, uri in outside.items():
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / path)))
    for uri, text in reference.pages().items():
        files.append(File.generated(config, uri, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn links between files into links between pages; code without a page keeps its name."""
    if page.file.abs_src_path is None:
        return markdown
    folder = Path(page.file.abs_src_path).parent
    if page.file.src_uri.startswith("reproductions/"):
        page.meta["hide"] = ["toc"]  # their tables are wide
        if page.file.name != "index":
            # the search is for words; its library mistakes tokens of digits for one another
            page.meta["search"] = {"exclude": True}

    def rewritten(match: re.Match[str]) -> str:
        target = Path(os.path.normpath(folder / match[1]))
        if not target.exists():
            return match[0]  # the build names it
        uri = page_of(target.relative_to(ROOT).as_posix())
        if uri is None:
            raise PluginError(f"{page.file.src_uri}: {match[1]} is no page of the site")
        relative = posixpath.relpath(uri, posixpath.dirname(page.file.src_uri) or ".")
        return f"]({relative}{match[2] or ''})"

    def named(match: re.Match[str]) -> str:
        target = Path(os.path.normpath(folder / match[2]))
        has_page = target.exists() and page_of(target.relative_to(ROOT).as_posix())
        return match[0] if has_page else f"`{match[1]}`"

    return _LINK.sub(rewritten, _CODE.sub(named, markdown))


def on_post_page(output: str, **_: Any) -> str:
    """Name the search and the lists of pages, which the theme leaves without a name."""
    return _named(output)


def on_post_template(output_content: str, template_name: str, **_: Any) -> str:
    """Name them on the page of a missing page, too."""
    return _named(output_content) if template_name == "404.html" else output_content


def _named(output: str) -> str:
    search = 'data-md-component="search" role="dialog"'

    def named(match: re.Match[str]) -> str:
        title = " ".join(re.sub(r"<[^>]+>", "", match["title"]).split())
        return f'{match[1]}aria-label="{title}"{match[3]}{match["title"]}</label>'

    return _NAV.sub(named, output.replace(search, f'{search} aria-label="Search"'))


def on_post_build(config: Any) -> None:
    """Delete the sitemaps: they need a public address, and contain the date."""
    for name in ("sitemap.xml", "sitemap.xml.gz"):
        Path(config["site_dir"], name).unlink(missing_ok=True)


def page_of(path: str) -> str | None:
    """Return the page of a file or folder of the repository, None without one."""
    for table in (INDEX, OUTSIDE, MADE_OF):
        if path in table:
            return table[path]
    if path.startswith("policies/") and "/decisions/" in path:
        return f"decisions/{posixpath.basename(path)}"
    for folder, prefix in FOLDERS.items():
        if path.startswith(f"{folder}/"):
            return prefix + path.removeprefix(f"{folder}/")
    return None


def _expand(entries: list[Any]) -> None:
    folders = {
        "decisions/": ["decisions/README.md", *_decisions()],
        "reference/": list(reference.PAGES),
    }
    for entry in entries:
        for title, value in entry.items() if isinstance(entry, dict) else ():
            if isinstance(value, list):
                _expand(value)
            elif value in folders:
                entry[title] = folders[value]


def _decisions() -> list[str]:
    """Pages of the decision records, by number: those in ``docs``, and those of the systems."""
    folders = ("docs/decisions", "policies/*/decisions")
    names = [file.name for folder in folders for file in ROOT.glob(f"{folder}/0*.md")]
    return [f"decisions/{name}" for name in sorted(names)]
