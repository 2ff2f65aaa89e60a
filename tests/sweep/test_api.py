"""Python API: sweeps from a notebook."""

from __future__ import annotations

import ctypes
import io
import os
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sweep
from sim.base.errors import InputError
from sweep.report import drawing
from sweep.stats.pairwise import pairwise
from sweep.store.cache import Cache
from tests.sweep.small import Command, lose, set_json

GRID = ("policy=fifo,las,srpt", "capacity=0.5,1.0", "seed=range(0,6)")


@pytest.fixture
def ran(fake: Command) -> sweep.Sweep:
    return sweep.run(*fake.words(*GRID), baseline="fifo")


def test_run_takes_the_words_of_the_command_line(fake: Command, ran: sweep.Sweep) -> None:
    again = fake(*GRID, "baseline=fifo")
    assert again.folder == ran.folder
    assert ran.id == ran.folder.name
    assert len(ran.cells) == 36
    assert {"policy", "trace", "capacity", "seed", "status", "jct_mean_s"} <= set(ran.cells)


@pytest.mark.parametrize(
    "keys",
    [
        {"capacity": [0.5, 1.0], "seed": range(6)},
        {"capacity": np.array([0.5, 1.0]), "seed": list(range(6))},
        {"capacity": "0.5,1.0", "seed": "range(0,6)"},
    ],
)
def test_keywords_are_the_same_words(
    fake: Command, ran: sweep.Sweep, keys: dict[str, object]
) -> None:
    words = fake.words("policy=fifo,las,srpt", "baseline=fifo")
    assert sweep.run(*words, **keys).folder == ran.folder


def test_process_wide_settings_are_left_alone(
    fake: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed: list[object] = []
    monkeypatch.setattr(pa, "set_memory_pool", changed.append)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(mallopt=changed.append))
    path, environment = [*sys.path], {**os.environ}
    result = sweep.run(*fake.words("policy=fifo,las"), baseline="fifo")
    assert len(sweep.load(result.folder).against("las"))
    assert changed == []
    assert (sys.path[: len(path)], os.environ) == (path, environment)


def test_keywords_of_other_kinds(fake: Command) -> None:
    result = sweep.run(
        *fake.words("trace=parquet"),
        policy="las",
        baseline=None,
        **{"policy.queues": (5, 10), "trace.path": fake.trace},  # type: ignore[arg-type]
    )
    assert result.cells["policy.queues"].tolist() == [5, 10]
    assert result.cell(**{"policy.queues": 5}).config["policy"]["params"]["queues"] == 5


def test_two_policies_in_a_sentence(ran: sweep.Sweep) -> None:
    first, second = ran.sentence("srpt", "las").split("\n")
    assert "at capacity 0.5" in first
    assert "at capacity 1" in second
    rows = ran.against("las", "jct_mean_s").query("policy == 'srpt' and statistic == 'ratio'")
    for ratio, sentence in zip(rows["estimate"], (first, second), strict=True):
        assert f"{max(ratio, 1 / ratio):.2f} times" in sentence or "%" in sentence
    assert "speed-up of the mean JCT" in ran.sentence("srpt", "las", "jct_speedup_mean")
    with pytest.raises(InputError, match="did you mean 'las'"):
        ran.sentence("srpt", "lsa")
    with pytest.raises(InputError, match="unknown metric"):
        ran.sentence("srpt", "las", "jct_meen_s")


def test_a_pair_whose_jobs_are_fixed_needs_no_test() -> None:
    rows = [
        {"policy": name, "trace": "t", "capacity": 1.0, "seed": seed, "status": "done"}
        | {"jct_mean_s": value * (1 + 0.01 * seed * (name == "las"))}
        for name, value in (("fifo", 20.0), ("las", 10.0))
        for seed in range(3)
    ]
    config = {"swept": [], "baseline": None, "is_fixed": True}
    single = pairwise(pa.Table.from_pylist(rows[:1] + rows[3:4]), config, "las", "fifo")
    assert single == [
        "t at capacity 1: las's mean JCT is 2.00 times shorter than fifo's on 1 seed."
    ]
    drawn = [{**row, "is_bootstrap": True} for row in rows]
    (sentence,) = pairwise(
        pa.Table.from_pylist(drawn), {**config, "is_fixed": False}, "las", "fifo"
    )
    assert "3 draws)" in sentence
    nearly = [{**row, "jct_mean_s": 20.0 + 1e-10 * (row["policy"] == "las")} for row in rows]
    (same,) = pairwise(pa.Table.from_pylist(nearly), config, "las", "fifo")
    assert "las and fifo have the same mean JCT on 3 seeds" in same


@pytest.mark.parametrize(
    ("words", "keys", "message"),
    [
        (["plan"], {}, "'plan' is not key=value"),
        (["--fail-fast"], {}, "is not key=value"),
        (["policy=fiffo"], {}, "did you mean 'fifo'"),
        ([], {"policy": []}, "policy has no values"),
    ],
)
def test_wrong_words_are_input_errors(
    fake: Command, words: list[str], keys: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        sweep.run(*fake.words(*words), **keys)  # type: ignore[arg-type]


def test_load_by_id_name_and_folder(fake: Command, ran: sweep.Sweep, tmp_path: Path) -> None:
    other = sweep.run(*fake.words("policy=fifo"), name="mine")
    assert other.id.startswith("mine-")
    assert sweep.load(ran.id, results=fake.results).folder == ran.folder
    assert sweep.load("mine", results=str(fake.results)).folder == other.folder
    assert sweep.load(ran.folder).folder == ran.folder
    assert sweep.load(results=fake.results).folder == other.folder
    assert sweep.run(*fake.words(*GRID), baseline="fifo").folder == ran.folder  # all cached
    assert sweep.load(results=fake.results).folder == ran.folder
    with pytest.raises(InputError, match="unknown sweep 'mien'; did you mean 'mine'"):
        sweep.load("mien", results=fake.results)
    with pytest.raises(InputError, match="no sweeps in "):
        sweep.load(results=tmp_path)


def test_verdict_and_targets_are_those_of_the_folder(ran: sweep.Sweep) -> None:
    set_json(ran.folder, "verdict.json", [])
    assert ran.verdict == []
    assert list(ran.targets.columns)[:4] == ["policy", "trace", "target", "capacity"]
    assert len(ran.targets) == 0
    verdicts = [{"trace": "parquet", "sentence": "srpt wins <here>."}]
    set_json(ran.folder, "verdict.json", verdicts)
    assert ran.verdict == verdicts
    assert "srpt wins <here>." in repr(ran)
    assert "srpt wins &lt;here&gt;." in ran._repr_html_()


def test_repr_names_the_grid_and_the_folder(ran: sweep.Sweep) -> None:
    first = repr(ran).splitlines()[0]
    assert first == f"Sweep {ran.id}: 3 policies × 1 trace × 2 capacities × 6 seeds, 36 cells"
    assert repr(ran).splitlines()[-1].strip() == str(ran.folder)


class TestAgainst:
    def test_equals_the_file_for_the_sweeps_baseline(self, ran: sweep.Sweep) -> None:
        written = pd.read_parquet(ran.folder / "against_baseline.parquet")
        pd.testing.assert_frame_equal(ran.against()[written.columns], written)
        pd.testing.assert_frame_equal(ran.against("fifo"), ran.against())

    def test_equals_a_run_with_that_baseline(self, fake: Command, ran: sweep.Sweep) -> None:
        other = sweep.run(*fake.words(*GRID), baseline="las")
        assert other.folder != ran.folder
        pd.testing.assert_frame_equal(ran.against("las"), other.against())
        assert set(ran.against("las")["policy"]) == {"fifo", "srpt"}

    def test_of_a_metric(self, ran: sweep.Sweep) -> None:
        assert set(ran.against("las", ["jct_speedup_p50"])["metric"]) == {"jct_speedup_p50"}
        with pytest.raises(InputError, match="unknown metric of these cells 'gap'"):
            ran.against("las", ["gap"])

    def test_refuses_a_policy_outside_the_sweep(self, fake: Command, ran: sweep.Sweep) -> None:
        with pytest.raises(InputError, match="unknown baseline 'sprt'; did you mean 'srpt'"):
            ran.against("sprt")
        with pytest.raises(InputError, match="no baseline; name one of fifo"):
            sweep.run(*fake.words("policy=fifo,las")).against()

    def test_settings_are_named_by_their_labels(self, fake: Command) -> None:
        words = fake.words("policy=las,fifo", "policy.queues=5,10", "seed=0,1,2")
        result = sweep.run(*words, baseline="las queues=5")
        assert set(result.against()["policy"]) == {"las queues=10", "fifo"}
        assert set(result.against("las queues=10")["policy"]) == {"las queues=5", "fifo"}
        assert set(result.against("fifo")["policy"]) == {"las queues=5", "las queues=10"}
        with pytest.raises(InputError, match="las has 2 settings, and fifo could be compared with"):
            result.against("las")
        with pytest.raises(InputError, match="did you mean 'las queues=5'"):
            result.against("las queue=5")
        alone = sweep.run(*fake.words("policy=las", "policy.queues=5,10"))
        with pytest.raises(InputError, match="valid: las queues=5, las queues=10"):
            alone.against("las")

    def test_a_lost_cell_is_left_out(self, fake: Command, ran: sweep.Sweep) -> None:
        key = ran.cell(policy="las", capacity=1, seed=0)._row["key"]
        lose(fake.results, key)
        table = ran.against("srpt")
        ratio = table[table["metric"].str.startswith("jct_speedup")]
        las = ratio[(ratio["policy"] == "las") & (ratio["capacity"] == 1.0)]
        assert las["n_pairs"].tolist() == [5]


class TestCell:
    def test_its_jobs_come_from_the_cache(
        self, ran: sweep.Sweep, capfd: pytest.CaptureFixture[str]
    ) -> None:
        capfd.readouterr()
        cell = ran.cell(policy="srpt", capacity=0.5, trace="parquet", seed=3)
        assert cell.labels == {"policy": "srpt", "trace": "parquet", "capacity": 0.5, "seed": 3}
        jct_s = cell.jobs["finish_s"] - cell.jobs["submit_s"]
        assert jct_s.mean() == pytest.approx(cell.metrics["jct_mean_s"])
        assert repr(cell) == "Cell policy=srpt trace=parquet capacity=0.5 seed=3: done"
        assert capfd.readouterr().err == ""

    def test_a_lost_result_is_computed_again(
        self, fake: Command, ran: sweep.Sweep, capfd: pytest.CaptureFixture[str]
    ) -> None:
        labels = {"policy": "las", "capacity": 1, "seed": 2}
        before = ran.cell(**labels).jobs
        key = ran.cell(**labels)._row["key"]
        lose(fake.results, key)
        pd.testing.assert_frame_equal(ran.cell(**labels).jobs, before)
        assert "no longer in the cache; running it again" in capfd.readouterr().err
        assert Cache(fake.results).get(key) is not None

    def test_labels_must_select_one_cell(self, ran: sweep.Sweep) -> None:
        with pytest.raises(InputError, match=r"2 cells of .*; choose by capacity=0.5,1$"):
            ran.cell(policy="las", seed=0)
        with pytest.raises(InputError, match=r"no cell of .*policy=fifo,las,srpt"):
            ran.cell(policy="sjf")
        with pytest.raises(InputError, match="unknown label of a cell 'polcy'"):
            ran.cell(polcy="las")


class TestTables:
    def test_csv_has_the_means(self, ran: sweep.Sweep, tmp_path: Path) -> None:
        text = ran.to_csv(metrics=["jct_mean_s"])
        assert text is not None
        table = pd.read_csv(io.StringIO(text)).set_index(["capacity", "policy"])
        cells = ran.cells
        las = cells[(cells["policy"] == "las") & (cells["capacity"] == 0.5)]["jct_mean_s"]
        assert table.loc[(0.5, "las"), "jct_mean_s"] == pytest.approx(las.mean())
        assert table["n_seeds"].tolist() == [6] * 6
        assert ran.to_csv(tmp_path / "t.csv", metrics=["jct_mean_s"]) is None
        assert (tmp_path / "t.csv").read_text() == text

    def test_latex_is_a_table(self, ran: sweep.Sweep) -> None:
        text = ran.to_latex(metrics=["jct_mean_s", "jct_speedup_p50"])
        assert text is not None
        lines = text.splitlines()
        assert lines[0] == r"\begin{tabular}{lllrr}"
        assert lines[-1] == r"\end{tabular}"
        assert sum(line.startswith("parquet & ") for line in lines) == 6
        assert text.count(r"\midrule") == 2
        rows = [line for line in lines if line.endswith(r"\\")]
        assert all(line.count(" & ") == 4 for line in rows)
        assert r"$\pm$" in text
        assert all(ord(sign) < 128 for sign in text)

    def test_latex_names_policies_as_given_and_marks_the_best(self, ran: sweep.Sweep) -> None:
        named = {"las": "LAS & co.", "fifo": "FIFO"}
        text = ran.to_latex(metrics=["jct_mean_s"], policies=named)
        assert text is not None
        rows = [line.split(" & ", 2) for line in text.splitlines() if line.startswith("parquet")]
        names = [row[2].split(" & \\textbf{")[0].split(" & ")[0] for row in rows]
        assert names == [r"LAS \& co.", "FIFO"] * 2
        summary, best = ran._summary, set()
        for k, label in enumerate(("fifo", "las")):
            if summary.blocks[0].best[0, k, summary.metrics.index("jct_mean_s")]:
                best.add(named[label].replace("&", r"\&"))
        bold = {line.split(" & ")[2] for line in text.splitlines()[3:6] if "textbf" in line}
        assert best
        assert {name.split(" ")[0] for name in bold} == {name.split(" ")[0] for name in best}

    def test_an_unknown_metric(self, ran: sweep.Sweep) -> None:
        for method in (ran.means, ran.plot):
            with pytest.raises(InputError, match="did you mean 'jct_mean_s'"):
                method("jct_men_s")


class TestPlot:
    def test_has_a_line_a_policy(self, ran: sweep.Sweep) -> None:
        figure = ran.plot("jct_mean_s")
        assert [line.name for line in figure.data] == ["fifo", "las", "srpt"]
        assert [list(line.x) for line in figure.data] == [[0.5, 1.0]] * 3
        means = ran.means("jct_mean_s")
        assert figure.data[1].y[0] == means[means["policy"] == "las"]["jct_mean_s"].iloc[0]
        assert hasattr(figure, "_repr_mimebundle_")

    @pytest.mark.parametrize(
        ("name", "begins"),
        [("a.svg", b"<?xml"), ("a.pdf", b"%PDF"), ("a.html", b"<!doctype html>")],
    )
    def test_is_written_with_the_same_bytes(
        self, ran: sweep.Sweep, tmp_path: Path, name: str, begins: bytes
    ) -> None:
        ran.plot("jct_mean_s", to=tmp_path / name)
        content = (tmp_path / name).read_bytes()
        assert content.startswith(begins)
        ran.plot("jct_mean_s", to=tmp_path / name)
        assert (tmp_path / name).read_bytes() == content

    def test_of_one_capacity_is_bars(self, fake: Command, tmp_path: Path) -> None:
        result = sweep.run(*fake.words("policy=fifo,las", "seed=0,1"))
        figure = result.plot(to=str(tmp_path / "bars.svg"))
        assert [bar.type for bar in figure.data] == ["bar", "bar"]
        assert b"fifo" in (tmp_path / "bars.svg").read_bytes()

    def test_policies_are_chosen_ordered_and_named(self, ran: sweep.Sweep) -> None:
        figure = ran.plot(policies={"srpt": "SRPT", "fifo": "FIFO"}, log=True, size=(3.5, 2.0))
        assert [line.name for line in figure.data] == ["SRPT", "FIFO"]
        assert [line.line.color for line in figure.data] == [*drawing.COLOURS[:2]]
        assert figure.layout.yaxis.type == "log"
        assert (figure.layout.width, figure.layout.height) == (336, 192)
        for wrong, message in (
            (["fiffo"], "unknown policy of this sweep 'fiffo'"),
            ({"fifo": "A", "las": "A"}, "by a name of its own"),
            ([], "at least one policy"),
        ):
            with pytest.raises(InputError, match=message):
                ran.plot(policies=wrong)

    def test_traces_are_chosen_and_named(self, fake: Command) -> None:
        result = sweep.run(*fake.words("policy=fifo,las", "seed=0,1", "trace.begin_s=0,1"))
        late = result.plot(traces={"parquet, trace.begin_s=1": "late"})
        assert [title.text for title in late.layout.annotations] == ["late"]
        both = result.cdf(traces={"parquet": "ours"})
        titles = [title.text for title in both.layout.annotations]
        assert titles == ["ours, trace.begin_s=0", "ours, trace.begin_s=1"]
        with pytest.raises(InputError, match="unknown trace of this sweep 'parket'"):
            result.plot(traces=["parket"])

    def test_a_legend_covers_nothing_in_one_column(self, ran: sweep.Sweep) -> None:
        lines = [trace.to_plotly_json() for trace in ran.plot().data]
        panels = [
            drawing.Panel(title, [{**line, "meta": k} for k, line in enumerate(lines)], (0.5, 1.0))
            for title in ("a", "b")
        ]
        for n in (1, 2):
            chart = drawing.Chart(panels[:n], "capacity", "mean JCT (s)", size=(3.4, 2.4))
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                figure = drawing.paper_figure(chart)
                figure.draw_without_rendering()
            assert figure.get_size_inches().tolist() == [3.4, 2.4]
            (legend,) = figure.legends
            box, whole = legend.get_window_extent(), figure.bbox
            assert whole.x0 <= box.x0 < box.x1 <= whole.x1
            assert not any(box.overlaps(axes.get_window_extent()) for axes in figure.axes)

    def test_captions_say_over_what_the_means_are(self, ran: sweep.Sweep, fake: Command) -> None:
        assert ran.caption("jct_mean_s") == (
            "Mean JCT against capacity: means over 6 seeds; "
            "the bars are 95 % intervals (Student's t)."
        )
        assert ran.caption("slowdown") == (
            "Completion time over critical path length: its distribution over the jobs of 6 seeds."
        )
        alone = sweep.run(*fake.words("policy=fifo"))
        assert alone.caption("jct_mean_s") == "Mean JCT: means over 1 seed."
        with pytest.raises(InputError, match="did you mean 'jct_mean_s'"):
            ran.caption("jct_meen_s")

    def test_a_pdf_embeds_its_fonts(self, ran: sweep.Sweep, tmp_path: Path) -> None:
        ran.plot(to=tmp_path / "a.pdf", size=(3.5, 2.0))
        content = (tmp_path / "a.pdf").read_bytes()
        assert b"/FontFile2" in content
        assert b"/Type3" not in content
        assert b"/MediaBox [ 0 0 252 144 ]" in content

    def test_of_one_trace_leaves_other_axes_alone(self, ran: sweep.Sweep) -> None:
        panel = drawing.Panel("t", [{**ran.plot().data[0].to_plotly_json(), "meta": 0}])
        for share_y in (False, True):
            chart = drawing.Chart([panel, panel], "x", "y", share_y=share_y)
            figure = drawing.plotly_figure(chart)
            assert (figure.layout.yaxis2.matches == "y") is share_y

    def test_a_distribution_over_jobs(self, ran: sweep.Sweep, tmp_path: Path) -> None:
        figure = ran.cdf("jct_s", capacity=0.5, policies=["las"], to=tmp_path / "cdf.svg")
        jct = np.concatenate(
            [
                (cell.jobs["finish_s"] - cell.jobs["submit_s"]).to_numpy()
                for cell in (ran.cell(policy="las", capacity=0.5, seed=seed) for seed in range(6))
            ]
        )
        curve = figure.data[0]
        assert curve.name == "las"
        assert list(curve.x) == sorted(set(jct))
        assert list(curve.y) == [np.mean(jct <= x) for x in curve.x]
        assert (tmp_path / "cdf.svg").read_bytes().startswith(b"<?xml")
        wait = ran.cdf("wait_s", capacity=1.0, log=False)
        assert [line.name for line in wait.data] == ["fifo", "las", "srpt"]
        for arguments, message in (
            ({"quantity": "jtc_s", "capacity": 0.5}, "did you mean 'jct_s'"),
            ({}, "capacity=None: choose one of 0.5, 1"),
            ({"quantity": "value", "capacity": 0.5}, "unknown quantity of these cells 'value'"),
        ):
            with pytest.raises(InputError, match=message):
                ran.cdf(**arguments)
        lose(ran.folder.parent.parent, ran.cells["key"][0])
        with pytest.raises(InputError, match="no longer in the cache"):
            ran.cdf("jct_s", capacity=0.5)

    def test_an_unknown_file_format(self, ran: sweep.Sweep) -> None:
        with pytest.raises(InputError, match=r"must end in \.svg, \.pdf"):
            ran.plot(to="figure.jpg")


def test_importing_sweep_is_cheap() -> None:
    code = (
        "import sweep, sys; heavy = {'pandas', 'numpy', 'hydra', 'ray'} & set(sys.modules); "
        "assert not heavy, heavy; sweep.run, sweep.load; "
        "heavy = {'ray', 'numba', 'mlflow', 'plotly', 'matplotlib'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
