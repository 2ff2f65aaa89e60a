from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import pyarrow as pa
import pytest
from scipy import stats

from sim.base import html as pieces
from sweep import report
from sweep.report import overview
from sweep.report import plots as report_plots
from sweep.stats import interval
from sweep.stats import summary as summary_module
from sweep.stats.summary import summarise
from sweep.stats.verdict import verdicts
from sweep.store.folder import SweepFolder
from tests.sweep import frames

CONFIG = {
    "grid": {"policy": list(frames.POLICIES), "capacity": [0.5, 0.75, 1.0]},
    "tracking": {"uri": "http://me:hunter2@host:5000"},
}
PROVENANCE = {
    "git_commit": "0123abc",
    "command": "python -m sweep tracking.uri=http://me:hunter2@host:5000",
    "packages": {"numpy": "2.0.0"},
    "git_diff": "--- a\n+++ b\n+<b>&amp;</b>\n",
}
FAILED = [("las", 0.5, 1)]


class Page(HTMLParser):
    """Collects the URLs of a page, its text outside scripts, and unclosed tags."""

    VOID = frozenset(("meta", "input", "br", "link", "img"))

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.text = ""
        self.n_cells = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        self.n_cells += tag == "td"
        for name, value in attrs:
            if name in ("src", "href", "action", "data", "poster", "srcset"):
                self.links.append(value or "")
            if name == "id":
                self.ids.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("script", "style"):
            self.text += data


def write_report(folder: Path, **options: object) -> tuple[str, Page, str]:
    cells = options.pop("cells", None) or frames.frame(failed=FAILED)
    markdown, page = report.write(
        SweepFolder(folder),
        cells,
        CONFIG,
        PROVENANCE,
        baseline="fifo",
        **options,
    )
    source = page.read_text(encoding="utf-8")
    parser = Page()
    parser.feed(source)
    parser.close()
    assert parser.open == []
    return markdown.read_text(encoding="utf-8"), parser, source


def test_two_writes_give_the_same_bytes(tmp_path: Path) -> None:
    cells = frames.frame(failed=FAILED)
    index = cells.column_names.index("status")
    status = ["cached" if s == "done" else s for s in cells.column("status").to_pylist()]
    folders = [tmp_path / "a" / "0123", tmp_path / "b" / "0123"]
    for folder, table in zip(
        folders, (cells, cells.set_column(index, "status", pa.array(status))), strict=True
    ):
        folder.mkdir(parents=True)
        report.write(SweepFolder(folder), table, CONFIG, PROVENANCE, baseline="fifo")
    for name in ("report.md", "report.html"):
        assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes()
    assert sorted(p.name for p in folders[0].iterdir()) == ["report.html", "report.md"]


def test_the_page_loads_nothing(tmp_path: Path) -> None:
    _, page, source = write_report(tmp_path)
    assert page.links
    assert all(link.startswith("#") for link in page.links)
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    assert "default-src 'none'" in source
    styles = re.findall(r"<style>(.*?)</style>", source, re.DOTALL)
    assert not re.search(r"url\(|@import", "".join(styles))


def test_figures_are_valid_plotly_and_hold_the_numbers(tmp_path: Path) -> None:
    cells = frames.frame(failed=FAILED)
    summary = summarise(cells, baseline="fifo")
    _, page, source = write_report(tmp_path, cells=cells)
    match = re.search(r'<script type="application/json" id="figures">(.*?)</script>', source)
    assert match
    figures = json.loads(match.group(1))
    fronts, figures = figures[:3], figures[3:]  # a capacity each
    assert len(figures) == len(summary.metrics)
    assert [i for i in page.ids if i.startswith("plot-")] == [
        f"plot-{n}" for n in range(3 + len(figures))
    ]
    for figure in (*fronts, *figures):
        go.Figure(figure)  # raises on an attribute that plotly does not know
    jct = figures[summary.metrics.index("jct_mean_s")]["data"]
    index = summary.metrics.index("jct_mean_s")
    assert [trace["name"] for trace in jct] == ["fifo", "sjf", "las", "srpt"]
    assert jct[3]["customdata"] == [0.5, 0.75, 1.0]
    for k, capacity in enumerate((0.5, 0.75, 1.0)):  # side by side, around the capacity
        places = [trace["x"][k] for trace in jct]
        assert places == sorted(set(places))
        assert np.mean(places) == pytest.approx(capacity, abs=1e-4)
        assert max(places) - min(places) < 0.05
    assert jct[3]["y"] == pytest.approx(list(summary.blocks[0].mean[:, 3, index]), rel=1e-6)
    pairs = [
        [frames.metrics_of(p, 0.75, s)["jct_mean_s"] for s in (0, 1, 2)] for p in ("srpt", "fifo")
    ]
    ends = stats.ttest_rel(*pairs).confidence_interval(0.95)
    assert jct[3]["error_y"]["array"][1] == pytest.approx((ends.high - ends.low) / 2, rel=1e-6)
    assert all(y == float(f"{y:.7g}") for y in jct[3]["y"])
    assert not any(trace["line"].get("dash") == "solid" for trace in jct)  # it is by default
    assert "error_y" not in jct[0]  # the baseline differs from itself by nothing
    gap = figures[summary.metrics.index("gap_lb_p50")]
    assert gap["layout"]["yaxis"]["type"] == "log"
    assert "type" not in figures[summary.metrics.index("jct_mean_s")]["layout"]["yaxis"]
    (srpt,) = [trace for trace in fronts[0]["data"] if trace["name"] == "srpt"]
    assert (srpt["mode"], len(srpt["x"])) == ("markers+text", 1)
    share = figures[summary.metrics.index("utilization")]["data"][0]["y"]
    assert 50 < share[0] < 100


def test_both_open_with_the_verdict_and_an_overview(tmp_path: Path) -> None:
    cells = frames.frame(seeds=range(5))
    config = {"swept": [], "baseline": "fifo", "metrics": []}
    verdict_list = verdicts(cells, config)
    markdown, page, source = write_report(tmp_path, cells=cells, verdicts=verdict_list)
    body = source.partition("<main")[2]
    assert body.index('id="verdict"') < body.index('id="front"') < body.index('id="block-0"')
    assert not re.findall(r"<section(?! id=.(?:verdict|front)).*?>\n(?!<details)", body)
    lines = markdown.replace("\\", "").splitlines()
    for verdict in verdict_list:
        assert f"- {verdict.sentence}" in lines
        assert verdict.sentence.replace(" %", "\u00a0%") in page.text
    srpt = next(line for line in lines if line.startswith("| srpt"))
    assert srpt == "| srpt | **3.00×** | **3.00×** | **3.00×** |"
    assert (
        "At capacity 0.5, no policy has both a lower mean and a lower p99 JCT than: srpt."
        in markdown
    )
    spots = re.findall(r'<td(?: class="(more|less)?( best)?")? style="--w', source)
    assert [spots.count((side, "")) for side in ("", "more")] == [3, 6]
    assert spots.count(("more", " best")) == 3


def test_a_picture_marks_ties_and_leaves_failed_cells_empty(tmp_path: Path) -> None:
    cells = frames.frame(policies=["fifo", "srpt"], capacities=[1.0], seeds=range(4))
    rows = [{**row, "policy": "twin"} for row in cells.to_pylist() if row["policy"] == "srpt"]
    cells = pa.concat_tables([cells, pa.Table.from_pylist(rows, cells.schema)])
    (picture,) = overview.pictures(
        verdicts(cells, {"swept": [], "baseline": "fifo", "metrics": []})
    )
    spots = {policy: spot for policy, (spot,) in picture.table.groups[0].rows}
    assert {policy: spot.mark for policy, spot in spots.items()} == {
        "fifo": "", "srpt": " =", "twin": " =",
    }  # fmt: skip
    assert picture.notes[-1] == "=: exactly equal to the best"
    failed = [("las", 0.5, seed) for seed in range(3)]
    config = {"swept": [], "baseline": None, "metrics": []}
    (picture,) = overview.pictures(verdicts(frames.frame(failed=failed), config))
    las = dict(picture.table.groups[0].rows)["las"]
    assert [spot.text == "" for spot in las] == [True, False, False]


def test_pictures_and_fronts_set_oracles_aside() -> None:
    cells = frames.with_knowledge(frames.frame(), sjf="true", srpt="true")
    config = {"swept": [], "baseline": "fifo", "metrics": []}
    (picture,) = overview.pictures(verdicts(cells, config))
    rows = dict(picture.table.groups[0].rows)
    assert list(rows) == ["fifo", "sjf (oracle)", "las", "srpt (oracle)"]
    assert ["best" in spot.style for spot in rows["las"]] == [True] * 3
    assert not any("best" in spot.style for spot in rows["srpt (oracle)"])
    assert "oracles aside" in picture.notes[0]
    summary = summarise(cells, baseline="fifo")
    fronts = [front for _, front in overview.fronts(summary, summary.blocks[0])]
    assert [[summary.columns[c].policy for c in front] for front in fronts] == [["las"]] * 3


def test_axes_tables_and_pictures_have_the_number_of_machines(tmp_path: Path) -> None:
    cells = frames.frame(capacities=[0.5, 1.0])
    machines = [41 if row["capacity"] == 0.5 else 82 for row in cells.to_pylist()]
    for name, values in (
        ("n_machines", machines),
        ("offered_load", [32.8 / n for n in machines]),
        ("arrival_scale", [1.86] * len(machines)),
    ):
        cells = cells.append_column(name, pa.array(values, pa.float64()))
    summary = summarise(cells, baseline="fifo")
    assert not {"n_machines", "offered_load", "arrival_scale"} & set(summary.metrics)
    figure = report_plots.figure(summary, summary.blocks[0], "jct_mean_s")
    assert figure["layout"]["xaxis"]["ticktext"] == ["0.5<br>41 machines", "1<br>82 machines"]
    verdict_list = verdicts(cells, {"swept": [], "baseline": "fifo", "metrics": []})
    markdown, page, _ = write_report(tmp_path, cells=cells, verdicts=verdict_list)
    for text in (markdown, page.text):
        assert "0.5 (41 machines)" in text
        assert "capacity 1: offered load 0.40, arrivals stretched 1.86 times" in text
    assert verdict_list[0].as_json()["arrival_scale"] == pytest.approx(1.86)


def test_the_page_is_small_unless_a_figure_needs_more() -> None:
    lines = [{"data": [{"type": "scatter"}, {"type": "bar"}], "layout": {}}]
    small = pieces.embedded(lines)["plotly_gz"]
    script = gzip.decompress(base64.b64decode(small))
    assert hashlib.sha256(script).hexdigest() == pieces.PLOTLY_BASIC
    assert len(small) < 550_000
    boxes = pieces.embedded([{"data": [{"type": "box"}], "layout": {}}])["plotly_gz"]
    assert len(gzip.decompress(base64.b64decode(boxes))) > 4_000_000
    for packed in (small, boxes):
        assert (
            base64.b64decode(packed)[3] == 0
        )  # flags: a header of ten bytes, which the page skips
    inflate = Path(pieces.__file__).parent / "vendor" / "tiny-inflate.js"
    assert hashlib.sha256(inflate.read_bytes()).hexdigest() == pieces.INFLATE


def test_names_of_points_do_not_overlap() -> None:
    labels = dict(enumerate(["fifo", "srpt", "dagps online", "sjf"]))
    apart = report_plots._sides(labels, dict(enumerate([(0, 0), (1, 1), (2, 2), (3, 3)])))
    assert set(apart) == set(labels)
    near = report_plots._sides(labels, dict(enumerate([(0, 0), (1.0, 1.0), (1.001, 1.0), (3, 3)])))
    assert near[1] != near[2]
    crowd = {index: (1.0 + index / 1e4, 1.0) for index in range(12)} | {
        12: (0.0, 0.0),
        13: (9.0, 9.0),
    }
    assert len(report_plots._sides(dict.fromkeys(crowd, "a long name"), crowd)) < 14


def test_one_capacity_gives_bars_and_one_seed_no_error_bars() -> None:
    summary = summarise(frames.frame(capacities=[0.8], seeds=[0]), baseline="fifo")
    figure = report_plots.figure(summary, summary.blocks[0], "jct_mean_s")
    go.Figure(figure)
    assert [trace["type"] for trace in figure["data"]] == ["bar"] * 4
    assert not any("error_y" in trace for trace in figure["data"])


def test_error_bars_of_means_are_their_intervals() -> None:
    cells = frames.frame(policies=["srpt"], capacities=[0.5], seeds=range(3))
    waits = pa.array([1.0, 10.0, 100.0])
    summary = summarise(cells.append_column("wait_p50_s", waits))
    bars = report_plots.figure(summary, summary.blocks[0], "wait_p50_s")["data"][0]["error_y"]
    mean, low, high = interval([1.0, 10.0, 100.0], span=(0.0, math.inf))
    assert bars["arrayminus"] == pytest.approx([mean - low])
    assert bars["array"] == pytest.approx([high - mean])
    assert 0 < low < mean


def test_only_the_first_failures_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summary_module, "MAX_FAILURES", 2)
    cells = frames.frame(failed=[("las", 0.5, seed) for seed in range(3)])
    markdown, page, _ = write_report(tmp_path, cells=cells)
    for text in (markdown, page.text):
        assert "3 of 36 cells failed" in text
        assert "las, alibaba2018, capacity 0.5, seed 1" in text
        assert "las, alibaba2018, capacity 0.5, seed 2" not in text
        assert "1 more cells failed" in text


def test_a_policy_that_failed_at_a_capacity_leaves_a_gap() -> None:
    failed = [("sjf", 0.75, seed) for seed in (0, 1, 2)]
    summary = summarise(frames.frame(failed=failed), baseline="fifo")
    figure = report_plots.figure(summary, summary.blocks[0], "jct_mean_s")
    go.Figure(figure)
    values = figure["data"][1]["y"]
    assert [value is None for value in values] == [False, True, False]


def test_both_have_the_grid_and_the_failures(tmp_path: Path) -> None:
    markdown, page, _ = write_report(tmp_path / "demonstration")
    assert markdown.startswith("# Sweep demonstration\n")
    for text in (markdown, page.text):
        assert "demonstration" in text
        assert "1 of 36 cells failed" in text
        assert "las, alibaba2018, capacity 0.5, seed 1" in text
        assert "ZeroDivisionError: float division by zero" in text
        assert "python -m sweep policy=las capacity=0.5 seed=1" in text
        assert "0123abc" in text
        assert "- fifo\n" in text
        assert "+<b>&amp;</b>" in text
        assert "hunter2" not in text
        assert "http://me:***@host:5000" in text
    assert "[report.html](report.html)" in markdown


def test_html_tables_have_an_entry_a_metric_policy_and_capacity(tmp_path: Path) -> None:
    cells = frames.frame(failed=FAILED)
    summary = summarise(cells, baseline="fifo")
    markdown, page, _ = write_report(tmp_path, cells=cells)
    assert page.n_cells == len(summary.metrics) * 4 * 3
    text = "".join(page.text.split())
    for row in re.findall(r"^\| `(\w+)` \| (.*) \|$", markdown, re.MULTILINE):
        for entry in row[1].replace("**", "").split(" | "):
            assert entry.replace("\\", "").replace(" ", "") in text


def test_markup_in_names_stays_text(tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script>"
    cells = frames.frame(policies=["fifo", evil])
    _, page, source = write_report(tmp_path, cells=cells)
    assert "<script>alert" not in source
    assert html.unescape(evil) in page.text


def test_many_blocks_each_have_plots_and_tables(tmp_path: Path) -> None:
    extra = [{"cluster.load": 0.7}, {"cluster.load": 0.9}]
    cells = frames.frame(extra=extra, traces=["a", "b"], seeds=[0])
    markdown, page, _ = write_report(tmp_path, cells=cells, swept=["cluster.load"])
    n_metrics = len(summarise(cells, swept=["cluster.load"]).metrics)
    n_fronts = 6  # the first ones
    assert sum(i.startswith("plot-") for i in page.ids) == 4 * n_metrics + n_fronts
    for title in ("a, cluster.load=0.7", "b, cluster.load=0.9"):
        assert title in page.text
        assert title in markdown.replace("\\", "")


def test_a_sweep_in_which_all_failed_still_has_a_report(tmp_path: Path) -> None:
    cells = frames.frame(policies=["las"], capacities=[0.5], seeds=[1], failed=FAILED)
    markdown, page, _ = write_report(tmp_path, cells=cells)
    assert "1 of 1 cells failed" in markdown
    assert "1 of 1 cells failed" in page.text
