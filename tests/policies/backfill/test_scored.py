"""Orders of batch jobs by scores: orders and starts worked out by hand from the formulas."""

from __future__ import annotations

import numpy as np
import pytest

from policies.backfill.scores import SCORES, Requests
from tests.policies.backfill.test_orders import rigid, starts


def order(score, jobs, now):
    """Return jobs of (name, submission, processors, request) in the order of a score."""
    submit_s, processors, run_s = (
        np.array(x, np.float64) for x in list(zip(*jobs, strict=True))[1:]
    )
    score = SCORES[score].formula(Requests(run_s, processors, submit_s, now - submit_s))
    return "".join(jobs[i][0] for i in np.argsort(score, kind="stable"))


# at 100 they have waited for 90, 80, 40 and 10 s
WAITING = [("b", 10, 1, 100), ("c", 20, 4, 40), ("d", 60, 2, 20), ("e", 90, 1, 5)]


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        ("wfp3", "cdeb"),  # (90/100)^3 · 1 = 0.729, 2^3 · 4 = 32, 2^3 · 2 = 16, 2^3 · 1 = 8
        ("unicef", "ebdc"),  # log2 is 0 of e and b, by 2 and 0.9; then 40 / 20 = 2, 80 / 80 = 1
        ("exp", "cdeb"),  # 3 of c, d and e; 190 / 100 of b
        ("saf", "edbc"),  # 5, 40, 100, 160
        ("spf", "edcb"),
    ],
)
def test_orders_by_hand(score, expected):
    assert order(score, WAITING, 100.0) == expected


# log10 of the submissions: 2, 2.00432, 2.00860, 2.04139
SUBMITTED = [("x", 100, 4, 1000), ("y", 101, 1, 10), ("v", 102, 1, 100), ("z", 110, 1, 10)]


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        # 3 · 4 + 1740 = 1752; 1 + 1743.76 = 1744.76; 2 + 1747.48 = 1749.48; 1 + 1776.01 = 1777.01
        ("f1", "yvxz"),
        # 126.5 + 51200 = 51326.5; 3.2 + 51310.6 = 51313.8; 10 + 51420.2 = 51430.2; 52262.8
        ("f2", "yxvz"),
        ("f3", "xyvz"),  # 4000 + 6860000 · 2 = 13724000, below 6860000 · 2.00432 = 13749645
        ("f4", "xyvz"),  # 1000 · 2 + 530000 · 2 = 1062000, below 10 + 530000 · 2.00432 = 1062300
    ],
)
def test_orders_of_f1_to_f4_by_hand(score, expected):
    assert order(score, SUBMITTED, 200.0) == expected


def test_starts_of_a_list_by_hand():
    """Four slots, all of a's until 100; requests decide, and c runs for 30 s of its 40."""
    jobs = [(0, 100, 100, 4), (10, 100, 100, 1), (20, 30, 40, 4), (60, 20, 20, 2), (90, 5, 5, 1)]
    plain = {"reservations": 0}
    assert starts(jobs, "scored", 4, score="wfp3", **plain).tolist() == [0, 130, 100, 130, 130]
    assert starts(jobs, "scored", 4, score="unicef", **plain).tolist() == [0, 100, 200, 100, 100]
    assert starts(jobs, "scored", 4, score="saf", **plain).tolist() == [0, 100, 200, 100, 100]
    assert starts(jobs, "fifo", 4).tolist() == [0, 100, 200, 230, 230]


def test_starts_of_f1_and_f2_by_hand():
    # y and v start at 200 by F1, and x, which wants all, at 300; by F2 x at 210, before v and z
    jobs = [(0, 200, 200, 4), *((s, r, r, n) for _, s, n, r in SUBMITTED)]
    assert starts(jobs, "scored", 4, score="f1", reservations=0).tolist() == [
        *(0, 300, 200, 200, 1300)
    ]
    assert starts(jobs, "scored", 4, score="f2", reservations=0).tolist() == [
        *(0, 210, 200, 1210, 1210)
    ]


# 4 slots: 3 until 100, 1 until 60; b wants all
TO_FILL = [(0, 100, 100, 3), (0, 60, 60, 1), (10, 25, 25, 4), (20, 40, 40, 1), (40, 10, 10, 1)]


def test_backfilling_in_the_order_of_a_score():
    """At 60 b, which has (50/25)^3 · 4 = 32, is first, and starts at 100.

    Then come d with (20/10)^3 = 8 and c with (40/40)^3 = 1: d runs from 60 to 70, and c, which
    would end at 110, after b. First come, first served c is tried before d, and ends in time.
    A list waits for b at 60; at 100 d has (60/10)^3 = 216, above b's (90/25)^3 · 4 = 187.
    """
    assert starts(TO_FILL, "easy", 4).tolist() == [0, 0, 100, 60, 125]
    assert starts(TO_FILL, "scored", 4).tolist() == [0, 0, 100, 125, 60]
    assert starts(TO_FILL, "scored", 4, reservations=0).tolist() == [0, 0, 110, 135, 100]


def test_shortest_first_backfilling_beside_a_score():
    # by F1 the queue is that of arrival here: c before d, but for order=sjf
    assert starts(TO_FILL, "scored", 4, score="f1").tolist() == [0, 0, 100, 60, 125]
    by_length = starts(TO_FILL, "scored", 4, score="f1", order="sjf")
    assert by_length.tolist() == starts(TO_FILL, "easy", 4, order="sjf").tolist()
    assert by_length.tolist() == [0, 0, 100, 125, 60]


@pytest.mark.parametrize(
    ("promote_s", "expected"),
    [
        (0, [0, 110, 100, 105]),  # by area: c, d, b
        (60, [0, 100, 150, 155]),  # b and c have waited for longer at 100
        (95, [0, 100, 150, 155]),  # b alone; at 150 c as well
        (104, [0, 105, 100, 155]),  # c starts at 100; b is due at 105, and goes before d
        (105, [0, 110, 100, 105]),
    ],
)
def test_those_that_have_waited_for_long_go_first(promote_s, expected):
    jobs = [(0, 100, 100, 1), (1, 50, 50, 1), (10, 5, 5, 1), (90, 5, 5, 1)]
    for reservations in (0, 1):
        options = {"score": "saf", "promote_s": promote_s, "reservations": reservations}
        assert starts(jobs, "scored", 1, **options).tolist() == expected


def test_a_job_is_promoted_while_nothing_happens():
    """a and b run on 3 of 4 slots; w wants all, s2 would fit beside: at 50 w is due, at 60 it ends.

    By area s2, of 30, is before w, of 40, and starts when it comes, at 55, unless w is due.
    """
    jobs = [(0, 60, 60, 3), (0, 54, 54, 1), (5, 10, 10, 4), (20, 30, 30, 1)]
    late = {"score": "saf", "reservations": 0}
    assert starts(jobs, "scored", 4, **late).tolist() == [0, 0, 84, 54]
    assert starts(jobs, "scored", 4, promote_s=45.0, **late).tolist() == [0, 0, 60, 70]


def test_first_come_first_served_equals_easy():
    # all are due at once, and shortest first is the order of backfilling alone
    for seed in range(3):
        jobs = rigid(np.random.default_rng(seed))
        for options in (
            {},
            {"order": "sjf"},
            {"knowledge": "run"},
            {"order": "sjf", "knowledge": "run"},
        ):
            ours = starts(jobs, "scored", promote_s=1e-9, **options)
            np.testing.assert_array_equal(ours, starts(jobs, "easy", **options))


def test_predictions_are_scored():
    # u's first two jobs last 2 and 4 s: its third, with 50 requested, counts for 3 s at 15
    jobs = [(0, 2, 50, 2), (0, 4, 50, 2), (5, 20, 20, 2), (6, 9, 9, 2), (7, 3, 50, 2)]
    users, options = ["u", "u", "w", "v", "u"], {"score": "spf", "reservations": 0}
    assert starts(jobs, "scored", 2, users, **options).tolist() == [0, 2, 15, 6, 35]
    options["knowledge"] = "run"
    assert starts(jobs, "scored", 2, users, **options).tolist() == [0, 2, 18, 6, 15]
