"""Recurring jobs: variation, load and sizes as published."""

from __future__ import annotations

import numpy as np
import pytest

import sim
from policies.slearn.recurring.fit import fit
from policies.slearn.recurring.giants import group_heaviest, group_rows, history_log_ratio
from policies.slearn.recurring.make import durations
from policies.slearn.recurring.presets import preset, preset_changes
from policies.slearn.recurring.tables import BOUNDS_S, heaviest, read_tables, write_tables
from policies.slearn.task_variation import (
    jobs_over_space,
    jobs_over_time,
    load_statistics,
    over_space,
    window_loads,
)


@pytest.fixture(scope="module", params=["2sigma", "google2011", "google2019"])
def drawn(request):
    return request.param, sim.synthesize("recurring", preset=request.param, seed=0)


def test_variation_and_load_are_near_their_targets_and_recorded(drawn):
    name, w = drawn
    tables, noted = preset(name), w.meta["target, actual"]
    load = load_statistics(window_loads(w.columns.job_submit, w.columns.job_work, 150))
    actual = [
        *np.nanquantile(jobs_over_time(w, tables.history_days * 86_400.0), [0.5, 0.9]),
        *np.nanquantile(jobs_over_space(w), [0.5, 0.9]),
        *(load[key] for key in ("load_average", "load_p50", "load_p90")),
    ]
    assert [pair[1] for pair in noted.values()] == pytest.approx(actual)
    target = [*tables.over_time, *tables.over_space, *tables.load]
    assert [pair[0] for pair in noted.values()] == target
    assert actual[2:5] == pytest.approx(target[2:5], rel=0.02)  # over space, and the load's mean
    for row, (low, high) in NEAR[name].items():
        assert low < actual[row] / target[row] < high, list(noted)[row]


NEAR = {
    "google2011": {0: (0.9, 1.05), 1: (0.98, 1.3), 5: (0.88, 1.06), 6: (0.92, 1.14)},
    "2sigma": {0: (0.67, 1.01), 1: (1.15, 1.46), 5: (0.79, 1.38), 6: (0.72, 1.19)},
    "google2019": {0: (0.49, 0.76), 1: (1.03, 1.63), 5: (0.63, 1.16), 6: (0.86, 1.7)},
}
"""Range of actual over target, of variation over time and of the load's percentiles, over 20 seeds
from 100 on. There are more targets than parameters to set (docs/slearn_workloads.md)."""
MEANS = {"google2011": (0.99, 1.1), "2sigma": (0.78, 1.35), "google2019": (0.62, 1.36)}
"""The means of the first two over these seeds."""


@pytest.mark.long
@pytest.mark.parametrize("name", MEANS)
def test_mean_variation_over_seeds_has_not_moved(name):
    drawn = [sim.synthesize("recurring", preset=name, seed=seed) for seed in range(100, 110)]
    ratios = [[b / a for a, b in w.meta["target, actual"].values()][:2] for w in drawn]
    assert np.mean(ratios, axis=0) == pytest.approx(MEANS[name], rel=0.1)
    giants = [fit(w, 150) for w in drawn]
    assert np.mean([t.together[:2] for t in giants], axis=0) == pytest.approx(
        preset(name).together[:2], abs=0.05
    )
    assert np.mean([t.unlike_user for t in giants]) == pytest.approx(-1.54, abs=0.2)


UNLIKE = {"google2011": 0.2, "2sigma": 0.3, "google2019": 0.9}


def test_the_heaviest_jobs_are_grouped_and_differ_from_their_users_past(drawn):
    name, w = drawn
    tables, fitted = preset(name), fit(w, 150)
    assert fitted.together[:2] == pytest.approx(tables.together[:2], abs=0.05)
    assert fitted.unlike_user == pytest.approx(tables.unlike_user, abs=UNLIKE[name])


def test_only_heavy_jobs_are_grouped():
    seed = 7
    rng = np.random.default_rng(seed)
    work, user = rng.lognormal(0, 2.5, 800), rng.integers(0, 9, 800)
    order = group_heaviest(work, user, (0.5, 0.8, 0.2), seed)
    assert sorted(order) == list(range(800))
    heavy = np.sort(heaviest(work))
    light = order[~np.isin(order, heavy)]
    assert (np.diff(light) > 0).all()
    group = group_rows(np.flatnonzero(np.isin(order, heavy)))
    sizes, heavy_work = np.bincount(group), work[order][np.isin(order, heavy)]
    assert (sizes > 1).sum() == round(0.2 * len(heavy))
    assert sizes[sizes > 1].sum() == round(0.5 * len(heavy))
    near = sizes[group] > 1
    assert heavy_work[near].sum() / heavy_work.sum() == pytest.approx(0.8, abs=0.05)
    few = group_heaviest(np.ones(50), np.zeros(50, int), (0.9, 0.9, 0.2), seed)
    assert sorted(few) == list(range(50))


def test_log_ratio_of_jobs_to_the_past_of_their_user():
    past, mean_s = np.array([0, 0, 1]), np.array([1.0, 3.0, 5.0])
    job_user, job_mean_s, work_s = (
        np.array([0, 1, 2]),
        np.array([2.0, 50.0, 1.0]),
        np.array([1.0, 3.0, 9.0]),
    )
    log_ratio = history_log_ratio(past, mean_s, np.ones(3), job_user, job_mean_s, work_s, 3)
    assert log_ratio == pytest.approx(0.75 * np.log(0.1))
    assert np.isnan(
        history_log_ratio(past, mean_s, np.ones(3), job_user[2:], job_mean_s[2:], work_s[2:], 3)
    )


def test_jobs_are_as_wide_and_as_large_as_published(drawn):
    name, w = drawn
    n_tasks, work = np.diff(w.columns.stage_task0), w.columns.job_work
    thin, small = n_tasks < 3, work < 1000
    assert w.n_jobs == 1250
    assert n_tasks.max() <= 150
    kinds = (thin & small, ~thin & small, thin & ~small, ~thin & ~small)
    share = [rows.mean() for rows in kinds]
    weight = [work[rows].sum() / work.sum() for rows in kinds]
    if name == "2sigma":
        assert share == pytest.approx([0.0455, 0.2873, 0.1429, 0.5243], abs=0.001)
        assert weight == pytest.approx([0.0001, 0.0006, 0.0541, 0.9452], rel=0.05)
        assert (n_tasks != 3).all()
        assert (n_tasks == 4).mean() == pytest.approx(0.3966, abs=0.01)
        return
    assert share[2] == pytest.approx(0.016, abs=0.001)
    assert weight[2] == pytest.approx(0.005, abs=0.001)
    queue = np.searchsorted(BOUNDS_S, work, side="right")
    assert np.bincount(queue) / 1250 == pytest.approx(
        [0.4325, 0.3565, 0.1775, 0.0304, 0.0032], abs=0.003
    )
    assert thin.mean() == pytest.approx(0.369, abs=0.002)
    assert n_tasks.mean() == pytest.approx(19.3, rel=0.1)
    assert work.max() / work.sum() == pytest.approx(0.142, abs=0.005)
    assert np.sort(work)[-12:].sum() / work.sum() == pytest.approx(0.499, abs=0.01)


def test_programs_have_no_past_run_one_or_more_as_often_as_fitted(drawn):
    name, w = drawn
    past = np.array(w.history["application"].to_pylist())
    n_past = np.array([(past == app).sum() for app in w.jobs["application"].to_pylist()])
    new = 1 - preset_changes()[name].get("recurring", 1 - 0.2462)
    assert (n_past == 0).mean() == pytest.approx(new, abs=0.01)
    if name != "2sigma":
        assert (n_past == 1).mean() == pytest.approx(0.0943, abs=0.01)


def test_a_drawn_workload_can_be_fitted_again(tmp_path):
    w = sim.synthesize("recurring", preset="google2011", seed=3)
    again, first = fit(w, 150), preset("google2011")
    for actual, expected in zip(again.strata, first.strata, strict=True):
        assert (actual.thin, actual.large) == (expected.thin, expected.large)
        assert actual.jobs == pytest.approx(expected.jobs, abs=0.002)
        assert np.log(np.median(actual.work_s) / np.median(expected.work_s)) == pytest.approx(
            0, abs=0.1
        )
        n = [
            np.average([n for n, _ in s.widths], weights=[k for _, k in s.widths])
            for s in (actual, expected)
        ]
        assert n[0] == pytest.approx(n[1], rel=0.25)
    assert again.history_only == pytest.approx(first.history_only, rel=0.05)
    assert again.users[1] == pytest.approx(first.users[1], abs=0.15)
    write_tables(again, tmp_path / "own.json")
    assert read_tables(tmp_path / "own.json") == again
    redrawn = sim.synthesize("recurring", tables=str(tmp_path / "own.json"), jobs=60, seed=1)
    assert redrawn.n_jobs == 60


def test_the_shipped_tables_are_those_of_the_authors_workload(shared_traces):
    w = sim.read_trace("slearn_authors", shared_traces / "slearn_authors", stretch=27.42)
    fitted, shipped = fit(w, 150), preset("google2011")
    assert fitted.strata == shipped.strata
    assert (fitted.together, fitted.unlike_user) == (shipped.together, shipped.unlike_user)
    assert fitted.provenance["input_sha256"] == shipped.provenance["input_sha256"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not JSON"),
        ('{"format": "recurring tables 3"}', "python -m sim fit WORKLOAD FILE"),
    ],
    ids=["json", "fields"],
)
def test_a_file_that_holds_no_tables_is_named(tmp_path, text, words):
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(sim.InputError, match=words):
        read_tables(tmp_path / "t.json")


def test_a_workload_without_a_history_can_not_be_fitted():
    with pytest.raises(sim.InputError, match="needs a history"):
        fit(sim.synthesize("recurring", preset="google2019", jobs=60, history=0), 150)


def test_the_history_is_of_the_past_and_known_by_the_same_features(drawn):
    name, w = drawn
    past = w.history
    assert past.num_rows == pytest.approx(2500, rel=0.15)
    submit, finish = past["submit_s"].to_numpy(), past["finish_s"].to_numpy()
    assert (submit < 0).all()
    assert (submit >= -preset(name).history_days * 86_400).all()
    assert (finish >= submit + past["mean_task_s"].to_numpy()).all()
    fewer = sim.synthesize("recurring", preset=name, jobs=60, history=77)
    assert fewer.history.num_rows == 77


def test_tasks_have_minimum_durations(drawn):
    _, w = drawn
    columns = w.columns
    assert (columns.stage_work / np.diff(columns.stage_task0) >= 1.0 - 1e-9).all()
    assert (np.array(w.history["mean_task_s"]) >= 1.0 - 1e-9).all()
    assert columns.task_duration.min() >= 0.01 * (1 - 1e-9)


def test_the_same_seed_gives_the_same_bytes():
    again = [
        sim.synthesize("recurring", preset="google2019", jobs=80, history=300, seed=s)
        for s in (1, 1, 2)
    ]
    assert again[0].digest == again[1].digest != again[2].digest


def test_variation_meets_its_targets():
    targets = {"over_time": (0.3, 0.9), "over_space": (0.1, 0.3)}
    actual = []
    for seed in range(3):
        w = sim.synthesize("recurring", preset="google2011", jobs=400, seed=seed, **targets)
        actual.append({key: pair[1] for key, pair in w.meta["target, actual"].items()})
        assert actual[-1]["over_space_p50"] == pytest.approx(0.1, rel=0.05)
        assert actual[-1]["over_space_p90"] == pytest.approx(0.3, rel=0.05)
    assert np.median([pairs["over_time_p50"] for pairs in actual]) == pytest.approx(0.3, rel=0.25)


def test_tasks_have_exactly_the_mean_and_the_variation_of_their_job():
    n = np.array([1, 2, 50, 150])
    mean, target = np.array([5.0, 7.0, 100.0, 3.0]), np.array([0.0, 0.18, 1.33, 0.04])
    first = np.concatenate([[0], np.cumsum(n)])
    task_s = durations(n, mean, target, seed=3)
    assert np.add.reduceat(task_s, first[:-1]) / n == pytest.approx(mean)
    assert over_space(task_s, first)[1:] == pytest.approx(target[1:], rel=1e-6)
    assert (task_s > 0).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"preset": "2sigmas"}, "did you mean '2sigma'"),
        ({"jobs": 10}, "whole number of at least 50"),
        ({"history": -1}, "whole number of at least 0"),
        ({"over_time": (2.0, 1.0)}, "two rising numbers"),
        ({"recurring": 1.5}, "a number from 0 to 1"),
        ({"stale": (1.5, 2.0)}, "share from 0 to 1"),
        ({"stale": (0.5, 0.0)}, "a positive mean"),
        ({"preset": "2sigma", "tables": "x"}, "a preset or tables"),
        ({"updates": 0, "hardware": 0, "inputs": 0}, "inputs must be positive"),
    ],
    ids=[
        "preset",
        "jobs",
        "history",
        "over_time",
        "recurring",
        "stale",
        "no_mean",
        "both",
        "drift",
    ],
)
def test_options_out_of_range_are_errors(options, words):
    with pytest.raises(sim.InputError, match=words):
        sim.synthesize("recurring", **options)


def test_a_workload_without_a_history_or_recurring_jobs_is_fine():
    assert sim.synthesize("recurring", preset="google2019", jobs=60, history=0).n_jobs == 60
    assert (
        sim.synthesize("recurring", preset="google2019", jobs=60, history=200, recurring=0.0).n_jobs
        == 60
    )
