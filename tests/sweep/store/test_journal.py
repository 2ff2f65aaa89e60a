from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from sweep.store import tally
from sweep.store.journal import Journal
from sweep.store.tally import Tally
from tests.damages import damages


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path, "sweep-1")


def event_names(journal: Journal) -> list[str]:
    return [event["event"] for event in journal.events()]


def test_events_are_stored_in_order(journal: Journal, tmp_path: Path) -> None:
    assert [*journal.events()] == []
    journal.append("begin", cached=[])
    journal.append("cell", row=3)
    assert event_names(Journal(tmp_path, "sweep-1")) == ["begin", "cell"]
    assert [*journal.events()][1]["row"] == 3


@pytest.mark.parametrize("half", ['{"event": "ce', "\x00\x00", '["event"]\n', "null\n"])
def test_a_line_truncated_by_a_kill_is_skipped(journal: Journal, half: str) -> None:
    journal.append("begin", cached=[])
    with journal.file.open("a") as file:
        file.write(half)
    again = Journal(journal.file.parent.parent, "sweep-1")
    again.append("end")
    assert event_names(again) == ["begin", "end"]


def test_a_damaged_line_is_skipped(journal: Journal) -> None:
    journal.append("begin", cached=[1, 2], cells=7)
    journal.append_cells({"row": row, "seconds": 0.125 * row} for row in range(3))
    journal.append("end", failed=2, text="ä\u2028")
    original, events = journal.file.read_bytes(), [*journal.events()]
    assert len(events) == 5
    for content in damages(original, 200):
        journal.file.write_bytes(content)
        remaining = [*journal.events()]
        assert len(remaining) < 5
        assert all(event in events for event in remaining)
        assert journal.start_times_s() in (None, (events[0]["time"],) * 2)


def test_an_attempt_is_open_until_its_end(journal: Journal) -> None:
    assert not journal.is_complete()
    journal.append("begin", cached=[1])
    assert not journal.is_complete()
    journal.append("end")
    assert journal.is_complete()
    journal.append("tracked")
    assert journal.is_complete()
    journal.append("begin", cached=[1, 2, 3])
    assert not journal.is_complete()


def test_milestones_leave_out_cells(journal: Journal) -> None:
    journal.append("begin", cached=[])
    for row in range(3):
        journal.append("cell", row=row)
    journal.append("said", text="a worker died\u2028")
    journal.append("end")
    assert [event["event"] for event in journal.milestones()] == ["begin", "said", "end"]
    assert len([*journal.events()]) == 6


def test_the_last_attempt_starts_at_its_begin_event(journal: Journal) -> None:
    assert [*journal.last_attempt()] == []
    for attempt in range(2):
        journal.append("begin", cached=[], cells=attempt)
        journal.append("cell", row=attempt)
        journal.append("end")
    assert [event.get("row") for event in journal.last_attempt()] == [None, 1, None]


def test_one_process_holds_the_lock_at_a_time(journal: Journal, tmp_path: Path) -> None:
    order: list[str] = []
    other = Journal(tmp_path, "sweep-1")

    def hold_second() -> None:
        with other.locked(lambda: order.append("waits")):
            order.append("second")

    thread = threading.Thread(target=hold_second)
    with journal.locked(lambda: order.append("never")):
        assert other.is_running()
        thread.start()
        while "waits" not in order:
            time.sleep(0.01)
        order.append("first")
    thread.join()
    assert order == ["waits", "first", "second"]
    assert not journal.is_running()


def test_a_tally_is_read_on_where_reading_stopped(journal: Journal) -> None:
    assert journal.tally() == Tally()
    journal.append("begin", cells=9, todo=8, cached=[0])
    journal.append_cells([{"status": "done"}, {"status": "failed", "error": "no"}])
    first = journal.tally()
    assert (first.n_cells, first.n_todo, first.n_came, first.n_failed) == (9, 8, 2, 1)
    assert not first.has_ended
    content = journal.file.read_bytes()
    with journal.file.open("ab") as file:
        file.write(content.splitlines(keepends=True)[1][:-9])  # a line that is being written
    assert journal.tally() == first
    journal.file.write_bytes(content)
    journal.append_cells([{"status": "done"}])
    journal.append("asked")
    journal.append("end")
    later = journal.tally()
    assert (later.n_came, later.has_ended, later.started_s) == (3, True, first.started_s)
    assert later == _read_anew(journal)
    journal.append("begin", cells=3, todo=1, cached=[0, 1])
    again = journal.tally()
    assert (again.n_cells, again.n_came, again.has_ended) == (3, 0, False)
    journal.file.unlink()  # and another journal of the same name
    assert journal.tally() == Tally()
    journal.append("begin", cells=2, todo=2, cached=[])
    journal.append_cells([{"status": "done"}] * 100)
    assert journal.tally().n_came == 100
    journal.file.write_bytes(journal.file.read_bytes().replace(b'"status"', b'"stetus"', 1))
    tally._POSITIONS.clear()
    assert journal.tally().n_came == 99  # a damaged line


def _read_anew(journal: Journal) -> Tally:
    tally._POSITIONS.clear()
    return journal.tally()
