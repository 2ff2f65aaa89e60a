"""Names with HTML, Markdown, formulas and control characters in all files of a sweep."""

from __future__ import annotations

import csv
import io
import json
import re
import sqlite3
import subprocess
from collections import Counter
from contextlib import closing, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from markdown_it import MarkdownIt

import sweep
from sim import Workload
from sim.base import html
from sim.base.text import printable
from sweep.cli import main
from sweep.questions.ui import index
from sweep.report import drawing, figures, table_model
from sweep.stats.summary import summarise
from sweep.store.sweep_summaries import summarize
from tests.mlflow_ui import browser
from tests.sweep.small import Command

pytestmark = pytest.mark.long

HIT = "window.__hit=1"
NAMES = (
    f"<script>{HIT}<script>",
    f'"><img src=x onerror={HIT}>',
    f"</script><script>{HIT}</script>",
    *(
        "&amp;",
        "&lt;b&gt;",
        "a'b\"c",
        "new\nline",
        "tab\tx",
        "esc\x1b[31m\x1b]0;title\x07",
        "del\x7f",
    ),
    *("rtl\u202eabc", "line\u2028end", "x" * 3000, "a|b`c`", f"[x](javascript:{HIT})"),
    *("=1+1", "+1", "-1+1", "@SUM(1)", "%{x}", "{{7*7}}", "a,b", "*x*", "# h", "- x", "1. x", "~x"),
    *("a=b", "<b>b</b>", '<a href="https://x.invalid">z</a>', "$x^2$", "../../etc", "__x__"),
)
PLAIN = tuple(f"name{number:02}" + "\n" * ("\n" in name) + "x" for number, name in enumerate(NAMES))
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
EVALUATOR = '''"""An evaluator of which the names of the metrics are odd."""

import json
import pathlib

import pyarrow as pa

NAMES = json.loads((pathlib.Path(__file__).parent / "names.json").read_text())


def evaluate(run, workload, cluster, policy, seed, label=""):
    result = run(workload, cluster, policy, seed=seed)
    if label == "fail" + NAMES[2]:
        raise ValueError(NAMES[2] + chr(27) + "[2J")
    times = {"submit_s": result.job_submit, "finish_s": result.job_finish}
    jct = {name: result.metrics[name] for name in ("jct_mean_s", "jct_p99_s")}
    own = {name: float(at + seed) for at, name in enumerate(NAMES)}
    return {**jct, **own}, pa.table({**times, "failed": result.job_failed})
'''


class Tags(HTMLParser):
    """Counts the elements of a page, with the names of their attributes; keeps the texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.n: Counter[tuple[str, ...]] = Counter()
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.n[tag, *sorted(name for name, _ in attrs)] += 1

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@dataclass
class Ran:
    folder: Path
    out: str

    def text(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="utf-8")


def quoted(text: str) -> str:
    return "'" + text.replace("'", "\\'") + "'"


def run(root: Path, names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, n: int) -> Ran:
    """Sweep a parameter over the names, which are also those of metrics, users, queues and jobs."""
    mine, module = root / "mine", f"odd_names_{n}"
    (mine / "evaluator").mkdir(parents=True)
    (mine / f"{module}.py").write_text(EVALUATOR)
    (mine / "names.json").write_text(json.dumps(names))
    (mine / "evaluator/odd.yaml").write_text(f"# Odd.\nname: odd\nmodule: {module}\nlabel: ''\n")
    monkeypatch.syspath_prepend(mine)
    trace = root / names[0].replace("/", "_")
    jobs = [
        {"job_id": f"{number}{name}", "user": name, "template": name, "queue": name,
         "submit_s": float(number), "stages": [{"name": name, "durations_s": [3.0, 4.0]}]}
        for number, name in enumerate(names)
    ]  # fmt: skip
    Workload.from_jobs(jobs).write(trace)
    labels = ",".join(map(quoted, [*names, f"fail{names[2]}"]))
    words = [
        *("evaluator=odd", f"evaluator.label={labels}", "policy=fifo,srpt"),
        "baseline=fifo",
        *("seed=0", "capacity=0.5,1", "trace=parquet", f"trace.path={quoted(str(trace))}"),
        *("launcher=inline", f"paths.results={quoted(str(root / 'results'))}"),
        *("--config-dir", str(mine), "tracking.granularity=policy"),
    ]
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        code = main.main(words)
    assert code == 1, out.getvalue()  # the cells of one label fail
    return Ran(Path(out.getvalue().splitlines()[-1]), out.getvalue())


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ran, Ran]:
    """Run the same sweep with plain names and with hostile ones."""
    with pytest.MonkeyPatch.context() as patch:
        roots = [tmp_path_factory.mktemp(name) for name in ("plain", "hostile")]
        ran = [run(root, names, patch, number) for number, (root, names) in
               enumerate(zip(roots, (PLAIN, NAMES), strict=True))]  # fmt: skip
    return ran[0], ran[1]


def test_a_page_has_the_same_elements_with_any_names(both: tuple[Ran, Ran]) -> None:
    plain, hostile = (Tags(element.text("report.html")) for element in both)
    assert hostile.n == plain.n
    assert "<b>b</b>" in "".join(hostile.texts)
    assert CONTROL.search(both[1].text("report.html")) is None


def test_markdown_has_the_same_elements_with_any_names(both: tuple[Ran, Ran]) -> None:
    render = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render
    for name in ("report.md", "table.md"):
        plain, hostile = (Tags(render(element.text(name))) for element in both)
        assert hostile.n == plain.n, name
        assert CONTROL.search(both[1].text(name)) is None
    shown = "".join(Tags(render(both[1].text("report.md"))).texts)
    for name in NAMES:
        assert " ".join(printable(name).split()) in shown


def test_the_index_and_a_comparison_have_the_same_elements(both: tuple[Ran, Ran]) -> None:
    folders = [ran.folder.parent.parent for ran in both]
    pages = [
        index.to_html(folder, [(summary, []) for summary in summarize(folder)])
        for folder in folders
    ]
    plain, hostile = map(Tags, pages)
    assert hostile.n == plain.n
    assert CONTROL.search(pages[1]) is None
    with redirect_stdout(io.StringIO()) as out:
        results = both[1].folder.parent.parent
        name = both[1].folder.name
        assert main.main(["report", name, name, f"paths.results={quoted(str(results))}"]) == 0
    files = [Path(line) for line in out.getvalue().splitlines()[-2:]]
    assert "<b>b</b>" in "".join(Tags(files[1].read_text()).texts)
    assert not {"b", "img", "script"} & {tag for tag, *_ in Tags(files[1].read_text()).n}
    assert CONTROL.search(out.getvalue() + files[0].read_text()) is None


def test_nothing_on_the_terminal_moves_the_cursor(both: tuple[Ran, Ran]) -> None:
    assert CONTROL.search(both[1].out) is None
    assert "esc\\x1b[31m" in both[1].out
    assert max(map(len, both[1].out.splitlines())) < 60_000  # the words that were given, once
    results = both[1].folder.parent.parent
    for verb in (["show"], ["show", "0"], ["list"], ["status"]):
        with redirect_stdout(io.StringIO()) as out:
            main.main([*verb, f"paths.results={quoted(str(results))}"])
        assert out.getvalue()
        assert CONTROL.search(out.getvalue()) is None


def test_a_shell_parses_the_command_of_a_failed_cell(
    both: tuple[Ran, Ran],
) -> None:
    rows = pq.read_table(both[1].folder / "cells.parquet").to_pylist()
    printed = [row["reproduce"] for row in rows if row["evaluator.label"].startswith("esc")]
    assert CONTROL.search("".join(printed)) is None
    words = printed[0].removeprefix("python -m sweep ")
    read = ["bash", "-c", f"printf '%s\\0' {words}"]
    command_line = subprocess.run(read, capture_output=True, check=True).stdout.decode().split("\0")
    assert "evaluator.label='esc\x1b[31m\x1b]0;title\x07'" in command_line


def test_mlflow_has_every_run_and_metric(both: tuple[Ran, Ran]) -> None:
    logged = []
    for ran in both:
        with closing(sqlite3.connect(ran.folder.parent.parent / "mlflow.db")) as connection:
            n_runs = connection.execute("SELECT count(*) FROM runs").fetchall()
            n_metrics = connection.execute(
                "SELECT run_uuid, count(DISTINCT key) AS n FROM metrics GROUP BY 1 ORDER BY n"
            ).fetchall()
            note = (
                "SELECT value FROM tags WHERE key = 'mlflow.note.content' AND value LIKE '%is `%'"
            )
            logged.append((n_runs, [n for _, n in n_metrics], connection.execute(note).fetchall()))
    assert logged[0][:2] == logged[1][:2]
    assert "could not log" not in both[1].out
    printed = [note for _, _, ((note,),) in logged]
    assert [note.count("- the metric ") for note in printed] == [
        1,
        len(NAMES) - len({"- x", "1. x", "__x__"}),
    ]
    assert "- the metric 'a=b' is `a_b_" in printed[1]


@pytest.fixture(scope="module")
def page(both: tuple[Ran, Ran]) -> Any:
    """Open the report of the hostile names, with its first plots drawn."""
    with browser() as page:
        wrong: list[str] = []
        page.on("dialog", lambda dialog: wrong.append(dialog.message))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "request",
            lambda requests: wrong.append(requests.url) if "file:" not in requests.url else 0,
        )
        page.goto((both[1].folder / "report.html").as_uri())
        page.evaluate(
            """async () => {
              document.querySelectorAll("details").forEach((part) => { part.open = true; });
              for (const div of [...document.querySelectorAll(".plot")].slice(0, 8)) {
                div.scrollIntoView();
                for (let i = 0; i < 500 && !div.querySelector(".main-svg"); i++)
                  await new Promise((done) => setTimeout(done, 20));
              }
            }"""
        )
        yield page
        assert [text for text in wrong if not text.startswith(("data:", "blob:"))] == []


@pytest.mark.slow
def test_no_script_of_a_name_runs_in_a_browser(page: Any) -> None:
    assert page.evaluate("document.querySelectorAll('.plot .main-svg').length") >= 8
    assert page.evaluate("typeof window.__hit") == "undefined"
    assert page.locator("img, .plot a[href], .plot b").count() == 0
    drawn = page.evaluate(
        "[...document.querySelectorAll('.plot text')].map((one) => one.textContent).join(' ')"
    )
    assert NAMES[0] in drawn


@pytest.mark.slow
def test_a_very_long_name_does_not_widen_the_page(page: Any) -> None:
    width, room = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert width <= room


@pytest.mark.slow
def test_a_spreadsheet_finds_no_formula_in_a_download(page: Any) -> None:
    with page.expect_download() as download:
        page.locator("#front button.csv").first.click()
    rows = list(csv.reader(io.StringIO(Path(download.value.path()).read_text())))
    texts = [cell for row in rows for cell in row if cell]
    assert len(rows) > 10
    assert [text for text in texts if text[0] in "=+@\t\r"] == []
    assert [text for text in texts if text[0] == "-" and not re.fullmatch(r"-[\d.e-]+", text)] == []


def test_a_figure_for_a_paper_takes_names_as_they_are(
    both: tuple[Ran, Ran], tmp_path: Path
) -> None:
    import xml.etree.ElementTree as ET

    loaded = sweep.load(both[1].folder)
    few = loaded.cells[
        loaded.cells["evaluator.label"].isin(["$x^2$", "<b>b</b>", "esc\x1b[31m\x1b]0;title\x07"])
    ]
    assert len(few) > 6
    summary = summarise(pa.Table.from_pandas(few, preserve_index=False), swept=["evaluator.label"])
    for metric in ("jct_mean_s", "$x^2$"):
        drawing.write(figures.by_capacity(summary, metric), tmp_path / "figure.svg")
        drawn = "".join(ET.parse(tmp_path / "figure.svg").getroot().itertext())
        assert "$x^2$" in drawn
        assert "<b>b</b>" in drawn
        drawing.write(figures.by_capacity(summary, metric), tmp_path / "figure.html")
        assert "\\u003cb\\u003e" not in (tmp_path / "figure.html").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_markdown_shows_a_name_as_it_is(name: str) -> None:
    for written in (table_model.escape_markdown(name), table_model.code_span(name)):
        rendered = MarkdownIt("commonmark", {"html": True}).enable("table").render(written)
        shown = " ".join("".join(Tags(rendered).texts).split()).replace("\\|", "|")
        assert shown == " ".join(printable(name).split())
        assert {tag for tag, *_ in Tags(rendered).n} <= {"p", "code"}


def test_figures_within_a_script_are_only_data() -> None:
    names = [*NAMES, "\\u202e", "\\\u202e", "🙂", "half \ud83d"]
    text = html.embedded([{"data": [{"type": "bar", "name": n} for n in names], "layout": {}}])
    assert "<" not in text["figures"]
    assert [figure["name"] for figure in json.loads(text["figures"])[0]["data"]] == [
        printable(name) for name in names
    ]


@pytest.mark.parametrize("name", ["policy", "trace", "capacity", "seed", "status", "key",
                                  "config", "evaluator.label", "\ud800", "", " "])  # fmt: skip
def test_a_metric_cannot_replace_another_column(
    fake: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "mine" / "evaluator").mkdir(parents=True)
    module = f"own_{abs(hash(name))}"
    (tmp_path / "mine" / f"{module}.py").write_text(
        f'''"""M."""
import pyarrow as pa
def evaluate(run, workload, cluster, policy, seed, label=""):
    return {{{name!r}: 7.0}}, pa.table({{"x": [1.0]}})
'''
    )
    option = f"# M.\nname: own\nmodule: {module}\nlabel: ''\n"
    (tmp_path / "mine" / "evaluator" / "own.yaml").write_text(option)
    monkeypatch.syspath_prepend(tmp_path / "mine")
    ran = fake("evaluator=own", "policy=fifo,las", "--config-dir", str(tmp_path / "mine"))
    assert ran.code == 1
    assert [(row["policy"], row["capacity"], row["status"]) for row in ran.rows] == [
        ("fifo", 1.0, "failed"), ("las", 1.0, "failed")
    ]  # fmt: skip
    assert f"returned a metric named {name!r}" in ran.rows[0]["error_message"]


@pytest.mark.parametrize("word", ["name=\udc80", "trace.path=a\udcff", "paths.results=r\udc80"])
def test_words_that_are_not_utf8_are_errors(fake: Command, word: str) -> None:
    ran = fake("policy=fifo", word)
    assert ran.code == 2
    assert "is not valid UTF-8" in ran.err


def test_an_option_that_is_not_utf8_is_an_error(fake: Command, tmp_path: Path) -> None:
    (tmp_path / "mine" / "policy").mkdir(parents=True)
    (tmp_path / "mine" / "policy" / "half.yaml").write_text('name: fifo\nlabel: "\\ud800"\n')
    ran = fake("policy=half", "--config-dir", str(tmp_path / "mine"))
    assert ran.code == 2
    assert "half of a surrogate pair" in ran.err


def test_a_evaluators_source_may_hold_half_of_a_surrogate_pair(
    fake: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine" / "evaluator").mkdir(parents=True)
    (tmp_path / "mine" / "half_pair.py").write_text(
        '''"""M."""
import pyarrow as pa
def evaluate(run, workload, cluster, policy, seed):
    return {"n": float(len("\\ud800"))}, pa.table({"x": [1.0]})
'''
    )
    (tmp_path / "mine" / "evaluator" / "own.yaml").write_text(
        "# M.\nname: own\nmodule: half_pair\n"
    )
    monkeypatch.syspath_prepend(tmp_path / "mine")
    ran = fake("evaluator=own", "policy=fifo", "--config-dir", str(tmp_path / "mine"))
    assert ran.code == 0
    assert ran.rows[0]["n"] == 1.0
