"""Records of JSON in every form that commands write, with their lines."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.base.errors import InputError
from sim.base.reading import BadLineError, json_field, json_files, json_records, parse_time

KEYS = ("items", "data", "result")


def records(folder: Path, text: str) -> list[tuple[int, Any, dict[str, Any]]]:
    path = folder / "records.json"
    path.write_text(text)
    return list(json_records(path, KEYS, "a command"))


@pytest.mark.parametrize(
    ("text", "expected", "around"),
    [
        ('{"a": 1}', [(1, {"a": 1})], {}),
        ('{"a": 1}\n{"a": 2}\n', [(1, {"a": 1}), (2, {"a": 2})], {}),
        ('{\n"a": 1}\n\n {"a":\n2}', [(1, {"a": 1}), (4, {"a": 2})], {}),
        ('[\n{"a": 1},\n\n{"a": 2}]', [(2, {"a": 1}), (4, {"a": 2})], {}),
        ('{"k": 1,\n"items": [\n{"a": {"items": [3]}}], "n": 2}', [(3, {"a": {"items": [3]}})],
         {"k": 1, "n": 2}),
        ('[{"items": [{"a": 1}]}, {"a": 2}]', [(1, {"a": 1}), (1, {"a": 2})], {}),
        ('{"ok": true, "data": {"result": {"total": 9, "result": [{"a": 1}]}}}', [(1, {"a": 1})],
         {"ok": True, "total": 9}),
        ('{"items": []}', [], {}),
        ("[1, null]", [(1, 1), (1, None)], {}),
    ],
)  # fmt: skip
def test_each_form_has_its_records(
    tmp_path: Path, text: str, expected: list[Any], around: dict[str, Any]
) -> None:
    read = records(tmp_path, text)
    assert [(line, record) for line, record, _ in read] == expected
    assert all(fields == around for _, _, fields in read[:1])


@given(st.lists(st.dictionaries(st.text(), st.integers() | st.text() | st.none())), st.booleans())
def test_records_equal_those_of_the_standard_library(
    tmp_path_factory: pytest.TempPathFactory, values: list[dict[str, Any]], indented: bool
) -> None:
    values = [{f"x{key}": value for key, value in item.items()} for item in values]
    folder = tmp_path_factory.mktemp("json")
    text = json.dumps({"items": values}, indent=1 if indented else None)
    assert [record for _, record, _ in records(folder, text)] == values
    lines = "\n".join(map(json.dumps, values)) or "[]"
    assert [record for _, record, _ in records(folder, lines)] == values


@pytest.mark.parametrize(
    ("text", "line", "rule"),
    [
        (" ", 1, "empty file"),
        ("\nname: x", 2, "not JSON"),
        ('{"items": [{"a": 1}', 1, "wrong line"),
        ('{"items":\n[{"a": 1} {"a": 2}]}', 2, "wrong line"),
        ('{"a": 1}\n{"a": }', 2, "wrong line"),
        ('{1: 2}', 1, "wrong line"),
        ('{"a" 2}', 1, "wrong line"),
        ("[" * 100_000, 1, "wrong line"),
        ('{"data": ' * 100_000, 1, "wrong line"),
    ],
)  # fmt: skip
def test_a_damaged_text_is_an_error_with_its_line(
    tmp_path: Path, text: str, line: int, rule: str
) -> None:
    with pytest.raises(InputError) as caught:
        records(tmp_path, text)
    assert (caught.value.rule, caught.value.line) == (rule, line)


def test_files_of_a_folder_are_those_of_json_in_order(tmp_path: Path) -> None:
    for name in ("b/2.json", "b/.hidden.json", "a.jsonl", "c.ndjson.gz", "notes.txt", "d.json.zip"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(gzip.compress(b"{}"))
    names = [str(file.relative_to(tmp_path)) for file in json_files(tmp_path)]
    assert names == ["a.jsonl", "b/2.json", "c.ndjson.gz", "d.json.zip"]
    assert json_files(tmp_path / "nothing") == [tmp_path / "nothing"]
    (tmp_path / "e").mkdir()
    with pytest.raises(InputError, match="has no files"):
        json_files(tmp_path / "e")


def test_a_field_has_its_type_or_is_refused() -> None:
    record = {"a": {"b": [1], "n": 3, "t": "x", "no": None}, "on": True}
    assert json_field(record, "a.b", list) == [1]
    assert json_field(record, "a.n", float) == 3.0
    assert json_field(record, "on", bool)
    assert json_field(record, "a.no.deep", dict) == {}
    assert (json_field(record, "c", str), json_field(record, "c", bool)) == ("", False)
    assert math.isnan(json_field(record, "c.d", float))
    for name, kind, words in (
        ("a.t", float, "a.t must be a number, not 'x'"),
        ("on", float, "on must be a number, not True"),
        ("a.t.x", dict, "a.t must be an object, not 'x'"),
        ("a.b", str, "a.b must be text"),
    ):
        with pytest.raises(BadLineError, match=words):
            json_field(record, name, kind)
    for value in (1e300, float("inf"), -(10**30)):
        with pytest.raises(BadLineError, match="must be a number of -1e18 to 1e18"):
            json_field({"a": value}, "a", float)
    with pytest.raises(BadLineError, match="can't be written as UTF-8"):
        json_field({"a": "\ud800"}, "a", str)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-02T00:00:00Z", 86400.0),
        ("1970-01-01T01:00:00.250+01:00", 0.25),
        ("1970-01-01 00:00:01.000001", 1.000001),
        ("0001-01-01T00:00:00Z", math.nan),
        ("", math.nan),
    ],
)
def test_times_are_seconds_since_1970(text: str, seconds: float) -> None:
    assert parse_time("t", text) == pytest.approx(seconds, nan_ok=True, abs=0)


def test_a_text_that_is_no_time_is_named() -> None:
    for text in ("now", "1970-13-01T00:00:00Z", "9" * 400):
        with pytest.raises(BadLineError, match="t must be a time like 2026-03-01T09:30:00Z, not "):
            parse_time("t", text)
