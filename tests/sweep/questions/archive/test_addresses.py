"""An archive leads nowhere: no request is made and no file opened that it does not list."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sim.base.errors import InputError
from sweep.questions.archive.foreign import Foreign
from tests.sweep.questions.archive import entries as archives
from tests.sweep.questions.archive import sandbox
from tests.sweep.questions.archive.entries import Entries
from tests.sweep.questions.archive.sandbox import DECOY, Listener, Sandbox


def test_a_good_one(good: Entries, box: Sandbox) -> None:
    verified = box.attack(dict(good), "--cells=9")
    assert verified.is_harmless, verified
    assert (verified.code, verified.out.count(": same (")) == (0, 4), verified


def s3(listener: Listener) -> str:
    options = f"endpoint_override={listener.address}&scheme=http&region=us-east-1"
    return f"s3://bucket/trace.csv?{options}"


def added(path: str, key: str) -> dict[str, Any]:
    trace = {"format": "table", "path": path}
    return {key: [{"add": {"trace": trace}}] if key == "after" else {"add": {"trace": trace}}}


ADDRESSES = (
    "s3", f"file://{sandbox.passwords()}", f"FILE:{sandbox.passwords()}", sandbox.passwords(),
    DECOY, f"./{DECOY}", f"../box/{DECOY}", f"~/{DECOY}", "http://127.0.0.1:1/a", "gs://a/b",
)  # fmt: skip


PLACES = ("path", "after", "transforms", "policy", "cluster")
EVERYWHERE = [
    pytest.param(
        *(address, place),
        marks=() if place == "path" or column % 4 == row - 1 else pytest.mark.long,
    )
    for row, place in enumerate(PLACES)
    for column, address in enumerate(ADDRESSES)
]
"""Each address in each place; without the long lane all as a path, and each elsewhere once."""


@pytest.mark.parametrize(("address", "place"), EVERYWHERE)
def test_an_address_that_is_not_listed(
    good: Entries, box: Sandbox, listener: Listener, address: str, place: str
) -> None:
    text = s3(listener) if address == "s3" else address

    def change(config: dict[str, Any]) -> None:
        if place == "path":
            config["trace"]["path"] = text
        elif place in ("after", "transforms"):
            config["trace"] |= added(text, place)
        elif place == "policy":
            config["policy"]["params"] |= {"tables": {"deep": [text]}}
        else:
            config["cluster"] |= {"nodes": text}

    entries = dict(good)
    archives.change_configs(entries, change)
    for words in ((), ("--trust",)):
        verified = box.attack(entries, "--cells=1", *words)
        assert verified.is_harmless, verified
        assert verified.code != 0
        assert "not among the archive's traces" in verified.out + verified.err


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_that_is_listed_and_not_packed(
    good: Entries, box: Sandbox, listener: Listener, address: str
) -> None:
    text = s3(listener) if address == "s3" else address
    entries = {name: c for name, c in good.items() if not name.startswith("traces/")}
    archives.change_configs(entries, lambda config: config["trace"].update(path=text))
    record = archives.load(entries, archives.RECORD)
    decoy = (box.folder / DECOY).read_bytes()
    record["traces"] = [archives.trace_record(text, DECOY, decoy)]
    archives.store(entries, archives.RECORD, record)
    verified = box.attack(entries)
    assert verified.is_harmless, verified
    assert verified.code == 2, verified
    if not address.lower().startswith("file:"):
        return
    assert box.attack(entries, "--trust", f"paths.traces={box.folder}").code == 2


def test_a_listed_path_is_one_of_traces_alone(box: Sandbox) -> None:
    foreign = Foreign({sandbox.passwords(): Path("packed")})
    trace = {"format": "table", "path": sandbox.passwords()}
    foreign.check({"trace": trace, "policy": {"params": {"queues": 3}}})
    with pytest.raises(InputError, match="not among the archive's traces"):
        foreign.check({"trace": trace, "policy": {"params": {"tables": sandbox.passwords()}}})


@pytest.mark.long
def test_a_listed_address_is_fetched_with_a_word_of_the_user(
    good: Entries, box: Sandbox, listener: Listener
) -> None:
    text = s3(listener)
    entries = {name: c for name, c in good.items() if not name.startswith("traces/")}
    archives.change_configs(entries, lambda config: config["trace"].update(path=text))
    record = archives.load(entries, archives.RECORD)
    record["traces"] = [{"text": text, "name": "a", "is_folder": False, "files": []}]
    archives.store(entries, archives.RECORD, record)
    assert "--trust fetches it" in box.attack(entries).err
    assert box.attack(entries, "--trust", "--cells=1").n_requests > 0  # the listener would see it


@pytest.mark.parametrize(
    "config",
    [
        {"trace": {"decimal": ".", "separator": "/", "name": DECOY}},
        {"trace": {"job": "F/short", "path": "trace"}},
        {"trace": {}, "policy": {"name": "fifo", "module": None, "params": {"by": "a:b"}}},
    ],
)
def test_texts_that_lead_nowhere(config: Mapping[str, Any], box: Sandbox) -> None:
    Foreign({"trace": Path("elsewhere")}).check(config)
