"""Datasets side by side: numbers, tables, text, and the page."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import numpy as np
import plotly.graph_objects as go
import pyarrow.parquet as pq
import pytest

import sim
from sim import dags
from sim.describe import Dataset, describe, write_page
from sim.describe.figures import figures
from sim.describe.page import page, text_lines
from sim.describe.run import random_comparator
from sim.describe.statistics import SECTIONS, format_value
from tests.sim.describe.workloads import CHAIN, LARGE, dataset, drawn, job


@pytest.fixture(scope="module")
def both():
    data = Dataset.from_workload("mine", drawn(150, seed=1))
    return describe(
        data, [Dataset.from_workload("other", drawn(60, seed=2)), random_comparator(data, seed=4)]
    )


def test_the_first_dataset_is_described_and_the_others_stand_beside_it(both):
    assert both.names == ("mine", "other", "random")
    assert both.value("overview", "jobs") == 150
    assert both.value("overview", "jobs", "other") == 60
    large = both.value("structure", "jobs")
    assert both.value("structure", "jobs", "random") == large > 0
    with pytest.raises(KeyError):
        both.value("overview", "jbos")
    assert {m.section for m in both.statistics["mine"]} == set(SECTIONS)
    assert {m.section for m in both.statistics["random"]} == {
        "input", "overview", "dependencies", "shapes", "structure", "recurrence", "levels"
    }  # fmt: skip


def test_keys_are_unique_in_a_section(both):
    for measures in both.statistics.values():
        keys = [(m.section, m.key) for m in measures]
        assert len(keys) == len(set(keys))


def test_random_dags_are_one_for_one(both):
    data = Dataset.from_workload("mine", drawn(150, seed=1))
    drawn_dags = random_comparator(data, seed=4)
    assert (drawn_dags.every.job_n_stages == data.large.job_n_stages).all()
    again = random_comparator(data, seed=4).every
    assert (again.edge_child == drawn_dags.every.edge_child).all()
    other = random_comparator(data, seed=5).every
    assert other.n_edges != again.n_edges or (other.edge_child != again.edge_child).any()


def test_rows_are_those_of_the_first_dataset(both):
    rows = {row.label: row for row in both.rows("overview")}
    assert rows["jobs"].values == (150, 60, both.value("structure", "jobs"))
    assert rows["tasks"].values[2] is None
    assert rows["jobs"].paper is None
    groups = [group for group, _ in both.visible_groups("variability")]
    assert len(groups) == len(set(groups)) == 8


def test_two_datasets_of_one_name_are_refused():
    data = dataset(job(0.0, CHAIN))
    with pytest.raises(sim.InputError, match="two datasets are called 'w'"):
        describe(data, [data])


def test_the_papers_numbers_stand_beside_its_own_trace_only(both):
    assert both.paper == {}
    w = drawn(20, seed=1)
    alibaba = sim.Workload.from_tables(
        jobs=w.jobs, stages=w.stages, tasks=w.tasks, stage_edges=w.stage_edges,
        meta={"name": "alibaba2018"},
    )  # fmt: skip
    paper = describe(Dataset.from_workload("a", alibaba)).paper
    assert paper["shapes", "scatter"] == 0.3603
    known = {
        (m.section, m.key) for m in describe(Dataset.from_workload("a", alibaba)).statistics["a"]
    }
    used_column = {key for key in paper if "used_" in key[1] or "span" in key[1]}
    assert set(paper) - used_column <= known


def test_every_table_has_its_dataset_and_jobs_are_rows_of_the_workload(both, tmp_path):
    w = drawn(150, seed=1)
    write_page(both, tmp_path)
    jobs = pq.read_table(tmp_path / "jobs.parquet")
    assert jobs["job_id"].to_pylist() == w.jobs["job_id"].to_pylist()
    graphs = dags.Graphs.from_workload(w)
    assert jobs["width"].to_pylist() == dags.width(graphs).tolist()
    assert jobs["isomorphism_class"].to_pylist() == dags.classes(graphs).tolist()
    names = {p.stem for p in tmp_path.glob("*.parquet")}
    assert names == {"measures", "jobs", *both.tables}
    for name in names - {"jobs"}:
        result = set(pq.read_table(tmp_path / f"{name}.parquet")["dataset"].to_pylist())
        assert result <= {"mine", "other", "random"}, name
    measures = pq.read_table(tmp_path / "measures.parquet").to_pylist()
    assert {"dataset": "other", "section": "overview", "group": "", "key": "jobs",
            "label": "jobs", "kind": "count", "value": 60.0} in measures  # fmt: skip


def test_the_same_description_gives_the_same_bytes(both, tmp_path):
    for name in ("a", "b"):
        data = Dataset.from_workload("mine", drawn(150, seed=1))
        beside = [
            Dataset.from_workload("other", drawn(60, seed=2)),
            random_comparator(data, seed=4),
        ]
        paths = write_page(describe(data, beside), tmp_path / name)
    assert paths[-1].name == "describe.html"
    for path in paths:
        assert path.read_bytes() == (tmp_path / "a" / path.name).read_bytes(), path.name
    assert not list(tmp_path.glob("*/.*"))


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open, self.links, self.ids, self.scripts = [], [], [], {}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.links += [attrs[k] for k in ("src", "href") if k in attrs]
        self.ids += [attrs["id"]] if "id" in attrs else []
        if tag not in ("meta", "link", "br", "input"):
            self.open.append((tag, attrs))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, text):
        if self.open and self.open[-1][0] == "script":
            self.scripts[self.open[-1][1].get("id", len(self.scripts))] = text


def test_the_page_needs_nothing_else(both):
    text = page(both)
    result = Page(text)
    assert result.open == []
    assert all(link.startswith("#") and link[1:] in result.ids for link in result.links)
    assert "default-src 'none'" in text
    styles = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    assert "url(" not in "".join(styles)
    assert "prefers-color-scheme: dark" in styles[0]
    plots = json.loads(result.scripts["figures"])
    assert [f"plot-{i}" for i in range(len(plots))] == [
        i for i in result.ids if re.fullmatch(r"plot-\d+", i)
    ]
    for label in ("scatter: each stage has at most one parent", "span one level", "mine", "other"):
        assert label in text


def test_plots_are_plotly_figures_of_the_datasets(both):
    drawn_figures = figures(both)
    captions = [f.caption for f in drawn_figures]
    assert len(captions) == len(set(captions))
    assert {f.section for f in drawn_figures} == {
        "load",
        "hourly",
        "structure",
        "variability",
        "levels",
    }
    for f in drawn_figures:
        assert go.Figure(f.plot).data
        assert all(trace["name"] for trace in f.plot["data"])
        assert {t["meta"] for t in f.plot["data"]} <= {0, 1, 2}
    pairs = next(f for f in drawn_figures if f.caption == "Dependent pairs: durations")
    assert [t["name"] for t in pairs.plot["data"]] == ["mine", "other"]
    parallel = next(f for f in drawn_figures if f.caption.startswith("Maximum parallelism"))
    assert [t["name"] for t in parallel.plot["data"]] == ["mine", "other", "random"]


def test_what_recurs_is_drawn_where_something_does():
    data = dataset(*(job(3600.0 * i, LARGE, b={"durations_s": [1.0 + i]}) for i in range(4)))
    drawn_figures = [f for f in figures(describe(data)) if f.section == "recurrence"]
    assert [f.caption for f in drawn_figures] == [
        "Jobs isomorphic to at least N other jobs",
        "Recurring pairs: durations",
        "Recurring pairs: task counts",
        "Recurring sets: durations",
        "Recurring sets: task counts",
    ]
    assert drawn_figures[0].plot["data"][0]["x"] == [3]


def test_names_are_escaped_in_the_page():
    data = dataset(job(0.0, CHAIN), name="</script><b>")
    text = page(describe(data))
    assert "</script><b>" not in text
    assert Page(text).open == []


def test_a_workload_without_any_edge_has_a_page_too(tmp_path):
    data = dataset(*(job(4000.0 * i, {"a": ""}) for i in range(3)))
    description = describe(data)
    assert np.isnan(description.value("structure", "density_p50"))
    assert "–" in "\n".join(text_lines(description))
    assert write_page(description, tmp_path)[-1].stat().st_size > 500_000


def test_text_has_a_table_a_section(both):
    text = "\n".join(text_lines(both))
    for title in SECTIONS.values():
        assert title in text
    head = next(line for line in text.splitlines() if line.startswith("Overview"))
    assert head.split()[-3:] == ["mine", "other", "random"]
    jobs = next(line for line in text.splitlines() if line.startswith("jobs "))
    assert "150" in jobs.split()


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (1234567.0, "count", "1,234,567"),
        (0.12345, "share", "12.35 %"),
        (float("nan"), "share", "–"),
        (None, "count", ""),
        (7.63, "ratio", "7.63×"),
        (float("inf"), "ratio", "∞×"),
        (23400.4, "ratio", "23,400×"),
        (0.0, "number", "0"),
        (0.40934, "number", "0.409"),
        (18.94, "number", "18.9"),
        (0.00012, "number", "1.2e-04"),
    ],
)
def test_values_are_worded_for_people(value, kind, text):
    assert format_value(value, kind) == text
