"""First line of a what-if, target or search on a real system's log: the backtest's verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import sim
from sim.workload.log_facts import LOG
from sweep.questions.backtest.earlier import KnownError
from sweep.questions.backtest.trust import NONE, Trust, joined
from sweep.questions.backtest.trust import _cautions as cautions
from sweep.questions.backtest.trust import _command as command_of
from sweep.questions.backtest.trust import _verdict as verdict
from tests.sim.traces.test_sacct_releases import COLUMNS, row
from tests.sweep.questions.backtest import test_backtest
from tests.sweep.questions.backtest.test_backtest import backtest, write_log
from tests.sweep.small import Command, Ran

SETTINGS = [
    ("what_if.load=1.5", "what_if.restore=wait_mean_s"),
    ("what_if.nodes=+1",),
    ("capacity=interval(0.5,2)", "target.metric=wait_mean_s", "target.at_most=60"),
    ("capacity=interval(1,2)", "target.metric=wait_mean_s", "target.at_most=60", "seeds=bootstrap"),
]  # fmt: skip


def ask(command: Command, log: Path, policy: str, *words: str) -> Ran:
    ran = command(
        "trace=swf", f"trace.path={log}", "cluster.count=2", f"policy={policy}", "cluster=slots",
        *words,
    )  # fmt: skip
    assert ran.code == 0, ran.err
    return ran


def first(ran: Ran) -> str:
    """Return the first paragraph on the terminal, in one line."""
    return " ".join(ran.out.partition("\n\n")[0].split())


def trust(ran: Ran) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((ran.folder / "answer.json").read_text())["trust"]
    return content


@pytest.mark.parametrize("words", SETTINGS)
def test_a_forecast_begins_with_the_verdict_of_the_backtest(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setattr(test_backtest, "N_BLOCKS", 40)
    log = write_log(tmp_path / "log.swf", header="; MaxProcs: 2\n")
    ran = ask(command, log, "easy", *words)
    text = f"{NONE}: no backtest has held easy against this log"
    assert first(ran).startswith(text)
    assert f"(python -m sweep backtest trace=swf trace.path={log} cluster.count=2" in first(ran)
    assert trust(ran)["backtest_error"] is None
    assert trust(ran)["sentence"].startswith(text)
    earlier = backtest(command, log, "policy=easy,fifo")
    again = ask(command, log, "easy", *words)  # cached: its report is written again
    text = f"{NONE}: on this log, easy was 59 % off ({earlier.folder.name})."
    assert first(again) == text
    assert trust(again)["backtest_error"] == pytest.approx(-0.591, abs=0.001)
    assert trust(again)["sentence"] == text
    answer = json.loads((again.folder / "answer.json").read_text())["Answer"]
    assert answer[0] == text
    for name in ("report.md", "report.html"):
        assert "easy was 59 % off" in (again.folder / name).read_text().replace("\xa0", " ")
    true = ask(command, log, "fifo", *words)
    assert (
        first(true)
        == f"Held against the log: on this log, fifo was 0.0 % off ({earlier.folder.name})."
    )
    assert trust(true)["backtest_error"] == pytest.approx(0.0)


def test_a_backtest_on_the_same_cluster_counts_first(command: Command, tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.swf", header="; MaxProcs: 2\n")
    backtest(command, log, "policy=easy", "cluster.count=3")
    ran = ask(command, log, "easy", "what_if.nodes=+1")
    assert "The backtest was simulated on 3 slots, and today's cluster here is another" in first(
        ran
    )
    earlier = backtest(command, log, "policy=easy")
    ran = ask(command, log, "easy", "what_if.nodes=+1")
    assert first(ran) == f"{NONE}: on this log, easy was 59 % off ({earlier.folder.name})."


def test_a_search_takes_a_backtest_of_the_policy(command: Command, tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.swf", header="; MaxProcs: 2\n")
    words = ("policy.reservations=1,2", "search.metric=wait_mean_s", "search.cells=40")
    assert first(ask(command, log, "easy", *words)).startswith(f"{NONE}: no backtest has held easy")
    backtest(command, log, "policy=easy")
    assert first(ask(command, log, "easy", *words)).startswith(
        f"{NONE}: on this log, easy was 59 %"
    )


def test_no_word_of_trust_where_none_is_asked_for(command: Command, tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.swf", header="; MaxProcs: 2\n")
    plain = ask(command, log, "easy,fifo")
    assert "forecast" not in plain.out
    assert "trust" not in json.loads((plain.folder / "answer.json").read_text())
    # a log without starts is none of a real system
    table = tmp_path / "log.csv"
    table.write_text("submit_s,run_s,cpus\n" + "".join(f"{i},30,1\n" for i in range(9)))
    ran = command("trace=table", f"trace.path={table}", "cluster.count=2", "what_if.nodes=+1")
    assert ran.code == 0, ran.err
    assert "forecast" not in ran.out


def test_verdicts() -> None:
    near = KnownError("easy", -0.04, True, "b-1")
    far, lucky = KnownError("fifo", 0.3, False, "b-1"), KnownError("fifo", 0.03, False, "b-2")
    assert verdict([near], [], near) == "Held against the log: on this log, easy was 4 % off (b-1)."
    assert verdict([near], ["sjf", "las"], near).endswith(
        "; no backtest has held sjf and las against it."
    )
    assert verdict([near, far], [], far) == (
        f"{NONE}: on this log, easy was 4 % off, fifo was 30 % off (b-1); by its audit, no policy "
        "that serves one pool in order can have made it."
    )
    assert "which may be chance: by its audit" in verdict([lucky], [], lucky)
    assert verdict([lucky], [], lucky).startswith(NONE)
    both = joined({"a": Trust(0.1, "A.", ("x.",)), "b": Trust(-0.3, "B.")})
    assert both == Trust(-0.3, "a: A. b: B.", ("a: x.",))
    assert joined({"a": Trust(0.1, "A."), "b": Trust(None, "B.")}).backtest_error is None  # type: ignore[union-attr]
    assert joined({}) is None


def test_what_the_log_shows_and_the_simulation_lacks(tmp_path: Path) -> None:
    head = COLUMNS + "|NodeList"
    rows = [
        row("1", "09:00:00", "09:00:00", Partition="batch") + "|c[1-3]",
        row("2", "09:00:00", "09:20:00", "QOSGrpCpuLimit", Partition="batch") + "|c2",
        row("3", "09:15:00", "09:20:00", "JobHeldUser", Partition="gpu") + "|g1",
    ]
    (tmp_path / "log.txt").write_text("\n".join([head, *rows]) + "\n")
    facts = sim.read_trace("sacct", tmp_path / "log.txt").meta[LOG]
    nodes, reasons, before = cautions({"shape": "slots"}, facts)
    assert nodes == (
        "The log's partitions had different nodes (batch 3, gpu 1): they are simulated as one "
        "cluster."
    )
    assert reasons == (
        "The log's last reason is a limit or hold for 2 of 3 jobs with 100 % of the wait (limit 1, "
        "hold 1); no limit is simulated (cluster.limits)."
    )
    assert before.startswith("38 % of the log's wait was before jobs were free to start")
    kinds = [{"count": 3, "cpu": 4, "partitions": ["batch"]}, {"count": 1, "cpu": 8}]
    (reasons, _) = cautions({"shape": kinds, "limits": [{"of": "cpu"}]}, facts)
    assert reasons.endswith("(limit 1, hold 1).")
    same = [line.replace("|g1", "|c[1-3]") for line in rows]
    (tmp_path / "log.txt").write_text("\n".join([head, *same]) + "\n")
    facts = sim.read_trace("sacct", tmp_path / "log.txt").meta[LOG]
    assert facts["partitions"] == ""
    assert (
        cautions({"shape": "slots"}, facts | {"reasons_share": 0.001, "before_eligible": 0}) == ()
    )


def test_groups_of_which_the_backtest_was_farther_off(command: Command, tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.swf", third_start_s=28, header="; MaxProcs: 2\n")
    backtest(command, log, "policy=easy")
    caution, *more = trust(ask(command, log, "easy", "what_if.nodes=+1"))["cautions"]
    assert caution == ("The mean wait of some groups was farther off: width 1 −100 % (24 jobs).")
    assert not more


def test_rules_of_a_cluster_can_have_made_a_log_that_is_not_in_order(
    command: Command, tmp_path: Path
) -> None:
    jobs = [(0, 0), (10, 100)]  # of one user, who may run one at a time: a processor stays free
    lines = [
        f"{2 * block + i + 1} {1000 * block + submit_s} {start_s - submit_s} "
        "100 1 -1 -1 1 100 -1 1 7 1 1 1 1 -1 -1"
        for block in range(12)
        for i, (submit_s, start_s) in enumerate(jobs)
    ]
    log = tmp_path / "log.swf"
    log.write_text("; MaxProcs: 2\n" + "\n".join(lines) + "\n")
    assert "none of them can have made this log" in backtest(command, log, "policy=fifo").out
    limits = "cluster.limits=[{of: running_jobs, by: [user], at_most: 1}]"
    assert "can have made this" not in backtest(command, log, "policy=fifo", limits).out
    sentence = first(ask(command, log, "fifo", limits, "what_if.nodes=+1"))
    assert sentence.startswith("Held against the log: on this log, fifo was 0.0 % off"), sentence


def test_the_command_has_the_folders_and_the_options_of_the_policy() -> None:
    words = ["trace=teams", "policy=priority", "policy.fit=skip", "what_if.nodes=+2", "seed=1"]
    config = {"words": [*words, "cluster.count=40"], "config_dirs": ["my options"]}
    assert command_of(config) == (
        "python -m sweep backtest '--config-dir=my options' trace=teams policy=priority "
        "policy.fit=skip cluster.count=40"
    )
