"""Account of a log: its work is the workload's, and what is left out and changed."""

from __future__ import annotations

import numpy as np
import pytest

from sim.base.losses import changed_share, left_out_share, sentence
from sim.base.reading import Account


def account() -> Account:
    return Account({"cpu_s": np.array([100.0, 50.0, np.nan, 850.0])})


def test_work_left_out_is_entered_under_the_first_rule_that_a_row_breaks() -> None:
    entered = account()
    dropped: dict[str, int] = {}
    late = np.array([False, True, True, False])
    valid = entered.keep({"late": late, "wide": np.array([False, True, False, True])}, dropped)
    assert valid.tolist() == [True, False, False, False]
    assert dropped == {"late": 2, "wide": 1}
    entries = entered.entries({"cpu_s": 100.0, "jobs": 1})
    assert entries["cpu_s"] == {
        "log": 1000.0,
        "workload": 100.0,
        "left_out": 900.0,
        "changed": 0.0,
        "unknown": 1,
        "left_out_by": {"late": 50.0, "wide": 850.0},
    }
    assert entries["jobs"]["left_out_by"] == {"late": 2.0, "wide": 1.0}
    assert left_out_share(entries) == pytest.approx(0.9)


def test_bad_rows_are_part_of_the_log() -> None:
    entered = account()
    entered.add_bad("wrong number of fields", {"cpu_s": np.array([1000.0, np.nan])}, 2)
    entry = entered.entries({"cpu_s": 1000.0})["cpu_s"]
    assert entry["log"] == 2000.0 == entry["workload"] + entry["left_out"]
    text = sentence("log.txt", {"cpu_s": entry}, {"wrong number of fields": "line 7: 13 fields"})
    assert text == (
        "log.txt: 50.0 % of the log's CPU time is left out: wrong number of fields (50.0 %; line "
        "7: 13 fields); 1 row more without a known amount"
    )


def test_records_of_unknown_work_are_counted() -> None:
    entered = account()
    entered.add("its end is not in the log", jobs=3)
    entered.add_unknown(3, "cpu_s", "gpu_s")
    entries = entered.entries({"cpu_s": 1000.0, "jobs": 4})
    assert entries["cpu_s"]["log"] == 1000.0
    assert [entries[kind]["unknown"] for kind in ("cpu_s", "gpu_s")] == [3, 3]
    text = sentence("a", entries, {})
    assert text == (
        "a: 3 of the log's 7 records are left out, of work that can't be read: its end is not in "
        "the log (3)"
    )


def test_work_that_an_option_leaves_out_is_told_and_not_counted_against_the_log() -> None:
    entered = account()
    entered.keep({"not completed": np.arange(4) == 3}, {}, by_option=("not completed",))
    entries = entered.entries({"cpu_s": 150.0})
    assert left_out_share(entries) == 0.0
    assert "85.0 % of the log's CPU time" in sentence("a", entries, {})


def test_wasted_work_is_left_out_and_no_fault_of_the_reading() -> None:
    entered = account()
    entered.leave_out("an earlier run", np.arange(4) == 3, wasted=True)
    entries = entered.entries({"cpu_s": 150.0})
    assert entries["cpu_s"]["wasted"] == 850.0
    assert left_out_share(entries) == pytest.approx(0.85)
    assert left_out_share(entries, with_wasted=False) == 0.0


def test_a_change_is_told_by_its_rule() -> None:
    entered = account()
    entered.change("whole CPUs a node", cpu_s=-500.0)
    entries = entered.entries({"cpu_s": 1500.0})
    entry = entries["cpu_s"]
    assert entry["log"] == entry["workload"] + entry["left_out"] + entry["changed"]
    assert changed_share(entries) == pytest.approx(0.5)
    assert sentence("a", entries, {}) == (
        "a: the reader adds 50.0 % of CPU time: whole CPUs a node"
    )


def test_records_without_work_are_counted() -> None:
    entered = Account({"cpu_s": np.array([10.0, 0.0, 0.0])})
    entered.leave_out("never started", np.array([False, True, True]))
    text = sentence("a", entered.entries({"cpu_s": 10.0, "jobs": 1}), {})
    assert text == ("a: 2 of the log's 3 records are left out, without any work: never started (2)")


def test_a_whole_log_needs_no_sentence() -> None:
    assert sentence("a", account().entries({"cpu_s": 1000.0}), {}) == ""


@pytest.mark.parametrize(("n_rows", "n_last", "is_told"), [(100, 2, False), (100, 3, True)])
def test_many_jobs_that_still_ran_at_the_end_are_told(
    n_rows: int, n_last: int, is_told: bool
) -> None:
    rows = np.arange(n_rows) >= n_rows - n_last
    entered = Account({"cpu_s": np.ones(n_rows)})
    entered.leave_out("censored", rows)
    entered.warn_of_censored("censored")
    assert bool(entered.warnings) == is_told
    if is_told:
        assert entered.warnings[0].startswith("3 of 100 jobs still ran when the log ended")


def test_one_large_job_that_still_ran_at_the_end_is_told() -> None:
    entered = Account({"cpu_s": np.append(np.ones(99), 1000.0)})
    entered.leave_out("censored", np.arange(100) == 99)
    entered.warn_of_censored("censored")
    assert "1 of 100 jobs" in entered.warnings[0]
