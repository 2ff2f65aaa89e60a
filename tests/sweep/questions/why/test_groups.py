"""The group on which a loss falls: by hand, and against a slow reading of its rule."""

from __future__ import annotations

import numpy as np
import pytest

from sweep.questions.why.groups import Facts, Group, concentrated, concentrated_by_fact


def facts(
    n_tasks: list[int], user: list[str] | None = None, submit_s: list[float] | None = None
) -> Facts:
    n = len(n_tasks)
    return Facts(
        np.array(n_tasks, np.float64),
        np.full(n, 7.0),
        np.zeros(n) if submit_s is None else np.array(submit_s),
        user or [""] * n,
        ["q"] * n,
    )


def test_wide_jobs_that_make_the_loss() -> None:
    group = concentrated(
        facts([1, 2, 3, 600, 700, 4, 5, 6]), np.array([1, 0, 0, 50, 49, 0, 0, 0.0])
    )
    assert group is not None
    assert (group.by, group.words, group.n_jobs) == ("tasks", "of 500 tasks or more", 2)
    assert group.share == 0.99


def test_a_user_whose_jobs_differ_in_nothing_else() -> None:
    users = ["ann", "bob", "ann", "bob", "eve", "eve"]
    group = concentrated(facts([3] * 6, users), np.array([0.0, 8.0, 0.0, 9.0, 1.0, 0.0]))
    assert group is not None
    assert (group.words, group.n_jobs) == ("of user bob", 2)
    assert group.share == pytest.approx(17 / 18)


def test_a_period_in_which_they_were_submitted() -> None:
    submit_s = [0.0, 10.0, 41.0, 42.0, 43.0, 70.0, 80.0, 100.0, 55.0]
    loss_s = np.array([0.0, 0.0, 5.0, 5.0, 5.0, 0.1, 0.0, 0.0, 0.0])
    group = concentrated(facts([2] * 9, None, submit_s), loss_s)
    assert group is not None
    assert (group.words, group.n_jobs) == ("submitted from 40 to 50 s", 3)


def test_a_user_of_a_third_of_the_jobs() -> None:
    users = ["ann"] * 4 + ["bob"] * 6
    loss_s = np.array([20.0, 20.0, 20.0, 20.0, *[3.3] * 6])
    group = concentrated(facts([3] * 10, users, [float(k * 7 % 10) for k in range(10)]), loss_s)
    assert group is not None
    assert (group.words, group.n_jobs) == ("of user ann", 4)
    assert group.share == pytest.approx(80 / 99.8)


def test_a_spread_loss_is_nobodys() -> None:
    assert concentrated(facts([2] * 9), np.ones(9)) is None
    assert concentrated(facts([2] * 9), np.zeros(9)) is None
    assert concentrated_by_fact(facts([2] * 9), np.ones(9)) == []


def test_groups_equal_a_slow_reading_of_the_rule() -> None:
    rng = np.random.default_rng(3)
    kinds = set()
    for _ in range(40):
        n = int(rng.integers(1, 30))
        jobs = Facts(
            rng.choice([1, 3, 20, 70, 500], n).astype(np.float64),
            rng.choice([0.0, 0.3, 8.0, 900.0], n),
            np.sort(rng.choice([0.0, 1.0, 5.5, 7.0, 9.0, 10.0], n)),
            rng.choice(["ann", "bob", "eve", ""], n).tolist(),
            rng.choice(["a", "b"], n).tolist(),
        )
        loss_s = rng.choice([0.0, 0.0, 1.0, 30.0], n)
        group, expected = concentrated(jobs, loss_s), slow(jobs, loss_s.tolist())
        if expected is None:
            assert group is None
            continue
        assert isinstance(group, Group)
        assert (group.by, group.n_jobs) == (expected[0], len(expected[1]))
        assert np.flatnonzero(group.rows).tolist() == expected[1]
        assert group.share == pytest.approx(sum(loss_s[expected[1]]) / sum(loss_s))
        kinds.add(group.by)
    assert len(kinds) >= 4


def slow(jobs: Facts, loss_s: list[float]) -> tuple[str, list[int]] | None:
    n = len(loss_s)
    groups: list[tuple[str, list[int]]] = []
    for by, column in (("tasks", jobs.n_tasks), ("work", jobs.work_s)):
        values = column.tolist()
        bounds = []
        for power in range(-3, 5):
            for step in (1, 2, 5):
                bound = float(f"{step}e{power}")
                if min((v for v in values if v), default=0) <= bound <= max(values):
                    bounds.append(bound)
        down = sorted(bounds, reverse=True)
        groups += [(by, [k for k in range(n) if values[k] >= bound]) for bound in down]
        groups += [(by, [k for k in range(n) if values[k] <= bound]) for bound in down[::-1]]
    for by, texts in (("user", jobs.user), ("queue", jobs.queue)):
        named = sorted({*texts} - {""})
        groups += [(by, [k for k in range(n) if texts[k] == name]) for name in named]
    low, high = min(jobs.submit_s), max(jobs.submit_s)
    if high > low:
        part = [min(int((s - low) / (high - low) * 10), 9) for s in jobs.submit_s.tolist()]
        spans = sorted((b - a, a, b) for a in range(10) for b in range(a, 10))
        members = [[k for k in range(n) if a <= part[k] <= b] for _, a, b in spans]
        groups += [("submission", rows) for rows in members]
    if not sum(loss_s):
        return None
    best = None
    for by, rows in groups:
        share, part = sum(loss_s[k] for k in rows) / sum(loss_s), len(rows) / n
        if rows and share >= 0.5 and (part <= 0.5 or len(rows) == 1) and share - part >= 0.2 - 1e-9:
            rank = round(share - part, 9), -len(rows)
            if best is None or rank > best[0]:
                best = rank, by, rows
    return None if best is None else best[1:]
