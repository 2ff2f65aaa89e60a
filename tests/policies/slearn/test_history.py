"""3Sigma's predictor, against a reference that scans all records at every query."""

from __future__ import annotations

import math

import numpy as np
import pytest

import policies
import sim
from policies.slearn.history import History
from sim.workload.history import NAMES
from tests.policies.slearn import history as plain

DAY = 86_400.0
NAN = float("nan")


def workload(history, jobs=(), n_now=1, **features) -> sim.Workload:
    """Jobs at the given times (default: one at 0) with a history of (submit, finish, mean, app)."""
    listed = [
        {"submit_s": t, "stages": [{"durations_s": [1.0]}], **features} for t in jobs or [0.0]
    ]
    past = {
        "submit_s": [h[0] for h in history],
        "finish_s": [h[1] for h in history],
        "mean_task_s": [float(h[2]) for h in history],
        "n_tasks": [1] * len(history),
        "application": [h[3] for h in history],
        "user": [h[4] if len(h) > 4 else "" for h in history],
    }
    return sim.Workload.from_jobs(listed).with_history(past)


def predictor(w, statistic="median", window_days=14.0, bins=80) -> History:
    return History(w.columns.features, statistic, window_days, bins)


def statistic_of(values, statistic):
    values = np.array(values)
    if statistic == "median":
        return float(np.median(values))
    return 0.0 if (values == 0).any() else float(np.mean(values**-2.0) ** -0.5)


class Reference:
    """Reference predictor: all records (submit, finish, codes, mean, estimates)."""

    def __init__(self, statistic, window_days, unscored="last"):
        self.statistic, self.window_days = statistic, window_days
        self.unscored = {"last": math.inf, "first": -1.0, "never": NAN}[unscored]
        self.records = []

    def query(self, codes, now):
        first = math.floor(now / DAY - self.window_days)
        known = [r for r in self.records if r[1] <= now and math.floor(r[1] / DAY) >= first]
        estimates, best, best_error = [], None, math.inf
        for f, code in enumerate(codes):
            group = [r for r in known if code >= 0 and r[2][f] == code]
            if not group:
                estimates.append(NAN)
                continue
            estimates.append(statistic_of([r[3] for r in group], self.statistic))
            judged = [r for r in group if r[4] and not math.isnan(r[4][f])]
            error = self.unscored
            if judged:
                error = sum(abs(r[4][f] - r[3]) for r in judged)
                error = error / sum(r[3] for r in judged) if error else 0.0
            if not math.isnan(error) and (best is None or error < best_error - 1e-12):
                best, best_error = estimates[-1], error
        if best is None:
            best = statistic_of([r[3] for r in known], self.statistic) if known else NAN
        return estimates, best


@pytest.mark.parametrize("unscored", ["last", "first", "never"])
@pytest.mark.parametrize("statistic", ["median", "utility"])
@pytest.mark.parametrize("seed", range(3))
def test_equals_the_reference(seed, statistic, unscored):
    rng = np.random.default_rng(seed)
    window_days = float(rng.choice([1.0, 3.0, 2.5]))
    n, n_jobs = 60, 25
    submit = rng.uniform(-6 * DAY, DAY, n)
    finish = submit + rng.exponential(DAY / 2, n)
    apps, users = rng.integers(0, 4, n), rng.integers(0, 3, n)
    mean = rng.lognormal(3, 1, n) * (1 + apps)
    records = [
        (submit[i], finish[i], mean[i], f"a{apps[i]}" if apps[i] else "", f"u{users[i]}")
        for i in range(n)
    ]
    times = np.sort(rng.uniform(0, 3 * DAY, n_jobs))
    jobs = [
        {
            "submit_s": float(t),
            "stages": [{"durations_s": [1.0]}],
            "application": f"a{rng.integers(1, 6)}",
            "user": f"u{rng.integers(0, 4)}",
        }
        for t in times
    ]
    past = workload(records).history
    w = sim.Workload.from_jobs(jobs).with_history(past)
    now_codes, past_codes = w.columns.features.codes
    history = History(w.columns.features, statistic, window_days, 80, unscored=unscored)
    reference = Reference(statistic, window_days, unscored)
    ends = times + rng.exponential(DAY / 3, n_jobs)
    timeline = [(float(t), 1, j) for j, t in enumerate(times)]
    timeline += [(float(t), 0, j) for j, t in enumerate(ends)]
    timeline += [(t, 2, i) for i, t in enumerate(past["submit_s"].to_pylist())]
    estimates = {}
    for now, kind, row in sorted(timeline):
        if kind == 2:  # a job of the history arrives; its future end is recorded at once
            codes = past_codes[row].tolist()
            end, mean_s = (past[c][row].as_py() for c in ("finish_s", "mean_task_s"))
            reference.records.append([now, end, codes, mean_s, reference.query(codes, now)[0]])
        elif kind == 1:
            estimates[row], expected = reference.query(now_codes[row].tolist(), now)
            assert history.predict(row, now) == pytest.approx(expected, rel=1e-9, nan_ok=True)
        else:
            mean_s = float(rng.lognormal(3, 1))
            history.learn(row, mean_s, now)
            reference.records.append([0.0, now, now_codes[row].tolist(), mean_s, estimates[row]])


def test_only_jobs_that_ended_by_then_count():
    w = workload([(-50.0, -10.0, 4.0, "a"), (-60.0, 100.0, 40.0, "a")], application="a")
    past = predictor(w)
    assert past.predict(0, 0.0) == 4.0
    assert past.predict(0, 99.0) == 4.0
    assert past.predict(0, 100.0) == 22.0


def test_history_grows_while_jobs_end():
    w = workload([(-50.0, -10.0, 4.0, "a")], jobs=[0.0, 10.0], application="a")
    past = predictor(w)
    assert past.predict(0, 0.0) == 4.0
    past.learn(0, 8.0, 5.0)
    assert past.predict(1, 10.0) == 6.0


@pytest.mark.parametrize(("days", "expected"), [(1.0, 3.0), (3.0, 2.0), (14.0, 4.0)])
def test_window_slides_by_whole_days(days, expected):
    ended = [(-8.5, 7.0), (-2.5, 1.0), (-0.1, 3.0)]  # median of 3; 1 and 3; 7, 1 and 3 ...
    history = [(end * DAY - 1, end * DAY, mean_s, "a") for end, mean_s in ended]
    history += [(-8.6 * DAY, -8.6 * DAY, 5.0, "a")]  # ... and 5, so that the last median is 4
    w = workload(history, application="a")
    assert predictor(w, window_days=days).predict(0, 0.0) == expected


def test_the_feature_with_the_least_error_is_used():
    # the application's jobs always take the same time, the user's do not
    apps = [(-1000.0 + 100 * i, -950.0 + 100 * i, 5.0, "a", "u") for i in range(4)]
    user_jobs = [(-980.0 + 100 * i, -930.0 + 100 * i, 100.0 * i, "b", "u") for i in range(4)]
    w = workload([*apps, *user_jobs], application="a", user="u")
    assert predictor(w).predict(0, 0.0) == 5.0


@pytest.mark.parametrize("seed", range(3))
def test_points_are_the_best_of_three_by_their_last_two_hundred_errors(seed):
    rng = np.random.default_rng(seed)
    points, values, rows = plain.PointEstimators(), [], []
    assert (points.error, points.now) == (math.inf, ())
    for value in rng.lognormal(2, 1, 450).tolist():
        estimates = points.now if rng.random() < 0.9 else ()
        if estimates:
            moving = values[0]
            for later in values[1:]:
                moving = 0.6 * moving + 0.4 * later
            assert estimates == pytest.approx((np.mean(values), moving, values[0]))
            rows.append([abs(point - value) for point in estimates] + [value])
        points.add(value, estimates)
        values.append(value)
        if rows:
            errors = np.mean(rows[-200:], axis=0)[:3]
            assert points.error == pytest.approx(errors.min() / np.mean(rows, axis=0)[3])


def test_groups_ranked_by_points_and_unused_features():
    # two jobs of the application took 10 and 30, the user's first two 20 and 20
    history = [
        (-9.0, -8.0, 10.0, "a", "v"), (-7.0, -6.0, 30.0, "a", "v"),
        (-5.0, -4.0, 20.0, "b", "u"), (-3.0, -2.0, 20.0, "b", "u"),
    ]  # fmt: skip
    w = workload(history, application="a", user="u")
    rules = {"judged_by": "points", "unscored": "never"}
    assert History(w.columns.features, "mean", 14.0, 80, **rules).predict(0, 0.0) == 20.0
    only = History(w.columns.features, "mean", 14.0, 80, predictors=("application",), **rules)
    assert only.predict(0, 0.0) == 20.0
    none = History(w.columns.features, "mean", 14.0, 80, predictors=(), falls_back=False)
    assert math.isnan(none.predict(0, 0.0))


def test_records_without_times_end_before_the_next_arrives():
    never = float("nan")
    untimed = [(never, never, mean, "a", "u") for mean in (10.0, 4.0)]
    w = workload([(-5.0, -1.0, 1.0, "a", "u"), *untimed], application="a")
    history = plain.History(w.columns.features, "median", 14.0, 80)
    history.predict(0, 0.0)
    group = history._groups[0][0].since(-100)
    # the second was expected to last 10 s, and the one with times the median of 10 and 4
    assert (group.n_estimates, group.error_s) == (2, 6.0 + 6.0)


def test_without_errors_the_first_feature_goes():
    w = workload(
        [(-2.0, -1.0, 5.0, "a", "v"), (-2.0, -1.0, 9.0, "b", "u")], application="a", user="u"
    )
    assert NAMES.index("application") < NAMES.index("user")
    assert predictor(w).predict(0, 0.0) == 5.0


def test_no_feature_falls_back_on_day_and_hour_and_then_on_all_jobs():
    # 0 s is in the first hour of the first day; the history's jobs came on the last day
    w = workload([(-2.0, -1.0, 5.0, "a"), (-2.0, -1.0, 7.0, "a")])
    assert predictor(w).predict(0, 0.0) == 6.0


def test_empty_history_predicts_nothing():
    w = workload([], application="a")
    assert math.isnan(predictor(w).predict(0, 0.0))


def test_no_length_at_all():
    w = workload([(-5.0, -4.0, 0.0, "a"), (-3.0, -2.0, 0.0, "a")], application="a")
    for statistic in ("median", "utility", "mean"):
        assert predictor(w, statistic).predict(0, 0.0) == 0.0


@pytest.mark.parametrize(("learns", "error"), [("task", 1.0), ("total", 0.0)])
def test_totals_are_not_multiplied_by_the_number_of_tasks(learns, error):
    past = {
        **{"submit_s": [-9.0], "finish_s": [-1.0], "n_tasks": [10], "mean_task_s": [10.0]},
        **{"application": ["a"], "user": [""]},
    }
    job = {"submit_s": 0.0, "stages": [{"durations_s": [5.0] * 20}], "application": "a"}
    w = sim.Workload.from_jobs([job]).with_history(past)
    policy = policies.build("threesigma", learns=learns)
    r = sim.simulate(w, sim.Cluster.slots(20), policy, seed=0)
    assert r.metrics["prediction_error_p50"] == pytest.approx(error)


RULES = [
    {},
    {"unscored": "first", "predictors": ("application", "hour")},
    {"unscored": "never", "falls_back": False},
    {"judged_by": "points"},
    {"judged_by": "points", "unscored": "first"},
]


@pytest.mark.parametrize("rules", RULES, ids=str)
@pytest.mark.parametrize("statistic", ["utility", "median", "quantile", "mean"])
def test_equals_plain_python_to_the_bit(statistic, rules):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        bins, window_days = int(rng.integers(2, 12)), float(rng.choice([0.0, 1.0, 2.5]))
        n, n_jobs = 150, 60
        mean_s = np.round(rng.lognormal(3, 1, n), int(rng.integers(0, 3)))  # some are equal, or 0
        submit = rng.uniform(-5 * DAY, 2 * DAY, n)
        finish = submit + rng.exponential(DAY / 3, n)
        submit[: 20 * seed], finish[: 20 * seed] = NAN, NAN
        names = [f"a{a}" if a else "" for a in rng.integers(0, 4, n + n_jobs)]
        past = zip(submit, finish, mean_s, names, strict=False)
        times = np.sort(rng.uniform(0, 4 * DAY, n_jobs))
        jobs = [
            {"submit_s": t, "stages": [{"durations_s": [1.0]}] * 2, "application": name}
            for t, name in zip(times, names[n:], strict=True)
        ]
        w = sim.Workload.from_jobs(jobs).with_history(workload(list(past)).history)
        arguments = w.columns.features, statistic, window_days, bins
        compiled, reference = History(*arguments, **rules), plain.History(*arguments, **rules)
        events = [(t, 1, 2 * j + k) for j, t in enumerate(times) for k in range(2)]
        events += [(t + rng.exponential(DAY / 3), 0, g) for t, _, g in events]
        for now, kind, stage in sorted(events):
            if kind == 1:
                expected = reference.predict(stage, now)
                assert np.array_equal(compiled.predict(stage, now), expected, equal_nan=True)
            else:
                value = float(np.round(rng.lognormal(3, 1)))
                reference.learn(stage, value, now)
                compiled.learn(stage, value, now)
