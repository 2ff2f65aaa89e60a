"""Scores of each generator of DAGs on the real sample."""

from __future__ import annotations

import numpy as np
import pytest

import sim
from policies.alibaba.synth.judge import GENERATORS, clean_dags, judge
from sim.dags import Graphs
from sim.dags.properties import PROPERTIES
from sim.published import numbers

SAMPLE = "alibaba2018/batch_task_6600_jobs.csv.gz"


@pytest.fixture(scope="module")
def real(shared_traces) -> Graphs:
    path = shared_traces / SAMPLE
    return clean_dags(sim.read_trace("alibaba2018", path, on_bad_row="skip", unfinished="keep"))


def mean_scores(
    real: Graphs, generator: str, halvings: int = 12, **options: object
) -> dict[str, float]:
    actual = [judge(real, generator, seed, **options) for seed in range(halvings)]
    return {name: float(np.mean([scores[name] for scores in actual])) for name in PROPERTIES}


@pytest.fixture(scope="module")
def scores(real) -> dict[str, dict[str, float]]:
    return {generator: mean_scores(real, generator) for generator in GENERATORS}


def test_the_sample_has_1278_clean_jobs_of_six_stages_and_more(real):
    assert real.n_jobs == 1_278
    assert real.job_n_stages.min() == 6


def test_the_ideal_generator_scores_what_it_should(scores):
    assert scores["ideal"] == pytest.approx(
        dict(numbers("alibaba")["distances"]["ideal"]), abs=0.01
    )


def test_algorithm_2_as_printed_scores_what_it_should(scores):
    printed = dict(numbers("alibaba")["distances"]["paper"])
    assert scores["paper"] == pytest.approx(printed, abs=0.025)


def test_the_improved_variant_is_near_the_ideal_generator(scores):
    for name in PROPERTIES:
        assert scores["improved"][name] <= 0.065
        assert scores["improved"][name] <= scores["ideal"][name] + 0.02


def test_it_is_near_the_ideal_generator_when_all_tables_are_of_the_half(real, scores):
    for name, off in mean_scores(real, "improved", fit="half").items():
        assert off <= min(0.065, scores["ideal"][name] + 0.02)


def test_random_dags_are_far_off(scores):
    assert min(scores["random"].values()) > 0.25
