"""Keys of a planner, from words to cells."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.base.errors import InputError
from sweep.execution.inputs import Inputs
from sweep.grid import grid, remote, what_ifs
from sweep.grid.grid import Cell
from tests.sweep.grid.test_request import read


@pytest.mark.parametrize("word", ["metrics.by=queue,width", "metrics.by=[queue,width]"])
def test_groups_are_an_option_of_the_simulation(word: str) -> None:
    (line,) = read("policy=fifo", word).fixed
    assert (line.key, line.value, line.text) == ("evaluator.by", ["queue", "width"], word)


def test_other_evaluators_have_no_groups() -> None:
    assert read("policy=fifo", "metrics.by=null").fixed == ()
    with pytest.raises(InputError, match="metrics of its own"):
        read("policy=fifo", "metrics.by=queue", "evaluator=stream")
    with pytest.raises(InputError, match="give keys of jobs"):
        read("policy=fifo", "metrics.by=3")


LOG = ("policy=fifo", "trace=parquet", "trace.path=.", "cluster.count=10")


def cells(*words: str) -> list[Cell]:
    return [*grid.build(read(*words)).cells]


def test_each_change_is_tried_by_itself_beside_today() -> None:
    words = ("what_if.load=1.3,0.5", "what_if.nodes=+20", "what_if.without_queue=x")
    planned = cells(*LOG, *words)
    assert [what_ifs.words(cell.labels) for cell in planned] == [
        "", "load=1.3", "load=0.5", "nodes=+20", "without_queue=x",
    ]  # fmt: skip
    assert len(cells(*LOG, *words, "what_if.together=true")) == 3 * 2 * 2
    today, load, _, nodes, without = planned
    assert "after" not in today.trace
    assert without.trace["after"] == [{"without_queue": {"queue": ["x"]}}]
    assert (today.cluster.get("extra"), nodes.cluster["extra"]) == (None, 20)
    assert nodes.trace == today.trace
    assert load.trace["after"] == [{"change_load": {"load": 1.3, "seed": 0, "rewire": False}}]
    (alone,) = cells(*LOG, "what_if.load=1.3", "what_if.today=false")
    assert alone.labels["what_if.load"] == 1.3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("what_if.load=0", "must be a number above 0"),
        ("what_if.faster=x", "must be a number above 0"),
        ("what_if.nodes=0", "give machines to add"),
        ("what_if.add=nothing", "unknown trace 'nothing'"),
        ("what_if.add=swf", "write what_if.add=NAME:swf:FILE"),
        ("what_if.add=a:swf", "write NAME:FORMAT:FILE"),
        ("what_if.add.scale=1", "goes with what_if.add=TRACE"),
        ("what_if.add=a:swf:none", "added to parquet: trace.path=none: no such file"),
        ("what_if.add=a:swf:s4://b/c", "added to parquet: .*unknown scheme 's4'"),
        ("what_if.laod=2", "did you mean 'what_if.load'"),
        ("what_if.load=2 what_if.restore=jct_speedup_mean", "compares with a baseline"),
        ("what_if.restore=null", "what_if.restore=null goes with a change"),
        ("what_if.together=true", "what_if.together=true goes with a change"),
    ],
)
def test_wrong_changes_say_what_is_right(words: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        cells(*LOG, *words.split())


def test_an_added_trace_is_any_that_a_cell_can_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("what_if.add=cosmos,slearn_2sigma", "+what_if.add.begin_s=10", "seed=3")
    added = [cell.trace["after"][0]["add"]["trace"] for cell in cells(*LOG, *words)[1:]]
    assert [(trace["synth"], trace["seed"], trace["begin_s"]) for trace in added] == [
        ("cosmos", 3, 10), ("recurring", 3, 10),
    ]  # fmt: skip
    with pytest.raises(InputError, match="unknown key 'jobs'"):
        cells(*LOG, "what_if.add=cosmos", "what_if.add.jobs=9")
    with pytest.raises(InputError, match="takes one value"):
        cells(*LOG, "what_if.add=cosmos", "what_if.add.scale=1,2")
    copies = {f"s3://bucket/{name}": tmp_path / name for name in ("a", "b", "c")}
    for name, content in (("a", "x"), ("b", "x"), ("c", "y")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "jobs.parquet").write_text(content)
    monkeypatch.setattr(remote, "download", lambda uri, folder: copies[uri])
    inputs = Inputs(tmp_path / "results")
    word = "what_if.add=" + ",".join(f"o:parquet:{uri}" for uri in copies)
    today, *changed = cells(*LOG, f"trace.path={tmp_path}/a", word)
    ids = [inputs.workload_id(cell) for cell in (today, *changed)]
    assert len({*ids}) == 3
    assert ids[1] == ids[2], "the content counts, not its place"
    (stored,) = inputs.recipe(ids[3]).trace["after"]
    assert stored["add"]["trace"]["path"] == str(tmp_path / "c")
    assert inputs.recipe(ids[3]).converted is not None


def test_traces_are_named_on_the_line(tmp_path: Path) -> None:
    for name in ("one.swf", "two.txt"):
        (tmp_path / name).touch()
    words = ("policy=fifo", f"trace=a:swf:{tmp_path}/one.swf,b:sacct:{tmp_path}/two.txt")
    planned = cells(*words)
    assert [(c.labels["trace"], c.trace["format"]) for c in planned] == [
        ("a", "swf"),
        ("b", "sacct"),
    ]
    assert planned[1].trace["path"] == f"{tmp_path}/two.txt"
    with pytest.raises(InputError, match=r"trace=a:swf:FILE,b:sacct:FILE"):
        read("policy=fifo", "trace=swf,sacct", "trace.path=one.swf")
    with pytest.raises(InputError, match="unknown trace 'swv'; did you mean 'swf'"):
        read("policy=fifo", "trace=a:swv:one.swf")


def test_draws_of_a_log_are_seeds() -> None:
    planned = cells(*LOG, "seeds=bootstrap", "seeds_block=day")
    assert [cell.seed for cell in planned] == [*range(10)]
    assert planned[3].trace["after"] == [{"bootstrap": {"by": "day", "seed": 3}}]
    assert len(cells(*LOG, "seeds=bootstrap", "seed=range(0,12)")) == 12
    for words, message in (
        (("seeds_block=day",), "needs seeds=bootstrap"),
        (("seeds=bootstrap", "seeds_block=month"), "valid: auto, week, day, hour, user"),
        (("seeds=bootstrap", "seeds_max=20"), "chooses seeds by itself"),
    ):
        with pytest.raises(InputError, match=message):
            read(*LOG, *words)
    with pytest.raises(InputError, match="draws another workload for each seed"):
        cells("policy=fifo", "seeds=bootstrap")
