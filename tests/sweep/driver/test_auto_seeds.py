from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from sim.base.errors import InputError
from sweep.driver import auto_seeds as seeds
from sweep.grid.request import Request
from sweep.store.folder import SweepFolder
from tests.sweep import frames
from tests.sweep.small import (
    Command,
    FakeResult,
    every_file,
    fake_engine,
    fake_simulate,
    interrupted_after,
)

GRID = ("policy=fifo,sjf", "capacity=0.5,1", "baseline=fifo", "seeds=auto")


def noisy_simulate(spread: float) -> Any:
    """Stand in for the simulator: sjf is twice as fast as fifo, times noise that seeds draw."""

    def simulate(
        workload: Any, cluster: Any, policy: Any, *, seed: int, record: str = "jobs"
    ) -> FakeResult:
        result = fake_simulate(workload, cluster, policy, seed=0)
        is_fifo = policy.name == "fifo"
        noise = np.random.default_rng([seed, is_fifo]).normal()
        result.metrics["jct_mean_s"] = (20.0 if is_fifo else 10.0) * math.exp(spread * noise)
        return result

    return simulate


def auto(command: Command, *words: str) -> Request:
    return command.request(*GRID, *words)


def table(n: int) -> Any:
    return frames.frame(policies=["fifo", "sjf"], seeds=range(n))


def test_seeds_are_added_until_intervals_are_narrow(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_engine(monkeypatch, noisy_simulate(0.06))
    ran = command(*GRID, "seeds_width=0.05")
    assert ran.code == 0
    n = len({row["seed"] for row in ran.rows})
    assert 5 < n < 30
    assert sorted({row["seed"] for row in ran.rows}) == list(range(n))
    assert f"seeds=auto: {n} seeds" in ran.err
    assert "which is narrow enough" in ran.err
    assert len(list((command.results / "sweeps").iterdir())) == 1
    config = SweepFolder(ran.folder).config()
    assert config["seeds"]["asked"] == {"metric": "jct_mean_s", "width": 0.05, "max_seeds": 30}
    assert config["seeds"]["found"]["n"] == n
    assert config["seeds"]["found"]["because"] == seeds.NARROW
    assert config["axes"]["seed"] == list(range(n))
    assert config["seeds"]["found"]["widest"] <= 0.05


def test_one_seed_if_no_seed_changes_anything(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_engine(monkeypatch, noisy_simulate(0.0), draws=False)
    ran = command(*GRID)
    assert {row["seed"] for row in ran.rows} == {0}
    assert "no seed changes anything here" in ran.err
    assert "not tested" not in ran.out
    named = command("policy=fifo,sjf", "baseline=fifo", "seed=range(0,4)")
    assert {row["seed"] for row in named.rows} == {0, 1, 2, 3}
    assert "no policy draws: seed=0 gives the same as all of these" in named.err
    assert "4 seeds (all gave the same results: one is enough)" in named.out
    planned = command("plan", "policy=fifo,sjf", "seed=range(0,4)")
    assert "seed=0 gives the same" in planned.out


def test_the_same_command_again_finds_all_cached(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_engine(monkeypatch, noisy_simulate(0.06))
    first = command(*GRID, "seeds_width=0.05")
    before = every_file(first.folder)
    again = command(*GRID, "seeds_width=0.05")
    assert again.folder == first.folder
    assert "every cell is cached" in again.err
    after = every_file(again.folder)
    assert {name for name in before if before[name] != after[name]} == {
        "cells.parquet",
        "SHA256SUMS",
    }
    # the words of its configuration repeat the request
    assert command.verb("retry", first.folder.name, "launcher=inline", "tracking=none").code == 0
    assert len(list((command.results / "sweeps").iterdir())) == 1


def test_the_budget_of_seeds_is_reported(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_engine(monkeypatch, noisy_simulate(0.5))
    words = (*GRID, "seeds_width=0.001", "seeds_max=7")
    planned = command.bare("plan", *command.words(*words)).out
    assert "20 cells, 0 cached" in planned
    assert "starts with these 5 seeds and adds more, up to 7, as needed" in planned
    ran = command(*words)
    assert ran.code == 0
    assert len({row["seed"] for row in ran.rows}) == 7
    assert "seeds_max=7 allows no more" in ran.err
    assert SweepFolder(ran.folder).config()["seeds"]["found"]["because"] == seeds.SPENT


def test_an_interrupted_sweep_ends_with_the_same_bytes(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    words = [*GRID, "seeds_width=0.05"]
    fake_engine(monkeypatch, noisy_simulate(0.06))
    words_without_paths = [word for word in command.words(*words) if not word.startswith("paths")]
    whole = command.bare(*words_without_paths, f"paths.results={tmp_path / 'whole'}")
    for n in (3, 25):
        fake_engine(monkeypatch, interrupted_after(noisy_simulate(0.06), n))
        assert command(*words).code == 130
    fake_engine(monkeypatch, noisy_simulate(0.06))
    assert every_file(command(*words).folder) == every_file(whole.folder)


def test_failed_cells_add_no_seeds(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(workload: Any, cluster: Any, policy: Any, *, seed: int, **_: Any) -> FakeResult:
        if policy.name == "sjf":
            raise RuntimeError("no")
        return fake_simulate(workload, cluster, policy, seed=seed)

    fake_engine(monkeypatch, broken)
    ran = command(*GRID)
    assert ran.code == 1
    assert len({row["seed"] for row in ran.rows}) == 5
    assert "cells failed" in ran.err


def test_without_a_baseline_the_mean_decides(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_engine(monkeypatch, noisy_simulate(0.06))
    ran = command("policy=fifo", "seeds=auto", "seeds_width=0.05")
    jct = [row["jct_mean_s"] for row in ran.rows]
    half = seeds.widest(command.request("policy=fifo", "seeds=auto"), read(ran)).half
    assert half <= 0.05
    assert half == pytest.approx(2.2 * np.std(jct, ddof=1) / len(jct) ** 0.5 / np.mean(jct), 0.3)


def read(ran: Any) -> Any:
    return SweepFolder(ran.folder).cells()


def test_next_number_of_seeds(fake: Command) -> None:
    cells = table(5)
    wide = seeds.widest(auto(fake), cells).half
    for factor, expected in ((1.01, 5), (0.95, 6), (0.8, 8), (0.1, 10)):
        request = seeds.with_seeds(auto(fake, f"seeds_width={wide * factor!r}"), 5)
        n, outcome = seeds.next_seeds(request, cells, 0)
        assert (n, outcome["n"]) == (expected, 5)
    limited = seeds.with_seeds(auto(fake, f"seeds_width={wide / 10!r}", "seeds_max=6"), 5)
    assert seeds.next_seeds(limited, cells, 0)[0] == 6
    assert seeds.next_seeds(limited, cells, 1) == (5, {**outcome, "because": seeds.FAILED})


def test_the_request_words_are_kept(fake: Command) -> None:
    request = seeds.with_seeds(auto(fake, "seeds_width=0.1"), 6)
    assert "seeds=auto" in request.words
    assert request.axes["seed"] == tuple(range(6))


def test_its_cells_can_be_run_again_and_its_folder_written_anew(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_engine(monkeypatch, noisy_simulate(0.06))
    ran = command(*GRID, "seeds_width=0.05")
    assert "5 of 5 cells are the same" in command.verb("verify").out
    whole = every_file(ran.folder)
    (ran.folder / "cells.parquet").write_bytes(b"")
    assert command.verb("show").code == 0
    assert every_file(ran.folder).keys() == whole.keys()
    assert len(SweepFolder(ran.folder).cells()) == len(ran.rows)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["seeds=auto", "seed=0,1"], "leave seed= out"),
        (["seeds=many"], "did you mean|valid"),
        (["seeds_width=0.1"], "needs seeds=auto"),
        (["seeds=auto", "seeds_width=0"], "above 0"),
        (["seeds=auto", "seeds_max=4"], "at least 5"),
        (["seeds=auto", "seeds_max=5,6"], "seeds_max=VALUE"),
        (["seeds=auto", "seeds_metric=jct_men_s"], "did you mean 'jct_mean_s'"),
        (["seeds=auto", "seeds_metric=nothing"], "seeds_metric=nothing: unknown metric 'nothing'"),
    ],
)
def test_invalid_requests_are_errors(fake: Command, words: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        fake.request("policy=fifo", *words)


def test_a_missing_metric_is_an_error(fake: Command) -> None:
    with pytest.raises(InputError, match="seeds_metric=tasks_local is no metric"):
        seeds.widest(auto(fake, "seeds_metric=tasks_local"), table(5))
