"""Table of groups under a what-if: the change and its interval."""

from sweep.questions.search import waits_section

PLACE = {"policy": "p", "trace": "t", "settings": "", "capacity": 1.0}


def group(by, name, change, low=None, high=None, **more):
    row = {"by": by, "group": name, "what_if": "x", "jobs": 3, "jobs_today": 3, "seeds": 5}
    waits = {"wait_mean_today_s": 100.0, "wait_mean_s": 100.0 * (1 + change)}
    ends = {"low": None, "high": None, "change": change, "change_low": low, "change_high": high}
    return PLACE | row | waits | ends | more


def test_a_change_of_a_group_has_its_interval():
    groups = [
        group("all", "", -0.5),
        group("width", "2-3", -0.5, -0.6, -0.4),
        group("width", "16-31", 0.0, 0.0, 0.0),
        group("queue", "a", 0.25),
    ]
    section = waits_section.build([PLACE | {"what_if": "x", "change": "x", "note": ""}], groups)
    assert [tuple(row) for row in section.tables[0].rows] == [
        ("queue a", "3", "100.0 s", "125.0 s (+25 %)"),
        ("width 2-3", "3", "100.0 s", "50.00 s (−50 % [−60, −40])"),
        ("width 16-31", "3", "100.0 s", "100.0 s"),
    ]
