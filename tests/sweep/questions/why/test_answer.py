"""Answers: sentences, the pair of cells, the page and its address, from the command and Python."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import sim
import sweep
from sim.base.errors import InputError
from sweep.driver import captured_run
from sweep.questions.why import page, sentences
from sweep.questions.why.explanation import Explanation
from sweep.questions.why.rows import rows
from sweep.questions.why.scatter import N_COLUMNS, N_ROWS, scatter
from tests.axe import violations
from tests.mlflow_ui import browser
from tests.sweep.questions.why.worlds import explained, job, random_jobs, run
from tests.sweep.small import Command

JOBS = [
    job("wide", 0.0, [6.0, 6.0], user="ann"),
    job("long", 1.0, [9.0, 9.0], user="<b>eve</b>"),
    job("short", 2.0, [1.0, 1.0], user="bob"),
    job("small", 3.0, [0.5], user="bob"),
]
TWO_SLOTS = sim.Cluster.slots(2)


@pytest.fixture(scope="module")
def why() -> Explanation:
    """FIFO against SRPT: short jobs wait behind a long one; under SRPT it waits for them."""
    return explained(JOBS, TWO_SLOTS, "fifo", "srpt")


def test_jobs_are_compared_one_by_one(why: Explanation) -> None:
    assert why.jct_s[0].tolist() == [6.0, 14.0, 14.0, 13.5]
    assert why.jct_s[1].tolist() == [6.0, 15.5, 5.5, 3.5]
    assert why.lost_s.tolist() == [0.0, -1.5, 8.5, 10.0]
    assert [row.job_id for row in rows(why, why.losers)] == ["small", "short"]
    assert [row.job_id for row in rows(why, why.winners)] == ["long"]
    small, short = rows(why, why.losers)
    assert short.longer == ("no slot", 8.5)
    assert short.in_front(0, 1) == [("long", "came before", 9.0)]
    assert small.overtaken_share == short.overtaken_share == 0.0
    assert rows(why, why.winners)[0].overtaken_share == pytest.approx(1.25 / 6.5)


def test_two_sentences_say_whose_loss_it_is_and_behind_whom(why: Explanation) -> None:
    assert sentences.summary(why) == (
        "Mean JCT 11.9 s under fifo, 7.62 s under srpt: 2 of 4 jobs lost 18.5 s in all and 1 won "
        "1.5 s; 100 % of the loss is 2 jobs of 2 s of work or less.",
        "They waited 9.25 s longer each under fifo than under srpt, 100 % of it for a slot; 73 % "
        "of what stood before them there were jobs that had come before; first of all long "
        "(69 %), wide (27 %) and short (3.8 %).",
    )


def test_the_better_policy_is_told_by_its_gain() -> None:
    won = explained(JOBS, TWO_SLOTS, "srpt", "fifo")
    first, reason = sentences.summary(won)
    assert "lost 1.5 s in all and 2 won 18.5 s; 100 % of the gain is 2 jobs" in first
    assert "under fifo than under srpt" in reason
    same = explained(JOBS, sim.Cluster.slots(50), "fifo", "srpt")
    assert sentences.summary(same)[0] == "All 4 jobs take as long under fifo as under srpt."


def test_every_number_of_the_sentences_follows_from_the_jobs() -> None:
    """The counts, sums and shares, worked out again from the rows of random worlds."""
    rng = np.random.default_rng(5)
    for _ in range(10):
        compared = explained(random_jobs(rng), sim.Cluster.slots(3), "fifo", "srpt")
        if not compared.lost_s.any():
            continue
        first, reason = sentences.summary(compared)
        lost = [x for x in compared.lost_s.tolist() if x > 0]
        assert f"{len(lost)} of {len(compared.jobs)} jobs lost" in first
        assert f"{sentences.seconds(sum(lost))} in all" in first
        focus = compared.focus(is_loss=compared.is_loss)
        change = compared.lost_s if compared.is_loss else -compared.lost_s
        gains = np.maximum(change, 0.0)
        mine = np.ones(len(gains), bool) if focus.group is None else focus.group.rows
        top = sorted(np.flatnonzero(mine & (gains > 0)).tolist(), key=lambda k: (-gains[k], k))
        assert focus.looked_at.tolist() == top[:100]
        longer = sum(change[k] for k in top[:100])
        assert sum(focus.longer.values()) == pytest.approx(longer)
        assert sentences.seconds(longer / len(top[:100])) in reason
        splits = [compared.splits(k)[focus.slow] for k in top[:100]]
        total = sum(sum(split.behind.values()) for split in splits)
        assert sum(focus.behind.values()) == pytest.approx(total)


def test_jobs_that_are_not_done_are_counted() -> None:
    jobs = [*JOBS, job("fails", 3.0, [1.0], input_mode="blind", inputs={"long": "hard"})]
    compared = explained(jobs, TWO_SLOTS, "fifo", "srpt")
    assert (compared.n_jobs, len(compared.jobs)) == (5, 4)
    assert page.notes(compared, rows(compared, compared.losers))[0].startswith("1 of 5 jobs are")


def test_other_jobs_are_refused() -> None:
    runs = [run(JOBS, TWO_SLOTS), run(JOBS[:3], TWO_SLOTS)]
    with pytest.raises(InputError, match="ran different jobs"):
        Explanation(runs, ("fifo", "fifo"))


def test_a_drawing_of_many_jobs_is_no_larger() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.lognormal(3, 2, 100_000), rng.lognormal(3, 2, 100_000)
    drawn = scatter(first, second, [(0, "lost", "#job-0", "a")])
    assert drawn.count("<rect") <= N_COLUMNS * N_ROWS
    assert len(drawn) < 300_000
    assert scatter(np.zeros(2), np.zeros(2), []).count("<rect") == 1


@pytest.fixture(scope="module")
def opened(why: Explanation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Open the page; messages and requests are errors."""
    path = tmp_path_factory.mktemp("why") / "why.html"
    path.write_text(page.write_text(why, "a place", "both.html"), encoding="utf-8")
    with browser() as tab:
        noise: list[str] = []
        tab.on("console", lambda message: noise.append(message.text))
        tab.on("request", lambda request: noise.append(request.url))
        tab.goto(path.as_uri())
        yield tab
        assert noise == [path.as_uri()]


@pytest.mark.skipif(not shutil.which("chromium"), reason="needs Chromium")
class TestPage:
    def test_has_the_answer_and_each_job(self, opened: Any, why: Explanation) -> None:
        text = re.sub(r"\s+", " ", opened.text_content("main"))
        for sentence in sentences.summary(why):
            assert sentence in text
        assert "<b>eve</b>" in text
        bar = opened.locator("#job-2 .bar").first
        assert bar.get_attribute("aria-label") == "14 s: waits for a slot 13 s, running 1 s"
        assert opened.locator("#job-2 a").first.get_attribute("href") == "both.html#job=short"

    def test_bars_share_one_scale(self, opened: Any, why: Explanation) -> None:
        widths = opened.eval_on_selector_all(
            "#job-2 .bar, #job-3 .bar",
            "bars => bars.map((bar) => [...bar.children].reduce("
            "(sum, part) => sum + parseFloat(part.style.width), 0))",
        )
        jct = [why.jct_s[policy][k] for k in (3, 2) for policy in (0, 1)]  # as on the page
        assert widths == pytest.approx([100 * s / max(jct) for s in jct], abs=0.05)

    def test_a_checker_of_accessibility_finds_nothing(self, opened: Any) -> None:
        assert violations(opened) == []

    def test_fits_a_phone(self, opened: Any) -> None:
        opened.set_viewport_size({"width": 390, "height": 844})
        assert opened.evaluate("document.documentElement.scrollWidth") == 390


def test_show_explains_a_cell(command: Command) -> None:
    ran = command("policy=fifo,srpt,las", "capacity=0.5,1.0", "seed=0")
    assert ran.code == 0, ran.err
    name = ran.folder.name
    labels = [(row["policy"], row["capacity"]) for row in ran.rows]
    mine, other = labels.index(("fifo", 0.5)), labels.index(("srpt", 0.5))
    shown = command.verb("show", name, str(mine), "--why", "--against", "srpt")
    assert shown.code == 0, shown.err
    lines = shown.out.splitlines()
    assert len(lines) <= 45
    path = command.results / "timelines" / f"{name}-why-{mine}-{other}.html"
    assert lines[-1] == str(path)
    assert f"{name}-{mine}-{other}.html#job=" in path.read_text()
    assert (path.parent / f"{name}-{mine}-{other}.html").is_file()
    assert path.stat().st_size < 1_500_000
    cell = sweep.load(ran.folder).cell(policy="fifo", capacity=0.5)
    answer = cell.why(against="srpt")
    assert shown.out.replace("\n", " ").startswith(answer.summary)
    assert answer.jobs["lost_s"].tolist() == [row.lost_s for row in answer.rows]
    split = answer.jobs.filter(regex="^wait_").sum(axis=1)
    waits = [row.splits[0].wait_s for row in answer.rows]
    assert split.tolist() == pytest.approx(waits)
    assert set(answer.behind["policy"]) <= {"fifo", "srpt"}
    assert answer._repr_html_().startswith("<iframe")
    answer.write(path.parent / "alone.html")
    assert "#job=" not in (path.parent / "alone.html").read_text()
    by_row = command.verb("show", name, str(mine), "--why", "--against", str(other))
    assert by_row.out == shown.out


def test_a_report_has_the_command(command: Command) -> None:
    """Of a baseline against the best policy; the command is that of the cells it names."""
    ran = command("policy=fifo,las,random", "capacity=0.5,1.0", "seed=0,1", "baseline=fifo")
    text = (ran.folder / "report.md").read_text()
    name = re.escape(ran.folder.name)
    match = re.search(
        rf"^    (python -m sweep show {name} (\d+) --why --against (\d+))$", text, re.M
    )
    assert match is not None
    assert f">{match[1]}</pre>" in (ran.folder / "report.html").read_text()
    rows_ = ran.rows
    slow, best = rows_[int(match[2])], rows_[int(match[3])]
    comparable = [row for row in rows_ if (row["capacity"], row["seed"]) == (0.5, 0)]
    assert best["jct_mean_s"] == min(row["jct_mean_s"] for row in comparable)
    assert (slow["capacity"], slow["seed"]) == (best["capacity"], best["seed"]) == (0.5, 0)
    assert slow["policy"] == "fifo" or best["policy"] == "fifo"
    for words in (["policy=fifo"], ["policy=fifo", "what_if.load=1.3"]):
        alone = command(*words, "capacity=0.5", "seed=0")
        assert alone.code == 0
        assert "--why" not in (alone.folder / "report.md").read_text()


def test_jobs_of_a_cell_have_names_and_sizes(
    command: Command, capfd: pytest.CaptureFixture[str]
) -> None:
    ran = command("policy=fifo", "capacity=0.5", "seed=0")
    cell = sweep.load(ran.folder).cell()
    assert cell.jobs["queue"].tolist() == ["a", "b"] * 3
    assert cell.jobs["width"].tolist() == [2] * 6  # two tasks, then one
    assert cell.jobs["work_s"].tolist() == [12.0, 13.0, 14.0] * 2
    assert cell.jobs["job_id"].is_unique
    shutil.rmtree(command.trace)
    other = sweep.load(ran.folder).cell()
    assert "width" not in other.jobs
    assert len(other.jobs) == 6
    assert "without names and sizes of jobs" in capfd.readouterr().err


def test_wrong_words_say_the_way_out(command: Command) -> None:
    ran = command("policy=fifo,las", "policy.queues=2,3", "capacity=0.5,1.0", "seed=0")
    name = ran.folder.name
    labels = [(row["policy"], row["capacity"]) for row in ran.rows]
    mine, far = str(labels.index(("fifo", 0.5))), str(labels.index(("las", 1.0)))
    for words, message in (
        (["--against", "las"], "show 0 --why --against las"),
        (["--why", "--against", "nobody"], "policies that have one: las"),
        (["--why", "--against", "las"], "las has 2 settings; name one by its row"),
        (["--why", "--against", far], "the two cells differ in capacity, too: 0.5 and 1"),
    ):
        wrong = command.verb("show", name, mine, *words)
        assert wrong.code == 2
        assert message in wrong.err


def test_another_run_than_the_sweeps_is_refused() -> None:
    with pytest.raises(InputError, match=r"has jct_mean_s 2\.0, and the sweep recorded 1\.0"):
        captured_run._check_metrics({"jct_mean_s": 1.0, "key": "a"}, {"jct_mean_s": 2.0})
    captured_run._check_metrics({"jct_mean_s": float("nan")}, {"jct_mean_s": float("nan")})


def test_pages_go_with_their_sweep(command: Command) -> None:
    ran = command("policy=fifo,srpt", "capacity=0.5", "seed=0")
    command.verb("show", "0", "--why", "--against", "srpt")
    assert len([*(command.results / "timelines").iterdir()]) == 2
    assert command.verb("rm", ran.folder.name).code == 0
    assert [*(command.results / "timelines").iterdir()] == []


def test_a_gang_waits_for_room_for_all_its_tasks() -> None:
    jobs = [job("a", 0.0, [4.0, 4.0]), job("gang", 1.0, [5.0] * 3, min_tasks=3)]
    jobs += [job("b", 2.0, [1.0, 1.0, 1.0])]
    compared = explained(jobs, sim.Cluster.slots(3), "srpt", "fifo")
    (gang,) = rows(compared, compared.losers)
    assert "1 s longer for room for 3 tasks at once; " in page._reason(gang)
    assert "more for room for 3 tasks at once, behind" in sentences.lines(compared)[2]
    assert sentences.reason_words("no cpu", 8) == "cpu for 8 tasks at once"
    assert sentences.reason_words("in pieces", 8) == "room in one piece for 8 tasks at once"
    turn = sentences.reason_words("order", 8)
    assert turn == "a turn, while there was room for 8 tasks at once"
    assert sentences.reason_words("cap", 8) == sentences.reason_words("cap")
