from __future__ import annotations

import time
from pathlib import Path

import pytest

from sim.base.errors import InputError
from sweep.grid import request
from sweep.grid.options import Options
from sweep.grid.overrides import quote
from sweep.grid.request import Request


def read(*words: str, options: Options | None = None) -> Request:
    return request.read(words, options or Options())


def test_nothing_named_means_the_demonstration() -> None:
    demo = read()
    assert demo.experiment == "demo"
    assert len(demo.axes["policy"]) >= 4
    assert len(demo.axes["capacity"]) == 3
    assert len(demo.axes["seed"]) >= 2
    assert demo.baseline in demo.axes["policy"]


def test_other_keys_leave_it_the_demonstration() -> None:
    words = ("launcher=inline", "paths.results=/somewhere", "cluster.load=0.9")
    assert read(*words).axes == read().axes


@pytest.mark.parametrize("word", ["policy=sjf", "capacity=0.5", "seed=3", "trace=alibaba_synth"])
def test_an_axis_means_defaults_for_the_others(word: str) -> None:
    parsed = read(word)
    assert parsed.experiment is None
    assert all(len(values) == 1 for values in parsed.axes.values())
    key, value = word.split("=")
    assert str(parsed.axes[key][0]) == value


def test_axes_are_typed() -> None:
    axes = read("policy=fifo,sjf", "capacity=1,0.5", "seed=range(2)").axes
    assert axes["policy"] == ("fifo", "sjf")
    assert axes["capacity"] == (1.0, 0.5)
    assert axes["seed"] == (0, 1)


@pytest.mark.parametrize(
    ("word", "repeated"),
    [
        ("policy=fifo,sjf,fifo", "policy=fifo"),
        ("capacity=1,0.5,1.0", "capacity=1.0"),
        ("seed=3,1,2,3", "seed=3"),
        ("policy.queues=5,null,null", "policy.queues=null"),
        ("cluster.shape={cpu:1},{cpu:2},{cpu:1}", "cluster.shape={cpu:1}"),
    ],
)
def test_a_value_given_twice_is_refused_by_name(word: str, repeated: str) -> None:
    with pytest.raises(InputError) as caught:
        read("policy=las", word)
    assert f"{word} (command line): {repeated} is given more than once" in str(caught.value)


def test_any_dotted_key_is_an_axis_if_swept_else_fixed() -> None:
    parsed = read(
        "policy=las", "policy.queues=5,10", "cluster.load=0.9", "cluster.queues.mode=hard"
    )
    assert parsed.axes["policy.queues"] == (5, 10)
    assert [line.key for line in parsed.fixed] == ["cluster.load", "cluster.queues.mode"]


def test_a_name_is_no_axis() -> None:
    parsed = read("policy=fifo", "name=mine")
    assert parsed.name == "mine"
    assert "name=mine" in parsed.words
    assert read("policy=fifo").name is None
    for wrong in ("name=a,b", "name=1", "name=a/b", "name=a b", "~name"):
        with pytest.raises(InputError):
            read("policy=fifo", wrong)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Do we need 20 more nodes?", "Do we need 20 more nodes?"),
        ("Is srpt (or las) worth it, at 90 % load?", "Is srpt (or las) worth it, at 90 % load?"),
        ("'Who's next?'", "'Who's next?'"),  # no Hydra quotes
        ("'Which, of three?'", "Which, of three?"),
        ("Warten\nalle?", "Warten alle?"),
        ("null", None),
    ],
)
def test_a_question_is_a_text(value: str, text: str | None) -> None:
    parsed = read("policy=fifo", f"question={value}")
    assert parsed.question == text
    assert read(*parsed.words).question == text
    assert read("policy=fifo", quote("question", parsed.question)).question == text


def test_a_long_axis_is_read_in_no_time() -> None:
    begin = time.process_time()
    assert len(read("policy=fifo", "seed=range(0,300000)").axes["seed"]) == 300_000
    assert time.process_time() - begin < 20  # an axis compared with itself took minutes


def test_the_last_of_two_wins() -> None:
    assert read("policy=fifo", "policy=sjf,las").axes["policy"] == ("sjf", "las")
    parsed = read("policy=las", "policy.queues=5,10", "policy.queues=3")
    assert "policy.queues" not in parsed.axes


def test_where_and_how_to_run_is_apart() -> None:
    parsed = read("policy=fifo", "launcher=local", "launcher.workers=2", "tracking=none",
                 "paths.results=/tmp/x", "max_failures=3")  # fmt: skip
    assert parsed.words == ("policy=fifo",)
    assert parsed.settings.launcher["workers"] == 2
    assert parsed.settings.tracking["kind"] == "none"
    assert parsed.settings.results == Path("/tmp/x")
    assert parsed.settings.max_failures == 3


def test_fail_fast_is_a_limit_of_one() -> None:
    assert request.read(["policy=fifo"], Options(), fail_fast=True).settings.max_failures == 1


def test_a_cell_may_take_an_hour_unless_told_otherwise() -> None:
    def limit(*words: str) -> float | None:
        return request.read(["policy=fifo", *words], Options()).settings.cell_timeout_s

    assert (limit(), limit("cell_timeout_s=2.5"), limit("cell_timeout_s=null")) == (3600, 2.5, None)
    assert request.read(["policy=fifo", "cell_timeout_s=9"], Options()).words == ("policy=fifo",)


def test_metrics_to_show() -> None:
    assert read("metrics=jct_mean_s,makespan_s").metrics == ("jct_mean_s", "makespan_s")
    assert read("metrics=[jct_mean_s]").metrics == ("jct_mean_s",)
    assert read("metrics=null").metrics == ()
    assert read("metrics=all").metrics == ("all",)
    with pytest.raises(InputError, match="did you mean 'jct_mean_s'"):
        read("metrics=jct_mean")


def test_what_the_verdict_speaks_of() -> None:
    assert read().verdict_metric is None
    assert read("verdict.metric=jct_p99_s").verdict_metric == "jct_p99_s"
    assert read("verdict.metric=null").verdict_metric is None
    assert read("verdict.metric=jct_speedup_p50").baseline == "fifo"  # the demonstration's
    with pytest.raises(InputError, match="give baseline=POLICY"):
        read("policy=fifo,srpt", "verdict.metric=jct_speedup_p50")


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("verdict.metric=jct_p99", "unknown metric 'jct_p99'; did you mean 'jct_p99_s'"),
        ("verdict.metric=jct_p99_s,jct_mean_s", r"give verdict\.metric=VALUE"),
        ("verdict.metrik=jct_p99_s", r"did you mean 'verdict\.metric'"),
        ("policy=fiffo", "did you mean 'fifo'"),
        ("trace=parqeut", "did you mean 'parquet'"),
        ("cluster=slot", "did you mean 'slots'"),
        ("experiment=dmo", "did you mean 'demo'"),
        ("launcher=locla", "did you mean 'local'"),
        ("tracking=mlfow", "did you mean 'mlflow'"),
        ("polcy=fifo", "unknown key 'polcy'; did you mean 'policy'"),
        ("paths.result=x", r"did you mean 'paths\.results'"),
        ("launcher.wokers=2", r"did you mean 'launcher\.workers'"),
        ("capacity=0", "capacity must be a number above 0, not 0"),
        ("capacity=-1", "above 0"),
        ("capacity=nan", "above 0"),
        ("capacity=half", "number above 0, not 'half'"),
        ("capacity=true", "above 0"),
        ("seed=-1", "seed must be"),
        ("seed=0.5", "seed must be"),
        ("seed=a", "seed must be"),
        ("max_failures=0", "max_failures must be"),
        ("cell_timeout_s=0", "cell_timeout_s must be"),
        ("cell_timeout_s=1h", "cell_timeout_s must be"),
        ("max_failures=many", "max_failures must be"),
        ("launcher.workers=0", r"launcher\.workers must be"),
        ("launcher=inline,local", "can't be swept"),
        ("experiment=demo,demo", "can't be swept"),
        ("paths.results=a,b", "can't be swept"),
        ("baseline=a,b", "baseline"),
        ("question=7", "'7' is no question"),
        ("question=", "is no question"),
        ("question=" + "why " * 90, "up to 300 characters"),
        ("~question", "give question=VALUE"),
        ("~policy", "policy"),
        ("launcher.kind=pbs", r"unknown launcher\.kind"),
        ("paths.results=3", "must be a folder"),
    ],
)
def test_says_what_is_wrong(word: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(word)


def experiment(folder: Path, text: str) -> Options:
    file = folder / "experiment" / "mine.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return Options.from_folders([str(folder)])


MINE = """
axes:
  policy: [fifo, las]
  policy.queues: [5, 10]
  capacity: range(0.5,1.5,0.5)
overrides: [trace.jobs=50, cluster.load=0.5]
baseline: fifo
"""


def test_an_experiment_lists_axes(tmp_path: Path) -> None:
    parsed = read("experiment=mine", options=experiment(tmp_path, MINE))
    assert parsed.axes["policy"] == ("fifo", "las")
    assert parsed.axes["policy.queues"] == (5, 10)
    assert parsed.axes["capacity"] == (0.5, 1.0)
    assert parsed.baseline == "fifo"
    assert [line.text for line in parsed.fixed] == ["trace.jobs=50", "cluster.load=0.5"]


def test_the_command_line_wins_over_an_experiment(tmp_path: Path) -> None:
    options = experiment(tmp_path, MINE)
    words = ("experiment=mine", "capacity=2", "cluster.load=0.9", "baseline=null")
    parsed = read(*words, "policy.queues=7", options=options)
    assert parsed.axes["capacity"] == (2.0,)
    assert "policy.queues" not in parsed.axes
    assert parsed.baseline is None
    fixed = {line.key: line.value for line in parsed.fixed}
    assert fixed == {"trace.jobs": 50, "cluster.load": 0.9, "policy.queues": 7}


def test_another_trace_leaves_the_experiments_trace_keys_behind(tmp_path: Path) -> None:
    text = MINE.replace("axes:", "axes:\n  trace: [alibaba_synth]")
    parsed = read("experiment=mine", "trace=swf", options=experiment(tmp_path, text))
    assert [line.key for line in parsed.fixed] == ["cluster.load"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("axis: {}\n", "did you mean 'axes'"),
        ("axes: [policy]\n", "give a list of values for each key"),
        ("overrides: trace.jobs=3\n", "give a list of texts"),
        ("axes: {policy: []}\n", "has no values to sweep"),
        ("axes: {policy: [fiffo]}\n", "did you mean 'fifo'"),
        ("axes: {polcy: [fifo]}\n", r"did you mean 'policy'.*\(experiment mine\)"),
    ],
)
def test_says_what_is_wrong_in_an_experiment(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read("experiment=mine", options=experiment(tmp_path, text))
