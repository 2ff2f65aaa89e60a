from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sim.synth
from sim.base.errors import InputError
from sweep.execution import cells_table
from sweep.grid import grid, traces
from sweep.grid.grid import Grid
from sweep.grid.options import Options
from sweep.grid.overrides import parse
from sweep.stats.arrange import build_columns
from sweep.store import sources
from tests.sweep.small import request, write_workload

GENERATOR = sim.synth.names()[0]


@pytest.fixture
def trace(tmp_path: Path) -> list[str]:
    return ["trace=parquet", f"trace.path={write_workload(tmp_path / 'trace')}"]


def build(*words: str, config_dirs: tuple[str, ...] = ()) -> Grid:
    return grid.build(request(words, config_dirs))


def labels(built: Grid, *keys: str) -> list[tuple[Any, ...]]:
    return [tuple(cell.labels[key] for key in keys) for cell in built.cells]


def test_policies_outermost_seeds_innermost(trace: list[str]) -> None:
    built = build("policy=sjf,fifo", "seed=1,0", "capacity=1,0.5", *trace)
    assert labels(built, "policy", "capacity", "seed") == [
        ("sjf", 1.0, 1), ("sjf", 1.0, 0), ("sjf", 0.5, 1), ("sjf", 0.5, 0),
        ("fifo", 1.0, 1), ("fifo", 1.0, 0), ("fifo", 0.5, 1), ("fifo", 0.5, 0),
    ]  # fmt: skip


def test_a_policys_parameter_applies_where_it_exists(trace: list[str]) -> None:
    built = build("policy=fifo,las", "policy.queues=5,10", *trace)
    assert labels(built, "policy", "policy.queues") == [("fifo", None), ("las", 5), ("las", 10)]
    assert built.cells[1].policy["params"]["queues"] == 5
    assert built.cells[0].policy["params"].keys() == {
        *("fit", "fit_resources", "held_machines", "preemption", "carbon", "demands", "reads")
    }


def test_a_fixed_parameter_applies_where_it_exists(trace: list[str]) -> None:
    built = build("policy=fifo,las", "policy.queues=5", *trace)
    assert [cell.policy["params"].get("queues") for cell in built.cells] == [None, 5]
    assert built.swept == ()


def test_parameters_are_whole_with_their_defaults(trace: list[str]) -> None:
    (cell,) = build("policy=las", *trace).cells
    assert cell.policy["name"] == "las"
    assert cell.policy["params"].keys() >= {"fit", "queues", "growth"}


def test_a_parameter_that_no_file_names_is_deleted_to_its_default(trace: list[str]) -> None:
    (cell,) = build("policy=las", "~policy.queues", *trace).cells
    assert cell.policy["params"]["queues"] == 10


def test_other_keys_are_swept_too(trace: list[str]) -> None:
    built = build("policy=fifo", "cluster.load=0.5,0.9", "cluster=slots,machines", *trace)
    assert built.swept == ("cluster.load", "cluster")
    assert [(cell.cluster["load"], cell.cluster["shape"]) for cell in built.cells] == [
        (0.5, "slots"), (0.5, {"cpu": 16, "mem": 128}),
        (0.9, "slots"), (0.9, {"cpu": 16, "mem": 128}),
    ]  # fmt: skip


def test_a_machines_shape_is_replaced_as_a_whole(trace: list[str]) -> None:
    (cell,) = build("cluster=machines", "cluster.shape={cpu:4}", *trace).cells
    assert cell.cluster["shape"] == {"cpu": 4}


def test_a_synthesized_trace_follows_the_seed_unless_told_otherwise() -> None:
    cells = build("trace=alibaba_synth", "seed=3,4").cells
    assert [cell.trace["seed"] for cell in cells] == [3, 4]
    cells = build("trace=alibaba_synth", "seed=3,4", "trace.seed=0").cells
    assert [cell.trace["seed"] for cell in cells] == [0, 0]
    assert cells[0].trace is cells[1].trace


def test_each_option_is_composed_once(monkeypatch: pytest.MonkeyPatch, trace: list[str]) -> None:
    parsed = request(["policy=fifo,sjf,las", "capacity=range(1,11)", "seed=range(10)", *trace])
    composed: list[dict[str, str]] = []
    compose = Options.compose

    def counted(self: Options, **choices: str) -> dict[str, Any]:
        composed.append(choices)
        return compose(self, **choices)

    monkeypatch.setattr(Options, "compose", counted)
    assert len(grid.build(parsed).cells) == 300
    assert len(composed) == 4


def test_an_experiments_parameters_may_be_for_a_policy_that_was_left_out(
    tmp_path: Path, trace: list[str]
) -> None:
    (tmp_path / "experiment").mkdir()
    for name, key in (("right", "queues"), ("wrong", "qeues")):
        text = (
            f"axes: {{policy: [fifo, las], policy.{key}: [5, 6]}}\noverrides: [policy.growth=2]\n"
        )
        (tmp_path / "experiment" / f"{name}.yaml").write_text(text)
    folders = (str(tmp_path),)
    right = build("experiment=right", "policy=fifo", *trace, config_dirs=folders)
    assert labels(right, "policy", "policy.queues") == [("fifo", None)]
    with pytest.raises(InputError, match=r"did you mean 'policy\.queues'"):
        build("experiment=wrong", *trace, config_dirs=folders)
    with pytest.raises(InputError, match=r"did you mean 'policy\.queues'"):
        build("experiment=right", "policy=las", "policy.qeues=3", *trace, config_dirs=folders)


def test_a_users_policy_by_module(tmp_path: Path, trace: list[str]) -> None:
    (tmp_path / "conf" / "policy").mkdir(parents=True)
    (tmp_path / "conf" / "policy" / "grid_test.yaml").write_text(
        "name: grid_test\nmodule: grid_test_policy\ntransform: 2.0\n"
    )
    (tmp_path / "grid_test_policy.py").write_text(
        "from dataclasses import dataclass\n"
        "from policies import Policy, register\n\n\n"
        "@register('grid_test')\n"
        "@dataclass(frozen=True)\n"
        "class GridTest(Policy):\n"
        "    transform: float = 1.0\n"
    )
    folder = str(tmp_path / "conf")
    built = build("policy=grid_test", "policy.transform=3", *trace, config_dirs=(folder,))
    assert built.cells[0].policy == {
        "name": "grid_test",
        "module": "grid_test_policy",
        "params": {
            "fit": "strict",
            "fit_resources": [],
            "held_machines": 4,
            "preemption": None,
            "carbon": None,
            "demands": "declared",
            "reads": "declared",
            "transform": 3.0,
        },
    }


def test_an_unknown_policy_without_a_module_says_to_add_one(
    tmp_path: Path, trace: list[str]
) -> None:
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "lost.yaml").write_text("name: fiffo\n")
    with pytest.raises(InputError) as caught:
        build("policy=lost", *trace, config_dirs=(str(tmp_path),))
    message = str(caught.value)
    assert "lost.yaml: unknown policy 'fiffo'; did you mean 'fifo'? valid: " in message
    assert (
        "For a policy of your own add `module: MODULE`, the Python module that registers it "
        "(docs/your_own_policy.md)" in message
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("format: swff", r"unknown trace format 'swff'; did you mean 'swf'\? valid: "),
        (
            "format: swf\nmodule: nowhere_at_all",
            "trace format module 'nowhere_at_all' can't be imp",
        ),
        (
            "format: swf\nmodule: tests.ports",
            r"tests/ports\.py has no function read\(path, \.\.\.\)",
        ),
        ("synth: mine\nmodule: tests.ports", r"tests/ports\.py has no function synthesize"),
        (f"synth: {GENERATOR}s", f"unknown generator '{GENERATOR}s'; did you mean '{GENERATOR}'"),
    ],
)
def test_a_users_trace_of_no_known_format(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "trace").mkdir()
    (tmp_path / "trace" / "mine.yaml").write_text(f"{text}\npath: x\n")
    with pytest.raises(InputError, match=message):
        build("trace=mine", config_dirs=(str(tmp_path),))


@pytest.mark.parametrize("kind", ["format", "synth"])
def test_a_trace_by_a_module_of_ones_own(tmp_path: Path, kind: str, monkeypatch: Any) -> None:
    function = {
        "format": "read(path, *, times: int = 1)",
        "synth": "synthesize(jobs: int = 2, seed: int = 0, times: int = 1)",
    }[kind]
    module = tmp_path / f"own_{kind}.py"
    text = (
        f"import sim\n\n\ndef {function}:\n"
        "    job = {'submit_s': 0.0, 'stages': [{'durations_s': [5.0 * times]}]}\n"
        "    return sim.Workload.from_jobs([job])\n"
    )
    module.write_text(text)
    (tmp_path / "log").write_text("")
    (tmp_path / "trace").mkdir()
    path = f"path: {tmp_path / 'log'}\n" if kind == "format" else ""
    option = f"{kind}: mine\nmodule: own_{kind}\n{path}times: 1\n"
    (tmp_path / "trace" / "mine.yaml").write_text(option)
    monkeypatch.syspath_prepend(str(tmp_path))
    words = ("policy=fifo", "trace=mine", "cluster.count=1", "trace.times=3")
    (cell,) = build(*words, config_dirs=(str(tmp_path),)).cells
    assert traces.prepare(cell.trace, cell.cluster).columns.task_duration.tolist() == [15.0]
    before = sources.workload_digest(cell.trace)
    assert f"own_{kind}" in sources.workload_table(cell.trace)
    module.write_text(text.replace("5.0", "6.0"))
    sources.forget()
    assert sources.workload_digest(cell.trace) != before
    with pytest.raises(InputError, match="'tims'; did you mean 'times'"):
        build(*words, "+trace.tims=3", config_dirs=(str(tmp_path),))


def test_a_users_policy_that_can_not_be_built(tmp_path: Path, trace: list[str]) -> None:
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "grid_picky.yaml").write_text("name: grid_picky\nmodule: grid_picky\n")
    (tmp_path / "grid_picky.py").write_text(
        "from dataclasses import dataclass\n"
        "from policies import Policy, register\n\n\n"
        "@register('grid_picky')\n"
        "@dataclass(frozen=True)\n"
        "class Picky(Policy):\n"
        "    def __post_init__(self):\n"
        "        raise ValueError('not today')\n"
    )
    with pytest.raises(InputError, match="ValueError: not today"):
        build("policy=grid_picky", *trace, config_dirs=(str(tmp_path),))


def test_a_users_module_that_can_not_be_imported(tmp_path: Path, trace: list[str]) -> None:
    (tmp_path / "policy").mkdir()
    file = tmp_path / "policy" / "broken_module.yaml"
    file.write_text("name: fifo\nmodule: broken_module_here\n")
    (tmp_path / "broken_module_here.py").write_text("def broken(:\n")
    with pytest.raises(InputError, match="broken_module_here"):
        build("policy=broken_module", *trace, config_dirs=(str(tmp_path),))


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("policy.qeues=5", r"unknown parameter of las '.*qeues'; did you mean '.*queues'"),
        ("policy.qeues=5,6", r"did you mean '.*queues'"),
        ("policy.between=strict", "it is 'weights' there; policies that have it: las_code"),
        ("policy.queues=many", "must be a whole number"),
        ("policy.queues=2.5", "must be a whole number"),
        ("policy.fit=tight", "fit must be"),
        ("baseline=fifo", "unknown baseline 'fifo'; valid: las; the baseline is one of"),
        ("cluster.laod=1", r"did you mean 'cluster\.load'"),
        ("cluster.load=high", "must be a number"),
        ("cluster.load=0", r"cluster\.load must be a number above 0"),
        ("cluster.count=1.5", "must be a whole number"),
        ("cluster.count=2000000000", "2,000,000,000 slots is too large; at most 1,000,000,000"),
        ("cluster.shape=pool", r"cluster\.shape must be slots"),
        ("cluster.shape={cpu:-1}", r"cluster\.shape\.cpu must be a number above 0"),
        ("cluster.queues.mode=sharp", r"unknown cluster\.queues\.mode 'sharp'"),
        ("cluster.queues={mode:hard,shares:{a:0.9,b:0.9}}", "add up to 1.8"),
        ("trace.jobs=5", r"unknown key 'trace\.jobs'"),
        ("trace.begin_s=5", r"^$"),
        ("trace.path=/nowhere/at/all", "no such file"),
        ("trace.path=7", "must be a text"),
        ("trace=swf", r"needs a file: give trace\.path=FILE"),
        ("+trace.jobs=5", "unknown option of trace=parquet 'jobs'"),
    ],
)
def test_says_what_is_wrong(word: str, message: str, trace: list[str]) -> None:
    words = [word] if word == "trace=swf" else [*trace, word]
    if message == "^$":
        assert build("policy=las", *words).cells
        return
    with pytest.raises(InputError, match=message):
        build("policy=las", *words)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("trace.jobs=-5", r"trace\.jobs must be a whole number of at least 1, not -5"),
        ("trace.jobs=10,2.5", r"trace\.jobs must be a whole number of at least 1, not 2\.5"),
        ("trace.max_tasks_per_stage=0.5", r"trace\.max_tasks_per_stage must be"),
        (
            "+trace.transforms.amplify.ratio=-1",
            r"trace\.transforms\.amplify\.ratio must be .* above 0",
        ),
        ("+trace.transforms.amplify.ratio=${capacity}", r"^$"),
        (
            "+trace.transforms.amplify.ratio=x",
            r"trace\.transforms\.amplify\.ratio must be a number",
        ),
    ],
)
def test_what_no_generator_or_transform_takes_is_refused_with_the_grid(
    word: str, message: str
) -> None:
    if message == "^$":
        assert build("policy=fifo", "trace=alibaba_synth", word).cells
        return
    with pytest.raises(InputError, match=message):
        build("policy=fifo", "trace=alibaba_synth", word)


def test_what_no_reader_takes_is_refused_with_the_grid(tmp_path: Path) -> None:
    (tmp_path / "a.swf").write_text("")
    words = ("policy=fifo", "trace=swf", f"trace.path={tmp_path / 'a.swf'}")
    with pytest.raises(InputError, match=r"trace\.on_bad_row must be 'error' or"):
        build(*words, "trace.on_bad_row=keep")


def test_a_window_without_length(trace: list[str]) -> None:
    with pytest.raises(InputError, match="before"):
        build(*trace, "trace.begin_s=5", "trace.end_s=5")
    with pytest.raises(InputError, match="time in s"):
        build(*trace, "trace.begin_s=soon")


def test_a_baseline_of_several_settings_is_named_by_one(trace: list[str]) -> None:
    several = ("policy=las,fifo", "policy.queues=5,10", *trace)
    with pytest.raises(InputError) as caught:
        build(*several, "baseline=las")
    assert "baseline=las has 2 settings, and fifo could be compared with any" in str(caught.value)
    assert "baseline='las queues=5'; valid: las queues=5, las queues=10" in str(caught.value)
    with pytest.raises(InputError, match="has 2 settings: choose one"):
        build("policy=las", "policy.queues=5,10", "baseline=las", *trace)
    for words in (several, ("policy=las", "policy.queues=5,10", *trace)):
        for baseline in ("baseline=las queues=10", "baseline='las queues=10'"):
            assert build(*words, baseline).request.baseline == "las queues=10"
    with pytest.raises(InputError, match="did you mean 'las queues=10'"):
        build(*several, "baseline=las queues=11")


def test_settings_of_the_baseline_may_each_have_their_own(trace: list[str]) -> None:
    assert build("policy=las,slearn", "policy.queues=5,10", "baseline=las", *trace).cells


@pytest.mark.parametrize("values", ["true,auto", "1.0,auto", "[a,b],[c]", "1,2.5"])
def test_a_label_reads_the_same_in_the_grid_and_in_the_table(values: str) -> None:
    labels = [{"policy": "p", "policy.x": v} for v in parse([f"x={values}"], _none)[0].values]
    column = cells_table.swept_column("policy.x", [label["policy.x"] for label in labels])
    from_table = [{"policy": "p", "policy.x": value} for value in column.to_pylist()]
    first, second = (
        [column.label for column in build_columns(rows, ["policy.x"], None)[0].values()]
        for rows in (labels, from_table)
    )
    assert first == second


def _none(_: str) -> list[str]:
    return []
