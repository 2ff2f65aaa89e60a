"""The adaptive sampling ratio, against Fig. 4 of the paper written out line by line."""

from __future__ import annotations

import numpy as np
import pytest

from policies.slearn.pilots import AdaptiveRatio, n_pilots


class Figure4:
    """The pseudo-code as printed, with its line numbers."""

    def __init__(self, recent):
        self.T, self.jobs, self.scores, self.seen = recent, {}, {}, 0

    def current(self):
        self.seen += 1
        if self.seen <= self.T:  # 2
            return 3
        if self.seen <= 2 * self.T:  # 4
            return 2
        if self.seen <= 3 * self.T:  # 6
            return 4
        if not self.scores:
            return 3
        sr, value = min(sorted(self.scores.items()), key=lambda item: item[1])  # 8
        if sr == 2 and 3 in self.scores and 1.1 * value < self.scores[3]:  # 9, 10
            return 1
        if sr == 4 and 3 in self.scores and self.scores[3] > 1.1 * value:  # 12, 13
            return 5
        return sr  # 15

    def completed(self, sr, jct):
        scores = self.jobs.setdefault(sr, [])
        if len(scores) > self.T:  # 21
            scores.pop(0)  # 22
        scores.append(jct)  # 23
        self.scores[sr] = sum(scores) / len(scores)  # 24


@pytest.mark.parametrize("recent", [1, 3, 10])
@pytest.mark.parametrize("seed", range(6))
def test_equals_the_figure(seed, recent):
    rng = np.random.default_rng([seed, recent])
    fast, slow = AdaptiveRatio(recent), Figure4(recent)
    better = rng.uniform(0.5, 1.5, 6)
    running, chosen = [], set()
    for _ in range(60 * recent):
        percent = fast.percent()
        assert percent == slow.current()
        chosen.add(percent)
        running.append(percent)
        while running and rng.random() < 0.5:
            done = running.pop(int(rng.integers(len(running))))
            score = float(rng.gamma(4, better[done]))
            fast.update(done, score)
            slow.completed(done, score)
    assert {2, 3, 4} <= chosen


def test_first_jobs_try_three_then_two_then_four_percent():
    ratio = AdaptiveRatio(recent=2)
    assert [ratio.percent() for _ in range(6)] == [3, 3, 2, 2, 4, 4]
    assert ratio.percent() == 3  # nothing has a score


def next_ratio(scores):
    ratio = AdaptiveRatio(recent=1)
    for _ in range(3):
        ratio.percent()
    for percent, score in scores.items():
        ratio.update(percent, score)
    return ratio.percent()


@pytest.mark.parametrize(
    ("scores", "percent"),
    [
        ({2: 1.0, 3: 1.05, 4: 2.0}, 2),
        ({2: 1.0, 3: 1.2, 4: 2.0}, 1),
        ({2: 2.0, 3: 1.2, 4: 1.0}, 5),
        ({2: 2.0, 3: 1.05, 4: 1.0}, 4),
        ({1: 0.9, 2: 1.0, 3: 1.2}, 1),
        ({2: 1.0, 4: 5.0}, 2),  # 3 % has no score: nothing to compare with
        ({4: 1.0}, 4),
        ({2: 1.0, 3: 1.0, 4: 1.0}, 2),
    ],
)
def test_least_score_goes_and_its_neighbour_is_tried(scores, percent):
    assert next_ratio(scores) == percent


def test_a_score_is_of_the_last_jobs_and_one_more():
    ratio = AdaptiveRatio(recent=2)
    for _ in range(6):
        ratio.percent()
    ratio.update(2, 10.0)
    for _ in range(4):
        ratio.update(3, 1.0)
    for score in (1.0, 1.0):
        ratio.update(2, score)
    # 2 % still holds 10, 1, 1: the list may be one longer than T; with another it drops the 10
    assert ratio.percent() == 3
    ratio.update(2, 0.9)
    assert ratio.percent() == 2


@pytest.mark.parametrize(
    ("n_tasks", "percent", "pilots"),
    [(1, 3, 1), (33, 3, 1), (100, 3, 3), (99, 3, 2), (150, 5, 7), (3, 100, 3), (50, 2, 1)],
)
def test_number_of_pilots(n_tasks, percent, pilots):
    assert n_pilots(n_tasks, percent) == pilots
