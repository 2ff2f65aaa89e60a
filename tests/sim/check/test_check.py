"""``python -m sim check``: a good module of each kind keeps all rules, a bad one is named."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sim
from sim.check import check_module, repeat
from sim.cli.main import main
from tests.sim.check import plug_ins
from tests.sim.check.plug_ins import ONE_WORLD

ROOT = Path(sim.__file__).parents[1]
SAMPLE = "3.5\n2\n-1\n7.25\n"


@pytest.fixture(autouse=True)
def nothing_compiled(monkeypatch):
    """Run as the command does, whose runs compile no event loop."""
    monkeypatch.setenv("SIM_VARIANTS", "none")


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Return a function that writes a module of a name of its own; unload it afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    written = []

    def write_module(name, text):
        name = f"mine_{name}"
        (tmp_path / f"{name}.py").write_text(f'"""A module of a user."""\n{text}')
        written.append(name)
        return name

    yield write_module
    for name in written:
        sys.modules.pop(name, None)


@pytest.fixture
def sample(tmp_path):
    file = tmp_path / "log.txt"
    file.write_text(SAMPLE)
    return str(file)


@pytest.fixture
def without_processes(monkeypatch):
    """Leave out the fresh processes, which have tests of their own."""
    monkeypatch.setattr(repeat, "fresh_fingerprint", lambda subject, *rest: subject.fingerprint())


def policy_text(name, more, body):
    return plug_ins.POLICY.format(name=f"mine_{name}", more=more, body=body)


def broken_of(module, **options):
    (checked,) = check_module(module, **options)
    return checked.broken


GOOD = {
    "policy": policy_text("policy", plug_ins.GOOD_POLICY_MORE, plug_ins.GOOD_POLICY[1]),
    "reader": plug_ins.READER.format(**plug_ins.GOOD_READER),
    "generator": plug_ins.GENERATOR.format(**plug_ins.GOOD_GENERATOR),
    "transform": plug_ins.TRANSFORM.format(name="mine_transform", **plug_ins.GOOD_TRANSFORM),
    "metric": plug_ins.METRIC.format(**plug_ins.GOOD_METRIC),
    "evaluator": plug_ins.EVALUATOR.format(returned=plug_ins.GOOD_EVALUATOR),
}


def check_good(kind, write, sample):
    """Check a good module of a kind: it keeps all rules."""
    module = write(kind, GOOD[kind])
    (checked,) = check_module(module, sample=sample if kind == "reader" else None)
    assert (checked.kind, checked.broken) == (kind, ())


@pytest.mark.usefixtures("without_processes")
@pytest.mark.parametrize("kind", GOOD)
def test_a_good_module_keeps_all_rules(kind, write, sample):
    check_good(kind, write, sample)


@pytest.mark.parametrize(
    "kind",
    [kind if kind == "policy" else pytest.param(kind, marks=pytest.mark.long) for kind in GOOD],
)
@pytest.mark.long
def test_a_good_module_is_the_same_in_fresh_processes(kind, write, sample):
    check_good(kind, write, sample)


@pytest.mark.usefixtures("without_processes")
@pytest.mark.parametrize("name", plug_ins.BROKEN_POLICIES)
def test_a_broken_policy_is_named(name, write):
    more, body, match = plug_ins.BROKEN_POLICIES[name]
    broken = "\n".join(broken_of(write(name, policy_text(name, more, body))))
    assert_match(match, broken)


@pytest.mark.usefixtures("without_processes")
@pytest.mark.parametrize(
    "name",
    [n if n == "two_resources" else pytest.param(n, marks=pytest.mark.long) for n in ONE_WORLD],
)
def test_worlds_with_gpus_partitions_and_preemption_find_what_no_other_does(name, write):
    more, body, match = ONE_WORLD[name]
    sentences = broken_of(write(name, policy_text(name, more, body)))
    assert sentences
    for sentence in sentences:
        assert_match(match, sentence)


@pytest.mark.long
def test_a_policy_that_depends_on_hashes_is_named(write):
    module = write("hashes", policy_text("hashes", "", plug_ins.HASH_ORDER))
    assert_match("PYTHONHASHSEED", "\n".join(broken_of(module)))


@pytest.mark.usefixtures("without_processes")
def test_a_policy_that_is_not_registered_or_no_dataclass_is_named(write):
    text = policy_text("plain", "", "pass").replace('@register("mine_plain")\n', "")
    assert_match("put @policies.register", "\n".join(broken_of(write("plain", text))))
    text = policy_text("loose", "", "pass").replace("@dataclass(frozen=True)\n", "")
    assert_match(r"put @dataclass\(frozen=True\) above", "\n".join(broken_of(write("loose", text))))


@pytest.mark.usefixtures("without_processes")
@pytest.mark.parametrize("name", plug_ins.BROKEN_READERS)
def test_a_broken_reader_is_named(name, write, sample):
    changes, match = plug_ins.BROKEN_READERS[name]
    text = plug_ins.READER.format(**(plug_ins.GOOD_READER | changes))
    assert_match(match, "\n".join(broken_of(write(name, text), sample=sample)))


@pytest.mark.parametrize("name", plug_ins.BROKEN_GENERATORS)
def test_a_broken_generator_is_named(name, write):
    changes, match = plug_ins.BROKEN_GENERATORS[name]
    text = plug_ins.GENERATOR.format(**(plug_ins.GOOD_GENERATOR | changes))
    assert_match(match, "\n".join(broken_of(write(name, text))))


@pytest.mark.usefixtures("without_processes")
@pytest.mark.parametrize("name", plug_ins.BROKEN_TRANSFORMS)
def test_a_broken_transform_is_named(name, write):
    changes, match = plug_ins.BROKEN_TRANSFORMS[name]
    options = plug_ins.GOOD_TRANSFORM | changes
    text = plug_ins.TRANSFORM.format(name=f"mine_{name}", **options)
    assert_match(match, "\n".join(broken_of(write(name, text))))


@pytest.mark.usefixtures("without_processes")
@pytest.mark.parametrize("name", plug_ins.BROKEN_METRICS)
def test_a_broken_metric_is_named(name, write):
    returned, match = plug_ins.BROKEN_METRICS[name]
    text = plug_ins.METRIC.format(returned=returned)
    assert_match(match, "\n".join(broken_of(write(name, text))))


@pytest.mark.usefixtures("without_processes")
@pytest.mark.parametrize("name", plug_ins.BROKEN_EVALUATORS)
def test_a_broken_evaluator_is_named(name, write):
    returned, match = plug_ins.BROKEN_EVALUATORS[name]
    text = plug_ins.EVALUATOR.format(returned=returned)
    assert_match(match, "\n".join(broken_of(write(name, text))))


@pytest.mark.usefixtures("without_processes")
def test_the_verb_ends_with_1_if_a_rule_is_broken(write, capsys):
    good = write("fine", plug_ins.METRIC.format(**plug_ins.GOOD_METRIC))
    assert main(["check", good]) == 0
    assert capsys.readouterr().out == f"metric {good}: keeps all rules\n"
    bad = write("bad", plug_ins.METRIC.format(returned=plug_ins.BROKEN_METRICS["nan"][0]))
    assert main(["check", bad]) == 1
    out = capsys.readouterr().out
    assert out.startswith(f"metric {bad}: broken\n  late_jobs is NaN")


@pytest.mark.usefixtures("without_processes")
def test_options_are_passed_and_checked(write, sample, capsys):
    reader = write("reader2", plug_ins.READER.format(**plug_ins.GOOD_READER))
    assert main(["check", reader, "--sample", sample, "--option", "scale=2.0"]) == 0
    assert main(["check", reader, "--sample", sample, "--option", "scalle=2.0"]) == 2
    assert "did you mean 'scale'" in capsys.readouterr().err
    assert main(["check", reader]) == 2
    assert "give --sample FILE" in capsys.readouterr().err
    options = plug_ins.GOOD_TRANSFORM | {"factor": ""}
    text = plug_ins.TRANSFORM.format(name="mine_needs", **options).replace("factor=", "factor")
    needs = write("needs", text)
    assert main(["check", needs]) == 2
    assert "--option factor=VALUE" in capsys.readouterr().err
    assert main(["check", needs, "--option", "factor=3"]) == 0


def test_a_module_with_nothing_to_check_is_refused(write):
    with pytest.raises(sim.InputError, match="has nothing to check; a plug-in is a class"):
        check_module(write("empty", "X = 1\n"))
    with pytest.raises(sim.InputError, match="put its folder on PYTHONPATH"):
        check_module("there_is_no_such_module")


def test_the_command_finds_a_module_in_the_current_folder(tmp_path):
    (tmp_path / "mine_here.py").write_text(plug_ins.GENERATOR.format(**plug_ins.GOOD_GENERATOR))
    words = [sys.executable, "-m", "sim", "check", "mine_here"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "generator mine_here: keeps all rules\n"), ran.stderr


def assert_match(pattern, text):
    assert re.search(pattern, text), text
