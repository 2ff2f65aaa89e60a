"""A good archive is the same in all that it states, whatever its sweep asked."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pytest

from sweep.questions.archive import remade, verification
from sweep.store.cell import CellResult
from sweep.store.folder import DONE_JOBS, SweepFolder
from tests.sweep.questions.archive import entries as archives
from tests.sweep.questions.archive import sandbox
from tests.sweep.questions.archive.changes import Change
from tests.sweep.questions.archive.entries import Entries
from tests.sweep.questions.archive.questions import QUESTIONS
from tests.sweep.questions.archive.sandbox import Sandbox


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.long
def test_all_of_it(name: str, tmp_path: Path, box: Sandbox) -> None:
    fails_on = "las" if name == "failures" else None
    with sandbox.fake_simulator(fails_on):
        words = QUESTIONS[name]
        entries = sandbox.export(tmp_path / "good", *words, own="lent" in words[0])
        trust = ["--trust"] if "lent" in words[0] else []
        verified = box.attack(entries, "--cells=3", *trust)
    print(verified.out, verified.err)
    assert verified.code == 0, verified
    assert "3 of 3 cells are the same, bit for bit" in verified.out
    (files,) = [line for line in verified.out.splitlines() if line.startswith("made anew")]
    assert {"cells.parquet", "config.yaml", "table.md", "report.html"} <= {
        *files.partition(": ")[2].split(", ")
    }
    assert verified.left <= ({str(box.folder / "executed")} if trust else set())


def test_columns_of_texts_are_compared_by_their_texts() -> None:
    def result(*texts: str) -> CellResult:
        return CellResult("key", jobs=pa.table({"name": [*texts], "x": [1.0, math.nan]}))

    text = "".join(["de", "pth"])  # not the same object as a literal
    assert not verification._columns_that_differ(result("depth", "b"), result(text, "b"))
    assert verification._columns_that_differ(result("depth", "b"), result("depths", "b")) == [
        "column name"
    ]


def test_the_same_choice_is_repeated(good: Entries, box: Sandbox) -> None:
    first = box.attack(dict(good), "--cells=1")
    seed = first.out.partition("--seed ")[2].split()[0]
    assert "3 of 4 rows were not checked" in first.out
    again = box.attack(dict(good), "--cells=1", f"--seed={seed}")
    assert again.out == first.out
    drawn = {box.attack(dict(good), "--cells=1").out.partition("--seed ")[2][:9] for _ in range(3)}
    assert len(drawn) > 1


def test_common_jobs_are_of_cells_beside_which_a_job_failed(tmp_path: Path) -> None:
    jobs = pa.table({"key": ["other"], "jobs_share": [1.0], "jct_mean_s": [1.0]})
    failed = pa.table({**_CELLS, "jobs_failed": [0.0, 0.5]})
    folder = SweepFolder(tmp_path)
    folder.replace(DONE_JOBS, jobs)
    config = {"swept": [], "baseline": None}
    assert remade.check_done_jobs(folder, failed, config).state == "differs"
    folder.replace(DONE_JOBS, jobs.set_column(0, "key", pa.array(["a"])))
    assert remade.check_done_jobs(folder, failed, config).state == "not compared"
    none_failed = pa.table({**_CELLS, "jobs_failed": [0.0, 0.0]})
    assert remade.check_done_jobs(folder, none_failed, config).state == "differs"


_CELLS = {
    "policy": ["fifo", "srpt"],
    "trace": ["t", "t"],
    "capacity": [1.0, 1.0],
    "seed": [0, 0],
    "status": ["done", "done"],
    "key": ["a", "b"],
}


def test_a_file_that_other_code_wrote(good: Entries, box: Sandbox) -> None:
    entries = dict(good)
    entries["sweep/table.md"] += b"\n"
    verified = box.attack(entries, "--cells=9")
    assert verified.code == 1
    assert "table.md differs: from line " in verified.out
    assert "they were written by commit c, this is " in verified.out
    assert "4 of 4 cells are the same, bit for bit" in verified.out


def with_error(part: str, text: str) -> Change:
    """Change a part of the error of each row that failed."""

    def change(entries: Entries) -> None:
        old = archives.cells(entries)[f"error_{part}"].to_pylist()
        archives.set_column(entries, f"error_{part}", [v if v is None else text for v in old])

    return change


@pytest.mark.parametrize(
    ("part", "text", "words"),
    [
        ("message", "another reason", "fails now: las is odd"),
        ("type", "KeyError", "differs: failed (KeyError in simulate)"),
        ("stage", "worker", "not checked: it failed by where it ran (ValueError in worker)"),
    ],
)
def test_failures_are_run_again(
    part: str, text: str, words: str, tmp_path: Path, box: Sandbox
) -> None:
    with sandbox.fake_simulator("las"):
        entries = sandbox.export(tmp_path / "good", *QUESTIONS["failures"])
        with_error(part, text)(entries)
        verified = box.attack(entries, "--cells=9")
    assert words in verified.out
    assert verified.code == 1
    n = "5 of 5" if part == "stage" else "5 of 6"
    assert f"{n} cells are the same, bit for bit" in verified.out
    assert ("1 of 6 rows were not checked" in verified.out) == (part == "stage")


def test_a_failure_that_runs_now(tmp_path: Path, box: Sandbox) -> None:
    with sandbox.fake_simulator("las"):
        entries = sandbox.export(tmp_path / "good", *QUESTIONS["failures"])
    with sandbox.fake_simulator():
        verified = box.attack(entries, "--cells=9")
    assert "differs: recorded as failed (ValueError in simulate), and runs now" in verified.out
    assert verified.code == 1
