"""Lives of Google's instances of 2019, beside a plain loop over their events."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

import sim
from sim.base.reading import BadRows
from sim.traces.google2019.events import INSTANCES, read_events
from sim.traces.google2019.lives import lives_of
from tests.sim.traces.test_table_public import SECOND, event

ENDS = {4, 5, 6, 7, 8}


def naive(events: list[dict[str, Any]]) -> dict[str, tuple[float, ...]]:
    """Return submission, start, end and run time of each instance, s, and its last request."""
    lives = {}
    for index in dict.fromkeys(e["instance_index"] for e in events):
        own = [e for e in events if e["instance_index"] == index]
        own.sort(key=lambda e: (int(e["time"]), e["type"] == "3", e["type"] == "0"))
        submit = start = end = first = cpus = math.nan
        spans, since, waits = [], None, False
        for e in own:
            now, kind = int(e["time"]) / SECOND, int(e["type"])
            submit = now if kind in (0, 1, 2) and math.isnan(submit) else submit
            if kind == 3:
                first = now if math.isnan(first) else first
                since = now
            elif kind in ENDS or kind == 0:
                if since is not None:
                    start = start if spans else since
                    spans.append(now - since)
                    end = now
                since = None
            waits = kind == 0 if kind in ENDS or kind in (0, 3) else waits
        in_turn = [e for e in events if e["instance_index"] == index]
        for e in sorted(in_turn, key=lambda e: int(e["time"])):
            cpus = e["resource_request"]["cpus"] if e["resource_request"] else cpus
        is_over = bool(spans) and since is None and not waits
        start = start if spans else first
        lives[index] = (
            start if math.isnan(submit) else submit,
            start,
            end if is_over and len(spans) == 1 else math.nan,
            sum(spans) if is_over and len(spans) > 1 else math.nan,
            cpus,
        )
    return lives


def test_lives_are_those_of_a_plain_loop(tmp_path):
    rng = np.random.default_rng(3)
    file = tmp_path / "events.json"
    for _ in range(60):
        events = [
            event(
                int(rng.choice([0, 1, 2, 3, 3, 4, 6, 7, 8])), int(rng.integers(0, 9)),
                int(rng.integers(0, 3)), resource_request={"cpus": float(rng.integers(1, 9)) / 8}
                if rng.random() < 0.7 else None,
            )
            for _ in range(rng.integers(1, 14))
        ]  # fmt: skip
        file.write_text("\n".join(map(json.dumps, events)))
        lives = lives_of(read_events(file, INSTANCES, "error", BadRows()), {})
        rows = zip(
            lives.index.to_pylist(), lives.submit_us / SECOND, lives.start_us / SECOND,
            lives.end_us / SECOND, lives.run_s, lives.cpus, strict=True,
        )  # fmt: skip
        actual = {index: tuple(map(float, numbers)) for index, *numbers in rows}
        expected = naive(events)
        assert actual.keys() == expected.keys()
        for index, numbers in expected.items():
            np.testing.assert_array_equal(actual[index], numbers)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"time": None}, "an event must have its time"),
        ({"collection_id": None}, "an event must have its collection_id"),
        ({"type": "SUBMIT"}, "type must be a number, not 'SUBMIT'"),
        ({"time": "-5"}, "time is -5"),
    ],
)
def test_an_event_that_can_t_be_read(tmp_path, change, message):
    events = [event(0, 1), event(3, 2), event(6, 3), event(6, 4) | change]
    file = tmp_path / "instance_events.json"
    file.write_text("\n".join(map(json.dumps, events)))
    with pytest.raises(sim.InputError, match=message) as caught:
        sim.read_trace("google2019", tmp_path)
    assert caught.value.line == 4
    w = sim.read_trace("google2019", tmp_path, on_bad_row="skip")
    assert (w.n_jobs, sum(w.meta["report"]["bad_rows"].values())) == (1, 1)
    (tmp_path / "instance_events.json").rename(tmp_path / "other.json")
    with pytest.raises(sim.InputError, match="the folder has no files instance_events"):
        sim.read_trace("google2019", tmp_path)
