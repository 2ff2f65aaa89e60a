"""Timelines of runs: columns, Chrome's trace format, and the page in a browser."""

from __future__ import annotations

import gzip
import itertools
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import policies
import sim
import sweep
from sim.base.errors import InputError
from sim.base.lanes import lanes
from sim.engine.stops import REASONS
from sweep.driver import captured_run as capture
from sweep.questions.timeline import columns, page, perfetto
from tests.axe import violations
from tests.mlflow_ui import browser
from tests.sweep.small import Command

JOBS: list[dict[str, Any]] = [
    {
        "job_id": "wide",
        "submit_s": 0.0,
        "user": "ann",
        "stages": [{"name": "map", "durations_s": [10.0] * 3, "demand": {"cpu": 2, "mem": 1}}],
    },
    {
        "job_id": "<b>dag</b>",
        "submit_s": 1.0,
        "user": "bob",
        "deadline_s": 5.0,
        "stages": [
            {"name": "map", "durations_s": [4.0, 4.0], "demand": {"cpu": 2, "mem": 1}},
            {"name": "join", "durations_s": [2.0], "demand": {"cpu": 1}, "parents": ["map"]},
        ],
    },
]


def _job(name: str, submit_s: float, durations_s: list[float]) -> dict[str, Any]:
    stage = {"name": "map", "durations_s": durations_s, "demand": {"cpu": 1}}
    return {"job_id": name, "submit_s": submit_s, "stages": [stage]}


MACHINES = sim.Cluster.machines(2, cpu=2, mem=8)
NODES = sim.Cluster.mixed([{"count": 2, "cpu": 2, "mem": 8, "nodes": "rack1-node[08-09]"}])


def _titled(run: capture.Captured, title: str) -> columns.Timeline:
    run.title = title
    return columns.build_timeline(run)


def drawn(
    policy: str = "fifo", cluster: sim.Cluster = MACHINES, **options: Any
) -> columns.Timeline:
    runs: list[capture.Captured] = []
    workload = sim.Workload.from_jobs(JOBS)
    capture.capturing(runs)(workload, cluster, policies.build(policy, **options), seed=0)
    return _titled(runs[0], policy)


@pytest.fixture(scope="module")
def fifo() -> columns.Timeline:
    return drawn()


def test_bars_are_the_tasks_of_the_run(fifo: columns.Timeline) -> None:
    tasks = fifo.result.tasks
    assert tasks is not None
    bars = sorted(zip(fifo.task, fifo.start_s, fifo.finish_s, strict=True))
    assert bars == [
        (k, *times)
        for k, times in enumerate(zip(tasks["start_s"].to_pylist(), tasks["finish_s"].to_pylist()))  # noqa: B905
    ]
    machine = fifo.lane_machine[fifo.lane]
    assert machine.tolist() == [tasks["machine"][int(t)].as_py() for t in fifo.task]
    assert fifo.deadline_s[1] == 6.0


@pytest.mark.parametrize(("demands", "mem"), [("declared", 8.0), ("true", 3.0)])
def test_tasks_are_drawn_with_what_they_hold(demands: str, mem: float) -> None:
    stage = {"durations_s": [1.0], "demand": {"cpu": 1, "mem": 3}, "request": {"mem": 8}}
    workload = sim.Workload.from_jobs([{"submit_s": 0.0, "stages": [stage]}])
    runs: list[capture.Captured] = []
    cluster = sim.Cluster.machines(1, cpu=4, mem=16)
    capture.capturing(runs)(workload, cluster, policies.build("fifo", demands=demands), seed=0)
    drawn_run = _titled(runs[0], "fifo")
    assert drawn_run.demand.tolist() == [[1.0, mem]]


def test_a_stage_is_ready_when_its_parents_are_done(fifo: columns.Timeline) -> None:
    times = columns.stage_times(fifo)
    assert times["ready"].tolist() == [0.0, 1.0, times["finish"][1]]
    assert (times["start"] >= times["ready"]).all()


def test_bars_of_a_lane_do_not_overlap_and_lanes_are_few() -> None:
    rng = np.random.default_rng(0)
    machine = np.sort(rng.integers(0, 3, 200)).astype(np.int32)
    start = np.concatenate([np.sort(rng.uniform(0, 9, (machine == m).sum())) for m in range(3)])
    finish = start + rng.choice([0.0, 0.5, 2.0], 200)
    lane, lane_machine = lanes(machine, start, finish)
    assert (lane_machine[lane] == machine).all()
    for number in range(len(lane_machine)):
        own = np.flatnonzero(lane == number)
        assert (start[own][1:] >= finish[own][:-1]).all()
    for m in range(3):
        own = machine == m
        running = ((start[own] <= t) & (t < finish[own]) for t in start[own])
        peak = max(int(mask.sum()) for mask in running)
        assert peak <= (lane_machine == m).sum() <= peak + 1


def test_pilots_are_marked() -> None:
    workload = sim.Workload.from_jobs(
        [{"submit_s": 0.0, "stages": [{"durations_s": [5.0] * 50}]} for _ in range(3)]
    )
    runs: list[capture.Captured] = []
    cluster = sim.Cluster.slots(20)
    capture.capturing(runs)(workload, cluster, policies.build("slearn"), seed=0)
    timeline = _titled(runs[0], "slearn")
    pilots = np.bincount(timeline.stage[timeline.is_pilot], minlength=3)
    assert pilots.tolist() == runs[0].pilots.tolist()
    assert (pilots > 0).all()
    for job in range(3):
        own = timeline.stage == job
        first = timeline.start_s[own & timeline.is_pilot].max()
        assert first <= timeline.start_s[own & ~timeline.is_pilot].min()


def test_watching_changes_no_schedule(fifo: columns.Timeline) -> None:
    plain = sim.simulate(fifo.result.workload, fifo.result.cluster, policies.build("fifo"))
    assert fifo.result.jobs.equals(plain.jobs)
    assert fifo.result.tasks is not None
    assert fifo.result.tasks.equals(plain.tasks)


@pytest.fixture(scope="module")
def stopped() -> columns.Timeline:
    """A run in which an attempt fails, and two readers find the output of one task lost."""
    stages = [
        {"name": "map", "durations_s": [4.0, 2.0, 1.0, 1.0]},
        {"name": "reduce", "durations_s": [6.0, 3.0], "parents": ["map"]},
    ]
    failures = {"task": [0, 4, 5], "after_s": [1.0, 1.0, 2.0], "lost": [-1, 0, 0]}
    workload = sim.Workload.from_jobs([{"job_id": "j", "submit_s": 0.0, "stages": stages}])
    runs: list[capture.Captured] = []
    run = capture.capturing(runs)
    run(workload.with_failures(failures), sim.Cluster.slots(4), policies.build("fifo"), seed=0)
    return _titled(runs[0], "stopped")


def test_stopped_attempts_have_bars(stopped: columns.Timeline) -> None:
    bars = zip(
        *(stopped.task, stopped.ready_s, stopped.start_s, stopped.finish_s, stopped.reason),
        strict=True,
    )
    failed, input_lost, output_lost = map(REASONS.index, ("failed", "input lost", "output lost"))
    assert sorted(bars) == [
        (0, 0, 0, 1, failed),
        (0, 1, 1, 5, output_lost),
        (0, 6, 6, 10, columns.DONE),  # from when its first reader misses it
        (1, 0, 0, 2, columns.DONE),
        (2, 0, 0, 1, columns.DONE),
        (3, 0, 0, 1, columns.DONE),
        (4, 5, 5, 6, input_lost),
        (4, 10, 10, 16, columns.DONE),  # once it is there again
        (5, 5, 5, 7, input_lost),
        (5, 10, 10, 13, columns.DONE),
    ]
    lanes_of_bars = zip(stopped.lane, stopped.start_s, stopped.finish_s, strict=True)
    for (lane, _, end), (after, begin, _) in itertools.pairwise(sorted(lanes_of_bars)):
        assert lane != after or end <= begin


def test_an_attempt_of_a_pilot_is_a_pilot() -> None:
    task = np.array([0, 1, 2, 0])
    job = np.zeros(4, np.int32)
    start = np.array([0.0, 1.0, 2.0, 3.0])
    marked = columns._is_pilot(job, task, start, np.array([2], np.int32))
    assert marked.tolist() == [True, True, False, True]


def test_very_many_tasks_are_drawn_as_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "MAX_TASKS", 3)
    monkeypatch.setattr(page, "MAX_TASKS", 3)
    timeline = drawn()
    assert timeline.count.sum() == 6
    with pytest.raises(InputError, match=r"6 tasks; a page draws up to 3: write --perfetto"):
        page.draw([timeline])
    assert sum(e["ph"] == "X" for e in perfetto.events(timeline)) == len(timeline.task)


class TestPerfetto:
    def test_slices_are_the_tasks(self, fifo: columns.Timeline, tmp_path: Path) -> None:
        perfetto.write(fifo, tmp_path / "a.json")
        events = json.loads((tmp_path / "a.json").read_text())["traceEvents"]
        slices = sorted((e["ts"], e["dur"]) for e in events if e["ph"] == "X")
        durations = fifo.finish_s - fifo.start_s
        assert slices == sorted(
            (t, d) for t, d in zip(1e6 * fifo.start_s, 1e6 * durations, strict=True)
        )
        jobs = [e for e in events if e.get("cat") == "job" and e["ph"] == "b"]
        assert [job["name"] for job in jobs] == ["wide", "<b>dag</b>"]
        assert jobs[1]["args"]["late"] is True
        flows = [e for e in events if e.get("cat") == "dag"]
        assert [flow["ph"] for flow in flows] == ["s", "f"]
        named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
        assert {(e["pid"], e["tid"]) for e in events if e["ph"] == "X"} == named

    def test_counters_follow_the_tasks(self, fifo: columns.Timeline) -> None:
        used = [e for e in perfetto.events(fifo) if e["name"] == "cpu used, %"]
        assert used[0]["args"]["value"] == 100.0
        assert used[-1]["args"]["value"] == 0.0
        assert [e["ts"] for e in used] == sorted(e["ts"] for e in used)

    def test_stopped_attempts_have_a_category(self, stopped: columns.Timeline) -> None:
        events = [*perfetto.events(stopped)]
        slices = [e for e in events if e.get("cat") == "stopped"]
        assert sorted((e["name"], e["dur"], e["args"]["stopped"]) for e in slices) == [
            ("j / map (failed)", 1e6, "failed"),
            ("j / map (output lost)", 4e6, "output lost"),
            ("j / reduce (input lost)", 1e6, "input lost"),
            ("j / reduce (input lost)", 2e6, "input lost"),
        ]
        (job,) = [e for e in events if e.get("cat") == "job" and e["ph"] == "b"]
        assert job["args"]["stopped_attempts"] == 4

    def test_gzip_has_the_same_bytes_every_time(
        self, fifo: columns.Timeline, tmp_path: Path
    ) -> None:
        for name in ("a.json.gz", "b.json.gz"):
            perfetto.write(fifo, tmp_path / name)
        first, second = ((tmp_path / name).read_bytes() for name in ("a.json.gz", "b.json.gz"))
        assert first == second
        assert json.loads(gzip.decompress(first))["traceEvents"]

    def test_steps_sum_what_overlaps(self) -> None:
        times, values = perfetto.step_series(
            np.array([0.0, 1.0]), np.array([2.0, 2.0]), np.array([1.0, 0.5])
        )
        assert (times.tolist(), values.tolist()) == ([0.0, 1.0, 2.0], [1.0, 1.5, 0.0])


@pytest.fixture(scope="module")
def opened(fifo: columns.Timeline, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Open the page of two runs; messages and requests are errors."""
    path = tmp_path_factory.mktemp("page") / "two.html"
    page.draw([fifo, drawn("srpt")]).write(path)
    with browser() as tab:
        noise: list[str] = []
        tab.on("console", lambda message: noise.append(message.text))
        tab.on("pageerror", lambda error: noise.append(str(error)))
        tab.on("request", lambda request: noise.append(request.url))
        tab.goto(path.as_uri(), wait_until="commit")
        tab.wait_for_selector("body[data-ready]")
        yield tab
        assert noise == [path.as_uri()]


def test_a_trace_has_the_names_of_nodes() -> None:
    events = perfetto.events(drawn(cluster=NODES))
    names = [e["args"]["name"] for e in events if e["name"] == "process_name" and e["pid"] >= 10]
    assert names == ["rack1-node08 (machine 0)", "rack1-node09 (machine 1)"]


@pytest.mark.skipif(not shutil.which("chromium"), reason="needs Chromium")
def test_a_page_has_the_names_of_nodes(tmp_path: Path) -> None:
    page.draw([drawn(cluster=NODES), drawn()]).write(tmp_path / "nodes.html")
    with browser() as tab:
        tab.goto((tmp_path / "nodes.html").as_uri(), wait_until="commit")
        tab.wait_for_selector("body[data-ready]")
        for run, first in enumerate(("rack1-node08", "m0")):
            canvas = tab.locator(f"canvas.gantt[data-run='{run}']")
            box = canvas.bounding_box()
            assert box is not None
            tab.mouse.move(box["x"] + box["width"] / 8, box["y"] + 12)
            assert f" on {first}: " in str(tab.text_content("#tip"))


def crowd() -> columns.Timeline:
    """Many small jobs, and two large ones, on few slots."""
    stages = [[50.0] * 20, [30.0] * 30, *([1.0] * 10 for _ in range(250))]
    jobs = [
        {"job_id": f"j{k}", "submit_s": 0.1 * k, "stages": [{"durations_s": durations}]}
        for k, durations in enumerate(stages)
    ]
    runs: list[capture.Captured] = []
    workload = sim.Workload.from_jobs(jobs)
    capture.capturing(runs)(workload, sim.Cluster.slots(60), policies.build("fifo"), seed=0)
    return _titled(runs[0], "crowd")


@pytest.mark.skipif(not shutil.which("chromium"), reason="needs Chromium")
def test_a_crowd_has_clusters_and_a_number_of_waiting_tasks(tmp_path: Path) -> None:
    """Of many bars the largest jobs alone have colours; numbers don't follow the window's width."""
    timeline = crowd()
    page.draw([timeline]).write(tmp_path / "crowd.html")
    changes = sorted(
        [(t, 1) for t, s in zip(timeline.ready_s, timeline.start_s, strict=True) if s > t]
        + [(s, -1) for t, s in zip(timeline.ready_s, timeline.start_s, strict=True) if s > t]
    )
    times = [time for time, _ in changes]
    peak = max(sum(by for t, by in changes if t <= time) for time in times)
    with browser() as tab:
        for width in (500, 1400):
            tab.set_viewport_size({"width": width, "height": 700})
            tab.goto((tmp_path / "crowd.html").as_uri(), wait_until="commit")
            tab.wait_for_selector("body[data-ready]")
            _images(tab)
            assert tab.get_attribute("canvas.series", "data-most") == str(peak)
        items = tab.eval_on_selector_all("#clusters span", "e => e.map((x) => x.textContent)")
        room = 1000.0 + 900.0 + 2500.0
        assert items[:2] == [f"j0 {100 * 1000 / room:.0f} %", f"j1 {100 * 900 / room:.0f} %"]
        assert items[-1] == f"244 smaller jobs {100 * (2500 - 60) / room:.0f} %"
        assert len(items) == 9
        tab.click("#clusters button")
        assert "Job j0" in tab.text_content("#job")
        tab.select_option("#colour", "user")
        _images(tab)
        assert tab.text_content("#clusters") == ""
        tab.select_option("#colour", "job")
        for _ in range(12):
            tab.click("[data-do=in]")
        _images(tab)
        assert tab.text_content("#clusters") == "", "few bars have a colour each"


@pytest.mark.skipif(not shutil.which("chromium"), reason="needs Chromium")
@pytest.mark.parametrize("cluster", [sim.Cluster.slots(4), sim.Cluster.machines(2, cpu=2)])
def test_a_gang_has_room_where_all_its_tasks_have(cluster: sim.Cluster, tmp_path: Path) -> None:
    """Half of its wait two of four slots are free, for one task of the gang of three but not it."""
    jobs = [_job("a", 0.0, [4.0, 4.0]), _job("b", 0.0, [8.0, 8.0])]
    gang = _job("gang", 0.0, [1.0] * 3) | {"min_tasks": 3}
    runs: list[capture.Captured] = []
    workload = sim.Workload.from_jobs([*jobs, gang])
    capture.capturing(runs)(workload, cluster, policies.build("fifo"), seed=0)
    page.draw([_titled(runs[0], "fifo")]).write(tmp_path / "gang.html")
    with browser() as tab:
        tab.goto((tmp_path / "gang.html").as_uri(), wait_until="commit")
        tab.wait_for_selector("body[data-ready]")
        tab.fill("#search", "gang")
        text = tab.text_content("#job")
    short = "100 % of the time: there was not enough for 3 tasks at once."
    assert f"{'slots were' if cluster.unit else 'cpu was'} short {short}" in text
    assert "there was room" not in text


@pytest.mark.skipif(not shutil.which("chromium"), reason="needs Chromium")
class TestPage:
    def test_says_why_a_job_waited(self, opened: Any, fifo: columns.Timeline) -> None:
        assert opened.text_content("#about").startswith("2 jobs, 6 tasks, 2 machines")
        opened.fill("#search", "<b>dag</b>")
        text = opened.text_content("#job")
        wait = fifo.result.job_start[1] - 1.0
        assert "Job <b>dag</b>" in text
        assert f"waited {wait:g} s" in text
        assert "cpu was short 100 % of the time: no machine had enough for a task." in text
        assert "missed" in text
        opened.click("#why-0 button")  # who ran meanwhile
        assert "Job wide" in opened.text_content("#job")
        opened.click("text=No job")
        assert "Choose a bar" in opened.text_content("#job")

    def test_a_checker_of_accessibility_finds_nothing(self, opened: Any) -> None:
        assert violations(opened) == []

    def test_a_click_on_a_bar_chooses_its_job(self, opened: Any) -> None:
        box = opened.locator("canvas.gantt").first.bounding_box()
        opened.mouse.click(box["x"] + 0.3 * box["width"], box["y"] + 40)
        assert opened.input_value("#search") == "wide"
        opened.keyboard.press("Escape")
        opened.click("text=No job")

    def test_two_runs_move_in_step(self, opened: Any) -> None:
        """Every way to move moves both runs, and Home brings all back."""
        gantt = opened.locator("canvas.gantt").first
        box = gantt.bounding_box()
        x, y = box["x"] + 0.6 * box["width"], box["y"] + 0.5 * box["height"]

        def key(name: str) -> Callable[[], None]:
            return lambda: opened.keyboard.press(name)

        def drag() -> None:
            opened.mouse.move(x, y)
            opened.mouse.down()
            opened.mouse.move(x - 80, y, steps=2)
            opened.mouse.up()

        def wheel() -> None:
            opened.mouse.move(x, y)
            opened.mouse.wheel(0, -200)

        def press(name: str) -> Callable[[], None]:
            return lambda: opened.click(f"[data-do={name}]")

        gantt.focus()
        opened.keyboard.press("Home")
        whole = _images(opened)
        opened.keyboard.press("+")
        near = _images(opened)
        keys = {name: key(name) for name in ("+", "-", "ArrowRight", "ArrowLeft")}
        buttons = {name: press(name) for name in ("in", "out", "left", "right")}
        for name, act in {**keys, **buttons, "wheel": wheel, "drag": drag}.items():
            gantt.focus()
            opened.keyboard.press("Home")
            opened.keyboard.press("+")
            act()
            assert all(a != b for a, b in zip(near, _images(opened), strict=True)), name
        press("fit")()
        assert _images(opened) == whole
        assert opened.input_value("#search") == ""

    def test_the_search_offers_names_and_a_link_opens_a_job(self, opened: Any) -> None:
        opened.fill("#search", "wi")
        assert opened.eval_on_selector_all("#jobs option", "o => o.map((x) => x.value)") == ["wide"]
        assert "Choose a bar" in opened.text_content("#job")
        opened.fill("#search", "wide")
        text = opened.text_content("#job")
        for words in ("submitted0 s", "started0 s (waited 0 s)", "userann", "fifo", "srpt"):
            assert words in text
        opened.locator("canvas.gantt").first.focus()
        opened.keyboard.press("Escape")
        assert "Choose a bar" in opened.text_content("#job")
        opened.keyboard.press("Home")

    def test_colours_have_a_legend(self, opened: Any) -> None:
        before = _images(opened)
        for kind, words in (("deadline", "missed"), ("pilot", "pilots"), ("stop", "stopped")):
            opened.select_option("#colour", kind)
            assert words in opened.text_content("#key")
            assert _images(opened) != before, kind
        opened.select_option("#colour", "job")
        assert opened.text_content("#key") == ""
        assert _images(opened) == before

    def test_stopped_attempts_are_striped_and_explained(
        self, opened: Any, stopped: columns.Timeline, tmp_path: Path
    ) -> None:
        page.draw([stopped, stopped]).write(tmp_path / "stopped.html")
        phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
        tab = opened.context.browser.new_page(**phone)
        tab.goto(f"{(tmp_path / 'stopped.html').as_uri()}#job=j")
        tab.wait_for_selector("body[data-ready]")
        counts = "1 failed, 2 input lost, 1 output lost"
        legend = f"attempts that were stopped (above: {counts}; below: {counts})"
        assert tab.text_content("#key") == legend
        text = tab.text_content("#job")
        assert text.count(f"stopped{counts}: wasted 8 s") == 2
        assert "map 01 sfailed1 s" in text
        assert "reduce 17 sinput lost2 s" in text
        tab.click("text=No job")
        tab.click("[data-do=fit]")
        # the first lane has the failed attempt from 0 to 1 s and the lost run from 1 to 5 s, the
        # second a task that ran to its end from 0 to 2 s
        assert _colours(tab, 3.0, 0) > 2 >= _colours(tab, 1.0, 1)
        gantt = tab.locator("canvas.gantt").first
        box = gantt.bounding_box()
        tab.mouse.move(box["x"] + 56 + 3 / 16 * (box["width"] - 56), box["y"] + 5)
        assert "1 to 5 s, waited 0 s; stopped: output lost" in tab.text_content("#tip")
        whole = _images(tab)  # rows of one run move alone
        tab.keyboard.down("Shift")
        tab.mouse.wheel(0, -200)
        tab.keyboard.up("Shift")
        near = _images(tab)
        assert [a != b for a, b in zip(whole, near, strict=True)] == [True, False]
        gantt.focus()
        tab.keyboard.press("ArrowDown")
        assert _images(tab)[0] != near[0]
        tab.keyboard.press("ArrowUp")
        assert _images(tab) == near
        tab.keyboard.press("Home")
        assert _images(tab) == whole
        assert tab.evaluate("document.documentElement.scrollWidth") == 390
        x, y = box["x"] + 0.5 * box["width"], box["y"] + 50
        touch = tab.context.new_cdp_session(tab)
        for kind, apart in (("touchStart", 20), ("touchMove", 40), ("touchMove", 80)):
            points = [{"x": x - apart, "y": y, "id": 0}, {"x": x + apart, "y": y, "id": 1}]
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        assert all(a != b for a, b in zip(whole, _images(tab), strict=True)), "a pinch zooms"
        tab.close()


def _images(tab: Any) -> list[str]:
    """Return the charts as they are after the next frame."""
    images: list[str] = tab.evaluate(
        """async () => {
             for (let k = 0; k < 2; k++) await new Promise(requestAnimationFrame);
             return [...document.querySelectorAll("canvas.gantt")].map((c) => c.toDataURL());
           }"""
    )
    return images


def _colours(tab: Any, time_s: float, lane: int) -> int:
    """Count the colours around a time of a run of 16 s, in one of 4 lanes."""
    _images(tab)
    n: int = tab.evaluate(
        """([time, lane]) => {
             const c = document.querySelector("canvas.gantt"), scale = window.devicePixelRatio;
             const x = (56 + (time + 0.16) / 16.32 * (c.width / scale - 56)) * scale;
             const y = (lane + 0.2) / 4 * (c.height - 20 * scale);
             const { data } = c.getContext("2d").getImageData(x - 12, y - 4, 24, 8);
             return new Set(new Uint32Array(data.buffer)).size;
           }""",
        [time_s, lane],
    )
    return n


def test_show_draws_cells_of_a_sweep(command: Command, tmp_path: Path) -> None:
    ran = command("policy=fifo,srpt", "capacity=0.5", "seed=0")
    assert ran.code == 0, ran.err
    name, trace = ran.folder.name, tmp_path / "a.json"
    shown = command.verb("show", name, "0", "--timeline", "--beside", "1", "--perfetto", str(trace))
    assert shown.code == 0, shown.err
    path = command.results / "timelines" / f"{name}-0-1.html"
    assert shown.out.splitlines() == [f"{trace}: open it at https://ui.perfetto.dev", str(path)]
    assert "fifo on parquet, capacity=0.5" in path.read_text()
    assert json.loads(trace.read_text())["traceEvents"]
    first, second = (sweep.load(ran.folder).cell(policy=name) for name in ("fifo", "srpt"))
    assert first.timeline(second).text == path.read_text()
    assert first.timeline()._repr_html_().startswith("<iframe")
    first.perfetto(tmp_path / "b.json")
    assert (tmp_path / "b.json").read_bytes() == trace.read_bytes()
    for words, message in (
        (("show", "--timeline"), "name the cell to draw"),
        (("show", "0", "--beside", "1"), "--beside goes with --timeline"),
    ):
        wrong = command.verb(*words)
        assert wrong.code == 2
        assert message in wrong.err
