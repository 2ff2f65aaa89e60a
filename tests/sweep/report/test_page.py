"""Report in a real browser: no error, no request, downloads of numbers, keyboard control."""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sweep import report
from sweep.report import findings, first_screen, headlines
from sweep.report.findings import Finding
from sweep.stats import contrasts
from sweep.stats.metric_format import format_value
from sweep.stats.summary import summarise
from sweep.stats.verdict import verdicts
from sweep.store.folder import SweepFolder
from tests.axe import violations
from tests.sweep import frames
from tests.sweep.report.test_job_samples import TASKS, cached

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
ALL = frames.frame(seeds=range(6), capacities=[0.5, 1.0], failed=[("las", 0.5, 1)])
LEFT_OUT = [name for name in ALL.column_names if name.startswith(("jain", "utiliz", "gap", "wait"))]
CELLS = ALL.drop_columns(LEFT_OUT)  # fewer plots, sooner drawn
USE = {"resource": "cpu", "begin_s": 0.0, "end_s": 7200.0, "used": [0.5, 1.0]}
CURVES = [Finding("Fig. 1", "", y, curve=c, along="t", x=y) for c in "ab" for y in (1.0, 2.0)]


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sweep")
    compared = contrasts.compare(CELLS, swept=(), baseline="fifo")
    requests = {"swept": [], "baseline": "fifo", "metrics": []}
    study = {"study": {"source": "a paper", "notes": ""}}
    verdict_list = verdicts(CELLS, requests)
    finished = first_screen.Sweep(summarise(CELLS, baseline="fifo"), verdict_list, requests, {})
    _, page = report.write(
        SweepFolder(folder),
        CELLS,
        study,
        {"git_commit": "0123abc", "diff": "a\nb"},
        baseline="fifo",
        findings=findings.to_table([*CURVES, Finding("Fig. 1", "what", 1.0)]),
        headlines=headlines.headlines(compared),
        verdicts=verdict_list,
        answer=first_screen.build(finished),
        cache=cached(folder / "results", CELLS, utilization=USE, tasks=TASKS),
    )
    return page


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright: the test extra")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


@pytest.fixture
def opened(browser: Browser, page_file: Path, request: Any) -> Iterator[Page]:
    """Open the page; console messages and network requests are errors."""
    scheme = getattr(request, "param", "light")
    context = browser.new_context(color_scheme=scheme, viewport={"width": 1200, "height": 900})
    page = context.new_page()
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "request",
        lambda requests: wrong.append(requests.url) if "file:" not in requests.url else None,
    )
    page.goto(page_file.as_uri())
    page.wait_for_selector(".plot .main-svg")
    yield page
    context.close()
    assert [text for text in wrong if not text.startswith(("data:", "blob:"))] == []


def show_all(page: Page) -> int:
    """Scroll to each plot, so that it is drawn; return the number of plots."""
    n: int = page.evaluate(
        """async () => {
          document.querySelectorAll("details.part").forEach((part) => { part.open = true; });
          const divs = [...document.querySelectorAll(".plot")];
          for (const div of divs) {
            div.scrollIntoView();
            for (let i = 0; i < 200 && !div.querySelector(".main-svg"); i++)
              await new Promise((done) => setTimeout(done, 20));
          }
          return divs.filter((div) => div.querySelector(".main-svg")).length;
        }"""
    )
    return n


@pytest.mark.parametrize("opened", ["light", "dark"], indirect=True)
def test_every_plot_is_drawn_in_both_schemes(opened: Page) -> None:
    n_plots = opened.locator(".plot").count()
    assert n_plots == 1 + 2 + len(summarise(CELLS).metrics) + 2 * 5 + 1 + 1
    assert show_all(opened) == n_plots
    ink, ground = opened.evaluate(
        """() => { const style = getComputedStyle(document.body);
                   return [style.color, style.backgroundColor]; }"""
    )
    is_dark = opened.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    assert (brightness(ink) > brightness(ground)) == is_dark
    drawn = opened.evaluate("getComputedStyle(document.querySelector('.plot .xtick text')).fill")
    assert (brightness(drawn) > brightness(ground)) == is_dark


def brightness(colour: str) -> int:
    return sum(int(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3])


def downloaded(page: Page, label: str, position: int = 0) -> tuple[str, list[list[str]]]:
    with page.expect_download() as waiting:
        page.get_by_role("button", name=f"Download the numbers of {label} as CSV").nth(
            position
        ).click()
    text = Path(waiting.value.path()).read_text(encoding="utf-8")
    return waiting.value.suggested_filename, list(csv.reader(io.StringIO(text)))


def test_the_numbers_of_a_plot_are_downloaded(opened: Page) -> None:
    summary = summarise(CELLS, baseline="fifo")
    show_all(opened)
    name, (header, *rows) = downloaded(opened, "jct_mean_s")
    assert name.endswith(".csv")
    assert "jct_mean_s" in name
    assert header == ["series", "capacity", "y", "plus or minus"]
    position = summary.metrics.index("jct_mean_s")
    block = summary.blocks[0]
    expected = [
        [
            column.label,
            repr(capacity).removesuffix(".0"),
            block.mean[k, c, position],
            block.paired[k, c, position],
        ]
        for c, column in enumerate(summary.columns)
        for k, capacity in enumerate(block.capacities)
    ]
    assert [row[:2] for row in rows] == [row[:2] for row in expected]
    for row, (*_, mean, half) in zip(rows, expected, strict=True):
        assert [float(row[2]), float(row[3] or "nan")] == pytest.approx([mean, half], nan_ok=True)
    _, (header, *rows) = downloaded(opened, "fifo, alibaba2018, capacity 0.5, seed 0")
    assert header == ["series", "start", "length", "line", "what"]
    assert len(rows) == len(TASKS["job"])
    assert rows[0][-1] == "job 0, stage 0, machine 0: 0 to 4 s"


def test_a_link_opens_its_target(opened: Page) -> None:
    is_open = "document.querySelector('#block-0 > details').open"
    assert not opened.evaluate(is_open)
    opened.get_by_role("link", name="Tables").click()
    opened.wait_for_function(is_open)
    opened.wait_for_selector("#block-0-tables table", state="visible")


def test_keys_reach_every_control(opened: Page) -> None:
    show_all(opened)
    opened.evaluate("scrollTo(0, 0)")
    seen: list[str] = []
    for _ in range(200):
        opened.keyboard.press("Tab")
        seen.append(
            opened.evaluate(
                """() => { const e = document.activeElement;
                  const o = getComputedStyle(e).outlineStyle !== "none" || e.type === "checkbox";
                  return e.tagName + (e.className ? "." + e.className : "") + (e.name ?? "")
                    + (o ? "" : " without outline"); }"""
            )
        )
        if seen[-1].startswith("BODY"):
            break
    assert not [item for item in seen if item.endswith("without outline") and "BODY" not in item]
    assert seen[0] == "A.skip"
    n_plots = opened.locator(".plot").count()
    assert sum(item.startswith("BUTTON.csv") for item in seen) == n_plots
    assert sum(item == "INPUTcolumn" for item in seen) == len(frames.POLICIES)
    assert "INPUTlog" in seen
    assert sum(item.startswith("SUMMARY") for item in seen) == 8
    assert sum(item.startswith("DIV.scroll") for item in seen) == 4


def test_checkboxes_replace_legends_and_work_by_keyboard(opened: Page) -> None:
    show_all(opened)
    lines = "document.querySelectorAll('#plot-4 .scatterlayer .trace').length"
    opened.locator("#plot-4").scroll_into_view_if_needed()
    opened.wait_for_selector("#plot-4 .scatterlayer")
    assert opened.evaluate(lines) == 4
    opened.locator(".choose input[name=column]").nth(1).focus()
    opened.keyboard.press("Space")
    assert opened.evaluate(lines) == 3
    study = "document.querySelectorAll('#plot-3 .scatterlayer .trace').length"
    assert opened.locator("#plot-3 .legend").count() == 0  # plotly's own
    opened.locator("#plot-3 + .legend input").nth(0).focus()
    opened.keyboard.press("Space")
    assert opened.evaluate(study) == 1
    opened.keyboard.press("Space")
    assert opened.evaluate(study) == 2


def test_a_checker_of_accessibility_finds_nothing(opened: Page) -> None:
    opened.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert violations(opened) == []
    names = opened.evaluate(
        "[...document.querySelectorAll('.plot')].map((div) => div.getAttribute('aria-describedby'))"
    )
    texts = [opened.locator(f"#{name}").text_content() or "" for name in names]
    assert len(set(texts)) > 8
    assert all(text.endswith(".") for text in texts)
    summary = summarise(CELLS)
    mean = summary.blocks[0].mean[0, 2, summary.metrics.index("jct_mean_s")]
    start = f"{summary.columns[2].label} {format_value('jct_mean_s', mean)[0]}"
    assert any(start in text and " at 0.5" in text for text in texts)
    hidden = "[...document.querySelectorAll('.main-svg')].every((s) => s.ariaHidden === 'true')"
    assert opened.evaluate(hidden)


@pytest.mark.parametrize("opened", ["dark"], indirect=True)
def test_print_has_everything_and_no_controls(opened: Page) -> None:
    """Prepare for print on a dark screen, look at the page as printed, then return."""
    count = "document.querySelectorAll('.plot .main-svg:first-child').length"
    before = opened.evaluate(count)
    opened.evaluate("dispatchEvent(new Event('beforeprint'))")
    opened.emulate_media(media="print", color_scheme="dark")
    opened.set_viewport_size({"width": 704, "height": 1000})  # 186 mm
    assert opened.evaluate(count) == opened.locator(".plot").count() > before
    sizes = opened.evaluate(
        """() => [...document.querySelectorAll(".plot")].map((div) => [div.clientWidth,
             div.querySelector(".main-svg").getBoundingClientRect().width])"""
    )
    assert all(0 < drawn <= room + 1 for room, drawn in sizes)
    seen = """(names) => [...document.querySelectorAll(names)]
      .filter((element) => element.checkVisibility()).length"""
    assert opened.evaluate(seen, "input, button, nav, .modebar") == 0
    assert opened.evaluate(seen, "table") == opened.locator("table").count()
    assert opened.locator(".plot .legend .traces").count() > 4
    assert opened.evaluate("document.documentElement.scrollWidth") <= 704
    style = "getComputedStyle(document.querySelector('.plot .xtick text')).fill"
    assert brightness(opened.evaluate(style)) < 200
    opened.emulate_media(media="screen")
    opened.evaluate("dispatchEvent(new Event('afterprint'))")
    assert opened.evaluate("document.querySelectorAll('details.part[open]').length") == 0
    opened.wait_for_function(f"{style} !== 'rgb(27, 31, 36)'")
    assert brightness(opened.evaluate(style)) > 400


def test_the_page_is_within_its_budget(page_file: Path) -> None:
    assert page_file.stat().st_size < 700_000


def test_the_first_screen_has_the_answer(opened: Page) -> None:
    bottom = "(names) => document.querySelector(names).getBoundingClientRect().bottom"
    opened.set_viewport_size({"width": 1280, "height": 800})
    assert opened.evaluate(bottom, ".answer") < 800
    titles = opened.locator(".answer h2").all_text_contents()
    assert titles == ["Answer", "How sure", "What it costs", "What was assumed"]
    assert (opened.locator("header .lead").text_content() or "").startswith("Which scheduling")
    opened.set_viewport_size({"width": 390, "height": 844})
    assert opened.evaluate(bottom, "#part-1 ~ p") < 844
    assert opened.evaluate(bottom, ".first figcaption") < 844


def test_the_first_plot_is_of_the_verdict_and_marks_the_best(opened: Page) -> None:
    assert opened.locator(".first .plot").count() == 1
    caption = opened.locator(".first figcaption").text_content() or ""
    assert caption.startswith("mean JCT")
    note = opened.locator(".first").text_content() or ""
    assert "bars: 95% intervals of the difference from fifo" in note
    sizes = opened.evaluate(
        """() => JSON.parse(document.querySelector("#figures").textContent)[0]
             .data.map((trace) => trace.marker.size)"""
    )
    drawn = [size for trace in sizes for size in ([trace] if isinstance(trace, int) else trace)]
    assert max(drawn) > min(drawn)


def test_a_narrow_window_cuts_nothing_off(opened: Page) -> None:
    opened.set_viewport_size({"width": 390, "height": 800})
    show_all(opened)
    assert opened.evaluate("document.documentElement.scrollWidth") <= 390
