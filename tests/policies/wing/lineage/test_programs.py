"""Programs of events: namespaces, text that varies from run to run, names that begin alike."""

from __future__ import annotations

import pytest

from policies.wing.lineage.families import MIN_FAMILY
from policies.wing.lineage.templates import VARYING, normalize, varying_patterns
from sim.base.errors import InputError
from sim.cli.main import main
from tests.policies.wing.lineage.events import (
    DAYS,
    clock,
    counts,
    daily,
    event,
    load_and_sum,
    profiled,
    run,
    scheduled,
    write,
)


def names(store):
    return sorted(store.tables["templates"]["template"].to_pylist())


def test_a_program_is_a_namespace_and_a_name(tmp_path, capsys):
    """Two teams with equal names, and equal run ids; each program is exactly daily."""
    events = []
    for day in range(DAYS):
        for space, hour in (("north", 1), ("south", 6)):
            begin, end, later = (clock(day, f"{hour:02d}:{m}") for m in ("00", "20", "50"))
            stored = f"{space}.stg"
            events += run(begin, end, f"a{day}", "etl.load", outputs=[stored], space=space)
            events += run(end, later, f"b{day}", "etl.sum", [stored], space=space)
    path = write(tmp_path / "e", events)
    store, _ = profiled(path, capsys)
    assert counts(store) == (112, 56, 4, DAYS * 100.0)
    week, _ = scheduled(path, capsys)
    assert sorted(set(week.jobs["template"].to_pylist())) == names(store)
    expected = ["north/etl.load", "north/etl.sum", "south/etl.load", "south/etl.sum"]
    assert names(store) == expected
    assert store.value("recurring", "periodic") == 1.0
    alone, _ = profiled(write(tmp_path / "n", [e for e in events if e["job"]["namespace"] ==
                                               "north"]), capsys)  # fmt: skip
    assert names(alone) == expected[:2]


def with_source(day):
    """Return a day's events with the day in the text of the SQL and of the script."""
    facets = (
        {"sql": {"query": f"call stage.load_fruit('202503{day + 1:02d}')"}},
        {"sourceCode": {"sourceCode": f"./sum.sh --day 2025-03-{day + 1:02d}"}},
    )
    events = load_and_sum(day)
    for number, e in enumerate(events):
        e["job"]["facets"] = facets[number // 2]
    return events


def test_a_day_in_the_source_is_no_difference(tmp_path, capsys):
    events = [e for day in range(DAYS) for e in with_source(day)]
    path = write(tmp_path / "e", events)
    store, _ = profiled(path, capsys)
    assert counts(store) == (56, 28, 2, 1400.0)
    week, _ = scheduled(path, capsys)
    assert week.meta["known"]["jobs of recurring programs"] == 1.0
    assert store.value("recurring", "dependencies") == 1.0
    store, _ = profiled(tmp_path / "e", capsys, "--set", "varying=", "--set", "similarity=1")
    assert len(names(store)) == 56


def test_another_source_is_another_program(tmp_path, capsys):
    facets = [
        {"sql": {"query": f"select {columns} from fruit"}} for columns in ("count(1)", "a, b, c, d")
    ]
    events = [
        e for day in range(DAYS)
        for e in run(clock(day, "01:00"), clock(day, "01:10"), f"r{day}", "query",
                     facets=facets[day % 2])
    ]  # fmt: skip
    store, _ = profiled(write(tmp_path / "e", events), capsys)
    assert names(store) == ["orchard/query", "orchard/query (2)"]


def test_numbers_of_tenants_are_no_dates_if_one_says_so(tmp_path, capsys):
    events = []
    for day in range(DAYS):
        for tenant in (100001, 100002, 200417):
            name = f"load_{tenant}_2025-03-{day + 1:02d}"
            events += run(clock(day, "01:00"), clock(day, "01:10"), f"r{day}-{tenant}", name)
    path = write(tmp_path / "e", events)
    assert names(profiled(path, capsys)[0]) == ["orchard/load_#_#"]
    for option in ("varying=uuid,digest,date", 'varying=["date", "[0-9]{8,}"]'):
        store, _ = profiled(path, capsys, "--set", option)
        assert names(store) == [f"orchard/load_{t}_#" for t in (100001, 100002, 200417)]


def test_names_that_occur_once_each_and_begin_alike_are_told(tmp_path, capsys):
    letters = "bcdfghjklmnpqrstvwxz"
    events = []
    for day in range(DAYS):
        argo = f"fruit-x{letters[day % 20]}k{day % 5 + 4}{letters[day // 5]}"
        events += run(clock(day, "01:00"), clock(day, "01:10"), f"a{day}", argo, outputs=["stg"])
        own = f"sum_of_{'abcdefghijklmnopqrstuvwxyzäö'[day] * 3}"
        events += run(clock(day, "02:00"), clock(day, "02:10"), f"b{day}", own, ["stg"])
    path = write(tmp_path / "e", events)
    store, printed = profiled(path, capsys)
    assert counts(store)[2] == 0
    begin = "names that occur once each and begin with"
    generated = f"{begin} 'orchard/fruit-'; --set varying=default,generated joins them"
    option = 'varying=["default", "(?<=^orchard/sum_of_).+"]'
    own = f"{begin} 'orchard/sum_of_'; --set '{option}' joins them"
    assert (store.report[generated], store.report[own]) == (28, 28)
    assert f"{generated}: 28" in printed
    assert len(names(profiled(path, capsys, "--set", "varying=default,generated")[0])) == 29
    store, _ = profiled(path, capsys, "--set", option)
    assert names(store)[-1] == "orchard/sum_of_#"
    assert len(names(store)) == 29


def test_few_names_that_begin_alike_are_not_told(tmp_path, capsys):
    events = [
        e for number in range(MIN_FAMILY - 1)
        for e in run(clock(0, "01:00"), clock(0, "01:10"), f"a{number}", f"ask-{'abcd'[number]}")
    ]  # fmt: skip
    store, _ = profiled(write(tmp_path / "e", [*daily(), *events]), capsys)
    assert not any("begin with" in rule for rule in store.report)


def test_templates_that_differ_in_short_numbers_are_told(tmp_path, capsys):
    events = [
        e for day in range(DAYS) for hour in (0, 6, 12, 18)
        for e in run(clock(day, f"{hour:02d}:05"), clock(day, f"{hour:02d}:10"), f"{day}-{hour}",
                     f"agg_hour={hour:02d}_ds=2025_03_{day + 1:02d}")
    ]  # fmt: skip
    path = write(tmp_path / "e", events)
    store, _ = profiled(path, capsys)
    assert counts(store)[2] == 4
    option = 'varying=["default", "[0-9]+"]'
    rule = f"templates that differ from another in short numbers alone; --set '{option}' joins"
    assert store.report[rule] == 4
    store, _ = profiled(path, capsys, "--set", option)
    assert names(store) == ["orchard/agg_hour=#_ds=#"]
    assert store.template("orchard/agg_hour=#_ds=#")["interarrival_s"] == 6 * 3600


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("varying=[a-", "varying must be names of patterns (uuid, digest,"),
        ("varying=3", "varying takes text or a list of texts, not 3"),
        ('varying=["date", 3]', "varying takes text or a list of texts"),
        ("partitions=in", "partitions must be apart or inside, not 'in'"),
    ],
)
def test_wrong_options(tmp_path, capsys, option, message):
    path = write(tmp_path / "e", daily()[:4])
    assert main(["lineage", str(path), "--out", str(tmp_path / "p"), "--set", option]) == 2
    assert message in capsys.readouterr().err


def test_patterns_by_name():
    assert varying_patterns("default") == VARYING
    assert varying_patterns(["default"]) == varying_patterns("uuid, digest,date,number")
    assert varying_patterns("") == ()
    assert normalize(["a-bcd2f x-spark"], varying_patterns("generated")) == ["a-# x-spark"]
    with pytest.raises(InputError, match="regular expressions"):
        varying_patterns("(")


def test_a_namespace_may_be_missing(tmp_path, capsys):
    events = [
        event(kind, clock(0, time), "r", "load", space="")
        for kind, time in (("START", "01:00"), ("COMPLETE", "01:10"))
    ]
    assert names(profiled(write(tmp_path / "e", events), capsys)[0]) == ["load"]
