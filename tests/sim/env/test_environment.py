"""Episodes are runs: an environment's results are those of the policy that acts so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import sim
from policies.acting import Acting
from sim.check.worlds import crowd
from sim.engine import layout
from sim.env import Form, SchedulingEnv, SchedulingVectorEnv
from sim.env.observer import JOB_FEATURES, Observation
from sim.workload.workload import Workload

SLOTS = sim.Cluster.slots(16)
SMALL = Form(jobs=4, stages=6, edges=5)


def draw(seed: int) -> tuple[Workload, sim.Cluster]:
    return crowd(seed), SLOTS


def drawn_for_machines(seed: int) -> tuple[Workload, sim.Cluster]:
    return crowd(seed), sim.Cluster.machines(4, cpu=8, mem=16)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"form": SMALL, "action": "stage"},
        {"form": SMALL, "action": "stage", "limits": (1, 4)},
        {"form": Form(jobs=None, stages=None, edges=None, durations="true")},
    ],
    ids=["keys", "stage", "limits", "ragged"],
)
@pytest.mark.filterwarnings("error")
def test_gymnasiums_own_check_passes(options: dict[str, Any]) -> None:
    check_env(SchedulingEnv(draw, **options), skip_render_check=True)


@dataclass(frozen=True)
class NarrowFirst(Acting):
    """Jobs of few unfinished tasks first."""

    form = Form(jobs=5)

    def act(self, observation: Observation) -> Any:
        left = observation["jobs"][:, JOB_FEATURES.index("left")]
        return np.tanh(left / 10)


@dataclass(frozen=True)
class WidestStage(Acting):
    """The ready stage with most tasks, with at most two tasks of its job at once."""

    form = SMALL
    action = "stage"
    limits = (2, 64)

    def act(self, observation: Observation) -> Any:
        width = np.where(observation["ready"], observation["stages"][:, 0], -1)
        return int(width.argmax()), int(observation["n_jobs"][0] % 2)


@pytest.mark.parametrize("policy", [NarrowFirst(), WidestStage()], ids=["keys", "stage"])
@pytest.mark.parametrize("world", [draw, drawn_for_machines])
def test_an_episode_is_the_run_of_the_policy_that_acts_so(policy: Acting, world: Any) -> None:
    env = SchedulingEnv(world, form=policy.form, action=policy.action, limits=policy.limits)
    observed, _ = env.reset(seed=3)
    rewards, is_over = [], False
    while not is_over:
        observed, reward, is_over, *_ = env.step(policy.act(observed))
        rewards.append(reward)
    episode, run = env.result(), sim.simulate(*world(3), policy, seed=3)
    assert np.array_equal(episode.job_finish, run.job_finish)
    assert np.array_equal(episode.task_start, run.task_start)
    waited = (run.job_finish - run.job_submit).sum()
    assert -sum(rewards) == pytest.approx(waited, rel=1e-12)


def test_actions_matter() -> None:
    results = set()
    for sign in (-1, 1):
        env = SchedulingEnv(draw, form=Form(jobs=40))
        observed, _ = env.reset(seed=0)
        is_over = False
        while not is_over:
            keys = sign * np.tanh(observed["jobs"][:, 1] / 10)
            observed, _, is_over, *_ = env.step(keys)
        results.add(env.result().metrics["jct_mean_s"])
    assert len(results) == 2


def test_seeds_are_those_of_the_workloads_and_the_rest_follows_from_the_last() -> None:
    env = SchedulingEnv(draw)
    assert env.reset(seed=7)[1] == {"seed": 7}
    following = [env.reset()[1]["seed"] for _ in range(3)]
    env.reset(seed=7)
    assert [env.reset()[1]["seed"] for _ in range(3)] == following
    assert len(set(following)) == 3


def test_stages_edges_and_readiness_are_those_of_the_jobs_in_the_system() -> None:
    chain = [{"durations_s": [2.0, 2.0]}, {"durations_s": [1.0], "parents": ["stage-0"]}]
    jobs = [{"submit_s": 0.0, "stages": chain}, {"submit_s": 1.0, "stages": chain}]
    workload = sim.Workload.from_jobs(jobs)
    form = Form(jobs=3, stages=5, edges=3, durations="true")
    env = SchedulingEnv(lambda _: (workload, sim.Cluster.slots(2)), form=form, action="stage")
    first, _ = env.reset(seed=0)
    assert first["edges"].tolist() == [[0, 1], [-1, -1], [-1, -1]]
    assert first["ready"].tolist() == [1, 0, 0, 0, 0]
    second, *_ = env.step(0)
    assert second["stage_job"].tolist() == [0, 0, 1, 1, -1]
    assert second["edges"].tolist() == [[0, 1], [2, 3], [-1, -1]]
    assert second["ready"].tolist() == [0, 0, 1, 0, 0]  # both tasks of the first stage run
    third, *_ = env.step(2)
    assert third["time_s"] == [2.0]
    assert third["stage_job"].tolist() == [0, 1, 1, -1, -1]
    assert third["ready"].tolist() == [1, 1, 0, 0, 0]
    left = JOB_FEATURES.index("left_work_s")
    assert third["jobs"][:, left].tolist() == [1.0, 5.0, 0.0]


def test_jobs_beyond_the_form_go_by_submission() -> None:
    jobs = [{"submit_s": 0.0, "stages": [{"durations_s": [1.0]}]} for _ in range(5)]
    workload = sim.Workload.from_jobs(jobs)
    env = SchedulingEnv(lambda _: (workload, sim.Cluster.slots(1)), form=Form(jobs=2))
    env.reset(seed=0)
    env.step(np.array([1.0, -1.0]))
    while not env.step(np.zeros(0))[2]:
        pass
    assert np.argsort(env.result().job_start).tolist() == [1, 0, 2, 3, 4]


@pytest.mark.parametrize("fungible", [(), ("net",)])
def test_where_jobs_take_whole_machines_the_rooms_are_those_of_the_resources(
    fungible: tuple[str, ...],
) -> None:
    demand = {"cpu": 1.0, "net": 3.0}
    jobs = [
        {"submit_s": 0.0, "exclusive": True, "stages": [{"durations_s": [9.0], "demand": demand}]},
        {"submit_s": 1.0, "stages": [{"durations_s": [3.0], "demand": demand}]},
        {"submit_s": 2.0, "stages": [{"durations_s": [3.0], "demand": demand}]},
    ]
    cluster = sim.Cluster.machines(2, cpu=4, net=12, fungible=fungible)
    env = SchedulingEnv(lambda _: (sim.Workload.from_jobs(jobs), cluster))
    assert env.reset(seed=0)[0] in env.observation_space
    env.step(np.zeros(0))
    observed = env.step(np.zeros(0))[0]
    assert observed in env.observation_space
    assert observed["free"].tolist() == [0.75, 0.75]  # two of eight CPUs, six of 24 of the network


def test_a_reward_of_ones_own_is_taken() -> None:
    env = SchedulingEnv(draw, reward=lambda env: -float(env.n_jobs))
    env.reset(seed=1)
    assert env.step(np.zeros(100))[1] == -env.n_jobs


@pytest.mark.parametrize(
    ("threads", "options"),
    [(1, {}), (2, {}), (1, {"reward": lambda env: -env.elapsed_s})],
    ids=["loop", "threads", "in turn"],
)
def test_environments_side_by_side_are_those_of_one_each(
    threads: int, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "MIN_RECORDS", 1)  # records are full at many instants
    several = SchedulingVectorEnv(draw, 3, threads=threads, form=Form(jobs=6), **options)
    single = [SchedulingEnv(draw, form=Form(jobs=6), **options) for _ in range(3)]
    observed, info = several.reset(seed=5)
    expected = [env.reset(seed=5 + i)[0] for i, env in enumerate(single)]
    assert info["seed"].tolist() == [5, 6, 7]
    rng, was_over = np.random.default_rng(0), np.zeros(3, bool)
    for _ in range(150):
        actions = rng.uniform(-1, 1, (3, 6)).astype(np.float32)
        observed, rewards, is_over, *_ = several.step(actions)
        for i, env in enumerate(single):
            if was_over[i]:
                expected[i], reward, over = env.reset()[0], 0.0, False
            else:
                expected[i], reward, over, *_ = env.step(actions[i])
            assert (rewards[i], is_over[i]) == (reward, over)
            for name, values in expected[i].items():
                assert np.array_equal(observed[name][i], values), name
            if over:
                task_start = several.envs[i].result().task_start
                assert np.array_equal(task_start, env.result().task_start)
        was_over = is_over
    several.close()


def test_a_wrong_key_among_many_environments_is_refused() -> None:
    several = SchedulingVectorEnv(draw, 2, form=Form(jobs=4))
    several.reset(seed=0)
    actions = np.zeros((2, 4), np.float32)
    actions[1, 0] = 3.0
    with pytest.raises(sim.PolicyError, match=r"must be -1 to 1, not 3\.0"):
        several.step(actions)
    several.close()


def test_wrong_forms_and_actions_are_refused() -> None:
    with pytest.raises(sim.InputError, match="at least 1"):
        Form(jobs=0)
    with pytest.raises(sim.InputError, match="number of stages"):
        SchedulingEnv(draw, action="stage")
    with pytest.raises(sim.InputError, match="ascend"):
        SchedulingEnv(draw, form=SMALL, action="stage", limits=(4, 1))
    with pytest.raises(sim.InputError, match="fixed numbers"):
        SchedulingVectorEnv(draw, 2, form=Form(jobs=None))
    env = SchedulingEnv(draw)
    env.reset(seed=0)
    with pytest.raises(sim.PolicyError, match="must be -1 to 1, not nan"):
        env.step(np.full(100, np.nan))
    with pytest.raises(sim.InputError, match="has not ended"):
        env.result()
