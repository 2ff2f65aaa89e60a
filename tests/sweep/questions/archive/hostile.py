"""Attacks that lead out of the archive: addresses, and code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import yaml

from sweep.grid.config_tree import to_yaml
from tests.sweep.questions.archive import entries as archives
from tests.sweep.questions.archive import sandbox
from tests.sweep.questions.archive.changes import (
    CONFIG,
    LISTENER,
    Attack,
    Change,
    both,
    configured,
    entry,
    words,
)
from tests.sweep.questions.archive.entries import RECORD, Entries, load, store
from tests.sweep.questions.archive.sandbox import DECOY


def s3(host: str) -> str:
    """Address in an object store on a host."""
    return f"s3://bucket/a.csv?endpoint_override={host}&scheme=http&region=us-east-1"


ADDRESSES = (
    s3(LISTENER), f"http://{LISTENER}/a.csv", f"https://{LISTENER}/a", f"hdfs://{LISTENER}/a",
    f"file://{sandbox.passwords()}", f"File:{sandbox.passwords()}", sandbox.passwords(), DECOY,
    f"./{DECOY}", f"../box/{DECOY}", f"~/{DECOY}", "~root/a",
)  # fmt: skip


def _table(path: str) -> dict[str, Any]:
    return {"trace": {"format": "table", "path": path}}


PLACES: dict[str, Callable[[dict[str, Any], str], None]] = {
    "path": lambda c, a: c["trace"].update(path=a),
    "after": lambda c, a: c["trace"].update(after=[{"add": _table(a)}]),
    "transforms": lambda c, a: c["trace"].update(transforms={"add": _table(a)}),
    "trace option": lambda c, a: c["trace"].update(columns={"deep": [[a]]}),
    "policy": lambda c, a: c["policy"]["params"].update(tables=a),
    "cluster": lambda c, a: c["cluster"].update(machines=[{"file": a}]),
    "evaluator": lambda c, a: c["evaluator"].update(tables=a),
}


def _addressed(place: str, address: str) -> Change:
    return lambda entries: archives.change_configs(entries, lambda c: PLACES[place](c, address))


def _in_words(address: str) -> Change:
    def change(entries: Entries) -> None:
        config = yaml.safe_load(entries[CONFIG])
        words = [word for word in config["words"] if not word.startswith("trace.path=")]
        config["words"] = [*words, f'trace.path="{address}"']
        entries[CONFIG] = to_yaml(config).encode()

    return change


def _listed(address: str) -> Change:
    """List an address with the decoy's digest, and name it in every configuration."""

    def change(entries: Entries) -> None:
        for name in [name for name in entries if name.startswith("traces/")]:
            del entries[name]
        archives.change_configs(entries, lambda c: c["trace"].update(path=address))
        record = load(entries, RECORD)
        record["traces"] = [archives.trace_record(address, DECOY, sandbox.DECOY_CONTENT)]
        store(entries, RECORD, record)

    return change


def addresses() -> Iterator[Attack]:
    """Yield archives that lead to another machine, or to a file of the user's."""
    for address in ADDRESSES:
        for place in PLACES:
            name = f"{address} in {place}"
            yield Attack("address", name, "grid", _addressed(place, address))
        yield Attack("address", f"{address} in words", "grid", _in_words(address))
        yield Attack("address", f"{address} listed", "grid", _listed(address))


def _module(part: str, module: str) -> Change:
    return lambda entries: archives.change_configs(entries, lambda c: c[part].update(module=module))


def foreign_code() -> Iterator[Attack]:
    """Yield archives whose code, or whose choice of a module, must not run."""
    changes: dict[str, Change] = {
        "its own module": lambda entries: None,
        "a module of cells": _module("policy", "planted"),
        "a module of the evaluator": _module("evaluator", "planted"),
        "a module of the library": _module("policy", "antigravity"),
        "a module in words": words("evaluator.module=planted"),
        "an added module in words": words("+evaluator.module=planted"),
        "a study": configured(study={"name": "of mine", "module": "planted", "notes": ""}),
        "an own study": configured(study={"module": "lent"}),
        "an option with a module": both(
            entry("own/mine/policy/fifo2.yaml", "name: fifo2\nmodule: planted\n"),
            configured(config_dirs=["mine"]),
            words("policy=fifo2"),
        ),
        "a target": both(
            entry("own/mine/policy/fifo2.yaml", "_target_: planted.run\nname: fifo\n"),
            configured(config_dirs=["mine"]),
            words("policy=fifo2"),
        ),
        "a YAML tag": entry(CONFIG, "a: !!python/object/apply:os.system [touch executed]\n"),
        "sitecustomize": entry("own/sitecustomize.py", "open('executed', 'w')\n"),
        "a shadow of a package": entry("own/numpy.py", "open('executed', 'w')\n"),
        "a trace's module": lambda entries: archives.change_configs(
            entries, lambda c: c["trace"].update(module="planted")
        ),
        "a search path": words("hydra.searchpath=[file:///tmp]"),
    }
    harmless = ("sitecustomize", "a shadow of a package")
    for name, change in changes.items():
        base = "own" if name in ("its own module", "an own study") else "grid"
        unread = "cells are the same" if name in harmless else ""
        yield Attack("code", name, base, change, unread)
