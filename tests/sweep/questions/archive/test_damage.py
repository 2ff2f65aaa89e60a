"""A damaged archive ends in one sentence, with the file and the reason, within seconds."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml

from sweep.grid.config_tree import to_yaml
from tests.sweep.questions.archive import entries as archives
from tests.sweep.questions.archive.entries import CELLS, Entries
from tests.sweep.questions.archive.sandbox import Sandbox

Change = Callable[[Entries], None]
CONFIG, VERDICT, PROVENANCE = "sweep/config.yaml", "sweep/verdict.json", "sweep/provenance.json"


def without(column: str) -> Change:
    def change(entries: Entries) -> None:
        archives.set_cells(entries, archives.cells(entries).drop_columns([column]))

    return change


def typed(column: str, values: Any) -> Change:
    return lambda entries: archives.set_column(entries, column, values)


def text(name: str, content: str | bytes) -> Change:
    data = content.encode() if isinstance(content, str) else content
    return lambda entries: entries.update({name: data})


def many_rows(entries: Entries) -> None:
    """A few bytes of Parquet that stand for 8 million rows."""
    archives.set_cells(entries, pa.table({"seed": np.zeros(8_000_000, np.int64)}))


def config(key: str, value: Any) -> Change:
    def change(entries: Entries) -> None:
        entries[CONFIG] = to_yaml(yaml.safe_load(entries[CONFIG]) | {key: value}).encode()

    return change


def twice(entries: Entries) -> None:
    table = archives.cells(entries)
    columns = [*table.columns, table["jct_mean_s"]]
    archives.set_cells(entries, pa.table(columns, [*table.column_names, "jct_mean_s"]))


DAMAGES: dict[str, tuple[Change, str]] = {
    "no policy": (without("policy"), "it has no column 'policy'"),
    "no key": (without("key"), "it has no column 'key'"),
    "no config": (without("config"), "it has no column 'config'"),
    "no status": (without("status"), "it has no column 'status'"),
    "policy of numbers": (typed("policy", pa.array([1, 2, 3, 4])), "has the type int64"),
    "capacity of texts": (typed("capacity", pa.array([*"abcd"])), "has the type string"),
    "seed of lists": (typed("seed", pa.array([[1], [2], [3], [4]])), "has the type list"),
    "status of null": (typed("status", pa.array([None] * 4, pa.string())), "without a value"),
    "key of null": (typed("key", pa.array(["a", None, "c", "d"])), "without a value"),
    "metric of dates": (typed("jct_mean_s", pa.array([1, 2, 3, 4], pa.date32())), "the type date"),
    "a column twice": (twice, "two columns 'jct_mean_s'"),
    "many rows": (many_rows, "it declares 8,000,000 rows"),
    "no rows": (lambda e: archives.set_cells(e, archives.cells(e).slice(0, 0)), "it has no rows"),
    "no Parquet": (text(CELLS, b"PAR1 and more"), "it can't be read"),
    "deep JSON": (text(VERDICT, "[" * 99_999), "can't be read"),
    "deep JSON that ends": (text(PROVENANCE, "[" * 200 + "]" * 200), "can't be read"),
    "deep record": (text(archives.RECORD, "[" * 99_999), "it is no archive of a sweep"),
    "deep YAML": (text(CONFIG, "[" * 99_999), "nested more than 100 deep"),
    "deep YAML of dashes": (text(CONFIG, "- " * 99_999), "nested more than 100 deep"),
    "deep options": (text("own/mine/policy/a.yaml", "- " * 99_999), "nested more than 100 deep"),
    "aliases": (text(CONFIG, "a: &a [1]\nb: [" + "*a," * 99_999 + "]"), "more than 100,000"),
    "swept of numbers": (config("swept", [1, 2]), "swept is [1, 2]"),
    "swept of nothing": (config("swept", None), "swept is null"),
    "swept that is no column": (config("swept", ["policy.n"]), "it has no column 'policy.n'"),
    "baseline of a list": (config("baseline", ["fifo"]), "not a name"),
    "words of a text": (config("words", "policy=fifo"), "not a list of texts"),
    "study of a text": (config("study", "mine"), "not keys with values"),
    "no UTF-8": (text(CONFIG, b"\xff\xfe\xfa"), "can't be read"),
    "provenance of a list": (text(PROVENANCE, "[1]"), "no keys with values"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGES)
def test_one_sentence(name: str, good: Entries, box: Sandbox) -> None:
    change, reason = DAMAGES[name]
    entries = dict(good)
    change(entries)
    verified = box.attack(entries, is_sealed=name != "deep record")
    assert verified.is_harmless, verified
    assert verified.code == 2, verified
    assert reason in verified.err
    assert verified.err.startswith("error: ")
    assert verified.err.count("\n") == 1
    assert "box.zip: " in verified.err
    assert verified.seconds < 10


@pytest.mark.parametrize(
    "config", ["[" * 99_999, "[" * 200 + "]" * 200, "[]", "{}", "null", '{"policy": 1}', "x"]
)
def test_a_configuration_of_a_cell(config: str, good: Entries, box: Sandbox) -> None:
    entries = dict(good)
    archives.set_column(entries, "config", pa.array([config] * 4))
    verified = box.attack(entries)
    assert verified.is_harmless, verified
    assert verified.code in (1, 2)


def test_many_entries(tmp_path: Path, box: Sandbox) -> None:
    file = tmp_path / "many.zip"
    with zipfile.ZipFile(file, "w") as archive:
        for number in range(99_000):
            archive.writestr(f"own/{number}", b"")
    verified = box.verify(file)
    assert (verified.code, verified.seconds < 10) == (2, True)
    assert "it has 99,000 entries, of at most 20,000" in verified.err
