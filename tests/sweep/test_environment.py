"""Episodes are the cells of the same words and seeds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sweep
from sim.base.errors import InputError

WORDS = (
    "trace=alibaba_synth trace.jobs=30 capacity=0.8 "
    "cluster.outages={mtbf_s:4000,repair_s:60,until_s:20000}"
)


def test_an_episode_is_the_cell_of_its_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    env = sweep.environment(WORDS)
    env.reset(seed=3)
    is_over = False
    while not is_over:
        is_over = env.step(np.zeros(0))[2]  # no keys: jobs go by submission
    inline = ("launcher=inline", "tracking=none", "seed=3", "policy=fifo")
    cells = sweep.run(*WORDS.split(), *inline).cells
    for name in ("jct_mean_s", "jct_p99_s", "makespan_s"):
        assert env.result().metrics[name] == cells[name].item()


def test_words_of_several_workloads_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="stands for 2 workloads"):
        sweep.environment("trace=alibaba_synth trace.jobs=5,6")
