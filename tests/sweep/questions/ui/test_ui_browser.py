"""Index of sweeps in a real browser: progress, sort, filter, tags, removal; phone and dark."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sweep.questions.ui import index
from sweep.questions.ui.index_server import Index
from sweep.store import tags
from sweep.store.folder import CELLS, VERDICT, SweepFolder
from sweep.store.journal import Journal
from sweep.store.sweep_summaries import summarize
from tests.axe import violations
from tests.mlflow_ui import browser
from tests.sweep import frames

NAMES = ["failing-00000001", "good-00000002", "died-00000003"]  # oldest first


def finish(results: Path, sweep: str, capacities: list[float], **options: Any) -> None:
    folder = SweepFolder.for_sweep(results, sweep)
    folder.path.mkdir(parents=True)
    cells = frames.frame(seeds=[0], capacities=capacities, **options)
    folder.replace(CELLS, cells)
    folder.replace_json(VERDICT, [{"sentence": f"{sweep}: las is <best>."}])
    (folder.path / "report.html").write_text("<h1>report</h1>")
    folder.commit()


@contextmanager
def serving(results: Path) -> Iterator[Index]:
    served, stop = Index(results, None, None), threading.Event()
    thread = threading.Thread(target=served.serve, args=(lambda: not stop.is_set(),))
    thread.start()
    try:
        yield served
    finally:
        stop.set()
        thread.join()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as page:
        yield page.context.browser


@pytest.fixture
def results(tmp_path: Path) -> Path:
    for n, name in enumerate(NAMES):
        journal = Journal(tmp_path, name)
        journal.append("begin", cells=9 * n, todo=9 * n, cached=[])
        if n < 2:
            journal.append("end")
        time.sleep(0.002)  # times have milliseconds
    finish(tmp_path, NAMES[0], [0.5, 0.7, 1.0], failed=[("las", 0.5, 0)])
    finish(tmp_path, NAMES[1], [0.5])
    tags.change(tmp_path, NAMES[1], ["paper"])
    return tmp_path


@pytest.fixture
def opened(chromium: Any, results: Path, request: Any) -> Iterator[Any]:
    """Open the index of a server; messages and requests that fail are errors."""
    context = chromium.new_context(**getattr(request, "param", {}))
    page, wrong = context.new_page(), []
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    with serving(results) as served:
        page.goto(served.address)
        page.evaluate("window.isTheSame = true")
        yield page
        assert page.evaluate("window.isTheSame") is True  # it was never loaded again
        context.close()
    assert wrong == []


def shown(page: Any) -> list[str]:
    names: list[str] = page.eval_on_selector_all(
        ".sweeps tbody tr:not([hidden])", "rows => rows.map((row) => row.dataset.sweep)"
    )
    return names


def row(page: Any, name: str) -> Any:
    return page.locator(f'tr[data-sweep="{name}"]')


@pytest.mark.long
def test_a_running_sweep_moves_without_reloading(opened: Any, results: Path) -> None:
    journal, name = Journal(results, "night-00000004"), "night-00000004"
    cell = {"status": "done", "key": "00", "node": "a", "seconds": 1.0}
    with journal.locked(lambda: None) as lease:
        journal.append("begin", cells=4, todo=3, cached=[0])
        row(opened, name).wait_for()  # it appeared
        state = row(opened, name).locator(".state")
        assert state.inner_text().strip() == "1 of 4 cells"
        assert row(opened, name).locator(".remove").is_disabled()
        box = row(opened, name).locator("input")
        box.focus()
        box.type("hal")
        journal.append_cells([{**cell, "row": 1}, {**cell, "row": 2}])
        journal.note_status(left_s=130.0)
        lease.check()
        opened.get_by_text("3 of 4 cells, 2 min left").wait_for()
        assert state.locator("progress").evaluate("bar => bar.position") == 0.75
        assert opened.evaluate("document.activeElement.value") == "hal"
        journal.append_cells([{**cell, "row": 3}])
        finish(results, name, [0.5])
        journal.append("end")
    opened.locator("#said", has_text=f"{name}: finished").wait_for()
    row(opened, name).get_by_role("link", name=f"report of {name}").wait_for()
    assert opened.evaluate("document.activeElement.value") == "hal"
    assert f"{name}: las is <best>." in row(opened, name).inner_text()


def test_the_address_keeps_no_token_and_reports_open(opened: Any) -> None:
    base = opened.url
    assert "token" not in base
    assert base.endswith("/")
    opened.reload()
    opened.evaluate("window.isTheSame = true")
    assert opened.url == base
    assert opened.evaluate("document.cookie") == ""  # out of reach of scripts
    with opened.context.new_page() as page:
        page.goto(base)
        page.get_by_role("link", name=f"report of {NAMES[1]}").click()
        page.get_by_role("heading", name="report").wait_for()
        page.reload()  # a page in a sandbox, too
        page.get_by_role("heading", name="report").wait_for()
        assert "token" not in page.evaluate("document.referrer")


@pytest.mark.long
def test_the_page_of_another_server_says_where_its_address_is(chromium: Any, results: Path) -> None:
    context = chromium.new_context()
    page = context.new_page()
    with serving(results) as served:
        page.goto(served.address)
        served.token = "another"  # as of a server that was started anew at this port
        page.get_by_text("open the address that `python -m sweep ui` printed").wait_for()
    context.close()


def test_a_folder_that_is_still_to_be_made(chromium: Any, tmp_path: Path) -> None:
    results, page = tmp_path / "results", chromium.new_page()
    with serving(results) as served:
        page.goto(served.address)
        assert "Sweeps appear here as they start." in page.locator("main").inner_text()
        assert f"python -m sweep paths.results={results}" in page.locator("main").inner_text()
        assert not page.locator("table, .tools").filter(visible=True).count()
        assert violations(page) == []
        finish(results, NAMES[1], [0.5])
        page.locator("table").get_by_role("link", name=NAMES[1], exact=True).wait_for()
        assert page.locator("#filter").is_visible()
        assert not page.locator("#none").is_visible()
    page.close()


def test_sort_by_any_column_by_mouse_and_keys(opened: Any) -> None:
    assert shown(opened) == NAMES[::-1]
    heads = opened.get_by_role("columnheader")

    def pressed(name: str) -> list[str]:
        heads.get_by_role("button", name=name, exact=True).focus()
        opened.keyboard.press("Enter")
        return shown(opened)

    assert pressed("Sweep") == sorted(NAMES)
    assert pressed("Sweep") == sorted(NAMES)[::-1]
    assert pressed("State")[0] == NAMES[0]  # what failed comes first
    assert pressed("Cells") == [NAMES[2], NAMES[0], NAMES[1]]
    assert pressed("Tags")[-1] == NAMES[1]
    assert pressed("Size")[-1] == NAMES[2]
    assert heads.nth(4).get_attribute("aria-sort") == "descending"
    assert heads.nth(0).get_attribute("aria-sort") is None
    heads.get_by_role("button", name="Last run").click()
    heads.get_by_role("button", name="Last run").click()
    assert shown(opened) == NAMES
    address = opened.url
    opened.goto(f"{address}&again=1")  # the same page, whose address has the order
    assert shown(opened) == NAMES


def test_filter_by_words_and_tags(opened: Any) -> None:
    box = opened.get_by_label("Filter")
    for words, names in {
        "BEST good": [NAMES[1]],
        "stopped": [NAMES[2]],
        "failed": [NAMES[0]],
        "tag:paper": [NAMES[1]],
        "tag:pap": [],
        "": NAMES[::-1],
    }.items():
        box.fill(words)
        assert shown(opened) == names
        count = f"{len(names)} of 3 sweeps" if words else "3 sweeps"
        assert opened.locator("#shown").inner_text() == count
    row(opened, NAMES[1]).get_by_role("button", name="Show sweeps tagged paper").click()
    assert (box.input_value(), shown(opened)) == ("tag:paper", [NAMES[1]])


def test_tags_are_added_and_removed(opened: Any, results: Path) -> None:
    opened.get_by_label(f"Add a tag to {NAMES[2]}").fill("to-check, b")
    opened.keyboard.press("Enter")
    row(opened, NAMES[2]).get_by_role("button", name="Show sweeps tagged to-check").wait_for()
    assert tags.read(results, NAMES[2]) == ["b", "to-check"]
    assert opened.evaluate("document.activeElement.name") == "tag"  # ready for the next
    opened.get_by_role("button", name=f"Remove the tag b of {NAMES[2]}").click()
    opened.locator("#said", has_text=f"Tags of {NAMES[2]}: to-check.").wait_for()
    assert tags.read(results, NAMES[2]) == ["to-check"]


def test_deletion_asks_before(opened: Any, results: Path) -> None:
    remove, dialog = f"delete {NAMES[0]}", opened.get_by_role("dialog")
    opened.get_by_role("button", name=remove).click()
    assert f"Delete {NAMES[0]}?" in dialog.inner_text()
    opened.keyboard.press("Enter")  # on what has the focus: keep it
    dialog.wait_for(state="hidden")
    opened.get_by_role("button", name=remove).click()
    opened.keyboard.press("Escape")
    dialog.wait_for(state="hidden")
    assert (results / "sweeps" / NAMES[0] / CELLS).is_file()
    opened.get_by_role("button", name=remove).click()
    dialog.get_by_role("button", name="Delete it").click()
    row(opened, NAMES[0]).wait_for(state="detached")
    assert not (results / "sweeps" / NAMES[0]).exists()
    assert opened.locator("#said").inner_text().startswith(f"{NAMES[0]} was deleted, ")


# the checker is a script that the page's own policy would refuse
@pytest.mark.parametrize("opened", [{"bypass_csp": True}], indirect=True)
def test_a_checker_of_accessibility_finds_nothing(opened: Any, results: Path) -> None:
    journal = Journal(results, "night-00000004")
    with journal.locked(lambda: None):
        journal.append("begin", cells=4, todo=3, cached=[0])
        row(opened, "night-00000004").wait_for()
        assert violations(opened) == []
    opened.get_by_role("button", name=f"delete {NAMES[0]}").click()
    assert violations(opened, within="dialog") == []


PHONE = {"viewport": {"width": 360, "height": 740}}


@pytest.mark.parametrize("opened", [PHONE, {**PHONE, "color_scheme": "dark"}], indirect=True)
def test_a_phone_shows_everything(opened: Any) -> None:
    assert opened.evaluate("document.documentElement.scrollWidth") <= 360
    opened.get_by_role("button", name="Cells").click()
    assert shown(opened)[0] == NAMES[2]
    cells = row(opened, NAMES[0]).get_by_role("cell")
    assert cells.count() == 6  # though the rows are laid out as cards
    assert all(cells.nth(n).bounding_box()["width"] > 0 for n in range(6))
    assert row(opened, NAMES[0]).get_by_role("rowheader").bounding_box()["width"] > 320
    is_dark = opened.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    ink, ground, failed, stopped = opened.evaluate(
        """() => { const of = (e) => getComputedStyle(e);
          const [state, other] = ["failing-00000001", "died-00000003"].map((name) =>
            of(document.querySelector(`[data-sweep="${name}"] .state span`)).color);
          return [of(document.body).color, of(document.body).backgroundColor, state, other]; }"""
    )
    assert (brightness(ink) > brightness(ground)) == is_dark
    assert (failed != ink, stopped) == (True, ink)  # colour is for failures


def brightness(colour: str) -> int:
    return sum(int(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3])


def test_a_file_sorts_and_filters_without_a_server(chromium: Any, results: Path) -> None:
    file = results / "index.html"
    file.write_text(index.to_html(results, [(summary, []) for summary in summarize(results)]))
    context = chromium.new_context()
    page = context.new_page()
    page.goto(file.as_uri())
    page.get_by_role("button", name="Sweep", exact=True).click()
    assert shown(page) == sorted(NAMES)
    page.get_by_label("Filter").fill("tag:paper")
    assert shown(page) == [NAMES[1]]
    context.close()
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(file.as_uri())
    assert not page.get_by_label("Filter").is_visible()
    assert page.locator("tbody tr").count() == 3
    context.close()
