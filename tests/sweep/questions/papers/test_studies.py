"""Evaluators without a policy, studies, and pages of reproductions."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sim import Workload, evaluators, synthesize
from sim.base.errors import InputError
from sweep.grid import grid
from sweep.questions.papers import studies
from sweep.report import findings
from sweep.report.findings import Finding, FinishedSweep
from sweep.store.cache import Cache
from tests.sweep.small import Command, request


@pytest.fixture
def dags(tmp_path: Path) -> Path:
    folder = tmp_path / "dags"
    synthesize("alibaba2018", jobs=300, seed=1).write(folder)
    return folder


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """Write a user's experiment with a built-in study."""
    folder = tmp_path / "user"
    (folder / "experiment").mkdir(parents=True)
    (folder / "experiment" / "mine.yaml").write_text(
        "# Four generators.\n"
        "axes:\n  evaluator.generator: [improved, ideal]\n  seed: [0, 1, 2]\n"
        "overrides: [evaluator=dag_distances, evaluator.per_dag=2]\n"
        "gallery: ['seed=0,1']\n"
        "study:\n  name: alibaba.static\n  source: A paper, Fig. 1\n  notes: As it should be.\n"
        "  table: All distances\n"
    )
    return folder


def test_a_finding_is_a_mean_with_students_interval() -> None:
    finding = Finding.from_seeds("Fig. 1", "x", [1.0, 2.0, 3.0], at_most=2.5)
    assert finding.ours == 2.0
    assert finding.high - finding.ours == pytest.approx(4.302653 / math.sqrt(3), rel=1e-6)
    assert (finding.expected, finding.is_met) == ("≤ 2.5", True)
    assert not Finding("f", "x", 2.6, at_most=2.5).is_met
    assert not Finding("f", "x", math.nan, at_least=0).is_met
    assert Finding("f", "x", 1.0, at_least=0.5, at_most=2).expected == "≥ 0.5, ≤ 2"


def test_findings_as_text() -> None:
    sample = [
        Finding("Fig. 1", "a", 1234.5, 1200, 1300, paper="1|2"),
        Finding("Fig. 1", "b", 0.01, at_most=0.05),
        Finding("Fig. 2", "c", 2.0, at_least=3),
    ]
    table = findings.to_table(sample)
    header, rows = findings.to_text(table)
    assert header == ("figure", "what", "ours", "95 % interval", "paper", "wanted", "met")
    assert rows == [
        ("Fig. 1", "a", "1,234", "1,200 to 1,300", "1|2", "", ""),
        ("", "b", "0.0100", "", "", "≤ 0.05", "yes"),
        ("Fig. 2", "c", "2.000", "", "", "≥ 3", "no"),
    ]
    assert "| Fig. 1 | a | 1,234 | 1,200 to 1,300 | 1\\|2 |  |  |" in findings.to_markdown(table)
    plain = findings.to_table([Finding("Fig. 1", "a", 5.0, paper="4.0", exact=True)])
    header = ("figure", "what", "ours", "95 % interval", "paper", "verdict")
    row = ("Fig. 1", "a", "5.000", "exact", "4.0", "close")
    assert findings.to_text(plain) == (header, [row])
    excluded = findings.to_text(plain, lambda row: f"{row['figure']} {row['what']}")
    assert excluded == ((*header, "not counted"), [(*row, "Fig. 1 a")])


def test_an_evaluator_without_policy_has_cells_without_one(dags: Path) -> None:
    words = ["evaluator=dag_distances", "trace=parquet", f"trace.path={dags}", "seed=0,1"]
    cells = grid.build(request([*words, "evaluator.generator=paper,ideal"])).cells
    assert [cell.labels["policy"] for cell in cells] == ["none"] * 4
    assert [cell.evaluator["generator"] for cell in cells] == ["paper", "paper", "ideal", "ideal"]
    assert cells[0].evaluator["name"] == "dag_distances"
    with pytest.raises(InputError, match="uses the trace alone; leave policy= out"):
        grid.build(request([*words, "policy=fifo"]))


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("evaluator=simulated", "did you mean 'simulation'"),
        ("evaluator=simulation,dag_distances", "give evaluator=VALUE"),
        ("evaluator.generator=paper", "evaluator.generator"),
        ("+evaluator.generator=paper", "option of evaluator=simulation"),
    ],
)
def test_wrong_evaluators_are_errors(command: Command, word: str, message: str) -> None:
    ran = command("policy=fifo", word)
    assert ran.code == 2
    assert message in ran.err


def test_unknown_options_of_an_evaluator_are_errors() -> None:
    with pytest.raises(InputError, match="did you mean 'per_dag'"):
        evaluators.evaluate("dag_distances", None, None, None, None, 0, perdag=1)  # type: ignore[arg-type]
    assert evaluators.options("simulation") == {"by": ()}
    assert evaluators.uses_policy("simulation")


def test_an_experiment_and_its_study(command: Command, dags: Path, user: Path) -> None:
    trace = ["trace=parquet", f"trace.path={dags}", f"--config-dir={user}"]
    ran = command("experiment=mine", *trace)
    assert ran.code == 0, ran.err
    assert "findings:" in ran.out
    assert "generator=ideal" in ran.out
    assert " none" not in ran.out
    table = pq.read_table(ran.folder / "findings.parquet").to_pylist()
    values = {(row["figure"], row["what"]): row for row in table}
    for row in ran.rows:
        assert row["policy"] == "none"
    ours = [row["ks_in_degree"] for row in ran.rows if row["evaluator.generator"] == "ideal"]
    assert values["KS distance, ideal", "in degree"]["ours"] == pytest.approx(sum(ours) / 3)
    report = (ran.folder / "report.md").read_text()
    assert "Beside A paper, Fig. 1." in report
    assert "As it should be." in report
    assert "As it should be." in (ran.folder / "report.html").read_text()

    before = (ran.folder / "findings.parquet").read_bytes()
    again = command("experiment=mine", *trace)
    assert "findings:" in again.out
    (ran.folder / "findings.parquet").write_bytes(b"")
    assert command.verb("report").code == 0
    assert (ran.folder / "findings.parquet").read_bytes() == before


@pytest.mark.long
def test_reproduce_writes_a_page(command: Command, dags: Path, user: Path) -> None:
    words = command.words("trace=parquet", f"trace.path={dags}", f"--config-dir={user}")
    ran = command.bare("reproduce", "mine", *words)
    assert ran.code == 0, ran.err
    page = Path(ran.out.splitlines()[-1])
    assert page == command.results / "reproductions" / "mine.md"
    text = page.read_text()
    assert text.startswith("# mine\n\nFour generators.\n\nBeside A paper, Fig. 1. Made by `python")
    assert "| KS distance, improved | critical path length |" in text
    assert text.endswith("All distances: [tables/mine.md](tables/mine.md).\n")
    table = (page.parent / "tables" / "mine.md").read_text()
    assert table.startswith("# mine\n\nAll distances.\n\n")
    assert "generator=improved, generator=ideal on parquet" in table
    assert table.count("| `") > 3
    assert str(command.results) not in text + table
    page.unlink()
    only = [word for word in words if word.startswith(("paths.results", "--config-dir"))]
    assert command.bare("reproduce", "--list", *only).code == 0
    assert page.read_text() == text
    assert command.bare("reproduce", "demo", *command.words()).code == 2


def test_reproduce_at_a_smaller_scale_records_the_words(
    command: Command, dags: Path, user: Path
) -> None:
    words = command.words("trace=parquet", f"trace.path={dags}", f"--config-dir={user}")
    ran = command.bare("reproduce", "mine", "scale=gallery", *words)
    assert ": 4 cells," in ran.err
    page = (command.results / "reproductions" / "mine.md").read_text()
    assert "Made by `python -m sweep reproduce mine seed=0,1 trace=parquet" in page
    ran = command.bare("reproduce", "mine", "scale=gallery", "seed=3", *words)
    assert ": 2 cells," in ran.err
    wrong = command.bare("reproduce", "mine", "scale=galery", *words)
    assert wrong.code == 2
    assert "did you mean 'gallery'" in wrong.err


def test_a_failing_study_does_not_fail_the_sweep(
    command: Command, dags: Path, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(study: object, finished: FinishedSweep) -> list[Finding]:
        raise KeyError("ks")

    monkeypatch.setattr(studies, "find", broken)
    words = command.words("trace=parquet", f"trace.path={dags}", f"--config-dir={user}")
    ran = command.bare("experiment=mine", *words)
    assert ran.code == 0
    assert "study alibaba.static failed: KeyError" in ran.err
    assert not (ran.folder / "findings.parquet").exists()
    assert command.bare("reproduce", "mine", *words).code == 1


@pytest.mark.parametrize(
    ("study", "message"),
    [
        ("study: {name: alibaba.dynamik}", "did you mean 'alibaba.dynamic'"),
        ("study: {name: alibaba.dynamic, surce: x}", "did you mean 'source'"),
        ("study: alibaba.dynamic", "study: give name, source, notes"),
        ("study: {name: alibabba.dynamic}", "did you mean 'alibaba.dynamic'"),
        ("study: {name: 3}", "study: give name, source, notes, table, module, each a text"),
        ("study: {source: x}", "study: give name"),
        ("study: {module: own_figures, name: halve}", "did you mean 'halves'? valid: halves"),
        (
            "study: {module: own_figurs, name: halves}",
            "study module 'own_figurs' can't be imported",
        ),
        ("study: {module: own_broken, name: halves}", "can't be imported: SyntaxError"),
        ("study: {module: json, name: halves}", "is that of Python's standard library"),
    ],
)
def test_wrong_studies_are_errors(
    command: Command, tmp_path: Path, study: str, message: str
) -> None:
    write_user_study(tmp_path / "user", study)
    (tmp_path / "user" / "own_broken.py").write_text("def halves(finished)\n")
    ran = command("experiment=mine", f"--config-dir={tmp_path / 'user'}")
    assert ran.code == 2
    assert f"{tmp_path / 'user' / 'experiment' / 'mine.yaml'}: " in ran.err
    assert message in ran.err


def write_user_study(folder: Path, study: str) -> None:
    """Write an experiment with a study, and a module that has one."""
    (folder / "experiment").mkdir(parents=True)
    (folder / "experiment" / "mine.yaml").write_text(f"# Mine.\n{study}\n")
    (folder / "own_figures.py").write_text(
        "from sweep.questions.papers.figures import grouped, means\n\n\n"
        "def halves(finished):\n"
        "    groups = grouped(finished.cells, 'policy', label='half of {}')\n"
        "    yield from means('JCT, s', groups, 'jct_mean_s', 0.5)\n"
    )


def test_a_user_study(command: Command, tmp_path: Path) -> None:
    write_user_study(tmp_path / "user", "study: {module: own_figures, name: halves, source: Mine}")
    ran = command("experiment=mine", "policy=fifo,sjf", f"--config-dir={tmp_path / 'user'}")
    assert ran.code == 0, ran.err
    findings_rows = pq.read_table(ran.folder / "findings.parquet").to_pylist()
    assert [(row["figure"], row["what"], row["ours"]) for row in findings_rows] == [
        ("JCT, s", f"half of {row['policy']}", row["jct_mean_s"] / 2) for row in ran.rows
    ]


def test_transforms_of_a_trace_are_applied(command: Command) -> None:
    Workload.from_jobs(
        [{"submit_s": 100.0 * i, "stages": [{"durations_s": [5.0]}]} for i in range(20)]
    ).write(command.trace)
    ran = command("policy=fifo", "+trace.transforms.hour_of.jobs=7")
    assert ran.code == 0, ran.err
    cached = Cache(command.results).get(ran.rows[0]["key"])
    assert cached is not None
    assert cached.jobs is not None
    assert cached.jobs.num_rows == 7
    assert (
        "did you mean 'hour_of'" in command("policy=fifo", "+trace.transforms.hours_of.jobs=7").err
    )
    assert "did you mean 'jobs'" in command("policy=fifo", "+trace.transforms.hour_of.job=7").err
