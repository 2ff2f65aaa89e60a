from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from sim.base import files
from sim.base.errors import InputError
from sweep.execution import inputs, plan
from sweep.execution.inputs import Inputs
from sweep.execution.workload_build import Recipe
from sweep.grid import grid, traces
from sweep.grid.grid import Cell
from sweep.store.file_digests import FileDigests
from tests.sweep.small import Command, request, write_workload
from tests.sweep.store.edits import COMMENT, STATEMENT, Sources


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Loads, in order."""
    loaded: list[Any] = []
    prepare = traces.prepare

    def counted(trace: Any, cluster: Any) -> Any:
        loaded.append(trace)
        return prepare(trace, cluster)

    monkeypatch.setattr(traces, "prepare", counted)
    return loaded


def cells(*words: str) -> tuple[Cell, ...]:
    return grid.build(request(words)).cells


@pytest.fixture
def trace(tmp_path: Path) -> list[str]:
    return ["trace=parquet", f"trace.path={write_workload(tmp_path / 'trace')}"]


def test_cells_share_a_workload(tmp_path: Path, trace: list[str], loads: list[Any]) -> None:
    known = Inputs(tmp_path)
    ids = {known.workload_id(cell) for cell in cells("policy=fifo,sjf", "seed=0,1", *trace)}
    assert len(ids) == 1
    (name,) = ids
    assert known.workload(name) is known.workload(name)
    assert len(loads) == 1


def test_the_digest_is_known_without_loading(
    tmp_path: Path, trace: list[str], loads: list[Any]
) -> None:
    (cell,) = cells(*trace)
    first = Inputs(tmp_path)
    about = first.describe(first.workload_id(cell))
    assert about["digest"] == first.workload(first.workload_id(cell)).digest
    assert about["n_jobs"] == 6
    again = Inputs(tmp_path)
    assert again.describe(again.workload_id(cell)) == about
    assert len(loads) == 1


def test_a_file_that_changed_is_loaded_again(
    tmp_path: Path, trace: list[str], loads: list[Any]
) -> None:
    (cell,) = cells(*trace)
    first = Inputs(tmp_path)
    name = first.workload_id(cell)
    digest = first.describe(name)["digest"]
    folder = write_workload(Path(trace[1].partition("=")[2]), n_jobs=7)
    for file in folder.iterdir():
        os.utime(file, ns=(1, 1))
    (cell,) = cells(*trace)
    again = Inputs(tmp_path)
    assert again.workload_id(cell) != name
    assert again.describe(again.workload_id(cell))["digest"] != digest
    assert len(loads) == 2


@pytest.mark.parametrize("damage", [("{", "{half"), ('"n_jobs": 6', '"n_jobs": 7')])
def test_a_broken_memory_is_made_anew(
    tmp_path: Path, trace: list[str], loads: list[Any], damage: tuple[str, str]
) -> None:
    (cell,) = cells(*trace)
    first = Inputs(tmp_path)
    about = first.describe(first.workload_id(cell))
    (file,) = (tmp_path / "cache" / "workloads").iterdir()
    whole = file.read_text()
    file.write_text(whole.replace(*damage, 1))
    assert file.read_text() != whole
    again = Inputs(tmp_path)
    assert again.describe(again.workload_id(cell)) == about
    assert len(loads) == 2


def test_seeds_of_a_synthesized_trace_are_workloads_of_their_own(tmp_path: Path) -> None:
    known = Inputs(tmp_path)
    both = cells("trace=alibaba_synth", "trace.jobs=20", "seed=0,1", "capacity=0.5,1")
    digests = [known.describe(known.workload_id(cell))["digest"] for cell in both]
    assert digests[0] == digests[2]
    assert digests[1] == digests[3]
    assert digests[0] != digests[1]


def test_arrivals_stretched_to_another_cluster_are_another_workload(
    tmp_path: Path, trace: list[str]
) -> None:
    known = Inputs(tmp_path)
    three = cells("cluster.count=3,4,5", "cluster.load=0.5", *trace)
    spans = [known.workload(known.workload_id(cell)).columns.job_submit[-1] for cell in three]
    assert spans[0] > spans[1] > spans[2]
    unstretched = cells("cluster.count=3,4", "cluster.load=null", *trace)
    assert len({known.workload_id(cell) for cell in unstretched}) == 1


def test_workers_read_a_trace_where_there_are_some(
    tmp_path: Path, trace: list[str], loads: list[Any]
) -> None:
    (cell,) = cells(*trace)
    requests: list[Recipe] = []

    def convert(recipe: Recipe) -> dict[str, Any]:
        requests.append(recipe)
        return {"digest": "d" * 64, "n_jobs": 6, "n_tasks": 18, "meta": {}}

    for _ in range(2):  # the second time it is known
        known = Inputs(tmp_path, convert=convert)
        name = known.workload_id(cell)
        assert known.describe(name)["digest"] == "d" * 64
    (recipe,) = requests
    assert (recipe.trace["path"], recipe.digest) == (trace[1].partition("=")[2], "")
    assert (known.recipe(name).digest, known.recipe(name).n_tasks) == ("d" * 64, 18)
    assert not loads


def test_a_trace_that_is_parquet_is_not_kept_as_such(tmp_path: Path, trace: list[str]) -> None:
    log = tmp_path / "log.swf"
    log.touch()
    known = Inputs(tmp_path)
    for words, is_kept in ((trace, False), (["trace=swf", f"trace.path={log}"], True)):
        (cell,) = cells(*words)
        assert (known.recipe(known.workload_id(cell)).converted is not None) == is_kept


def test_a_trace_is_parsed_once_and_never_by_a_plan(
    fake: Command, tmp_path: Path, loads: list[Any]
) -> None:
    log = tmp_path / "log.swf"
    log.write_text("".join(f"{n} {n} 0 10 1 -1 -1 1 10 -1 1 1 1 1 1 -1 -1 -1\n" for n in (1, 2)))
    words = fake.words("trace=swf", f"trace.path={log}", "policy=fifo")
    assert fake.bare("plan", *words).code == 0
    assert not loads
    for policy in ("fifo", "las"):
        assert fake.bare(*words, f"policy={policy}").code == 0
    assert len(loads) == 1


def test_a_trace_is_known_by_its_content_wherever_it_lies(tmp_path: Path, trace: list[str]) -> None:
    first = Inputs(tmp_path)
    name = first.workload_id(*cells(*trace))
    folder = Path(trace[1].partition("=")[2])
    moved = folder.rename(tmp_path / "moved")
    for file in moved.iterdir():
        os.utime(file, ns=(1, 1))
    assert Inputs(tmp_path).workload_id(*cells("trace=parquet", f"trace.path={moved}")) == name


def test_a_recipe_that_makes_another_workload_than_before_is_refused(tmp_path: Path) -> None:
    (cell,) = cells("trace=alibaba_synth", "trace.jobs=20")
    first = Inputs(tmp_path)
    name = first.workload_id(cell)
    about = first.describe(name)
    files.write_checked_json(
        tmp_path / "cache" / "workloads" / f"{name}.json", {**about, "digest": "d" * 64}
    )
    known = Inputs(tmp_path)
    assert known.workload_id(cell) == name
    with pytest.raises(InputError, match=r"gave another workload before.*paths\.results=DIR"):
        known.workload(name)


def test_a_window_of_time(tmp_path: Path, trace: list[str]) -> None:
    known = Inputs(tmp_path)
    (cell,) = cells("trace.begin_s=2", "trace.end_s=4", *trace)
    workload = known.workload(known.workload_id(cell))
    assert workload.columns.job_submit.tolist() == [0.0, 1.0]


def test_memory_is_bounded(
    tmp_path: Path, loads: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "MAX_LOADED_BYTES", 1)
    known = Inputs(tmp_path)
    first, second = cells("trace=alibaba_synth", "trace.jobs=20", "seed=0,1")
    for cell in (first, first, second, first):
        known.workload(known.workload_id(cell))
    assert len(loads) == 3


class TestAnEditOfWhatMakesAWorkload:
    WORDS = ("trace=alibaba_synth", "trace.jobs=20")

    def open_inputs(self, folder: Path) -> tuple[Inputs, str]:
        known = Inputs(folder)
        (cell,) = cells(*self.WORDS)
        return known, known.workload_id(cell)

    @pytest.mark.parametrize(
        ("name", "added", "is_made_again"),
        [
            ("sim.synth.fitted.tian_algorithm2", COMMENT, False),
            ("sim.synth.fitted.tian_algorithm2", STATEMENT, True),
            ("policies.alibaba.synth/tables.json", b"\n", True),
            ("policies.wing.cosmos.month", STATEMENT, False),
            ("sim.engine.simulate", STATEMENT, False),
        ],
    )
    def test_makes_it_again_only_where_it_may_be_another(
        self,
        tmp_path: Path,
        loads: list[Any],
        edited: Sources,
        name: str,
        added: bytes,
        is_made_again: bool,
    ) -> None:
        known, first = self.open_inputs(tmp_path)
        digest = known.describe(first)["digest"]
        edited.edit(name, added=added)
        known, again = self.open_inputs(tmp_path)
        assert known.describe(again)["digest"] == digest
        assert len(loads) == 1 + is_made_again

    def test_is_made_again_by_a_run_and_never_by_a_plan(
        self, fake: Command, loads: list[Any], edited: Sources
    ) -> None:
        grid = ("policy=fifo,las", *self.WORDS)
        assert "0 cached, 2 to run" in fake("plan", *grid).out
        assert not loads
        first = fake(*grid)
        assert len(loads) == 1
        assert "2 cached, 0 to run" in fake("plan", *grid).out
        edited.edit("sim.synth.fitted.tian_algorithm2", added=STATEMENT)
        assert "0 cached, 2 to run" in fake("plan", *grid).out
        assert len(loads) == 1
        again = fake(*grid)
        for before, now in zip(first.rows, again.rows, strict=True):
            assert before["key"] != now["key"]
            assert before["jct_mean_s"] == now["jct_mean_s"]
        assert "2 cached, 0 to run" in fake("plan", *grid).out
        assert len(loads) == 2


class TestARecipe:
    WORDS = ("trace=alibaba_synth", "trace.jobs=20", "seed=0,1", "policy=fifo,las")

    def test_names_a_sweep_before_it_is_made_as_after(self, fake: Command) -> None:
        planned = fake("plan", *self.WORDS).out.split(":")[0]
        ran = fake(*self.WORDS)
        assert ran.folder.name == planned
        assert fake("plan", *self.WORDS).out.split(":")[0] == planned
        assert "all 4 were computed before" in fake(*self.WORDS).err

    def test_gives_cells_their_keys_before_anything_runs(self, fake: Command) -> None:
        ran = fake(*self.WORDS)
        replanned = plan.prepare(grid.build(fake.request(*self.WORDS)))
        assert [row["key"] for row in ran.rows] == [cell.key for cell in replanned.planned]
        assert {row["status"] for row in ran.rows} == {"done"}
        assert len(replanned.metrics) == 4

    def test_of_what_fits_no_cluster_is_refused(self, fake: Command) -> None:
        ran = fake(*self.WORDS, "capacity=1e-6")
        assert ran.code == 2
        assert "at capacity 1e-06" in ran.err


def test_a_file_that_an_option_names_is_part_of_the_identity(tmp_path: Path) -> None:
    file = tmp_path / "tables.json"
    file.write_text("{}")
    trace = {"synth": "alibaba2018", "tables": str(file), "more": [{"name": "x" * 5000}]}
    (cell,) = cells("trace=alibaba_synth")
    digest = FileDigests(tmp_path / "digests.json").digest
    before = traces.identity(trace, cell.cluster, digest)
    assert traces.identity(trace, cell.cluster, digest) == before
    file.write_text("{ }")
    assert traces.identity(trace, cell.cluster, digest) != before
