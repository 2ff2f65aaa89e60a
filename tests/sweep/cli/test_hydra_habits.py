from __future__ import annotations

import pytest
import yaml

import sweep
from tests.sweep.small import Command

GRID = ("policy=fifo,las", "capacity=0.5,1")


@pytest.mark.parametrize("flag", ["-m", "--multirun"])
def test_multirun_is_accepted(fake: Command, flag: str) -> None:
    planned = fake.bare(*fake.words("plan", *GRID), flag)
    assert (planned.code, "4 cells" in planned.out) == (0, True), planned.err


@pytest.mark.parametrize("words", [("--cfg", "job"), ("-c", "job", "--resolve"), ("--info",)])
def test_the_composed_configuration(fake: Command, words: tuple[str, ...]) -> None:
    shown = fake(*words, *GRID, "policy.queues=3", "baseline=fifo")
    assert shown.code == 0, shown.err
    config = yaml.safe_load(shown.out)
    assert config["axes"]["capacity"] == [0.5, 1.0]
    assert config["policy"]["las"]["params"]["queues"] == 3
    assert config["trace"]["parquet"]["path"] == str(fake.trace)
    assert config["launcher"]["kind"] == "inline"
    assert not (fake.results / "sweeps").exists()


@pytest.mark.parametrize(
    ("word", "way_out"),
    [
        ("hydra.run.dir=out", "paths.results=DIR is the folder of all output"),
        ("+hydra.sweep.dir=out", "paths.results=DIR"),
        ("hydra/launcher=joblib", "launcher=inline, local or ray"),
        ("hydra/sweeper=optuna", "search.metric=M"),
        ("hydra.verbose=true", "cells are not run by Hydra"),
        ("+policy=srpt", "write policy=srpt to replace its value, policy=A,B for an axis"),
        ("+seed=3", "write seed=3"),
        ("~policy", "policy can't be deleted; give policy=VALUE"),
        ("~launcher", "launcher can't be deleted; give launcher=VALUE"),
        ("~experiment", "give experiment=null"),
        ("--config-name=mine", "experiment=NAME names a grid"),
        ("--cfg=hydra", "invalid choice: 'hydra'"),
    ],
)
def test_what_makes_no_sense_here_names_the_way_out(fake: Command, word: str, way_out: str) -> None:
    refused = fake.bare("plan", word)
    assert refused.code == 2
    assert way_out in refused.err
    assert len(refused.err.splitlines()) == 1


def test_keys_that_an_option_lacks_are_added(fake: Command) -> None:
    assert fake("plan", "policy=las", "++policy.queues=3", "+policy.queues=3").code == 0


def test_the_version(fake: Command) -> None:
    assert fake.bare("--version").out == f"cluster-sweep {sweep.__version__}\n"


def test_the_help_on_knobs_is_that_on_transforms(fake: Command) -> None:
    assert fake.bare("--help", "knobs").out == fake.bare("--help", "transforms").out
