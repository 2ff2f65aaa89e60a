"""Changes of what-ifs, from words to a cell's configurations."""

from __future__ import annotations

from typing import Any

import pytest

from sim.base.errors import InputError
from sim.cluster.limit_names import in_hierarchy
from sweep.grid import what_ifs
from sweep.grid.changes import CHANGES, times
from sweep.grid.grid import Cell
from tests.sweep.grid.test_planner import LOG, cells

KINDS = (
    "cluster.shape=[{class:c-ib,count:2,cpu:16,partitions:[batch*,long]},"
    "{class:c,count:1,cpu:16,partitions:[batch*]},"
    "{class:g,count:2,cpu:32,devices:{gpu:4},partitions:[gpu]},"
    "{class:g,count:1,cpu:32,devices:{gpu:4},partitions:[gpu,debug]}]"
)
LIMITS = (
    "cluster.limits=["
    "{of:cpu,by:[user],at_most:96,name:'QOS normal, maxtrespu',where:{qos:normal}},"
    "{of:gpu,by:[user],at_most:6,name:'QOS normal, maxtrespu',where:{qos:normal}},"
    "{of:gpu,by:[user],at_most:6,name:'QOS normal, maxtrespu, of partition gpu',where:{queue:gpu}},"
    "{of:running_jobs,by:[user],at_most:3,where:{qos:high}},"
    "{of:cpu,by:[account],at_most:{chem:128},name:'associations of accounts'}]"
)
RULES = "cluster.partitions={long:{tier:1,max_time_s:3600,default_time_s:3000},batch:{tier:2}}"
SITE = (
    "policy=backfill/slurm", "trace=parquet", "trace.path=.", "cluster=machines",
    "cluster.count=1", KINDS, LIMITS, RULES, "cluster.accounts={sub:ml,subsub:sub}",
)  # fmt: skip


def changed(word: str, *more: str) -> Cell:
    today, cell = cells(*SITE, *more, word)
    assert "after" not in today.trace
    return cell


def test_every_change_has_its_functions_and_says_itself() -> None:
    for name in CHANGES.names():
        module = CHANGES.module(name)
        assert all(callable(getattr(module, entry)) for entry in ("check", "apply", "phrase"))


@pytest.mark.parametrize(
    ("word", "phrase"),
    [
        ("what_if.load=1.3", "1.3 times the jobs"),
        ("what_if.load=account=ml:2", "twice the jobs of account ml"),
        ("what_if.nodes=g:+4", "4 more machines of g"),
        ("what_if.nodes=-1", "1 fewer machine"),
        ("what_if.faster=1.5", "1.5 times as fast machines"),
        ("what_if.without_queue=[a,b]", "no jobs of queues a, b"),
        ("what_if.add=cosmos", "the jobs of cosmos, too"),
        ("what_if.limit=long:0.5", "half the time limit of long"),
        ("what_if.qos=normal:MaxTRESPU=none", "QOS normal without MaxTRESPU"),
        ("what_if.qos=high:maxjobsperuser=x2", "twice the MaxJobsPU of QOS high"),
        ("what_if.qos=high:MaxJobsPU=8", "QOS high with MaxJobsPU=8"),
        ("what_if.policy.interval_s=60", "policy.interval_s=60"),
        ("what_if.cluster.partitions.long.tier=9", "cluster.partitions.long.tier=9"),
    ],
)
def test_a_change_in_words(word: str, phrase: str) -> None:
    (change,) = what_ifs.changes(changed(word).labels)
    assert change.module.phrase(change) == phrase


def test_changes_together_are_made_one_after_another() -> None:
    words = ("what_if.limit=long:0.5", "what_if.load=account=ml:2", "what_if.policy.interval_s=60")
    planned = cells(*SITE, *words, "what_if.together=true")
    assert len(planned) == 8
    every = max(planned, key=lambda cell: len(what_ifs.changes(cell.labels)))
    names = [name for entry in every.trace["after"] for name in entry]
    assert names == ["change_load", "limit_time"]
    assert every.policy["params"]["interval_s"] == 60
    words_of_all = "limit=long:0.5 load=account=ml:2 policy.interval_s=60"
    assert what_ifs.words(every.labels) == words_of_all


def test_a_limit_is_a_rule_and_what_jobs_ask_for() -> None:
    cell = changed("what_if.limit=long:0.5")
    assert cell.cluster["partitions"]["long"] == {
        "tier": 1, "max_time_s": 1800, "default_time_s": 1800,
    }  # fmt: skip
    (transform,) = cell.trace["after"]
    assert transform["limit_time"] == {
        "by": "partition", "changed": "long", "limits_s": {"long": 1800, "batch": None},
        "was_s": 3600, "default": "batch",
    }  # fmt: skip
    longer = changed("what_if.limit=long:2").cluster["partitions"]["long"]
    assert (longer["max_time_s"], longer["default_time_s"]) == (7200, 3000)


def test_without_limits_of_partitions_it_is_the_queue_of_a_log() -> None:
    (cell,) = cells(*LOG, "what_if.limit=wide:0.5", "what_if.today=false")
    assert cell.cluster["partitions"] is None
    options = {"by": "queue", "changed": "wide", "factor": 0.5}
    assert cell.trace["after"] == [{"limit_time": options}]
    (change,) = what_ifs.changes(cell.labels)
    done = {"limit_time": "wide", "jobs": 9, "asked_for_more": 4, "ran_longer": 0}
    by_rule = change.module.note(change, cell.cluster, [done])
    assert "4 of 9 jobs of wide asked for more than the new limit, and would be rejected" in by_rule
    by_log = change.module.note(change, cell.cluster, [{**done, "limit_s": 3600.0}])
    assert "than the new limit, 3,600 s; here they ask for it" in by_log


def test_the_jobs_of_a_group_and_of_accounts_below() -> None:
    (transform,) = changed("what_if.load=account=ml:2").trace["after"]
    assert transform["change_load"]["where"] == {"account": ["ml", "sub", "subsub"]}
    (transform,) = changed("what_if.load=user=a:b:0.5").trace["after"]
    assert transform["change_load"]["where"] == {"user": ["a:b"]}
    assert transform["change_load"]["load"] == 0.5


def amounts(cell: Cell) -> list[Any]:
    return [(row["of"], row["at_most"], row.get("where")) for row in cell.cluster["limits"]]


NORMAL, GPU, HIGH = {"qos": "normal"}, {"queue": "gpu"}, {"qos": "high"}
CHEM = ("cpu", {"chem": 128}, None)


@pytest.mark.parametrize(
    ("value", "rows"),
    [
        ("normal:MaxTRESPU=none", [("running_jobs", 3, HIGH), CHEM]),
        (
            "normal:MaxTRESPU=x2",
            [("running_jobs", 3, HIGH), CHEM, ("cpu", 192, NORMAL), ("gpu", 12, NORMAL),
             ("gpu", 12, GPU)],
        ),
        (
            "normal:MaxTRESPU=gres/gpu=2",
            [("running_jobs", 3, HIGH), CHEM, ("cpu", 96, NORMAL), ("gpu", 2, NORMAL),
             ("gpu", 2, GPU)],
        ),
        (
            "normal:MaxTRESPU=cpu=none",
            [("running_jobs", 3, HIGH), CHEM, ("gpu", 6, NORMAL), ("gpu", 6, GPU)],
        ),
        ("high:MaxJobsPU=8", [("cpu", 96, NORMAL), ("gpu", 6, NORMAL), ("gpu", 6, GPU), CHEM,
                              ("running_jobs", 8, HIGH)]),
        ("high:GrpTRES=cpu=32", [("cpu", 96, NORMAL), ("gpu", 6, NORMAL), ("gpu", 6, GPU),
                                 ("running_jobs", 3, HIGH), CHEM, ("cpu", 32, HIGH)]),
    ],
)  # fmt: skip
def test_limits_of_a_qos_in_slurms_names(value: str, rows: list[Any]) -> None:
    assert amounts(changed(f"what_if.qos={value}")) == rows


def test_several_resources_at_once() -> None:
    cell = changed("what_if.qos='normal:MaxTRESPU=cpu=8,gres/gpu=1'")
    assert [row[:2] for row in amounts(cell)[2:]] == [
        ("cpu", 8),
        ("gpu", 1),
        ("cpu", 8),
        ("gpu", 1),
    ]


def test_the_time_of_a_qos_is_what_its_jobs_ask_for() -> None:
    (transform,) = changed("what_if.qos=normal:MaxWall=12:00:00").trace["after"]
    assert transform["limit_time"] == {
        "by": "qos", "changed": "normal", "limits_s": {"normal": 43200.0},
    }  # fmt: skip


def test_policies_without_the_parameter_are_left_out() -> None:
    words = ("policy=backfill/slurm,fifo", *SITE[1:], "what_if.policy.interval_s=60,90")
    labels: dict[str, list[str]] = {}
    for cell in cells(*words):
        labels.setdefault(cell.labels["policy"], []).append(what_ifs.words(cell.labels))
    assert labels == {
        "backfill/slurm": ["", "policy.interval_s=60", "policy.interval_s=90"],
        "fifo": [""],
    }


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("what_if.limit=long", "give a partition and a factor"),
        ("what_if.limit=long:-1", "give a partition and a factor"),
        ("what_if.limit=lon:0.5", "unknown partition with a time limit 'lon'; did you mean 'long'"),
        ("what_if.limit=batch:0.5", "valid: long"),
        ("what_if.load=colour=ml:2", "with one of user, account, queue, partition, qos"),
        ("what_if.load=user=ml:x", "x is no factor"),
        ("what_if.load=user=ml:0", "must be a number above 0"),
        ("what_if.qos=normal", "give QOS:LIMIT=VALUE"),
        ("what_if.qos=normal:MaxTRES=none", "unknown limit of a QOS 'MaxTRES'; did you mean"),
        ("what_if.qos=normla:MaxTRESPU=none", "it has high:MaxJobsPU, normal:MaxTRESPU$"),
        ("what_if.qos=low:MaxJobsPU=3", "QOS that are known: high, normal"),
        ("what_if.qos=high:MaxJobsPU=some", "give a number of jobs"),
        ("what_if.qos=normal:MaxTRESPU=disk=3", "give none, x2, or amounts of cpu"),
        ("what_if.qos=normal:MaxWall=none", "lifting it changes nothing"),
        ("what_if.policy.intervall_s=60", "did you mean 'policy.interval_s'"),
        ("what_if.cluster.partitions.long.teir=2", "unknown key 'teir'"),
        ("what_if.policy=60", "unknown key 'what_if.policy'"),
        ("what_if.load.user=2", "unknown key 'what_if.load.user'"),
    ],
)
def test_wrong_changes_say_what_is_right(word: str, message: str) -> None:
    with pytest.raises(InputError, match=message.removesuffix("$")) as error:
        cells(*SITE, word)
    assert not message.endswith("$") or error.value.message.endswith(message[:-1])


def test_windows_follow_their_machines() -> None:
    windows = (
        "cluster.outages=[{machine:[1,5],from_s:0,until_s:9},{machine:2,from_s:3,until_s:4}]",
        "cluster.reservations=[{name:r,machine:[2,4,5],from_s:1,until_s:2}]",
    )
    more = changed("what_if.nodes=g:+2", *windows).cluster  # after machines 3 and 4
    assert [row["machine"] for row in more["outages"]] == [[1, 7], [2]]
    assert [row["machine"] for row in more["reservations"]] == [[2, 4, 7]]
    fewer = changed("what_if.nodes=c:-1", *windows).cluster  # machine 2 is gone
    assert [row["machine"] for row in fewer["outages"]] == [[1, 4]]
    assert [row["machine"] for row in fewer["reservations"]] == [[3, 4]]
    share = changed("what_if.nodes=+6", *windows).cluster
    assert [row["machine"] for row in share["outages"]] == [[1, 10], [4]]


def test_factors_in_words() -> None:
    assert [times(factor) for factor in (0.5, 2, 0.75)] == ["half", "twice", "0.75 times"]


def test_another_limit_of_a_qos_changes_what_other_limits_spare() -> None:
    """Without the partition's limit of GPUs that of the QOS holds there; a new one spares chem."""
    spared = {
        (row["of"], row["name"]): row.get("spares")
        for row in changed("what_if.qos='normal:GrpTRES=cpu=8,gres/gpu=none'").cluster["limits"]
        if "name" in row
    }
    assert spared["gpu", "QOS normal, maxtrespu"] is None  # its own partition's
    assert spared["cpu", "associations of accounts"] == {"qos": ["normal"]}
    assert ("cpu", "QOS normal, grptres") in spared
    rows = [
        {"of": "gpu", "by": [], "where": {"queue": "day"}, "name": "QOS day, grptres"},
        {"of": "gpu", "by": ["account"], "name": "associations of accounts"},
    ]
    assert in_hierarchy(rows)[1]["spares"] == {"queue": ["day"]}
    assert "spares" not in in_hierarchy(in_hierarchy(rows)[1:])[0]
