"""A table's clocks: units, time zones, daylight saving, and words for no time."""

from __future__ import annotations

from pathlib import Path

import pytest

import policies
import sim
from sim.base.errors import InputError
from sim.check.account import check_account
from tests.sim.traces.tables import read_both, read_csv, warnings_of

MS = """task,submitted,start,complete,realtime,cpus
1,1774271746328,1774271746424,1774271763229,8000,2
2,1774271763256,1774271766533,1774271799231,6000,4
"""
NAMES = {"job_id": "task", "submit_s": "submitted", "start_s": "start", "end_s": "complete"}
HEAD = "job_id,submit_s,start_s,end_s,cpus\n"


@pytest.mark.parametrize(
    ("zeros", "unit", "words"),
    [("", "ms", "milliseconds"), ("000", "us", "microseconds"), ("0" * 6, "ns", "nanoseconds")],
)
def test_digits_of_an_epoch_in_parts_of_a_second_are_noticed(tmp_path, zeros, unit, words):
    fields = [line.split(",") for line in MS.strip().split("\n")]
    rows = [[field + zeros if 1 <= i <= 4 else field for i, field in enumerate(row)]
            for row in fields[1:]]  # fmt: skip
    text = "\n".join(",".join(row) for row in [fields[0], *rows]) + "\n"
    with pytest.raises(InputError) as caught:
        read_csv(tmp_path, text, columns=NAMES)
    assert f"it looks like {words}: give trace.unit={unit}, or trace.unit=s" in str(caught.value)
    assert caught.value.rule == "implausible unit"
    w = read_both(tmp_path, text, columns=NAMES, unit=unit)
    assert w.jobs["submit_s"].to_pylist() == pytest.approx([0.0, 16.928])
    assert w.stage_duration_s.tolist() == pytest.approx([16.805, 32.698])
    check_account(w, cpu_s=164.402)
    ran = read_both(tmp_path, text, columns={**NAMES, "run_s": "realtime"}, unit=unit)
    assert ran.stage_duration_s.tolist() == [8.0, 6.0]
    assert read_csv(tmp_path, text, columns=NAMES, unit="s").n_jobs == 2


@pytest.mark.parametrize(
    ("name", "value", "after_s"),
    [
        ("start_ms", 4000, 4.0), ("startMs", 4000, 4.0), ("start_us", 4_000_000, 4.0),
        ("start (ns)", 4_000_000_000, 4.0), ("start_min", 4, 240.0), ("start_h", 0.5, 1800.0),
        ("start_seconds", 4, 4.0), ("items", 4, 4.0),
    ],
)  # fmt: skip
def test_a_column_is_in_the_unit_of_its_own_name(tmp_path, name, value, after_s):
    text = f"submit_s,{name},run_s\n0,0,60\n0,{value},60\n"
    w = read_both(tmp_path, text, columns={"start_s": name})
    assert w.jobs["recorded_start_s"].to_pylist() == [0.0, after_s]


def test_units_by_column_go_before_names_and_these_before_one_for_all(tmp_path):
    text = "submit_s,run_ms,limit_s\n2,3000,1\n"
    columns = {"run_s": "run_ms"}

    def read(**options):
        w = read_both(tmp_path, text, columns=columns, **options)
        return [*w.stage_duration_s.tolist(), *w.jobs["requested_s"].to_pylist()]

    assert read() == [3.0, 1.0]
    assert read(unit="min") == [3.0, 60.0]
    assert read(unit={"limit_s": "h", "run_s": "s"}) == [3000.0, 3600.0]
    for unit, words in [({"nodes": "s"}, "unknown column"), ({"run_s": "GiB"}, "unknown unit")]:
        with pytest.raises(InputError) as caught:
            read(unit=unit)
        assert caught.value.rule == words
    with pytest.raises(InputError, match="unit must be"):
        read(unit="weeks")


def test_run_times_in_another_unit_than_start_and_end_are_noticed(tmp_path):
    text = "submit_s,start_s,end_s,run_s\n0,0,100,{}\n0,10,260,{}\n"
    for first, second, option in [
        (100_000, 250_000, "{run_s:ms}"),
        (100 / 60, 250 / 60, "{run_s:min}"),
        (0.1, 0.25, "{submit_s:ms,start_s:ms,end_s:ms}"),
    ]:
        with pytest.raises(InputError) as caught:
            read_csv(tmp_path, text.format(first, second))
        assert f"give 'trace.unit={option}'" in str(caught.value)
    w = read_csv(tmp_path, text.format(100_000, 250_000), unit={"run_s": "s"})
    assert w.stage_duration_s.tolist() == [100_000.0, 250_000.0]
    w = read_csv(tmp_path, text.format(60, 249.5))
    assert w.stage_duration_s.tolist() == [60.0, 249.5]
    rule = "run_s shorter than from start_s to end_s: run_s counts"
    assert w.meta["report"]["noticed"] == {rule: 1}


def test_days_of_a_spreadsheet_and_decimal_commas_are_named(tmp_path):
    days = HEAD + "a,46083.375,46083.376,46083.42,2\n"
    with pytest.raises(InputError, match="look like a spreadsheet's days since 1900") as caught:
        read_csv(tmp_path, days)
    assert "save them as dates, like 2026-03-01 09:30:00" in str(caught.value)
    assert read_csv(tmp_path, days, unit="s").n_jobs == 1
    assert read_csv(tmp_path, HEAD + "a,46083.5,46083.5,99083.5,2\n").n_jobs == 1  # seconds
    commas = days.replace(",", ";").replace(".", ",")
    with pytest.raises(InputError) as caught:
        read_csv(tmp_path, commas)
    assert "a decimal comma? write 46083.375; days of a spreadsheet?" in str(caught.value)
    with pytest.raises(InputError, match=r"decimal comma\? write 1.5\)"):
        read_csv(tmp_path, "submit_s\trun_s\tcpus\n0\t60\t1,5\n")


@pytest.mark.parametrize(
    ("submit", "words"),
    [
        ("02/03/2026 09:00:00", "day or month first? write the year first"),
        ("2.3.26", "day or month first?"),
        ("2026-03-02 09:00:00 PM", "write hours from 0 to 23"),
        ("2026-03-02 09:00:00 IST", "the zone IST may mean several: write an offset, like +05:30"),
        ("2026-03-02 09:00:00 Europe/Berlin", "the zone Europe/Berlin may mean several"),
    ],
)
def test_dates_that_mean_several_are_refused_with_the_form(tmp_path, submit, words):
    with pytest.raises(InputError) as caught:
        read_both(tmp_path, f"job_id,submit_s,run_s\na,{submit},60\n")
    assert caught.value.line == 2
    assert words in str(caught.value)
    assert "it must be like 86400 or 2026-03-01 09:30:00" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("21m 20s", 1280.0), ("1h 2m", 3720.0), ("1h 2m 10s", 3730.0), ("35s", 35.0),
        ("250ms", 0.25), ("1d 2h", 93_600.0), ("1.5 hours", 5400.0), ("1 day 2:03:04", 93_784.0),
        ("0 days 00:21:20.5", 1280.5), ("2-00:00:01", 172_801.0), ("3 minutes 1 second", 181.0),
        ("90", 90.0), ("1e2", 100.0), ("27:46:40", 100_000.0),
    ],
)  # fmt: skip
def test_spans_with_units(tmp_path, text, seconds):
    w = read_both(tmp_path, f"submit_s,run_s,limit_s\n0,{text},{text}\n0,7,7\n")
    assert w.stage_duration_s.tolist() == pytest.approx([seconds, 7.0])
    assert w.jobs["requested_s"].to_pylist() == pytest.approx([seconds, 7.0])


@pytest.mark.parametrize(("text", "words"), [("21:20", "write 0:21:20"), ("2 weeks", "1h 2m")])
def test_spans_that_mean_several_are_refused(tmp_path, text, words):
    with pytest.raises(InputError) as caught:
        read_both(tmp_path, f"submit_s,run_s\n0,{text}\n")
    assert words in str(caught.value)


@pytest.mark.parametrize("word", ["-", "unknown", "Unknown", "N/A", "n/a", "NONE", "NaT", "--"])
def test_words_for_no_value_are_unknown_and_told(tmp_path, word):
    text = f"job_id,submit_s,run_s,limit_s,cpus\na,0,60,{word},{word}\nb,5,{word},9,1\nc,6,7,9,1\n"
    w = read_both(tmp_path, text)
    assert w.jobs["job_id"].to_pylist() == ["a", "c"]
    assert w.jobs["requested_s"].to_pylist() == [None, 9.0]
    report = w.meta["report"]
    assert report["dropped"] == {"run time unknown": 1}
    assert report["noticed"] == {
        f"{column} unknown: {word!r}": 1 for column in ("run_s", "limit_s", "cpus")
    }
    account = check_account(w, cpu_s=7.0, jobs=3)
    assert account["cpu_s"]["changed_by"] == {"CPUs unknown: 1": -60.0}


@pytest.mark.parametrize("limit", ["0", "0:00:00", "-1", "UNLIMITED", "", "infinite"])
def test_no_limit_is_none(tmp_path, limit):
    w = read_both(tmp_path, f"submit_s,run_s,limit_s,user\n0,60,{limit},a\n1,60,90,b\n")
    assert w.jobs["requested_s"].to_pylist() == [None, 90.0]
    assert ("limit of 0: no limit" in w.meta["report"]["noticed"]) == (limit[:1] in ("0", "-"))


def test_a_job_without_a_limit_is_never_passed_by_the_first_in_line(tmp_path):
    rows = "job_id,submit_s,run_s,cpus,limit_s\n1,0,1000,4,0\n2,10,100,8,200\n3,20,100,4,150\n"
    w = read_csv(tmp_path, rows)
    run = sim.simulate(w, sim.Cluster.slots(8), policies.build("easy"), seed=0)
    assert run.jobs["start_s"].to_pylist() == [0.0, 1000.0, 20.0]
    assert run.metrics["wait_mean_s"] == 330.0


def test_a_zone_in_one_column_and_none_in_another_is_refused_or_given(tmp_path):
    text = HEAD + (
        "a,2026-03-02 09:00:00+01:00,2026-03-02 09:00:10,2026-03-02 09:10:10,2\n"
        "b,2026-03-02 09:05:00+01:00,2026-03-02 09:15:00,2026-03-02 09:25:00,2\n"
    )
    with pytest.raises(InputError) as caught:
        read_csv(tmp_path, text)
    assert caught.value.rule == "mixed time zones"
    assert "submit_s has a time zone, and start_s has none: give trace.zone=+01:00" in str(
        caught.value
    )
    for zone in ("+01:00", "+01", "+0100", "Europe/Berlin", "CET"):
        w = read_both(tmp_path, text, zone=zone)
        assert w.jobs["recorded_start_s"].to_pylist() == [10.0, 900.0], zone
        assert not warnings_of(w)
    with pytest.raises(InputError, match="some times of submit_s have a time zone, and others"):
        read_csv(tmp_path, "submit_s,run_s\n2026-03-02T09:00Z,1\n2026-03-02T09:00,1\n")
    for zone in ("Europe/Nowhere", "Europe", "1", ""):
        with pytest.raises(InputError, match=r"it must be an offset, like \+01:00, or a name"):
            read_csv(tmp_path, text, zone=zone)


def test_parquet_timestamps_have_zones_too(tmp_path):
    import datetime as dt

    import pyarrow as pa
    import pyarrow.parquet as pq

    begin = [dt.datetime(2026, 3, 2, 9)]
    columns = {
        "submit_s": pa.array(begin, pa.timestamp("us", "UTC")),
        "start_s": pa.array(begin, pa.timestamp("ns")),
        "run_s": [60],
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    with pytest.raises(InputError, match="submit_s has a time zone, and start_s has none"):
        sim.read_trace("table", tmp_path / "t.parquet")
    w = sim.read_trace("table", tmp_path / "t.parquet", zone="-02:00")
    assert w.jobs["recorded_start_s"].to_pylist() == [7200.0]


def test_starts_whole_hours_after_all_submissions_are_told(tmp_path):
    rows = [f"{i},{100 * i},{100 * i + 7210 + 90 * (i % 3)},{100 * i + 9000},1" for i in range(5)]
    w = read_both(tmp_path, HEAD + "\n".join(rows) + "\n")
    assert (
        "Every job starts 2 h or more after its submission (the smallest wait is 7,210"
        in warnings_of(w)
    )
    waited = [row.replace("0,0,7210", "0,0,10") for row in rows]
    assert not warnings_of(read_both(tmp_path, HEAD + "\n".join(waited) + "\n"))
    early = [f"{i},{100 * i},{100 * i - 3590},{100 * i + 90},1" for i in range(5)]
    assert "before its submission, by 3,590 s" in warnings_of(
        read_both(tmp_path, HEAD + "\n".join(early))
    )


FALL = HEAD + (
    "a,2026-10-25 00:10:00,2026-10-25 00:10:00,2026-10-25 05:10:00,4\n"
    "b,2026-10-25 02:50:00,2026-10-25 02:50:00,2026-10-25 02:10:00,4\n"
    "c,2026-10-25 06:00:00,2026-10-25 06:00:00,2026-10-25 06:30:00,4\n"
)


def test_the_end_of_daylight_saving_is_explained_and_a_zone_mends_it(tmp_path):
    w = read_both(tmp_path, FALL)
    assert w.meta["report"]["dropped"] == {"ends before it starts": 1}
    assert "Jobs that end before they start: 1, the first on 2026-10-25" in warnings_of(w)
    assert "trace.zone=Europe/Berlin" in warnings_of(w)
    w = read_both(tmp_path, FALL, zone="Europe/Berlin")
    assert w.stage_duration_s.tolist() == [21_600.0, 1200.0, 1800.0]
    check_account(w, cpu_s=98_400.0, jobs=3)
    assert "at the end of daylight saving: 3." in warnings_of(w)
    spring = FALL.replace("10-25", "03-29").replace("02:50:00", "01:50:00")
    w = read_both(tmp_path, spring.replace("02:10:00", "03:10:00"), zone="Europe/Berlin")
    assert w.stage_duration_s.tolist() == [14_400.0, 1200.0, 1800.0]


def test_a_column_of_run_times_goes_before_a_changed_clock(tmp_path):
    lines = FALL.strip().split("\n")
    runs = ["run_s", "6:00:00", "0:20:00", "0:30:00"]
    text = "\n".join(f"{line},{run}" for line, run in zip(lines, runs, strict=True)) + "\n"
    w = read_both(tmp_path, text)
    assert w.stage_duration_s.tolist() == [21_600.0, 1200.0, 1800.0]
    finish = [w.jobs[f"recorded_{end}_s"].to_pylist() for end in ("start", "finish")]
    assert [b - a for a, b in zip(*finish, strict=True)] == [21_600.0, 1200.0, 1800.0]
    assert w.meta["report"]["noticed"] == {"end set to start_s + run_s, which it contradicts": 2}
    check_account(w, cpu_s=98_400.0)


def test_zones_by_name_and_offset(tmp_path):
    text = HEAD + (
        "a,2026-10-25T00:10:00+0200,2026-10-25 00:10:00 CEST,2026-10-25T05:10:00+01,4\n"
        "b,2026-10-25T02:50:00+02:00,2026-10-25T02:50:00+02:00,2026-10-25 02:10:00 CET,4\n"
    )
    w = read_both(tmp_path, text)
    assert w.stage_duration_s.tolist() == [21_600.0, 1200.0]


def test_dates_and_numbers_are_not_mixed(tmp_path):
    text = HEAD + "a,2026-03-01 09:00:00,1774271746424,1774271746424,1\n"
    with pytest.raises(InputError, match="start_s is '1774271746424'; it must be like 2026-03-01"):
        read_csv(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read_csv(tmp_path, text, on_bad_row="skip")
    assert "1 × text of another form (line 2: start_s is '1774271746424'" in str(caught.value)


def test_a_long_log_loses_no_part_of_a_second(tmp_path):
    text = HEAD + "a,1774271746.125,1774271746.125,1774271747.25,1\nb,1,1,2.0625,1\n"
    w = read_both(tmp_path, text)
    assert sorted(w.stage_duration_s.tolist()) == [1.0625, 1.125]


@pytest.mark.parametrize(
    ("run_s", "finish_s", "rule"),
    [
        (500, 510, "longer"),
        (11.5, 21.5, "longer"),
        (11, 20, ""),  # times are rounded
        (10, 20, ""),
        (9, 20, ""),
        (8.5, 20, "shorter"),
        (0, 20, "shorter"),
    ],
)
def test_a_run_time_that_contradicts_start_and_end_is_told(
    run_s: float, finish_s: float, rule: str, tmp_path: Path
) -> None:
    rows = f"a,0,10,20,{run_s},2\nb,0,10,20,10,1\n"
    w = read_both(tmp_path, f"job_id,submit_s,start_s,end_s,run_s,cpus\n{rows}")
    simulated_s = run_s or 0.5
    assert w.stage_duration_s.tolist() == [simulated_s, 10.0]
    assert w.jobs["recorded_finish_s"].to_pylist() == [finish_s, 20.0]
    account = check_account(w)["cpu_s"]
    noticed = w.meta["report"]["noticed"]
    if not rule:
        assert noticed == {}
        assert warnings_of(w) == ""
        assert account["log"] == account["workload"]
        return
    ((text, n),) = noticed.items()
    assert text.startswith(f"run_s {rule} than from start_s to end_s: run_s counts")
    assert n == 1
    counts = "1 longer, 0 shorter" if rule == "longer" else "0 longer, 1 shorter"
    assert warnings_of(w).startswith(
        "run_s contradicts start_s and end_s in 1 of 2 rows (" + counts
    )
    assert account["log"] == 30.0  # by start and end
    assert account["changed_by"][text] == 2 * (10 - run_s)


def test_a_clock_of_whole_minutes_contradicts_no_run_time_of_seconds(tmp_path: Path) -> None:
    rows = [f"{60 * n},{60 * n},{60 * n + 120},{75 + 5 * n}" for n in range(20)]
    w = read_both(tmp_path, "\n".join(["submit_s,start_s,end_s,run_s", *rows]) + "\n")
    assert w.meta["report"]["noticed"] == {}
    rows[3] = "180,180,300,181"
    w = read_both(tmp_path, "\n".join(["submit_s,start_s,end_s,run_s", *rows]) + "\n")
    ((text, n),) = w.meta["report"]["noticed"].items()
    assert (text.split(":")[0], n) == ("run_s longer than from start_s to end_s", 1)
