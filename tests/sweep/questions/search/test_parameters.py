from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import sweep as api
from sim.base import interrupt
from sweep.cli import main
from sweep.questions.search import settings_section
from sweep.track import log_sweep
from tests.sweep.small import (
    Command,
    FakeResult,
    Ran,
    every_file,
    fake_engine,
    fake_simulate,
    interrupted_after,
)

SEARCH = (
    "policy=dagps",
    "policy.m=interval(0,2)",
    "policy.rp=0.5,0.8,1",
    "search.metric=jct_mean_s",
)


def bowl(spread: float = 0.02) -> Any:
    """Stand in for the simulator: dagps is best at m 1.4 and rp 0.5, each seed slows all alike."""

    def simulate(
        workload: Any, cluster: Any, policy: Any, *, seed: int, record: str = "jobs"
    ) -> FakeResult:
        result = fake_simulate(workload, cluster, policy, seed=0)
        result.metrics["jct_mean_s"] = bowl_value(policy.m, policy.rp, seed, spread)
        slow = (1 + 0.5 * policy.m) / (1 + 0.3 * (policy.m - 1.4) ** 2)
        result.metrics["jct_p99_s"] = 10 * slow * result.metrics["jct_mean_s"]
        return result

    return simulate


def bowl_value(m: float, rp: float, seed: int, spread: float = 0.02) -> float:
    luck = math.exp(0.3 * np.random.default_rng([seed, 7]).normal())
    noise = math.exp(spread * np.random.default_rng([seed, int(1e4 * m)]).normal())
    return float(100.0 * (1 + 0.3 * (m - 1.4) ** 2 + 0.2 * (rp - 0.5)) * luck * noise)


OWN = """
from dataclasses import dataclass

from policies import Policy, register


@register("own_search")
@dataclass(frozen=True)
class Own(Policy):
    m: float = 0.2
    rp: float = 0.8
"""


@pytest.mark.long
def test_a_user_policy(command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    user_folder = tmp_path / "mine"
    (user_folder / "policy").mkdir(parents=True)
    (user_folder / "policy" / "own_search.yaml").write_text(
        "name: own_search\nmodule: own_search\n"
    )
    (user_folder / "own_search.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(user_folder))
    fake_engine(monkeypatch, bowl())
    words = ("policy=own_search", "policy.m=0.5,1.4", "search.metric=jct_mean_s")
    ran = command(*words, "search.cells=60", f"--config-dir={user_folder}")
    assert ran.code == 0, ran.err
    (best,) = [row for row in settings(ran) if row["role"] == "best"]
    assert best["numbers"] == [1.4]


def settings(ran: Ran) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(ran.folder / "settings.parquet").to_pylist()
    return rows


def test_it_finds_the_best(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_engine(monkeypatch, bowl())
    ran = command(*SEARCH, "search.cells=300")
    assert ran.code == 0, ran.err
    assert 250 < len(ran.rows) <= 300
    rows = settings(ran)
    assert rows[0]["role"] == "default"
    assert {v["parameter"]: v["value"] for v in rows[0]["values"]} == {"m": "0.3", "rp": "0.8"}
    (best,) = [row for row in rows if row["role"] == "best"]
    m, rp = best["numbers"]
    assert 1.1 <= m <= 1.7
    assert rp == 0.5
    (metric,) = best["metrics"]
    own = [bowl_value(0.3, 0.8, seed) / bowl_value(m, rp, seed) for seed in range(8, 18)]
    expected = math.exp(np.mean(np.log(own)))
    assert metric["estimate"] == pytest.approx(expected)
    assert metric["low"] < expected < metric["high"]
    assert metric["pairs"] == 10
    assert metric["p_holm"] < 0.01
    # half of each batch runs on more seeds
    met = [row["seeds"] for row in rows[1:]]
    assert met.count(2) > met.count(4) > 0 < met.count(8)
    output = " ".join(ran.out.split())
    assert f"dagps: m={m:g} rp=0.5 is best: {expected:.2f}× [" in output
    assert "better in mean JCT, compared with the default (m=0.3 rp=0.8) on 10 seeds that" in output
    rounds = [line for line in ran.err.splitlines() if ", round " in line]
    assert "best so far" not in rounds[0]
    assert all("best so far dagps m=" in line for line in rounds[1:])
    shown = re.search(rf"m={m:g} rp=0.5 \(([\d.]+)× on (\d) seeds\)", rounds[-1])
    assert shown is not None
    gains = [bowl_value(0.3, 0.8, k) / bowl_value(m, rp, k) for k in range(int(shown[2]))]
    assert float(shown[1]) == pytest.approx(math.exp(np.mean(np.log(gains))), abs=0.005)
    shares = pq.read_table(ran.folder / "importance.parquet").to_pylist()
    assert {row["parameter"] for row in shares} == {"m", "rp"}
    assert max(shares, key=lambda row: row["importance"])["parameter"] == "m"
    # the tables of means show only the default and the best
    text = (ran.folder / "report.md").read_text()
    assert "dagps m=0.3 rp=0.8" in text
    assert f"dagps m={m:g} rp=0.5" in text
    assert text.count("dagps m=") < 40


@pytest.mark.long
def test_against_a_grid_on_two_policies(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """The result of a search for each of two policies is as good as the best of a fine grid."""

    def slow(name: str, x: float, other: float) -> float:
        if name == "dagps":
            return 1 + 0.3 * (x - 1.4) ** 2 + 0.2 * (other - 0.5) ** 2
        return 1 + 0.05 * abs(x - 7) + 0.2 * abs(math.log(other / 10))

    def simulate(workload: Any, cluster: Any, policy: Any, *, seed: int, **_: Any) -> FakeResult:
        result = fake_simulate(workload, cluster, policy, seed=0)
        point = (policy.m, policy.rp) if policy.name == "dagps" else (policy.queues, policy.growth)
        noise = np.random.default_rng([seed, *(int(1000 * x) for x in point)]).normal()
        luck = math.exp(0.3 * np.random.default_rng(seed).normal())
        result.metrics["jct_mean_s"] = 100 * luck * slow(policy.name, *point) * (1 + 0.005 * noise)
        return result

    fake_engine(monkeypatch, simulate)
    space = ["policy.m=interval(0,2)", "policy.rp=interval(0,1)"]
    space += ["policy.queues=interval(2,20)", "policy.growth=tag(log,interval(1.5,40))"]
    ran = command("policy=dagps,las", *space, SEARCH[-1], "search.cells=640")
    assert ran.code == 0, ran.err
    grids = {
        "dagps": [(m, rp) for m in np.linspace(0, 2, 41) for rp in np.linspace(0, 1, 21)],
        "las": [(q, g) for q in range(2, 21) for g in np.geomspace(1.5, 40, 41)],
    }
    for policy, points in grids.items():
        exact = [slow(policy, *point) for point in points]
        (best,) = (r for r in settings(ran) if (r["policy"], r["role"]) == (policy, "best"))
        section = slow(policy, *best["numbers"])
        # within a tenth of the way from the grid's best to what half of its points reach
        assert section <= min(exact) + 0.1 * (float(np.median(exact)) - min(exact))
        (default,) = (r for r in settings(ran) if (r["policy"], r["role"]) == (policy, "default"))
        gain = slow(policy, *default["numbers"]) / section
        (tested,) = best["metrics"]
        assert tested["low"] <= gain <= tested["high"]
        assert tested["pairs"] == 10
        assert f"{policy}, parquet, capacity 1: " in ran.out
    seeds = {row["seed"] for row in ran.rows}
    assert seeds == set(range(18))
    per_policy = [sum(row["policy"] == policy for row in ran.rows) for policy in grids]
    assert max(per_policy) <= 320
    assert all(
        row["numbers"][0] == int(row["numbers"][0])
        for row in settings(ran)
        if row["policy"] == "las"
    )


@pytest.mark.long
def test_the_front_of_two_metrics(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_engine(monkeypatch, bowl())
    words = [*SEARCH[:3], "search.metric=jct_mean_s,jct_p99_s", "search.cells=200"]
    ran = command(*words, "search.seeds=4", "search.test_seeds=5")
    assert ran.code == 0, ran.err
    rows = settings(ran)
    front = [row for row in rows if row["role"] == "front"]
    means = np.array([[m["gain"] for m in row["metrics"]] for row in front])
    assert len(front) > 2
    # none of them is better in both
    for mean in means:
        assert not ((means >= mean).all(axis=1) & (means > mean).any(axis=1)).any()
    assert "the Pareto front of jct_mean_s and jct_p99_s has" in ran.out
    assert 1 <= sum(row["metrics"][0]["pairs"] > 0 for row in front) <= 3
    html = (ran.folder / "report.html").read_text()
    assert "dagps: Pareto front" in html
    assert "dagps: importance of parameters" in html
    assert "dagps: settings tried" in html


def test_parallel_coordinates_have_tick_labels(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_engine(monkeypatch, bowl())
    ran = command(*SEARCH, "search.cells=100", "search.seeds=4", "search.test_seeds=5")
    tables = [pq.read_table(ran.folder / f"{name}.parquet") for name in ("settings", "importance")]
    goal = api.load(ran.folder).config["goal"]
    section = settings_section.build(*tables, {"goal": goal})
    lines, mattered = section.plots
    assert mattered.caption == "dagps: importance of parameters"
    assert lines.figure["layout"]["xaxis"]["ticktext"] == ["m", "rp", "mean JCT"]
    beside = [(note["x"], note["text"]) for note in lines.figure["layout"]["annotations"]]
    assert [text for x, text in beside if x == 1] == ["0.5", "0.8", "1"]
    best, worst, middle = (note for note in beside if note[0] == 2)
    assert float(best[1]) < float(middle[1]) < float(worst[1])
    heights = {note["text"]: note["y"] for note in lines.figure["layout"]["annotations"]}
    assert heights[best[1]] == 1.0  # the shortest time is at the top
    (default,) = (trace for trace in lines.figure["data"] if trace["name"] == "default")
    assert len(default["x"]) == len(default["y"]) == len(default["text"]) == 4
    assert api.load(ran.folder).verdict[0]["answer"] == list(section.sentences)


def test_one_parameter_is_drawn_against_the_metric(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_engine(monkeypatch, bowl())
    ran = command(*SEARCH[:2], SEARCH[-1], "search.cells=60")
    tables = [pq.read_table(ran.folder / f"{name}.parquet") for name in ("settings", "importance")]
    section = settings_section.build(*tables, {"goal": api.load(ran.folder).config["goal"]})
    (plot,) = section.plots
    assert plot.figure["layout"]["xaxis"]["title"]["text"] == "m"
    assert sum(len(trace["x"]) for trace in plot.figure["data"]) == tables[0].num_rows


def test_the_same_command_again_runs_nothing(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_engine(monkeypatch, bowl())
    words = (*SEARCH, "search.cells=100", "search.seeds=4", "search.test_seeds=5")
    first = command(*words)
    before = every_file(first.folder)
    again = command(*words)
    assert again.folder == first.folder
    assert "every cell is cached" in again.err
    after = every_file(again.folder)
    assert {name for name in before if before[name] != after[name]} == {
        "cells.parquet",
        "SHA256SUMS",
    }
    assert "5 of 5 cells are the same" in command.verb("verify").out
    planned = command.bare("plan", *command.words(*words))
    assert "12 cells, 12 cached, 0 to run" in planned.out


@pytest.mark.long
def test_an_interrupted_search_ends_with_the_same_bytes(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    words = [*SEARCH, "search.cells=100", "search.seeds=4", "search.test_seeds=5"]
    fake_engine(monkeypatch, bowl())
    words_without_paths = [word for word in command.words(*words) if not word.startswith("paths")]
    whole = command.bare(*words_without_paths, f"paths.results={tmp_path / 'whole'}")
    for n in (7, 40):
        fake_engine(monkeypatch, interrupted_after(bowl(), n))
        assert command(*words).code == interrupt.INTERRUPTED
    fake_engine(monkeypatch, bowl())
    assert every_file(command(*words).folder) == every_file(whole.folder)


def test_a_best_default_is_reported(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def simulate(workload: Any, cluster: Any, policy: Any, *, seed: int, **_: Any) -> FakeResult:
        result = fake_simulate(workload, cluster, policy, seed=0)
        result.metrics["jct_mean_s"] = 100.0 + abs(policy.m - 0.3) + seed
        return result

    fake_engine(monkeypatch, simulate)
    ran = command("policy=dagps", "policy.m=0,0.3,0.4,1", "search.metric=jct_mean_s")
    assert "none of the 3 settings tried is better than the default (m=0.3)" in ran.out
    assert [row["role"] for row in settings(ran)] == ["default", "", "", ""]


@pytest.mark.parametrize("metrics", ["jct_mean_s", "jct_mean_s,value_attained"])
def test_parameters_without_effect_are_reported(
    command: Command, monkeypatch: pytest.MonkeyPatch, metrics: str
) -> None:
    def simulate(workload: Any, cluster: Any, policy: Any, *, seed: int, **_: Any) -> FakeResult:
        result = fake_simulate(workload, cluster, policy, seed=seed)
        result.metrics["value_attained"] = 0.5
        return result

    fake_engine(monkeypatch, simulate)
    ran = command(*SEARCH[:3], f"search.metric={metrics}", "search.cells=110")
    assert ran.code == 0, ran.err
    assert "settings were tried, and make no difference here." in ran.out
    assert {row["role"] for row in settings(ran)} == {"default", ""}


def test_a_run_of_mlflow_is_a_setting(command: Command) -> None:
    request = command.request(*SEARCH)
    assert log_sweep._requested_granularity(request.settings, {"goal": {"space": {}}}) == "policy"
    assert log_sweep._requested_granularity(request.settings, {"goal": {"bound": 1}}) is None
    assert log_sweep._requested_granularity(request.settings, {}) is None
    named = command.request(*SEARCH, "+tracking.granularity=cell")
    assert log_sweep._requested_granularity(named.settings, {"goal": {"space": {}}}) == "cell"


def test_settings_that_fail_lose(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(workload: Any, cluster: Any, policy: Any, **options: Any) -> FakeResult:
        if policy.m > 1:
            raise RuntimeError("no")
        return bowl()(workload, cluster, policy, **options)  # type: ignore[no-any-return]

    fake_engine(monkeypatch, broken)
    ran = command(*SEARCH, "search.cells=120")
    assert ran.code == 1
    (best,) = [row for row in settings(ran) if row["role"] == "best"]
    assert 0.7 < best["numbers"][0] <= 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["policy.bundle=interval(1.5,3)"], "whole number"),
        (["policy.m=interval(-1,2)"], "policy dagps: m must be"),
        (["policy.n=interval(0,2)"], "did you mean 'policy.m'"),
        (["policy.fit=pack,pach"], "policy dagps: fit must be"),
        (["policy.m=interval(0,2)", "search.cells=41"], "need 60 at least"),
        (
            ["policy.m=interval(0,2)", "capacity=0.5,1", "search.cells=100"],
            "2 searches .* need 120",
        ),
        (["policy.m=interval(0,2)", "policy=fifo,dagps"], "policy=fifo has none of policy.m"),
    ],
)
def test_invalid_searches_are_errors(fake: Command, words: list[str], message: str) -> None:
    policy_words = [
        word for word in ("policy=dagps",) if not any(w.startswith("policy=") for w in words)
    ]
    ran = fake(*policy_words, *words, "search.metric=jct_mean_s")
    assert ran.code == main.WRONG
    import re

    assert re.search(message, ran.err), ran.err


def test_metrics_without_a_value(fake: Command) -> None:
    ran = fake(*SEARCH[:2], "search.metric=deadlines_missed", "search.cells=60")
    assert ran.code == main.WRONG
    assert "search.metric=deadlines_missed has no value for dagps on parquet" in ran.err
