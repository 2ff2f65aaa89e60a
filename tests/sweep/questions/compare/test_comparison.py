from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from sim.base.errors import InputError
from sweep.questions.compare import changes, matching
from sweep.questions.compare import comparison as compare
from sweep.store.folder import SweepFolder
from tests.sweep.small import (
    Command,
    FakeResult,
    every_file,
    fake_engine,
    fake_simulate,
    write_workload,
)

GRID = ("policy=fifo,sjf", "capacity=0.5,1", "seed=0,1", "baseline=fifo")


def slower_sjf(
    workload: Any, cluster: Any, policy: Any, *, seed: int, record: str = "jobs"
) -> FakeResult:
    """Change sjf with seed 1; fail las with seed 0."""
    result = fake_simulate(workload, cluster, policy, seed=seed)
    if policy.name == "sjf" and seed == 1:
        result.metrics["jct_mean_s"] += 100.0
    if policy.name == "las" and seed == 0:
        raise RuntimeError("no")
    return result


def compare_sweeps(command: Command, a: Path, b: Path) -> compare.Comparison:
    return compare.compare(SweepFolder(a), SweepFolder(b))


def pairs(comparison: compare.Comparison) -> list[tuple[dict[str, str], str]]:
    """Return the labels of each pair, and its verdict."""
    matched = comparison.matched
    return [(matched.labels_of(pair), matched.verdict_of(pair)) for pair in range(len(matched))]


def test_cells_in_one_sweep_only_and_equal_cells(fake: Command) -> None:
    first = fake(*GRID).folder
    second = fake("policy=sjf,las", "capacity=0.5,1", "seed=0,1,2", "baseline=las").folder
    comparison = compare_sweeps(fake, first, second)
    verdicts = {
        (labels["policy"], labels["capacity"], labels["seed"]): verdict
        for labels, verdict in pairs(comparison)
    }
    assert len(verdicts) == 4 + 6 + 6
    assert verdicts["fifo", "1", "0"] == matching.ONLY_A
    assert verdicts["las", "0.5", "2"] == matching.ONLY_B
    # speed-ups against another baseline do not count as changes
    assert {
        (verdict, bool(is_one))
        for (labels, verdict), is_one in zip(
            pairs(comparison), comparison.matched.same_key, strict=True
        )
        if labels["policy"] == "sjf" and labels["seed"] != "2"
    } == {(matching.SAME, True)}
    assert ("baseline", "fifo", "las") in comparison.config
    assert ("axes.seed", "0, 1", "0, 1, 2") in comparison.config


def test_a_sweep_equals_itself(fake: Command) -> None:
    folder = fake(*GRID).folder
    comparison = compare_sweeps(fake, folder, folder)
    assert comparison.counts == {matching.SAME: 8}
    assert (comparison.config, comparison.provenance, comparison.n_same_by_other_means) == (
        [],
        [],
        0,
    )


def test_changed_results_are_listed_cell_by_cell(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    grid = ("policy=fifo,sjf,las", *GRID[1:])
    fake_engine(monkeypatch)
    first = command(*grid)
    fake_engine(monkeypatch, slower_sjf)
    words = [word for word in command.words(*grid) if not word.startswith("paths")]
    second = command.bare(*words, f"paths.results={tmp_path / 'other'}")
    comparison = compare_sweeps(command, first.folder, second.folder)
    assert comparison.counts["changed"] == 2
    changed = [labels for labels, verdict in pairs(comparison) if verdict == matching.CHANGED]
    assert {(labels["policy"], labels["seed"]) for labels in changed} == {("sjf", "1")}
    (jct,) = [metric for metric in comparison.matched.metrics() if metric.name == "jct_mean_s"]
    assert (jct.b - jct.a)[jct.differs] == pytest.approx(100.0)
    assert comparison.counts[matching.FAILS] == 2
    assert compare_sweeps(command, second.folder, first.folder).counts[matching.MENDED] == 2
    header, rows = compare.metrics(comparison)
    (row,) = [row for row in rows if row[0] == "jct_mean_s"]
    assert row[1:3] == ["2", "+100.0 s"]
    assert "sjf" in row[3]
    header, cells = compare.cells(comparison, n=3)
    assert [row[header.index("")] for row in cells[:2]] == ["changed", "changed"]
    assert len(cells) == 3


def test_a_parameter_swept_by_one_only_is_looked_up(fake: Command) -> None:
    first = fake("policy=las", "seed=0")
    second = fake("policy=las", "policy.queues=5,10", "seed=0")
    comparison = compare_sweeps(fake, first.folder, second.folder)
    assert comparison.counts == {matching.SAME: 1, matching.ONLY_B: 1}
    assert [labels["policy.queues"] for labels, _ in pairs(comparison)] == ["10", "5"]


def test_the_verb_names_the_files_and_writes_the_same_bytes(fake: Command) -> None:
    first = fake(*GRID).folder
    second = fake(*GRID, "policy=fifo,las").folder
    ran = fake.verb("report", first.name, second.name)
    assert ran.code == 0
    markdown, page = map(Path, ran.out.splitlines()[-2:])
    assert markdown.parent == fake.results / "comparisons"
    assert "12 cells: 4 same, 4 only in A, 4 only in B" in ran.out
    for path in (markdown, page):
        text = path.read_text(encoding="utf-8")
        assert first.name in text
        assert "only in B" in text
    assert "<script" not in page.read_text(encoding="utf-8")
    before = every_file(markdown.parent)
    assert fake.verb("report", first.name, second.name).code == 0
    assert every_file(markdown.parent) == before


def test_changes_are_tested_over_seeds(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def drifted(workload: Any, cluster: Any, policy: Any, *, seed: int, **_: Any) -> FakeResult:
        result = fake_simulate(workload, cluster, policy, seed=seed)
        if policy.name == "sjf":
            result.metrics["jct_mean_s"] += (3.0, 5.0, 4.0, 6.0, 2.0, 4.0)[seed]
        if policy.name == "las":
            result.metrics["jct_mean_s"] += (3.0, -5.0, 4.0, -6.0, 2.0, 1.0)[seed]
        return result

    grid = ("policy=fifo,sjf,las", "capacity=1", "seed=range(0,6)")
    fake_engine(monkeypatch)
    first = command(*grid)
    fake_engine(monkeypatch, drifted)
    words = [word for word in command.words(*grid) if not word.startswith("paths")]
    second = command.bare(*words, f"paths.results={tmp_path / 'other'}")
    comparison = compare_sweeps(command, first.folder, second.folder).tested
    assert [(change.labels["policy"], change.metric) for change in comparison] == [
        ("sjf", "jct_mean_s"),
        ("las", "jct_mean_s"),
    ]
    sjf, las = comparison
    assert sjf.paired.estimate == pytest.approx(4.0)
    assert sjf.b - sjf.a == pytest.approx(4.0)
    assert sjf.paired.low < 4.0 < sjf.paired.high
    assert sjf.is_significant
    assert sjf.paired.n == 6
    assert sjf.p_holm == pytest.approx(2 * sjf.paired.p)  # of two tests
    assert not las.is_significant
    header, (first_row, second_row) = changes.rows(comparison)
    assert header[:2] == ["policy", "trace"]
    assert first_row[header.index("change")] == "+4.000 s"
    assert second_row[-1].endswith("n.s.")
    ran = command.bare("report", str(first.folder), str(second.folder))
    assert "B - A over the seeds that both have" in ran.out
    page = Path(ran.out.splitlines()[-1]).read_text(encoding="utf-8")
    assert "Changes over seeds" in page
    assert "B - A over the seeds" in page


def test_incomparable_sweeps_are_errors(fake: Command) -> None:
    name = fake(*GRID).folder.name
    assert fake.verb("report", name, "nothing").code == 2
    assert fake.verb("report", name, name, name).code == 2
    assert fake.verb("report", name, name, "--gantt", "0").code == 2


def test_labels_must_be_unique(fake: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = SweepFolder(fake(*GRID).folder)
    twice = folder.cells()
    monkeypatch.setattr(SweepFolder, "cells", lambda _, names: twice.take([0, 0]).select(names))
    with pytest.raises(InputError, match="several cells fifo"):
        compare.compare(folder, folder)


def test_other_jobs_under_one_name_are_marked(fake: Command) -> None:
    first = fake(*GRID).folder
    shutil.rmtree(fake.trace)
    write_workload(fake.trace, n_jobs=9)
    second = fake(*GRID, "name=again").folder
    comparison = compare_sweeps(fake, first, second)
    assert comparison.other_jobs == ("parquet",)
    assert "no workload of parquet is in both" in " ".join(compare.summary(comparison))
    assert compare_sweeps(fake, first, first).other_jobs == ()
